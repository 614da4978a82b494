"""How one link treats a message: delay, loss, duplication, tails.  Plain data, so that a plan can be a file.  docs/lab.md"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from random import Random

from msgspec import Struct

LOST = -1.0  # the delay of what never arrives


class Fixed(Struct, frozen=True, tag="fixed"):
    """Always the same delay."""

    seconds: float

    def draw(self, random: Random) -> Callable[[], float]:
        seconds = self.seconds
        return lambda: seconds


class Uniform(Struct, frozen=True, tag="uniform"):
    """Any delay between two bounds, equally likely."""

    low: float
    high: float

    def draw(self, random: Random) -> Callable[[], float]:
        low, span, chance = self.low, self.high - self.low, random.random
        return lambda: low + span * chance()


class Exponential(Struct, frozen=True, tag="exponential"):
    """Mostly short, now and then long; ``least`` is the speed of light."""

    mean: float
    least: float = 0.0

    def draw(self, random: Random) -> Callable[[], float]:
        mean, least, chance = self.mean, self.least, random.random
        return lambda: least - mean * log(1.0 - chance())


class LogNormal(Struct, frozen=True, tag="lognormal"):
    """What measured networks look like: a median and a spread in powers of e."""

    median: float
    sigma: float

    def draw(self, random: Random) -> Callable[[], float]:
        mu, sigma = log(self.median), self.sigma
        return lambda: random.lognormvariate(mu, sigma)


Delay = Fixed | Uniform | Exponential | LogNormal


class Link(Struct, frozen=True):
    """One direction between two nodes. Messages reorder because each draws its own delay; a tail makes it worse."""

    delay: Delay = Uniform(0.001, 0.010)
    loss: float = 0.0
    duplicate: float = 0.0
    tail: float = 0.0  # how often a message takes longer than ``delay`` says
    tail_seconds: float = 1.0  # by up to so much
