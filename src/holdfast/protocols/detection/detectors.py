"""When is a silence too long?  Detectors of one pair behind one interface, pure arithmetic over arrival times.

Spec: fast-detection 4, 5 (freshness points), D11; paper 002, section 3 (temporal scheme), after Chen et al. 2002.
"""

from __future__ import annotations

from collections import deque
from math import ceil, inf, log
from typing import Protocol

WINDOW = 100  # arrivals that the estimate of the next one rests on (NFD-E)
WINDOW_MIN = 16  # with fewer, one late heartbeat moves the estimate too far (section 5)
ROUNDING = 1e-9  # section 4: log(1e-5) / log(.1) is 5.000000000000001 in floats, and a bare ceil gives 6


class PairDetector(Protocol):
    """One monitor's opinion of one subject."""

    def arrived(self, seq: int, at: float, *, timed: bool = True) -> bool:
        """Heartbeat ``seq`` came in; False if it is no news. ``at`` is when it would have come had it left on its sender's grid.
        Without ``timed`` it is only when it was read: it proves life, and teaches nothing about delays."""

    def deadline(self) -> float:
        """From this instant on the subject is suspected, unless another heartbeat comes first; infinity before the first."""


class Temporal:
    """Several timeouts in a row: suspect after ``m`` heartbeats in a row did not come (D11: m counts missed heartbeats).

    Clocks are not synchronised. Heartbeat j is sent at j t_itv on the subject's clock, so every arrival tells how far the
    two clocks and the delay are apart, ``x_j = A_j - j t_itv``; the mean of the last 100 gives the expected arrival
    ``EA_i = mean(x) + i t_itv``. The worst detection time is ``m t_itv + slack`` plus the mean delay (Proposition 4.1).
    Clocks that run apart by a share d of time put the mean ``d window/2 t_itv`` behind: harmless below a quarter of the slack,
    else choose a shorter window.
    """

    def __init__(self, m: int, *, interval: float, slack: float, window: int = WINDOW) -> None:
        assert m >= 1
        assert interval > 0
        assert slack >= 0
        assert window >= WINDOW_MIN
        self.m, self.interval, self.slack = m, interval, slack  # m, t_itv, alpha of NFD-E: t_lat without the mean delay
        self._newest = -1
        self._offsets: deque[float] = deque(maxlen=window)  # x_j
        self._sum = 0.0
        self._provisional = 0.0  # stands for the mean until the first sample

    def arrived(self, seq: int, at: float, *, timed: bool = True) -> bool:
        if seq <= self._newest:
            return False  # Doubled or overtaken: it proves nothing that the newer one did not prove.
        self._newest = seq
        offset = at - seq * self.interval
        if timed:
            self._learn(offset)
        else:
            self._provisional = offset  # Read late, so never early: no deadline that rests on it accuses too soon.
        return True

    def deadline(self) -> float:
        if self._newest < 0:
            return inf
        mean = self._sum / len(self._offsets) if self._offsets else self._provisional
        return mean + (self._newest + self.m) * self.interval + self.slack

    def _learn(self, offset: float) -> None:
        if len(self._offsets) == self._offsets.maxlen:
            self._sum -= self._offsets[0]
        self._offsets.append(offset)
        self._sum += offset


def heartbeats_to_miss(accuracy: float, loss: float) -> int:
    """The m that keeps the chance of a mistake at or below ``accuracy`` (P_m) on a link that loses ``loss`` (p_L) of all messages."""
    assert 0 < accuracy < 1
    assert 0 < loss < 1
    return max(1, ceil(log(accuracy) / log(loss) - ROUNDING))
