"""What experiments of limits read from the lines of a figure, and how these are kept small.  Spec: limits 8."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

POINTS_MAX = 400  # of one line of a figure


def mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """A line that a report has room for, rounded."""
    step = max(1, len(points) // POINTS_MAX)
    return [(round(at, 3), float(f"{value:.6g}")) for at, value in points[::step]]


def between(points: Sequence[tuple[float, float]], begin: float, end: float) -> list[float]:
    """The values of a line in this time."""
    return [value for at, value in points if begin <= at < end]
