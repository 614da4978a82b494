"""A rate limit in ``holdfast demo``: what processes may use of it while the agent of one dies.  Spec: limits 1, 5.1, 5.2, 5.7, D3.

The demo plays the processes: each is a client of one agent, and asks its own bucket for as much as it wants. Three of them want something.
What each should get is counted here from the rule alone, max-min of what all want, and held against what it was told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from holdfast import sync
from holdfast.config import Config
from holdfast.errors import HoldfastError
from holdfast.features.limits.client_sync import GroupLimit
from holdfast.features.limits.settings import LimitsSettings
from holdfast.features.views.settings import ViewsSettings
from holdfast.net import clock

NAME = "api"
RATE = 1000.0  # cost per second, of all
BURST = 100.0
HEADROOM, RESERVE = 0.02, 0.05  # as limits have them: what is given above a want, and the part of the rate that idle members split
LITTLE, MUCH, MORE = 100.0, 600.0, 2000.0  # what the three want: the first is content with less than an even split, the others are not
VIEW_HEARTBEATS, SHARE_EPOCHS = 60, 20  # views CB7: one view 15 s after the last fault; limits RL6: the shares 10 s later. Both at lan
NEAR = 0.06  # of the rate (RL6)
CLOSE = 0.02  # of the rate: until then it is waited for, since shares come to what they should be step by step
JOIN_PAUSE = 0.25  # seconds between two processes that begin: an agent stands still for a moment while it loads what limits need
ARREARS = 1.0  # seconds of what a process wants that are asked for at once, if this machine stood still


def promised(wants: Iterable[float], members: int, fleet: int) -> list[float]:
    """Max-min: those that want little get that, and a little more; what remains is split evenly among the others. The members of one
    view split its part of the limit."""
    whole = RATE * min(1.0, members / fleet)
    asked = [max(want * (1 + HEADROOM), RESERVE * whole / members) for want in wants]
    assert sum(asked) >= whole
    found, left = [0.0] * len(asked), whole
    for place, which in enumerate(sorted(range(len(asked)), key=asked.__getitem__)):
        found[which] = min(asked[which], left / (len(asked) - place))
        left -= found[which]
    return found


def patience(config: Config) -> float:
    """Seconds after the last fault until the shares are what they should be."""
    return VIEW_HEARTBEATS * ViewsSettings.of(config).view_heartbeat + SHARE_EPOCHS * LimitsSettings.of(config).limit_epoch


class Share(NamedTuple):
    """What one process may use of the limit, cost per second."""

    name: str  # of its agent
    wants: float
    used: float
    promised: float

    @property
    def error(self) -> float:
        return abs(self.used - self.promised) / RATE


class Shares(NamedTuple):
    """How the limit is split at one moment."""

    when: str
    shares: tuple[Share, ...]
    seconds: float  # until it was so
    bound: float

    @property
    def is_near(self) -> bool:
        return all(share.error <= NEAR for share in self.shares)


class Caller:
    """One process: a client of one agent."""

    def __init__(self, name: str, path: str, group: str) -> None:
        self.name, self.wants = name, 0.0
        self._group = sync.join(group, agent=path, wait=False, reconnect=True)
        self._limit: GroupLimit = self._group.limit(NAME, rate=RATE, burst=BURST, headroom=HEADROOM, reserve=RESERVE)
        self._owed, self._asked_at = 0.0, clock.now()

    def ask(self) -> None:
        """For what has become due since the last time. What may not go now is refused, and counts as wanted all the same."""
        now = clock.now()
        self._owed += self.wants * min(ARREARS, now - self._asked_at)
        self._asked_at = now
        with suppress(HoldfastError):  # Its agent died before it had told a share.
            for _ in range(int(self._owed)):
                self._limit.try_acquire()
        self._owed %= 1

    @property
    def used(self) -> float:
        return self._limit.share

    @property
    def alone(self) -> bool:
        return self._limit.state == "alone"

    def close(self) -> None:
        self._group.leave()


class Sharing:
    """All of them."""

    def __init__(self) -> None:
        self.callers: dict[str, Caller] = {}
        self.alone: dict[str, float] = {}  # of processes whose agents are dead: what they had
        self.victim = ""
        self._began_at = -JOIN_PAUSE

    def begun(self, paths: Mapping[str, str], group: str) -> bool:
        """All of them use the limit, and want nothing yet. They begin one after the other."""
        missing = [name for name in paths if name not in self.callers]
        if missing and clock.now() - self._began_at >= JOIN_PAUSE:
            self.callers[missing[0]] = Caller(missing[0], paths[missing[0]], group)
            self._began_at = clock.now()
        return not missing

    def want(self, little: str, much: str, more: str) -> None:
        """All others want nothing. The agent of ``much`` will be killed."""
        self.victim = much
        wants = {little: LITTLE, much: MUCH, more: MORE}
        for name, caller in self.callers.items():
            caller.wants = wants.get(name, 0.0)

    def ask(self) -> None:
        for caller in self.callers.values():
            caller.ask()

    def lose(self, name: str) -> None:
        """Its agent is killed now; the process lives."""
        self.alone[name] = self.callers[name].used

    def find(self) -> None:
        """The agent of each is there again."""
        self.alone.clear()

    def shares(self) -> tuple[Share, ...]:
        """Of those that want something, beside what the rule says. All members of the view take part, also those that want nothing."""
        fleet = len(self.callers)
        together = {name: caller.wants for name, caller in self.callers.items() if name not in self.alone}
        rule: Mapping[str, float] = dict(zip(together, promised(together.values(), len(together), fleet), strict=True))
        due = {**rule, **{name: min(before, RATE / fleet) for name, before in self.alone.items()}}
        return tuple(Share(name, caller.wants, caller.used, due[name]) for name, caller in self.callers.items() if caller.wants)

    @property
    def settled(self) -> bool:
        lost = {name for name, caller in self.callers.items() if caller.alone}
        return lost == set(self.alone) and all(share.error <= CLOSE for share in self.shares())

    def close(self) -> None:
        for caller in self.callers.values():
            with suppress(HoldfastError):
                caller.close()
        self.callers.clear()


def told(shares: Iterable[Share], *, rule: bool = False) -> str:
    """One number for each process, in the order in which they began: what it may use, or what it should."""
    return " + ".join(f"{share.promised if rule else share.used:.0f}" for share in shares)


def spelled(shares: Iterable[Share]) -> str:
    """For people."""
    return ", ".join(f"{share.name} may use {share.used:.0f} (wants {share.wants:g})" for share in shares)
