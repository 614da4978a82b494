"""A rate and how far it can be trusted: the 95 % interval of a count of rare, independent events."""

from __future__ import annotations

from math import sqrt

Z = 1.959964  # of the normal distribution, two-sided 95 %
Z_UPPER_99 = 2.326348  # one-sided 99 %


def poisson_interval(count: int) -> tuple[float, float]:
    """Low and high end for the mean of a Poisson count (Byar's approximation: within 1 % of the exact interval from 2 events on)."""
    assert count >= 0
    low = 0.0 if count == 0 else count * (1 - 1 / (9 * count) - Z / (3 * sqrt(count))) ** 3
    return low, _poisson_upper(count, Z)


def rate_interval(count: int, trials: int) -> tuple[float, float]:
    """Low and high end of events per trial."""
    assert trials > 0
    low, high = poisson_interval(count)
    return low / trials, high / trials


def wilson_interval(count: int, trials: int) -> tuple[float, float]:
    """Low and high end of a share, wherever it lies between 0 and 1 (Wilson)."""
    assert 0 <= count <= trials
    assert trials > 0
    share, spread = count / trials, Z * Z / trials
    middle, error = share + spread / 2, Z * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    return max(0.0, (middle - error) / (1 + spread)), min(1.0, (middle + error) / (1 + spread))


def upper_limit(count: int, trials: int) -> float:
    """Events per trial that are exceeded with a confidence of at most 1 %: what "below x" is judged by."""
    assert trials > 0
    return _poisson_upper(count, Z_UPPER_99) / trials


def _poisson_upper(count: int, z: float) -> float:
    above = count + 1
    return above * (1 - 1 / (9 * above) + z / (3 * sqrt(above))) ** 3
