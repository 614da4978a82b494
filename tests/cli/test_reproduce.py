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


class Elsewhere(MeanExperiment):
    """One that the folder does not hold: it needs real processes, say."""

    id = "own/E15"
    name = "own/elsewhere"


def test_page_has_what_other_runs_have_left(holdfast: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of this folder that lie in --out come last on its page; whatever else lies there does not."""
    out = tmp_path / "out"
    put(monkeypatch, EXPERIMENT, Elsewhere())
    assert holdfast("lab", "run", "own/E15").code == 0
    (out / "own-notes.json").write_text("{}")
    put(monkeypatch, EXPERIMENT)
    assert holdfast("lab", "reproduce", "own").code == 0
    text = (out / "own.md").read_text()
    assert text.index("## own/E1 ") < text.index("## own/E15 ")


def test_page_without_running_anything(holdfast: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--page``: of what is there; it says how much of the folder that is, and what is missing altogether is said, too."""
    put(monkeypatch, EXPERIMENT, Failing())
    holdfast("lab", "reproduce", "own", "--page").refused(2, "--page", "no results of own")
    assert holdfast("lab", "run", "own/E1").code == 0
    ended = holdfast("lab", "reproduce", "own", "--page")
    assert (ended.code, ended.out.startswith("pass; ")) == (0, True)
    assert "1 of 2 experiments so far." in (tmp_path / "out" / "own.md").read_text()


class Recorded(MeanExperiment):
    """One that judges a file of real processes."""

    id = "own/E3"
    name = "own/recorded"
    recorded = True


def test_what_real_processes_record_is_left_out(holdfast: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Election 8: `lab reproduce` runs what the laboratory can; a file that was judged before is on its page."""
    put(monkeypatch, EXPERIMENT, Recorded())
    assert holdfast("lab", "reproduce", "own").code == 0
    assert "own/E3" not in (tmp_path / "out" / "own.md").read_text()
    assert holdfast("lab", "run", "own/E3").code == 0
    assert holdfast("lab", "reproduce", "own").code == 0
    text = (tmp_path / "out" / "own.md").read_text()
    assert 0 < text.index("own/E1") < text.index("own/E3")
    assert "so far" not in text
