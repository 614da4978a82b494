"""RL8 as a sum that is kept: may this much have been admitted in any interval that ends now?  Spec: limits 7 (RL8).

    admitted in [s, t] <= (rate integrated over [s, t]) + max(depth at s, largest cost)        for every s <= t

With X(t) = admitted until t, less the integral until t, that is X(t) <= min over s of (X(s) + max(depth at s, largest)). Between two
events X only falls, so the least is found at the instants at which something changes, and one number is all that has to be kept. Whole
numbers: micro-units of cost times nanoseconds, so nothing is rounded.
"""

from __future__ import annotations

from holdfast.features.limits.bucket import SECOND


class Admitted:
    """One bucket, seen from outside."""

    __slots__ = ("_at", "_depth", "_largest", "_least", "_rate", "_x")

    def __init__(self, now: int, depth: int, largest: int) -> None:
        """``largest``: the largest cost that is ever asked for, in micro-units."""
        self._at, self._rate, self._depth, self._largest = now, 0, depth, largest
        self._x = 0  # X, in parts: micro-units times nanoseconds per second
        self._least = self._x + self._margin

    @property
    def _margin(self) -> int:
        return max(self._depth, self._largest) * SECOND

    def change(self, now: int, rate: int, depth: int) -> None:
        self._move(now)
        self._rate, self._depth = rate, depth
        self._least = min(self._least, self._x + self._margin)

    def admit(self, now: int, cost: int) -> int:
        """By how many parts too much is admitted; 0 or less: RL8 holds."""
        self._move(now)
        self._x += cost * SECOND
        return self._x - self._least

    def _move(self, now: int) -> None:
        assert now >= self._at
        self._x -= self._rate * (now - self._at)
        self._at = now
        self._least = min(self._least, self._x + self._margin)
