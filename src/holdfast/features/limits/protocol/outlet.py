"""What stands between a limiter and the processes that use its share.  Spec: limits 5.1, D22; foundation F9, F14.

In an agent and in the lab it is ``workers.Workers``: it splits what the agent may use among the worker processes. The limiter asks it every
epoch what they want, tells it what they may use, and asks what they were told and may still use. What was told is held: an outlet that was
allotted less goes on to count what a worker has not confirmed yet, until the worker confirms, is known to be dead, or its time has passed.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, Protocol


class Wants(NamedTuple):
    """What the workers of one agent want of one limit."""

    arrived: float  # cost that arrived since the last look: admitted, queued, or refused
    waiting: float  # cost that waits now
    user: float | None = None  # what a ``demand=`` callable of a worker returned last; None: there is none
    weight: float = 1.0  # the largest of the workers' weights


class Allotment(NamedTuple):
    """What the workers of one agent may use together, cost per second."""

    rate: float
    until: float  # on the clock of the machine: not after the end of the view's lease
    after: float = inf  # past ``until`` each goes on with its part, and all of them with no more than this: R/n
    ends_at: float = inf  # past this instant they use nothing (``exact``); inf: they go on
    limit: float = 0.0  # R of the limit, cost per second
    burst: float = 0.0  # B of the limit, in cost

    def usable(self, now: float) -> float:
        """The most that may be used now."""
        if now < self.until:
            return self.rate
        return min(self.rate, self.after) if now < self.ends_at else 0.0


NOTHING = Allotment(0.0, -inf, 0.0, -inf)


class Outlet(Protocol):
    """The users of one limit at one agent."""

    on_less: Callable[[], None]  # ``told`` fell: what waited for that may go on

    def wants(self) -> Wants:
        """Once an epoch. Begins the next count of what arrived."""

    def allot(self, allotment: Allotment) -> None:
        """From now on. Less is told to the workers at once; more waits where others have not confirmed less yet."""

    @property
    def told(self) -> float:
        """The most that all workers together may use now by what they were told, cost per second."""
