"""When is a silence too long?  Detectors of one pair behind one interface, pure arithmetic over arrival times.

Spec: fast-detection 3, 5 (freshness points), D11; paper 002, section 3 (temporal scheme), after Chen et al. 2002.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import Protocol

WINDOW = 100  # arrivals that the estimate of the next one rests on (NFD-E)


class PairDetector(Protocol):
    """One monitor's opinion of one subject."""

    def arrived(self, seq: int, now: float) -> None:
        """Heartbeat ``seq`` came in."""

    def deadline(self) -> float:
        """From this instant on the subject is suspected, unless another heartbeat comes first; infinity before the first."""


class Temporal:
    """Several timeouts in a row: suspect after ``m`` heartbeats in a row did not come (D11: m counts missed heartbeats).

    Clocks are not synchronised. Heartbeat j is sent at j t_itv on the subject's clock, so every arrival tells how far the
    two clocks and the delay are apart, ``x_j = A_j - j t_itv``; the mean of the last 100 gives the expected arrival
    ``EA_i = mean(x) + i t_itv``. The worst detection time is ``m t_itv + slack`` plus the mean delay (Proposition 4.1).
    """

    def __init__(self, m: int, *, interval: float, slack: float) -> None:
        assert m >= 1
        assert interval > 0
        assert slack >= 0
        self.m, self.interval, self.slack = m, interval, slack  # m, t_itv, t_lat
        self._newest = -1
        self._offsets: deque[float] = deque(maxlen=WINDOW)
        self._sum = 0.0

    def arrived(self, seq: int, now: float) -> None:
        if seq <= self._newest:
            return  # Doubled or overtaken: it proves nothing that the newer one did not prove.
        self._newest = seq
        if len(self._offsets) == WINDOW:
            self._sum -= self._offsets[0]
        self._offsets.append(now - seq * self.interval)
        self._sum += self._offsets[-1]

    def deadline(self) -> float:
        if self._newest < 0:
            return inf
        return self._sum / len(self._offsets) + (self._newest + self.m) * self.interval + self.slack
