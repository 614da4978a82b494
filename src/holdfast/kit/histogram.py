"""Histogram: how often a measured value stayed below each of a few bounds.  STYLE 4 (metrics).

A protocol has no clock and no log, but it knows best when a question was asked and when the answer came. Memory is fixed by the bounds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
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

    def merge(self, counts: Sequence[int], total: float) -> None:
        """Take in what another one with the same bounds counted: per bound, and the sum of its values."""
        assert len(counts) == len(self._counts)
        for place, count in enumerate(counts):
            self._counts[place] += count
        self.sum += total

    def drain(self) -> tuple[tuple[int, ...], float]:
        """What was counted since the last time, for ``merge``: it begins anew. Without any value the counts are empty."""
        if not any(self._counts):
            return (), 0.0
        drained = tuple(self._counts), self.sum
        self._counts, self.sum = [0] * len(self._counts), 0.0
        return drained

    @property
    def below(self) -> tuple[int, ...]:
        """How many values were at most each bound; the last number is of all."""
        return tuple(accumulate(self._counts))

    @property
    def count(self) -> int:
        return sum(self._counts)
