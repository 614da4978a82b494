"""Deadlines: how long a holder may act, how long others must wait for it, and the check every holder begins with.

Spec: foundation F8 (rates), F9 (compared, never flagged); ring 4 (``wait``) and 5 (entry guard), tickets 5.3 (lapse).

Each clock runs at a rate within 1 +- rho of true time; offsets are never compared. Two counts meet in every lease:

* The *granter* counts ``x`` from the moment it agreed. The *holder* counts ``holder_length(x)`` from the moment
  before it sent the question. Slowest holder: x (1-rho)/(1+rho) / (1-rho) = x/(1+rho) of true time. Fastest granter:
  x/(1+rho). The holder began earlier, so it ends first.
* The *holder* counts ``x`` on its own clock. A party that must outlive it *waits* ``wait_length(x)`` from a moment that is
  not before the holder's first. Slowest holder: x/(1-rho). Fastest waiter: x (1+rho)/(1-rho) / (1+rho) = x/(1-rho).

Counting from the receipt of the answer, or waiting x (1 + 2 rho), is wrong; the tests show by how much.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import inf
from typing import Concatenate, ParamSpec, Protocol, TypeVar

RHO_MAX = 0.05  # tickets 4: beyond it a clock is broken, and the formulas waste a tenth of every lease

P = ParamSpec("P")
R = TypeVar("R")


class Clock(Protocol):
    """The part of a host that a deadline reads."""

    @property
    def now(self) -> float: ...


class Holder(Protocol):
    """A holder that may act only until some instant: a member of a group, the holder of a cell or a term, a grant."""

    @property
    def lapsed(self) -> bool:
        """Still acting as the holder although its deadline has passed, read from the clock now."""

    def lapse(self) -> None:
        """Stop holding. First makes ``lapsed`` false, then tells others: what it calls may be guarded too."""


H = TypeVar("H", bound=Holder)


def holder_length(x: float, rho: float) -> float:
    """What the holder may count, from before it sent the request, of ``x`` seconds granted by another clock (F8)."""
    assert 0 <= rho <= RHO_MAX
    return x * (1 - rho) / (1 + rho)


def wait_length(x: float, rho: float, margin: float) -> float:
    """How long to wait for the end of a holder that counts ``x`` seconds on another clock (F8)."""
    assert 0 <= rho <= RHO_MAX
    assert margin >= 0
    return x * (1 + rho) / (1 - rho) + margin


class Deadline:
    """An instant on one clock, compared at every reading. There is no flag that a late timer could leave standing (F9)."""

    __slots__ = ("_clock", "until")

    def __init__(self, clock: Clock, until: float = -inf) -> None:
        self._clock = clock
        self.until = until

    @property
    def valid(self) -> bool:
        return self._clock.now < self.until

    @property
    def remaining(self) -> float:
        """Seconds left, 0.0 when it has passed."""
        return max(0.0, self.until - self._clock.now)

    def extend(self, until: float) -> None:
        """Renewals arrive in any order; an older one must not shorten what a newer one gave."""
        self.until = max(self.until, until)

    def replace(self, until: float) -> None:
        """A new basis for the deadline, even if it is earlier (tickets D15: what the old granters gave counts no more)."""
        self.until = until

    def end(self) -> None:
        self.until = -inf


def entry(method: Callable[Concatenate[H, P], R]) -> Callable[Concatenate[H, P], R]:
    """F9 for one handler, timer or call of a holder: a deadline that has passed is acted on before anything else.

    The method then runs as that of a former holder, which it has to know anyway: everything that arrives one
    event later meets the same state.
    """

    @wraps(method)
    def guarded(self: H, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if self.lapsed:
            self.lapse()
            assert not self.lapsed
        return method(self, *args, **kwargs)

    return guarded
