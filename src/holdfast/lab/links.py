"""How one link treats a message: delay, loss, duplication, tails.  Plain data, so that a plan can be a file.  docs/lab.md"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from random import Random

from msgspec import Struct

from holdfast.errors import ConfigError

LOST = -1.0  # the delay of what never arrives
SECONDS_MAX = 1e6  # of any one delay or fault: eleven days, and far from where sums of floats lose microseconds
MEDIAN_MIN = 1e-9  # zero has no logarithm
SIGMA_MAX = 10.0  # powers of e; beyond, a draw may overflow


def _check_seconds(field: str, value: float) -> None:
    """A negative delay would turn back the lab's clock."""
    _check(field, value, 0.0, SECONDS_MAX)


def _check(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # Not a number is refused too.
        raise ConfigError(f"{field} {value:g} is impossible; accepted: {low:g} to {high:g}")


class Fixed(Struct, frozen=True, forbid_unknown_fields=True, tag="fixed"):
    """Always the same delay."""

    seconds: float

    def __post_init__(self) -> None:
        _check_seconds("seconds", self.seconds)

    def draw(self, random: Random) -> Callable[[], float]:
        seconds = self.seconds
        return lambda: seconds


class Uniform(Struct, frozen=True, forbid_unknown_fields=True, tag="uniform"):
    """Any delay between two bounds, equally likely."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_seconds("low", self.low)
        _check("high", self.high, self.low, SECONDS_MAX)

    def draw(self, random: Random) -> Callable[[], float]:
        low, span, chance = self.low, self.high - self.low, random.random
        return lambda: low + span * chance()


class Exponential(Struct, frozen=True, forbid_unknown_fields=True, tag="exponential"):
    """Mostly short, now and then long; ``least`` is the speed of light."""

    mean: float
    least: float = 0.0

    def __post_init__(self) -> None:
        _check_seconds("mean", self.mean)
        _check_seconds("least", self.least)

    def draw(self, random: Random) -> Callable[[], float]:
        mean, least, chance = self.mean, self.least, random.random
        return lambda: least - mean * log(1.0 - chance())


class LogNormal(Struct, frozen=True, forbid_unknown_fields=True, tag="lognormal"):
    """What measured networks look like: a median and a spread in powers of e."""

    median: float
    sigma: float

    def __post_init__(self) -> None:
        _check("median", self.median, MEDIAN_MIN, SECONDS_MAX)
        _check("sigma", self.sigma, 0.0, SIGMA_MAX)

    def draw(self, random: Random) -> Callable[[], float]:
        mu, sigma = log(self.median), self.sigma
        return lambda: random.lognormvariate(mu, sigma)


Delay = Fixed | Uniform | Exponential | LogNormal


class Link(Struct, frozen=True, forbid_unknown_fields=True):
    """One direction between two nodes. Messages reorder because each draws its own delay; a tail makes it worse."""

    delay: Delay = Uniform(0.001, 0.010)
    loss: float = 0.0
    duplicate: float = 0.0
    tail: float = 0.0  # how often a message takes longer than ``delay`` says
    tail_seconds: float = 1.0  # by up to so much

    def __post_init__(self) -> None:
        _check("loss", self.loss, 0.0, 1.0)
        _check("duplicate", self.duplicate, 0.0, 1.0)
        _check("tail", self.tail, 0.0, 1.0)
        _check_seconds("tail_seconds", self.tail_seconds)
