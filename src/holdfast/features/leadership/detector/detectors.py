"""When is a silence too long?  Detectors of one pair behind one interface, pure arithmetic over arrival times.

Spec: fast-detection 4, 5 (freshness points), 10 (baselines), D11, D27; paper 002, section 3 (temporal scheme), after Chen et al.
2002 and Hayashibara et al. 2004.
"""

from __future__ import annotations

from collections import deque
from math import ceil, inf, log, sqrt
from statistics import NormalDist
from typing import Protocol

from holdfast.features.leadership.detector.config import ROUNDING, WINDOW, WINDOW_MIN

PHI_MAX = 300.0  # 10 ** -300 still is a number
PHI_SAMPLES_MIN = 8  # with fewer, a quarter of the interval stands for the deviation
PHI_SPREAD_MIN = 0.01  # in intervals: on a link without jitter the deviation must not vanish


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


class NfdE(Temporal):
    """Chen's NFD-E: suspect ``alpha`` after the expected arrival of the next heartbeat. A single lost one is a mistake."""

    def __init__(self, alpha: float, *, interval: float, window: int = WINDOW) -> None:
        super().__init__(1, interval=interval, slack=alpha, window=window)


class PhiAccrual:
    """Hayashibara's phi: suspect when the chance that the next heartbeat is still on its way falls to 10 ** -threshold, if the times
    between arrivals are normal. They are not (D27): where heartbeats get lost they are geometric, so the threshold is no accuracy.
    """

    def __init__(self, threshold: float, *, interval: float, window: int = WINDOW) -> None:
        assert 0 < threshold <= PHI_MAX
        assert window >= WINDOW_MIN
        self.threshold, self.interval = threshold, interval
        self._newest, self._newest_at = -1, -inf
        self._gaps: deque[float] = deque(maxlen=window)  # seconds between two arrivals
        self._deviations = -NormalDist().inv_cdf(10.0**-threshold)

    def arrived(self, seq: int, at: float, *, timed: bool = True) -> bool:
        if seq <= self._newest:
            return False
        if timed and self._newest >= 0:
            self._gaps.append(at - self._newest_at)
        self._newest, self._newest_at = seq, at
        return True

    def deadline(self) -> float:
        if self._newest < 0:
            return inf
        count = len(self._gaps)
        if count < PHI_SAMPLES_MIN:
            mean, deviation = self.interval, self.interval / 4
        else:
            mean = sum(self._gaps) / count
            deviation = sqrt(sum((gap - mean) ** 2 for gap in self._gaps) / (count - 1))
        return self._newest_at + mean + self._deviations * max(deviation, self.interval * PHI_SPREAD_MIN)


def heartbeats_to_miss(accuracy: float, loss: float) -> int:
    """The m that keeps the chance of a mistake at or below ``accuracy`` (P_m) on a link that loses ``loss`` (p_L) of all messages."""
    assert 0 < accuracy < 1
    assert 0 < loss < 1
    return max(1, ceil(log(accuracy) / log(loss) - ROUNDING))
