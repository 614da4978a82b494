"""What must hold of Broadcast at every step.  Spec: tickets 5.9 (infect and die, at most once), foundation 4, F17."""

from __future__ import annotations

from collections import Counter
from math import inf

from holdfast.events import Event, Internal
from holdfast.host import NodeId
from holdfast.kit.broadcast import Rumour, RumourId, fanout
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class RumourCast(Internal, frozen=True):
    """This node began a rumour."""

    rumour: RumourId
    payload: bytes


class RumourHeard(Internal, frozen=True):
    """This node was told a rumour."""

    rumour: RumourId
    payload: bytes


class AtMostOnce(Checker):
    """One life hears a rumour at most once, and not its own."""

    name = "at-most-once"

    def __init__(self) -> None:
        self._heard: set[tuple[NodeId, RumourId]] = set()
        self._last_heard_at: dict[NodeId, float] = {}

    def last_heard_at(self, life: NodeId) -> float:
        return self._last_heard_at.get(life, -inf)

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RumourHeard):
            if (host.me, event.rumour) in self._heard:
                self.fail(f"{host.me} heard {event.rumour} twice")
            if host.me.name == event.rumour.origin.name:
                self.fail(f"{host.me} heard its own {event.rumour}")
            self._heard.add((host.me, event.rumour))
            self._last_heard_at[host.me] = world.now


class NothingInvented(Checker):
    """What is heard was cast, with these bytes; and no two rumours share an id."""

    name = "nothing-invented"

    def __init__(self) -> None:
        self._cast: dict[RumourId, bytes] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RumourCast):
            if event.rumour in self._cast:
                self.fail(f"{host.me} used {event.rumour} twice")
            self._cast[event.rumour] = event.payload
        elif isinstance(event, RumourHeard) and self._cast.get(event.rumour) != event.payload:
            self.fail(f"{host.me} heard {event.rumour}, which nobody cast like this")


class InfectAndDie(Checker):
    """A node passes a rumour on once, to at most ``fanout`` others: messages never run away, whatever is doubled on the way."""

    name = "infect-and-die"

    def __init__(self, members: int) -> None:
        self._fanout = min(fanout(members), members - 1)
        self._rumours: Counter[str] = Counter()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RumourCast | RumourHeard):
            self._rumours[host.me.name] += 1

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            return
        sent, allowed = host.endpoint.sent[Rumour], self._fanout * self._rumours[host.me.name]
        if sent > allowed:
            self.fail(f"{host.me.name} sent {sent} messages for {self._rumours[host.me.name]} rumours; {allowed} are allowed")


class CalmReachesAll(Checker):
    """In calm, where the fanout covers the whole group, a rumour reaches every living member within ``within`` seconds."""

    name = "calm-reaches-all"

    def __init__(self, calm: Calm, members: int, *, calm_for: float, within: float) -> None:
        self._calm, self._calm_for, self._within = calm, calm_for, within
        self._certain = fanout(members) >= members - 1
        self._missing: dict[RumourId, tuple[float, set[NodeId]]] = {}  # cast at, who has not heard it

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RumourHeard) and event.rumour in self._missing:
            self._missing[event.rumour][1].discard(host.me)
        if isinstance(event, RumourCast) and self._certain and world.now - max(0.0, self._calm.since()) >= self._calm_for:
            self._missing[event.rumour] = world.now, {each.me for each in world.alive if each is not host}

    def after(self, world: World, host: LabHost | None) -> None:
        for rumour, (cast_at, missing) in list(self._missing.items()):
            if self._calm.since() > cast_at or not missing:
                del self._missing[rumour]
            elif world.now - cast_at > self._within:
                self.fail(f"{min(missing)} has not heard {rumour}, cast in calm {world.now - cast_at:g} s ago")
