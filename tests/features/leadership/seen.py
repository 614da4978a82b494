"""What happened in runs of the shipped size: a sweep shows with it that it went where things go wrong.  Spec: fast-detection 7, D17b."""

from __future__ import annotations

from collections import Counter
from math import inf

from holdfast.events import Event
from holdfast.features.leadership.detector.facts import Suspect
from holdfast.features.leadership.lab.clients import Told
from holdfast.features.leadership.lab.scenarios.leadership import slots, stable_since
from holdfast.features.leadership.lab.scenarios.shipped import ShippedScenario
from holdfast.features.leadership.lab.spoken import MissSaid
from holdfast.features.leadership.protocol.facts import FoundDead, Leading, LostLead, RoundAsked
from holdfast.features.leadership.protocol.leadership import Leadership
from holdfast.features.leadership.protocol.seat import KEY
from holdfast.kit.promise import HolderId
from holdfast.lab.host import LabHost
from holdfast.lab.listed_members import ListedMembers
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World

LOOK_PERIOD = 0.5  # true seconds between two looks at all lists
LONG_SECONDS = 9.0  # a list that lacks the same living member for so long differs for the ten seconds that were drawn


class SeenScenario(ShippedScenario):
    """The same runs, counted."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def drive(self, world: World, setup: Setup) -> None:
        self.counts.update({type(fault).__name__ for fault in setup.plan.faults})
        self.counts["watched in calm"] += stable_since(setup) < inf
        Seen(self.counts, world, setup)
        super().drive(world, setup)


class Seen:
    """One run, as one who sees all lists and all seats counts it."""

    def __init__(self, counts: Counter[str], world: World, setup: Setup) -> None:
        self._counts, self._world, self._until = counts, world, setup.seconds
        self._seats = [slot.name for slot in slots(setup)]
        self._since: dict[tuple[str, str], float] = {}  # viewer, member -> since when it is not listed there
        self._differed = False
        world.listeners.append(self._note)
        world.soon(self._look)

    def _look(self) -> None:
        world = self._world
        lacking = [(host.me.name, name) for host in world.alive for name in self._lacked_by(host)]
        before, self._since = self._since, {pair: self._since.get(pair, world.now) for pair in lacking}
        ended = [world.now - since for pair, since in before.items() if pair not in self._since]
        if not self._differed and max(ended, default=0.0) >= LONG_SECONDS:
            self._differed = True
            self._counts["runs with lists that differed for ten seconds"] += 1
        if world.now <= self._until:
            world.at(world.now + LOOK_PERIOD, self._look)

    def _lacked_by(self, viewer: LabHost) -> list[str]:
        listed = viewer.node.use(ListedMembers)
        return [host.me.name for host in self._world.alive if listed.get(host.me.name) is None]

    def _unlisted_seats(self, but: str) -> list[LabHost]:
        """Seats that live, and that no list has but their own; without ``but``."""
        seats = [self._world.nodes[name] for name in self._seats if name != but and not self._world.nodes[name].dead]
        others = self._world.alive
        return [seat for seat in seats if all(other is seat or (other.me.name, seat.me.name) in self._since for other in others)]

    def _note(self, host: LabHost, event: Event) -> None:
        self._counts.update(_names(event))
        if not isinstance(event, Leading | Suspect):
            return
        for seat in self._unlisted_seats(host.me.name):
            if isinstance(event, Suspect):
                self._counts["found dead with an unlisted seat's vote"] += event.acted and seat.me.name in event.misses
            else:
                promises = seat.node.use(Leadership).seat.promises
                promise = None if promises is None else promises.get(KEY + event.name)
                granted = promise is not None and (promise.number, promise.holder) == (event.number, HolderId(host.me, 0))
                self._counts["led with an unlisted seat's promise"] += granted


def _names(event: Event) -> tuple[str, ...]:
    if isinstance(event, RoundAsked):
        return (f"asked: {event.why}",)
    if isinstance(event, LostLead):
        return (f"lost: {event.why}",)
    return (type(event).__name__,) if isinstance(event, Leading | FoundDead | MissSaid | Told) else ()
