"""What must hold of leadership, whatever happens to agents, seats, disks, clocks and member lists.

Spec: fast-detection 7; foundation F8, F9, F14.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.events import Event
from holdfast.features.leadership.detector.facts import Suspect
from holdfast.features.leadership.lab.clients import Stopped, Told
from holdfast.features.leadership.lab.spoken import HeartbeatRead, MissSaid
from holdfast.features.leadership.protocol.facts import Leading, LostLead, RoundAsked
from holdfast.features.leadership.protocol.leadership import Leadership
from holdfast.features.leadership.protocol.seat import KEY
from holdfast.host import NodeId
from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import HolderId, Promises
from holdfast.kit.seats import Seats
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

ROUNDING = 1e-6  # seconds; a simulated clock that drifts rounds


class TermUnique(Checker):
    """I1: a number of a name is led by at most one life, ever."""

    name = "I1 term-unique"

    def __init__(self) -> None:
        self._led: dict[tuple[str, int], NodeId] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Leading) and self._led.setdefault((event.name, event.number), host.me) != host.me:
            self.fail(f"{host.me} leads {event.name!r} under {event.number}, as {self._led[event.name, event.number]} did")


class FenceOrder(Checker):
    """I3: a leader has a higher number than all before it."""

    name = "I3 fence-order"

    def __init__(self) -> None:
        self._highest: dict[str, int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Leading):
            if event.number <= self._highest.get(event.name, 0):
                self.fail(f"{host.me} leads {event.name!r} under {event.number} after {self._highest[event.name]}")
            self._highest[event.name] = event.number


class RoundsGrow(Checker):
    """I4: the rounds of a name that one life asks for strictly increase."""

    name = "I4 rounds-grow"

    def __init__(self) -> None:
        self._asked: dict[tuple[NodeId, str], int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, RoundAsked):
            if event.number <= self._asked.get((host.me, event.name), 0):
                self.fail(f"{host.me} asks for {event.number} of {event.name!r} after {self._asked[host.me, event.name]}")
            self._asked[host.me, event.name] = event.number


class ClientExclusive(Checker):
    """I2 where it matters: what clients were told never overlaps, also if their agent died meanwhile (F14)."""

    name = "I2 client-exclusive"

    def __init__(self) -> None:
        self._until: dict[str, dict[NodeId, float]] = {}  # name -> life -> true time

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Stopped):
            self._until.get(event.name, {}).pop(host.me, None)
        elif isinstance(event, Told):
            until = self._until.setdefault(event.name, {})
            for life, end in until.items():
                if life != host.me and end > world.now + ROUNDING:
                    self.fail(f"{host.me} is told that it leads {event.name!r} {end - world.now:g} s before {life} ends")
            until[host.me] = world.now + (event.deadline - host.now) / host.rate


class LeaseExclusive(Checker):
    """I2: at every instant of true time at most one process, stopped ones included, says that it leads."""

    name = "I2 lease-exclusive"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._leaderships: dict[NodeId, Leadership] = {}

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.dead or not host.node.running:
            return
        leadership = self._leaderships.get(host.me)
        if leadership is None:
            leadership = self._leaderships[host.me] = host.node.use(Leadership)
        for name in self._names:
            if leadership.is_leader(name):
                self._check(world, host, name)

    def _check(self, world: World, host: LabHost, name: str) -> None:
        for other in world.alive:
            if other is not host and other.me in self._leaderships and self._leaderships[other.me].is_leader(name):
                self.fail(f"{host.me} and {other.me} lead {name!r} at the same time")


class Backed(LeaseExclusive):
    """I11, I2: while there is a leader, those seats that would promise the name to another are no quorum."""

    name = "I11 backed"

    def __init__(self, names: Sequence[str], seats: Sequence[str]) -> None:
        super().__init__(names)
        self._seats = tuple(seats)
        self._kept: dict[NodeId, tuple[Keeper, Promises]] = {}

    def _check(self, world: World, host: LabHost, name: str) -> None:
        free = [seat for seat in self._seats if self._free(world.nodes[seat], name, host.me)]
        if len(free) > len(self._seats) // 2:
            self.fail(f"{host.me} leads {name!r}, and the seats {free} would promise it to others")

    def _free(self, seat: LabHost, name: str, leader: NodeId) -> bool:
        if seat.dead or not seat.node.running:
            return False
        keeper, promises = self._kept_by(seat)
        if keeper.wait > 0:
            return False
        promise = promises.get(KEY + name)
        return promise is None or promise.until <= seat.now + ROUNDING or promise.holder != HolderId(leader, 0)

    def _kept_by(self, seat: LabHost) -> tuple[Keeper, Promises]:
        found = self._kept.get(seat.me)
        if found is None:
            promises = seat.node.use(Leadership).seat.promises
            assert promises is not None
            found = self._kept[seat.me] = (seat.node.use(Seats).keeper, promises)
        return found


class Stable(Checker):
    """I10, G7: when nothing has gone wrong for long enough no leader loses what it leads, and no candidate asks for what another leads."""

    name = "I10 stable"

    def __init__(self, since: float) -> None:
        self._since = since  # true time

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if world.now >= self._since and isinstance(event, LostLead | RoundAsked):
            self.fail(f"{host.me}, {world.now - self._since:g} s after all was well: {event}")


class ReportSound(Checker):
    """I5: no monitor is counted twice, the watched never; an acted report has a quorum of the seats, and meets the demand."""

    name = "I5 report-sound"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if not isinstance(event, Suspect):
            return
        leadership = host.node.use(Leadership)
        named = [*event.misses, *event.silent, *event.unheard, *event.have]
        if len(set(named)) != len(named) or event.watched in named:
            self.fail(f"{host.me} counts somebody twice, or the watched: {event}")
        slots = {slot.name for slot in host.node.use(Seats).slots}
        if event.acted and (len(slots & {*event.misses}) <= len(slots) // 2 or event.p_false > leadership.config.p_m + ROUNDING):
            self.fail(f"{host.me} acts without a quorum of seats, or below the demand: {event}")


class VoteTruth(Checker):
    """I6: a monitor that says that it missed heartbeat i holds no heartbeat of that life from i on."""

    name = "I6 vote-truth"

    def __init__(self) -> None:
        self._held: dict[tuple[NodeId, NodeId], int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, HeartbeatRead):
            self._held[host.me, event.life] = max(event.seq, self._held.get((host.me, event.life), -1))
        elif isinstance(event, MissSaid) and self._held.get((host.me, event.life), -1) >= event.seq:
            self.fail(f"{host.me} says that it missed {event.seq} of {event.life}, and holds {self._held[host.me, event.life]}")
