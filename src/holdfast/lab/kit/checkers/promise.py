"""What must hold of promises, whatever happens to seats, holders, disks and clocks.  Spec: foundation 4 (Promise), F8, F9, F13, F15."""

from __future__ import annotations

from holdfast.events import Event
from holdfast.host import NodeId
from holdfast.kit.seats import Seats, SeatState
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.kit.claims import Claimant, ClaimWon
from holdfast.lab.world import World


class Exclusive(Checker):
    """At every instant of true time at most one process, stopped ones included, would say that it holds."""

    name = "exclusive"

    def after(self, world: World, host: LabHost | None) -> None:
        valid = [each for each in world.alive if each.node.running and each.node.use(Claimant).valid]
        if len(valid) > 1:
            self.fail(f"{' and '.join(str(each.me) for each in valid)} hold at the same time")


class OnePerNumber(Checker):
    """A number is won by at most one life, ever."""

    name = "one-per-number"

    def __init__(self) -> None:
        self._won: dict[int, NodeId] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, ClaimWon) and self._won.setdefault(event.number, host.me) != host.me:
            self.fail(f"{host.me} won number {event.number}, which {self._won[event.number]} had won")


class NumbersGrow(Checker):
    """A winner has a higher number than all that won before: what fencing tokens are for."""

    name = "numbers-grow"

    def __init__(self) -> None:
        self._highest = 0

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, ClaimWon):
            if event.number <= self._highest:
                self.fail(f"{host.me} won number {event.number} after number {self._highest}")
            self._highest = event.number


class LostJournalsSilent(Checker):
    """F13: a seat whose journal was lost after it had been shown to others grants nothing."""

    name = "F13 lost-journals-silent"

    def __init__(self) -> None:
        self.spoke: set[str] = set()  # names of seats that were ever ready to promise: only those have something to lose
        self.lost: set[str] = set()  # names
        self._wipes: dict[str, int] = {}  # of disks, that were looked at
        self.silenced = False  # one of them has found out: the rare branch was taken

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.dead or not host.node.running:
            return
        name, state = host.me.name, host.node.use(Seats).state
        self._look_at_disk(world, name)
        self.silenced = self.silenced or (state is SeatState.SILENT and name in self.lost)
        if state in {SeatState.WAITING, SeatState.SERVING}:
            if name in self.lost:
                self.fail(f"{host.me} lost its journal and is {state.name}")
            self.spoke.add(name)

    def _look_at_disk(self, world: World, name: str) -> None:
        wipes = world.disks[name].wipes
        if wipes > self._wipes.get(name, 0) and name in self.spoke:
            self.lost.add(name)
        self._wipes[name] = wipes
