"""``lab reproduce``: the page says what it is, and there is one even if the folder was not finished.  docs/cli.md"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import ConfigError
from holdfast.lab import registry
from holdfast.lab.experiment import Cell, Experiment, Measured
from tests.cli.command import Run
from tests.lab.own_experiment import EXPERIMENT, MeanExperiment

REDUCED = "Reduced sizes (--quick): enough for a look, not for a verdict."


class Failing(MeanExperiment):
    """The second of the folder: its first cell cannot be measured."""

    id = "own/E2"
    name = "own/failing"

    def measure(self, cell: Cell) -> Measured:
        raise ConfigError("interrupted")


def put(monkeypatch: pytest.MonkeyPatch, *experiments: Experiment[Any]) -> None:
    """The folder ``own`` holds these."""
    monkeypatch.setattr(registry, "experiments", lambda: {experiment.id: experiment for experiment in experiments})


def test_page_says_that_sizes_are_reduced(holdfast: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page made with --quick says so at its top, in both forms; one of full size does not, and both name the parameters."""
    put(monkeypatch, EXPERIMENT)
    texts = {}
    for words in (["--quick"], []):
        assert holdfast("lab", "reproduce", "own", *words).code == 0
        texts[bool(words)] = [(tmp_path / "out" / name).read_text() for name in ("own.md", "own.html")]
    assert all(REDUCED in text and "draws = 50" in text for text in texts[True])
    assert all(REDUCED not in text and "draws = 50" not in text and "draws = " in text for text in texts[False])


def test_page_of_an_unfinished_folder(holdfast: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured before a failure is on the page, and the page says how much is missing."""
    put(monkeypatch, EXPERIMENT, Failing())
    ended = holdfast("lab", "reproduce", "own")
    assert ended.code == 2
    assert "interrupted" in ended.err
    for name in ("own.md", "own.html"):
        text = (tmp_path / "out" / name).read_text()
        assert "1 of 2 experiments so far." in text
        assert "own/E1" in text
        assert "own/E2" not in text
