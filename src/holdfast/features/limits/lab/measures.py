"""What experiments of limits share: a violation is a result, notes have a limit, how a figure's lines are kept small.  Spec: limits 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from holdfast.lab.checker import Violation
from holdfast.lab.experiment import Cell, Measured

VIOLATION = "violation"
NOTES_MAX = 12  # of one report
POINTS_MAX = 400  # of one line of a figure


def checked(play: Callable[[Cell], Measured], cell: Cell) -> Measured:
    """What a cell measured, or the violation that ended it: no error of the experiment, but what it found."""
    try:
        return {**play(cell), VIOLATION: ""}
    except Violation as violation:
        return {**cell, VIOLATION: f"{violation}, at {violation.at:.3f} s, seed {cell['seed']}"}


def violations(results: Sequence[Measured]) -> list[str]:
    return [result[VIOLATION] for result in results if result[VIOLATION]]


def completed(results: Sequence[Measured]) -> list[Measured]:
    return [result for result in results if not result[VIOLATION]]


def shortened(notes: Sequence[str]) -> tuple[str, ...]:
    """What a report has room for."""
    more = len(notes) - NOTES_MAX
    return tuple(notes) if more <= 0 else (*notes[:NOTES_MAX], f"and {more} more")


def mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """A line that a report has room for, rounded."""
    step = max(1, len(points) // POINTS_MAX)
    return [(round(at, 3), float(f"{value:.6g}")) for at, value in points[::step]]


def between(points: Sequence[tuple[float, float]], begin: float, end: float) -> list[float]:
    """The values of a line in this time."""
    return [value for at, value in points if begin <= at < end]
