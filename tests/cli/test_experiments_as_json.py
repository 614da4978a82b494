"""``lab run --json`` of every experiment: one object, and an exit code that is its verdict.  docs/cli.md

`make test` runs the first of each folder; `make test-all` runs all of them. What each judges is tested with the simulations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from matplotlib.figure import Figure
from msgspec.structs import replace

from holdfast.lab import registry
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured
from tests.cli.command import Run

PICTURE_BYTES_MIN = 5000  # an empty page with a frame has fewer
FIELDS = {"experiment", "seed", "parameters", "measured", "expected", "verdict"}


def remember(experiment: Experiment[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell is measured once, so that the second run costs nothing."""
    known: dict[str, Measured] = {}
    measure = type(experiment).measure

    def remembered(self: Experiment[Any], cell: Cell) -> Measured:
        key = repr(cell)
        if key not in known:
            known[key] = measure(self, cell)
        return known[key]

    monkeypatch.setattr(type(experiment), "measure", remembered)


def look_on(experiment: Experiment[Any], monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that are drawn from now on."""
    figures: list[Figure] = []
    draw = type(experiment).draw

    def looked_at(self: Experiment[Any], figure: Figure, finding: Finding) -> None:
        draw(self, figure, finding)
        figures.append(figure)

    monkeypatch.setattr(type(experiment), "draw", looked_at)
    return figures


def quick() -> Iterator[ParameterSet]:
    """All of them; those that are not the first of their folder are for the night."""
    folders: set[str] = set()
    for name, experiment in registry.experiments().items():
        folder = name.partition("/")[0]
        yield pytest.param(experiment, id=name, marks=[pytest.mark.nightly] if folder in folders else [])
        folders.add(folder)


@pytest.mark.parametrize("experiment", list(quick()))
def test_quick_size(holdfast: Run, experiment: Experiment[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """``--json``: exactly one object with all that is promised; exit 0 on pass, 1 on a miss. A quick size judges what it can.

    Every experiment meets its criterion with its quick settings, and can be drawn.
    """
    remember(experiment, monkeypatch)
    figures = look_on(experiment, monkeypatch)
    words = ["lab", "run", experiment.id, "--json", "--seed", "5"]
    words += [word for key, value in experiment.quick.items() for word in ("--set", f"{key}={value}")]
    passed = holdfast(*words)
    report = passed.json
    assert report.keys() >= FIELDS
    assert (passed.code, report["experiment"], report["seed"], report["verdict"]) == (0, experiment.id, 5, "pass"), report["notes"]
    assert report["parameters"].keys() == set(experiment.parameters.__struct_fields__)
    assert report["measured"]
    assert report["expected"]
    violations = report["measured"].get("violations", 0)  # counted, or counted or listed for each setting
    assert not (any(violations.values()) if isinstance(violations, dict) else violations)
    if experiment.id.startswith("detection/"):  # Others say what they expect in words, or for all of them together.
        assert report["expected"].keys() <= report["measured"].keys()
    assert [path.stat().st_size > PICTURE_BYTES_MIN for path in Path("out").glob("*.png")] == [True]
    assert [all(axes.lines or axes.patches or axes.images for axes in figure.axes) and bool(figure.axes) for figure in figures] == [True]
    judge = type(experiment).judge

    def otherwise(self: Experiment[Any], parameters: Any, results: Any) -> Finding:
        found = judge(self, parameters, results)
        return replace(found, passed=not found.passed)

    monkeypatch.setattr(type(experiment), "judge", otherwise)
    monkeypatch.setattr("holdfast.lab.report.save_picture", lambda *what: None)  # There is one already.
    other = holdfast(*words)
    assert (other.code, other.json) == (1, {**report, "verdict": "miss"})
