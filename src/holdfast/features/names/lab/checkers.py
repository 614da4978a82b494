"""What must hold of names at every step.  Spec: foundation F1, F5; docs/decisions.md H56.

The checkers hear what machines tell their agents (``NameClear``, ``NameTaken``, ``NameBehind``) and know the faults.
"""

from __future__ import annotations

from itertools import combinations

from holdfast.events import Event, Internal
from holdfast.host import NodeId
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class NameClear(Internal, frozen=True):
    """The name is this process's."""


class NameTaken(Internal, frozen=True):
    """Another process has it: this one goes."""

    by: NodeId


class NameBehind(Internal, frozen=True):
    """A later life was seen: this process starts again, above it."""

    boot: int


class OneOfAName(Checker):
    """F5: two processes of one name are not both in possession of it for longer than ``within``, if nothing keeps them apart."""

    name = "F5 one-of-a-name"

    def __init__(self, calm: Calm, within: float) -> None:
        self._calm, self._within = calm, within
        self._clear: dict[str, NodeId] = {}  # place -> the life there that has its name
        self._since: dict[str, float] = {}  # place -> since when

    def clear_at(self, world: World) -> dict[str, NodeId]:
        """Who has its name now, by place."""
        return {place: life for place, life in self._clear.items() if not world.nodes[place].dead and world.nodes[place].me == life}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, NameClear):
            self._clear[host.endpoint.name] = host.me
            self._since[host.endpoint.name] = world.now

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or len(self._clear) < 2:
            return
        for (place, life), (other_place, other) in combinations(self.clear_at(world).items(), 2):
            if life.name == other.name:
                self._check(world, (place, other_place), life, other)

    def _check(self, world: World, places: tuple[str, str], life: NodeId, other: NodeId) -> None:
        quiet_since = max(0.0, self._calm.links_since(), *(self._calm.process_since(place) for place in places))
        together = world.now - max(quiet_since, *(self._since[place] for place in places))
        if together > self._within:
            self.fail(f"{life} at {places[0]} and {other} at {places[1]} both have their name for {together:g} s")


class OneStays(Checker):
    """H56: of two, one goes: the life that goes names one that does not go because of it."""

    name = "H56 one-stays"

    def __init__(self) -> None:
        self._gone_for: dict[NodeId, NodeId] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, NameTaken):
            if self._gone_for.get(event.by) == host.me:
                self.fail(f"{host.me} and {event.by} both go, each for the other")
            self._gone_for[host.me] = event.by


class MembersStay(Checker):
    """F5: a life that has its name keeps it against a process that is only starting."""

    name = "F5 members-stay"

    def __init__(self) -> None:
        self._clear: set[NodeId] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, NameClear):
            self._clear.add(host.me)
        elif isinstance(event, NameTaken) and host.me in self._clear and event.by not in self._clear:
            self.fail(f"{host.me} goes for {event.by}, which is only starting")
