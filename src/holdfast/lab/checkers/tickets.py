"""What must hold of tickets, after every event.  Spec: tickets 7 (I1 to I8).

A coordinator *owns* while it is active and its own clock is before its deadline; stopped processes count, dead ones do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from holdfast.events import Event
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.ticket_users import TicketUsers
from holdfast.lab.world import World
from holdfast.protocols.tickets.coordinator import Coordinator, State
from holdfast.protocols.tickets.facts import CellWritten, TicketAcquired, TicketExtended, TicketLost, TicketReleased
from holdfast.protocols.tickets.guardian import Guardian
from holdfast.protocols.tickets.tickets import Tickets
from holdfast.protocols.tickets.values import ANCHOR, NO_SLOT, Ballot, Key, Place, Val, Who

ROUNDING = 1e-9


def owners(host: LabHost) -> list[Coordinator]:
    """The coordinators of one process that own their tickets now."""
    if host.dead or not host.node.running:
        return []
    return [each for each in host.node.use(Tickets).coordinators if each.valid]


class OwnExclusive(Checker):
    """I1, I2 (Theorem 4.1): nobody owns a ticket that another one owns or coordinates."""

    name = "I1 own-exclusive"

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            return
        mine = owners(host)
        if not mine:
            return
        all_owners = [(each, other) for each in world.alive for other in owners(each)]
        for coordinator in mine:
            self._compare(host, coordinator, all_owners)

    def _compare(self, host: LabHost, mine: Coordinator, all_owners: list[tuple[LabHost, Coordinator]]) -> None:
        for other_host, other in all_owners:
            if other is mine or other.pool.name != mine.pool.name:
                continue
            if other.head == mine.head:
                self.fail(f"{host.me} and {other_host.me} own ticket {mine.head}, as {mine.who} and {other.who}")
            common = set(mine.tickets) & set(other.tickets)
            if common:
                self.name = "I2 coordinate-exclusive"
                self.fail(f"{host.me} and {other_host.me} coordinate {sorted(common)}, as {mine.who} and {other.who}")


class UsedOnce(Checker):
    """G1 where it counts: two users never act under one ticket, each by what it was told and its own clock (F14)."""

    name = "G1 used-once"

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.dead or not host.node.running:
            return
        mine = [user.number for user in host.node.use(TicketUsers).users if user.acting]
        if not mine:
            return
        acting = [(each.me, user.number) for each in world.alive for user in each.node.use(TicketUsers).users if user.acting]
        for number in mine:
            users = [str(who) for who, used in acting if used == number]
            if len(users) > 1:
                self.fail(f"ticket {number} is used at {' and '.join(users)}")


class TokensGrow(Checker):
    """I3: the tokens of one ticket strictly increase from owner to owner."""

    name = "I3 token-monotonic"

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], int] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, TicketAcquired):
            last = self._last.get((event.pool, event.number), 0)
            if event.who.token <= last:
                self.fail(f"{host.me} owns ticket {event.number} with token {event.who.token} after {last}")
            self._last[event.pool, event.number] = event.who.token


class Cells(Checker):
    """Every version that was ever accepted anywhere. I4: the highest ones partition the circle. I6: written once."""

    name = "I6 write-once"

    def __init__(self) -> None:
        self.written: dict[tuple[Key, Ballot, int], Val] = {}
        self.highest: dict[Key, tuple[Ballot, Val]] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if not isinstance(event, CellWritten):
            return
        key, ballot, val = event.key, event.ballot, event.val
        if self.written.setdefault((key, ballot, val.seq), val) != val:
            self.fail(f"{key} under {ballot}, version {val.seq}: {val} and {self.written[key, ballot, val.seq]}")
        highest = self.highest.get(key)
        if highest is None or (highest[0], highest[1].seq) < (ballot, val.seq):
            self.highest[key] = ballot, val
            self._partition(key.pool)

    def walk(self, pool: str) -> Iterator[tuple[Key, Val]]:
        """The cells from the anchor along pointers and moves; ends where nothing was written."""
        key = Key(pool, ANCHOR, 0)
        for _ in range(len(self.highest) + 1):
            found = self.highest.get(key)
            if found is None:
                return
            val = found[1]
            if val.nxt is not None and key._replace(cfg=val.nxt.cfg) in self.highest:
                key = key._replace(cfg=val.nxt.cfg)
                continue
            yield key, val
            key = Key(pool, val.succ.rid, val.succ.cfg)
            if key.rid == ANCHOR:
                return

    def _partition(self, pool: str) -> None:
        vals = [val for _, val in self.walk(pool)]
        if not vals:
            return  # A cell before the anchor is somebody's attempt to found.
        for before, val in pairwise(vals):
            if val.head != (before.head - before.length) % val.n:
                self._broken(pool, vals)
        if sum(val.length for val in vals) != vals[0].n or vals[-1].succ.rid != ANCHOR:
            self._broken(pool, vals)

    def _broken(self, pool: str, vals: list[Val]) -> None:
        self.name = "I4 ring-partition"
        self.fail(f"{pool}: arcs {[(val.head, val.length) for val in vals]} of {vals[0].n} tickets, the last points to {vals[-1].succ.rid}")


class LeaseCover(Checker):
    """I5: while a coordinator owns, a majority of its guardian set grants nothing to anybody else; crashed ones grant nothing at all."""

    name = "I5 lease-cover"

    def after(self, world: World, host: LabHost | None) -> None:
        if host is not None:
            for coordinator in owners(host):
                self._check(world, host, coordinator)

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        """A guardian gave a cell to somebody."""
        if isinstance(event, CellWritten):
            for each in world.alive:
                for coordinator in owners(each):
                    if coordinator.key == event.key:
                        self._check(world, each, coordinator)

    def _check(self, world: World, host: LabHost, coordinator: Coordinator) -> None:
        covered = sum(self._covers(world, place, coordinator) for place in coordinator.places)
        if covered < len(coordinator.places) // 2 + 1:
            left = coordinator.deadline.until - host.now
            self.fail(
                f"{host.me} owns ticket {coordinator.head} for {left:.3f} s and {covered} of {len(coordinator.places)} guardians keep it"
            )

    def _covers(self, world: World, place: Place, coordinator: Coordinator) -> bool:
        host = guardian_at(world, place)
        if host is None or host.dead or not host.node.running:
            return True
        guardian = host.node.use(Tickets).guardian
        return holds(guardian, coordinator)


class NoReturn(Checker):
    """I7: an ownership that ended never comes back."""

    name = "I7 no-return"

    def __init__(self) -> None:
        self._ended: set[Who] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, TicketLost | TicketReleased):
            self._ended.add(event.who)
        elif isinstance(event, TicketAcquired | TicketExtended) and event.who in self._ended:
            self.fail(f"{host.me} owns ticket {event.number} again as {event.who}")


class QuorumAlone(Checker):
    """I8 (invariant 1 of section 4): a lease lasts as long as the majority of guardians that echoed last, and no longer."""

    name = "I8 quorum-alone"

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None:
            return
        for coordinator in owners(host):
            need = len(coordinator.places) // 2 + 1
            stamps = sorted(coordinator.stamps.values(), reverse=True)
            until = stamps[need - 1] + coordinator.config.hold if len(stamps) >= need else -1.0
            if coordinator.deadline.until > until + ROUNDING:
                self.fail(
                    f"{host.me} owns ticket {coordinator.head} until {coordinator.deadline.until:.6f}, a majority echoed for {until:.6f}"
                )
            if coordinator.state is not State.ACTIVE:
                self.fail(f"{host.me} owns ticket {coordinator.head} in state {coordinator.state.name}")


def guardian_at(world: World, place: Place) -> LabHost | None:
    """The process that is this member of a set now; None if that life is over."""
    if place.slot != NO_SLOT:
        return world.nodes.get(f"s{place.slot}")
    host = world.nodes.get(place.agent.life.name)
    return host if host is not None and host.me == place.agent.life else None


def holds(guardian: Guardian, coordinator: Coordinator) -> bool:
    cell = guardian.cells.get(coordinator.key)
    return guardian.busy(cell) > 0 and (cell is None or cell.val is None or cell.val.who == coordinator.who)
