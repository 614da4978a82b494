"""A membership that a scenario writes: all hear of each life a little later or earlier, and lists may differ for a while.

No failure detector is simulated. A life is listed by each viewer some time after it started and taken out some time after it died; the
scenario hides members from viewers for some seconds. What F15 says of any member list: it is a hint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from random import Random

from msgspec import Struct

from holdfast.events import Failed, Joined, MembershipEvent
from holdfast.host import Host, Member, Message, NodeId
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

LOOK_PERIOD = 0.2  # true seconds between two looks at who should be listed
JOIN_LAG, FAIL_LAG = 0.4, 4.0  # seconds: the most that a viewer is behind a start, and behind a death


class Hidden(Struct, frozen=True):
    """For a while, one viewer does not list one member."""

    at: float
    seconds: float
    viewer: str
    member: str


class ListedMembers:
    """Implements ``Membership`` over a list that is written from outside."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, host: Host) -> None:
        self._listed = {host.me.name: Member(host.me, host.address, {})}
        self._members: tuple[Member, ...] = tuple(self._listed.values())
        self._listeners: list[Callable[[MembershipEvent], None]] = []
        self.version = 1

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        return self._members

    def get(self, name: str) -> Member | None:
        return self._listed.get(name)

    def publish(self, row: str, value: bytes | None) -> None:
        """All have the same topics here."""

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._listeners.append(listener)

    def usable_until(self) -> float:
        return inf

    def start(self) -> None:
        """Nothing runs here."""

    def stop(self) -> None:
        """Nothing runs here."""

    def on_away(self, seconds: float) -> None:
        """No member is judged here."""

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("it handles nothing")

    def differs(self, wanted: dict[str, Member]) -> bool:
        return self._listed.keys() != wanted.keys() or any(self._listed[name].id != member.id for name, member in wanted.items())

    def show(self, wanted: dict[str, Member]) -> None:
        """From now on these are listed; a listener hears what changed."""
        before = self._listed
        self._listed = dict(sorted(wanted.items()))
        self._members = tuple(self._listed.values())
        self.version += 1
        gone = [member for name, member in before.items() if name not in wanted or wanted[name].id != member.id]
        news = [member for name, member in wanted.items() if name not in before or before[name].id != member.id]
        events: list[MembershipEvent] = [*(Failed(member, certain=False) for member in gone), *(Joined(member) for member in news)]
        for event in events:
            for listener in self._listeners:
                listener(event)


class Lists:
    """Writes the lists of a whole world."""

    def __init__(self, world: World, hidden: Sequence[Hidden]) -> None:
        self._world, self._hidden = world, hidden
        self._lags = Random(f"{world.seed}/lists")
        self._lag: dict[tuple[str, NodeId], tuple[float, float]] = {}
        self._born: dict[NodeId, float] = {}
        self._died: dict[NodeId, float] = {}
        self._lives: dict[NodeId, LabHost] = {}
        world.soon(self._look)

    def _look(self) -> None:
        world = self._world
        for host in world.nodes.values():
            if host.me not in self._born:
                self._born[host.me], self._lives[host.me] = world.now, host
        for life, host in self._lives.items():
            if host.dead and life not in self._died:
                self._died[life] = world.now
        for host in world.alive:
            if host.running and host.node.running:
                members = host.node.use(ListedMembers)
                wanted = self._wanted(host)
                if members.differs(wanted):
                    world.step(host, partial(members.show, wanted))
        world.at(world.now + LOOK_PERIOD, self._look)

    def _wanted(self, viewer: LabHost) -> dict[str, Member]:
        now, name = self._world.now, viewer.me.name
        hidden = {each.member for each in self._hidden if each.viewer == name and each.at <= now < each.at + each.seconds}
        found = {}
        for life, host in self._lives.items():
            born_lag, died_lag = self._lags_of(name, life)
            listed = self._born[life] + born_lag <= now < self._died.get(life, inf) + died_lag and life.name not in hidden
            if host is viewer or (listed and life.name != name):
                found[life.name] = Member(life, host.address, {})
        return found

    def _lags_of(self, viewer: str, life: NodeId) -> tuple[float, float]:
        key = viewer, life
        if key not in self._lag:
            self._lag[key] = self._lags.uniform(0, JOIN_LAG), self._lags.uniform(0, FAIL_LAG)
        return self._lag[key]
