"""Freshness points: until when heartbeat i must have come.  Spec: fast-detection 4, 5; paper 002, section 3, after Chen et al. 2002.

Synchronised clocks: ``sigma_i + t_lat + skew``. Otherwise NFD-E: every heartbeat tells how far the two clocks and the delay are
apart, ``x_j = A_j - j t_itv``, and the mean of the last ones gives the expected arrival, ``EA_i = mean(x) + i t_itv``. A heartbeat
that left off the grid says by how much, so it is as good a sample as any other. One that is very late counts as lost, so it must not
move the mean by more than the largest margin; eight in a row are a longer road or a slower clock, and are believed.
"""

from __future__ import annotations

from collections import deque
from math import ceil, sqrt
from typing import Protocol

from holdfast.features.leadership.detector.config import ROUNDING, FfdConfig
from holdfast.host import Host

SAMPLES_MIN = 8  # with fewer, the margin is the largest one
DEVIATIONS = 4.0  # the margin covers so many standard deviations of the arrivals


class Freshness(Protocol):
    """The freshness points of one life, as one monitor counts them."""

    def arrived(self, seq: int, at: float, *, timed: bool = True) -> None:
        """Heartbeat ``seq`` would have come at ``at``, had it left on the grid. Without ``timed``: it was read then, and came before."""

    def deadline(self, seq: int) -> float:
        """tau_seq, on this host's clock. Something must have arrived before."""

    @property
    def alpha(self) -> float:
        """The margin, in seconds."""

    @property
    def jitter(self) -> float:
        """Standard deviation of the arrivals, in seconds."""


class Synchronised:
    """The wall clocks of both ends agree within ``skew``: nothing is estimated."""

    jitter = 0.0

    def __init__(self, host: Host, config: FfdConfig) -> None:
        assert config.skew is not None
        self._host, self._interval = host, config.t_itv
        self.alpha = config.lat + config.skew

    def arrived(self, seq: int, at: float, *, timed: bool = True) -> None:
        """Teaches nothing."""

    def deadline(self, seq: int) -> float:
        return self._host.now + (seq * self._interval + self.alpha - self._host.wall())


class Estimated:
    """NFD-E. Sums are kept relative to the first sample: the clocks of two machines may be years apart."""

    def __init__(self, config: FfdConfig) -> None:
        self._interval = config.t_itv
        self._least, self._most = config.lat / 4, config.alpha_max
        self._offsets: deque[float] = deque(maxlen=config.window)  # x_j - base
        self._base: float | None = None
        self._sum = self._squares = 0.0
        self._provisional = 0.0  # stands for the mean until the first sample
        self._outliers = 0  # in a row

    def arrived(self, seq: int, at: float, *, timed: bool = True) -> None:
        offset = at - seq * self._interval
        if self._base is None:
            self._base = offset
        offset -= self._base
        if timed:
            self._learn(self._plausible(offset))
        else:
            self._provisional = offset  # Read late, so never early: no point that rests on it comes too soon.

    def deadline(self, seq: int) -> float:
        assert self._base is not None
        return self._base + self._mean + seq * self._interval + self.alpha

    @property
    def alpha(self) -> float:
        if len(self._offsets) < SAMPLES_MIN:
            return self._most
        return min(max(DEVIATIONS * self.jitter, self._least), self._most)

    @property
    def jitter(self) -> float:
        count = len(self._offsets)
        if count < 2:
            return 0.0
        return sqrt(max(0.0, self._squares - self._sum * self._sum / count) / (count - 1))

    @property
    def _mean(self) -> float:
        return self._sum / len(self._offsets) if self._offsets else self._provisional

    def _plausible(self, offset: float) -> float:
        """What the sample counts as. No message arrives before it is sent, so a much earlier one shows that all before were late."""
        if not self._offsets:
            return offset
        mean = self._mean
        self._outliers = self._outliers + 1 if offset > mean + self._most else 0
        if self._outliers >= SAMPLES_MIN or offset < mean - self._most:
            self._forget()
            return offset
        return min(offset, mean + self._most)

    def _forget(self) -> None:
        self._offsets.clear()
        self._sum = self._squares = 0.0
        self._outliers = 0

    def _learn(self, offset: float) -> None:
        if len(self._offsets) == self._offsets.maxlen:
            oldest = self._offsets[0]
            self._sum -= oldest
            self._squares -= oldest * oldest
        self._offsets.append(offset)
        self._sum += offset
        self._squares += offset * offset


def make_freshness(host: Host, config: FfdConfig) -> Freshness:
    """What the configuration asks for."""
    return Estimated(config) if config.skew is None else Synchronised(host, config)


def next_point(freshness: Freshness, seq: int, now: float, interval: float) -> int:
    """The first index from ``seq`` on whose freshness point lies ahead: a monitor that was stopped for long does not check them one by
    one."""
    behind = now - freshness.deadline(seq)
    return seq if behind < 0 else seq + max(1, ceil(behind / interval + ROUNDING))
