"""What must hold of tickets, after every event.  Spec: tickets 7 (I1 to I8).

A coordinator *owns* while it is active and its own clock is before its deadline; stopped processes count, dead ones do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf

from holdfast.events import Event
from holdfast.features.tickets.lab.users import TicketUsers
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.facts import CellLost, CellWritten, TicketAcquired, TicketExtended, TicketLost, TicketReleased
from holdfast.features.tickets.protocol.tickets import Tickets
from holdfast.features.tickets.protocol.values import ANCHOR, NO_SLOT, Ballot, Key, Place, Val, Who
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.violation import Violation
from holdfast.lab.world import World

ROUNDING = 1e-9

Shape = tuple[tuple[Coordinator, int, float], ...]  # what a process owns: coordinator, tickets, deadline


def owners(host: LabHost) -> list[Coordinator]:
    """The coordinators of one process that own their tickets now."""
    if host.dead or not host.node.running:
        return []
    return [each for each in host.node.use(Tickets).coordinators if each.valid]


class TicketWatch(Checker):
    """Looks at the process that was touched; calls ``changed`` when it owns more, or for longer, than before.

    No agent comes to own anything by the mere passing of time, so that is when two of them can begin to overlap.
    """

    name = "watch"

    def __init__(self, *judges: Judge) -> None:
        self._judges = judges
        self._machines: dict[LabHost, tuple[Tickets, TicketUsers]] = {}
        self._shapes: dict[LabHost, Shape] = {}
        self._told: dict[LabHost, list[float]] = {}

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.dead:
            return
        machines = self._machines.get(host)
        if machines is None:
            if not host.node.running:
                return
            machines = self._machines[host] = host.node.use(Tickets), host.node.use(TicketUsers)
        self._look_at_users(world, host, machines[1])
        shape = tuple([(each, each.free, each.deadline.until) for each in machines[0].coordinators if each.valid])
        if shape != self._shapes.get(host, ()):
            self._shapes[host] = shape
            owning = [(each, other) for each in world.alive for other in owners(each)] if shape else []
            for coordinator, _, _ in shape:
                for judge in self._judges:
                    judge.judge(world, host, coordinator, owning)

    def _look_at_users(self, world: World, host: LabHost, machine: TicketUsers) -> None:
        """G1 where it counts: two users never act under one ticket, each by what it was told and its own clock (F14)."""
        told = [user.told_until for user in machine.users]
        if told == self._told.get(host):
            return
        self._told[host] = told
        acting = [(each.me, user.number) for each in world.alive for user in each.node.use(TicketUsers).users if user.acting]
        for number in [user.number for user in machine.users if user.acting]:
            users = [str(who) for who, used in acting if used == number]
            if len(users) > 1:
                raise Violation("G1 used-once", f"ticket {number} is used at {' and '.join(users)}")


class Judge(Checker):
    """What is asked about a coordinator that owns more, or for longer, than a moment ago."""

    def judge(self, world: World, host: LabHost, mine: Coordinator, owning: list[tuple[LabHost, Coordinator]]) -> None:
        raise NotImplementedError


class OwnExclusive(Judge):
    """I1, I2 (Theorem 4.1): no agent owns a ticket that another one owns or coordinates."""

    name = "I1 own-exclusive"

    def judge(self, world: World, host: LabHost, mine: Coordinator, owning: list[tuple[LabHost, Coordinator]]) -> None:
        for other_host, other in owning:
            if other is mine or other.pool.name != mine.pool.name:
                continue
            if other.head == mine.head:
                self.fail(f"{host.me} and {other_host.me} own ticket {mine.head}, as {mine.who} and {other.who}")
            common = set(mine.tickets) & set(other.tickets)
            if common:
                self.name = "I2 coordinate-exclusive"
                self.fail(f"{host.me} and {other_host.me} coordinate {sorted(common)}, as {mine.who} and {other.who}")


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
        self.lost: set[tuple[str, str]] = set()  # pool and rid of cells that an agent reported as lost

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, CellLost):
            self.lost.add((event.pool, event.rid))
        if not isinstance(event, CellWritten):
            return
        key, ballot, val = event.key, event.ballot, event.val
        if self.written.setdefault((key, ballot, val.seq), val) != val:
            self.fail(f"{key} under {ballot}, version {val.seq}: {val} and {self.written[key, ballot, val.seq]}")
        highest = self.highest.get(key)
        if highest is None or (highest[0], highest[1].seq) < (ballot, val.seq):
            self.highest[key] = ballot, val
            self._partition(key.pool)

    def walk(self, pool: str) -> Iterator[tuple[Val, list[Key]]]:
        """The cells from the anchor along pointers and moves; ends where nothing was written.

        With each the keys that lead to it: the one that the cell before points to, and one for each move that it does not know of.
        """
        keys = [Key(pool, ANCHOR, 0)]
        for _ in range(len(self.highest) + 1):
            found = self.highest.get(keys[-1])
            if found is None:
                return
            val = found[1]
            if val.nxt is not None and keys[-1]._replace(cfg=val.nxt.cfg) in self.highest:
                keys.append(keys[-1]._replace(cfg=val.nxt.cfg))
                continue
            yield val, keys
            keys = [Key(pool, val.succ.rid, val.succ.cfg)]
            if keys[0].rid == ANCHOR:
                return

    def _partition(self, pool: str) -> None:
        vals = [val for val, _ in self.walk(pool)]
        if not vals:
            return  # A cell before the anchor is an attempt to found.
        for before, val in pairwise(vals):
            if val.head != (before.head - before.length) % val.n:
                self._broken(pool, vals)
        if sum(val.length for val in vals) != vals[0].n or vals[-1].succ.rid != ANCHOR:
            self._broken(pool, vals)

    def _broken(self, pool: str, vals: list[Val]) -> None:
        self.name = "I4 ring-partition"
        self.fail(f"{pool}: arcs {[(val.head, val.length) for val in vals]} of {vals[0].n} tickets, the last points to {vals[-1].succ.rid}")


class LeaseCover(Judge):
    """I5: a majority of the guardian set grants nothing to another candidate for as long as a coordinator owns, in true time.

    Crashed guardians grant nothing at all, and when they come back they wait.
    """

    name = "I5 lease-cover"

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        """A guardian gave a cell to a candidate."""
        if isinstance(event, CellWritten):
            for each in world.alive:
                for coordinator in owners(each):
                    if coordinator.key == event.key:
                        self.judge(world, each, coordinator, [])

    def judge(self, world: World, host: LabHost, mine: Coordinator, owning: list[tuple[LabHost, Coordinator]]) -> None:
        left = (mine.deadline.until - host.now) / host.rate
        covered = [cover(world, place, mine) for place in mine.places]
        if sum(seconds >= left - ROUNDING for seconds in covered) < len(mine.places) // 2 + 1:
            kept = ", ".join(f"{seconds:.3f}" for seconds in covered)
            self.fail(f"{host.me} owns ticket {mine.head} for {left:.3f} s and its guardians keep it for {kept} s")


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


class QuorumAlone(Judge):
    """I8 (invariant 1 of section 4): a lease lasts as long as the majority of guardians that echoed last, and no longer."""

    name = "I8 quorum-alone"

    def judge(self, world: World, host: LabHost, mine: Coordinator, owning: list[tuple[LabHost, Coordinator]]) -> None:
        need = len(mine.places) // 2 + 1
        stamps = sorted(mine.stamps.values(), reverse=True)
        until = stamps[need - 1] + mine.config.hold if len(stamps) >= need else -inf
        if mine.deadline.until > until + ROUNDING:
            self.fail(f"{host.me} owns ticket {mine.head} until {mine.deadline.until:.6f}, a majority echoed for {until:.6f}")


def guardian_at(world: World, place: Place) -> LabHost | None:
    """The process that is this member of a set now; None if that life is over."""
    if place.slot != NO_SLOT:
        return world.nodes.get(f"s{place.slot}")
    host = world.nodes.get(place.agent.life.name)
    return host if host is not None and host.me == place.agent.life else None


def cover(world: World, place: Place, coordinator: Coordinator) -> float:
    """True seconds for which a member of the set gives the cell to no other, as things are."""
    host = guardian_at(world, place)
    if host is None or host.dead or not host.node.running:
        return inf
    guardian = host.node.use(Tickets).guardian
    cell = guardian.cells.get(coordinator.key)
    if cell is not None and cell.val is not None and cell.val.who != coordinator.who:
        return 0.0
    return guardian.busy(cell) / host.rate
