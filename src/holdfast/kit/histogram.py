"""Histogram: how often a measured value stayed below each of a few bounds.  STYLE 4 (metrics).

A protocol has no clock and no log, but it knows best when a question was asked and when the answer came. Memory is fixed by the bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate


class Histogram:
    """Counts per bound, the last one without any, and the sum of all values."""

    __slots__ = ("_counts", "bounds", "sum")

    def __init__(self, *bounds: float) -> None:
        assert bounds
        assert list(bounds) == sorted(set(bounds))
        self.bounds = bounds
        self.sum = 0.0
        self._counts = [0] * (len(bounds) + 1)

    def add(self, value: float) -> None:
        self._counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def below(self) -> tuple[int, ...]:
        """How many values were at most each bound; the last number is of all."""
        return tuple(accumulate(self._counts))

    @property
    def count(self) -> int:
        return sum(self._counts)
