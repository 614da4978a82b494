"""What the processes that use a limit count for people: metrics and the page.  Spec: limits 9; docs/http.md; H351.

Nothing is decided by it. A process counts only where its callers wait; what went without waiting is known from the
bucket. It tells the agent together with what the agent has to hear anyway, so that this costs no message.
"""

from __future__ import annotations

from math import isfinite
from typing import Final

from holdfast.features.limits.bucket import MICRO, SECOND, Bucket
from holdfast.features.limits.calls import Tally
from holdfast.kit.histogram import Histogram

WAITS: Final = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)  # seconds
COUNT_MAX: Final = 1 << 40  # of one number in one report: no process counts so much, and no sum of them runs over


class Counting:
    """Of one bucket, since the last report."""

    __slots__ = ("_admitted", "_waited", "waiters", "waits")

    def __init__(self) -> None:
        self.waiters = 0  # now
        self.waits = Histogram(*WAITS)  # of callers that waited and went
        self._waited = 0  # cost of those callers, micro-units
        self._admitted = 0  # all that went, as it was told last

    def begin(self) -> None:
        """A caller waits."""
        self.waiters += 1

    def end(self, units: int, nanoseconds: int, *, went: bool) -> None:
        """It waits no more."""
        self.waiters -= 1
        if went:
            self._waited += units
            self.waits.add(nanoseconds / SECOND)

    def told(self, bucket: Bucket, now: int) -> Tally:
        """For the next report. What was told counts no more."""
        admitted, waited = bucket.admitted - self._admitted, self._waited
        self._admitted, self._waited = bucket.admitted, 0
        waits, seconds = self.waits.drain()
        return Tally(admitted / MICRO, waited / MICRO, seconds, waits, self.waiters, bucket.seen(now) / MICRO)


class Totals:
    """Of one limit at one agent, all its processes together, those that are gone too."""

    def __init__(self) -> None:
        self.admitted = self.waited = 0.0
        self.waits = Histogram(*WAITS)

    def add(self, tally: Tally) -> None:
        """A process that tells nonsense spoils no other number."""
        self.admitted += max(0.0, finite(tally.admitted))
        self.waited += max(0.0, finite(tally.waited))
        if len(tally.waits) == len(WAITS) + 1 and all(0 <= each <= COUNT_MAX for each in tally.waits):
            self.waits.merge(tally.waits, max(0.0, finite(tally.seconds)))


def finite(amount: float) -> float:
    return max(-COUNT_MAX, min(COUNT_MAX, amount)) if isfinite(amount) else 0.0


def whole(count: int) -> int:
    return max(0, min(COUNT_MAX, count))
