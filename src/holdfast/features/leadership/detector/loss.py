"""How many heartbeats does one link lose?  Spec: fast-detection 4 (p_i), D8; paper 002, section 3 (p_L)."""

from __future__ import annotations

from collections import deque
from math import sqrt

from holdfast.features.leadership.detector.config import LOSS_MAX, LOSS_MIN, FfdConfig

WINDOW = 1000  # heartbeats
SAMPLES_MIN = 40  # with fewer, the link counts as unmeasured
Z = 2.0  # of the Wilson interval: the true loss is below its upper limit in 97.7 % of all cases


class Loss:
    """Upper confidence limit, not the mean: a ballot multiplies these numbers, and each must be at least the true one (G1)."""

    def __init__(self, config: FfdConfig) -> None:
        self._fixed, self._new = config.p_fixed, config.p_new
        self._missed: deque[bool] = deque(maxlen=WINDOW)
        self._count = 0  # of True among them
        self._upper: float | None = None  # worked out when it is asked for

    @property
    def samples(self) -> int:
        return len(self._missed)

    @property
    def mean(self) -> float:
        return self._count / len(self._missed) if self._missed else 0.0

    @property
    def p(self) -> float:
        """What a vote carries."""
        if self._fixed is not None:
            return self._fixed
        if self._upper is None:
            limit = max(self._new, self.mean) if len(self._missed) < SAMPLES_MIN else wilson_upper(self._count, len(self._missed))
            self._upper = min(max(limit, LOSS_MIN), LOSS_MAX)
        return self._upper

    def add(self, missed: bool, times: int = 1) -> None:
        for _ in range(times):
            if len(self._missed) == WINDOW:
                self._count -= self._missed[0]
            self._missed.append(missed)
            self._count += missed
        self._upper = None


def wilson_upper(missed: int, samples: int, z: float = Z) -> float:
    """The largest loss with which so few misses are still likely."""
    assert 0 <= missed <= samples
    assert samples > 0
    mean, spread = missed / samples, z * z / samples
    return (mean + spread / 2 + z * sqrt(mean * (1 - mean) / samples + spread / (4 * samples))) / (1 + spread)
