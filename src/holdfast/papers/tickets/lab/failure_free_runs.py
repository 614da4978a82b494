"""Interleavings of cjoin and cleave on ``FailureFreeRing``: drawn at random, or all there are; and what must hold in each.

Spec: tickets 7 (I1, I2, I4, I11), 8 (E1), D8; paper 001, Lemmas 3.1 and 3.2, Theorem 3.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from msgspec import Struct

from holdfast.host import NodeId
from holdfast.lab.explore import Explored, explore
from holdfast.papers.tickets.lab.circle import bits
from holdfast.papers.tickets.lab.failure_free_ring import FailureFreeRing, Message, Process, State, Waiting

DELIVERIES_MAX = 100_000  # of one run; 200 operations take about 1500
STATES_MAX = 1_000_000


def shared(ring: FailureFreeRing) -> str:
    """I1 and I2, Theorem 3.1: "" or which process has tickets in common with another."""
    taken = 0
    for p in ring.processes.values():
        if p.coordinates:
            mine = bits(p.i, p.j, ring.n)
            if mine & taken:
                return f"{p.me} coordinates {sorted(ring.tickets(p))}, and somebody else some of them"
            taken |= mine
    return ""


def leaver_shares(ring: FailureFreeRing) -> bool:
    """D8: another owns the ticket of a process that waits for ACKCLEAVE, and by the paper has it until then."""
    leaving = {p.i for p in ring.processes.values() if p.state is State.LEAVING}
    return any(p.owns and p.i in leaving for p in ring.processes.values())


def broken(ring: FailureFreeRing) -> str:
    """I4 and I11, Lemmas 3.1 (2) and 3.2, where no operation is in flight: one cycle that covers every ticket."""
    members = {p.me: p for p in ring.processes.values() if p.state is State.COORDINATOR}
    if not members:
        return "nobody is coordinator"
    first = next(iter(members.values()))
    seen, p = [first.me], first
    while p.immed_succ != first.me:
        following = members.get(p.immed_succ)
        if following is None or len(seen) > len(members):
            return f"from {p.me} no successor leads back to {first.me}"
        if following.immed_pred != p.me:
            return f"{p.me} has successor {following.me}, whose predecessor is {following.immed_pred}"
        seen.append(following.me)
        p = following
    covered = sum(len(ring.tickets(p)) for p in members.values())
    if len(seen) != len(members) or covered != ring.n:
        return f"a cycle of {len(seen)} of {len(members)} coordinators, {covered} of {ring.n} tickets"
    return ""


class Outcome(Struct, frozen=True):
    """What one run showed."""

    operations: int
    deliveries: int
    shared: str  # I1, I2: "" or what was violated
    leaver_shares: bool  # a ticket had a new owner before its former one, which leaves, was told (D8)
    broken: str  # I4, I11 at the end; "" if it ended in a deadlock
    stuck: int  # processes that wait for an ACKCLEAVE for ever
    stayed: int  # processes that did not leave, at the end


class Interleaving:
    """One random run. ``stays``: the founder never leaves."""

    def __init__(self, seed: int, *, processes: int, n: int, operations: int, stays: bool) -> None:
        self.random = Random(f"{seed}/interleaving")
        self.names = [f"p{i}" for i in range(processes)]
        founder = NodeId(self.names[0], 1)
        self.ring = FailureFreeRing(n, founder, self.random.choice)
        self.present = {name: NodeId(name, int(name == founder.name)) for name in self.names}  # latest lives; boot 0 never joined
        self.operations, self.deliveries = operations, 0
        self.stayer = founder if stays else None
        self.eagerness = self.random.uniform(0.02, 0.5)  # how likely an operation begins before the next message arrives
        self.shared, self.leaver_shares = "", False

    def play(self) -> Outcome:
        """Operations begin and messages arrive in any order, then what is under way ends."""
        left = self.operations
        while left:
            if not self.ring.channels or self.random.random() < self.eagerness:
                left -= self._operate()
            else:
                self._deliver()
            self._look()
        while self.ring.channels:
            self._deliver()
            self._look()
        stuck = [p for p in self.ring.core if p.state is State.LEAVING]
        return Outcome(
            self.operations,
            self.deliveries,
            self.shared,
            self.leaver_shares,
            "" if stuck else broken(self.ring),
            len(stuck),
            len(self.ring.core) - len(stuck),
        )

    def _operate(self) -> int:
        """A process that is out wants in, or one that is in wants out. 0: this one had nothing to want."""
        name = self.random.choice(self.names)
        life = self.present[name]
        process = self.ring.processes.get(life)
        if process is None or process.state is State.GONE:
            known = self.random.choice(self.ring.core)  # No process leaves without a predecessor, so there is one.
            self.present[name] = NodeId(name, life.boot + 1)
            self.ring.cjoin(self.present[name], known.me)
            return 1
        if process.placed and not process.wants_out and life != self.stayer:
            self.ring.cleave(life)
            return 1
        return 0

    def _deliver(self) -> None:
        self.deliveries += 1
        assert self.deliveries < DELIVERIES_MAX
        self.ring.deliver(*self.random.choice(list(self.ring.channels)))

    def _look(self) -> None:
        self.shared = self.shared or shared(self.ring)
        self.leaver_shares = self.leaver_shares or leaver_shares(self.ring)


class Variables(NamedTuple):
    """One process as a value. What one that is gone remembers makes no difference."""

    me: NodeId
    state: State
    i: int
    j: int
    immed_succ: NodeId
    immed_pred: NodeId
    view: tuple[tuple[int, NodeId], ...]
    wants_out: bool
    waiting: tuple[Waiting, ...]


class Snapshot(NamedTuple):
    """A whole ring as a value."""

    processes: tuple[Variables, ...]
    channels: tuple[tuple[NodeId, NodeId, tuple[Message, ...]], ...]


class Everything:
    """Every interleaving of a small cluster: each of ``joiners`` joins once, through any other, and leaves once; the founder stays."""

    def __init__(self, n: int, joiners: Sequence[str], kind: type[FailureFreeRing] = FailureFreeRing) -> None:
        self.n, self.kind, self.founder = n, kind, NodeId("p0", 1)
        self.joiners = [NodeId(name, 1) for name in joiners]
        self.first = _frozen(kind(n, self.founder, max))

    def explored(self) -> Explored[Snapshot]:
        return explore(self.first, self.moves, self.wrong, states_max=STATES_MAX)

    def moves(self, state: Snapshot) -> Iterator[tuple[str, Snapshot]]:
        ring = self._thawed(state)
        known = [p.me for p in ring.core if p.placed]
        for joiner in self.joiners:
            process = ring.processes.get(joiner)
            if process is None:
                for each in known:
                    yield f"{joiner.name} cjoins at {each.name}", self._after(state, "cjoin", joiner, each)
            elif process.placed and not process.wants_out:
                yield f"{joiner.name} cleaves", self._after(state, "cleave", joiner)
        for source, target in ring.channels:
            message = ring.channels[source, target][0]
            yield f"{type(message).__name__} {source.name} -> {target.name}", self._after(state, "deliver", source, target)

    def wrong(self, state: Snapshot) -> str:
        ring = self._thawed(state)
        return shared(ring) or ("" if ring.channels else broken(ring))

    def _after(self, state: Snapshot, move: str, *arguments: NodeId) -> Snapshot:
        ring = self._thawed(state)
        getattr(ring, move)(*arguments)
        return _frozen(ring)

    def _thawed(self, state: Snapshot) -> FailureFreeRing:
        ring = self.kind(self.n, self.founder, max)
        ring.processes = {each.me: _process(each) for each in state.processes}
        ring.channels = {(source, target): deque(queue) for source, target, queue in state.channels}
        return ring


def _frozen(ring: FailureFreeRing) -> Snapshot:
    processes = (_variables(p) for _, p in sorted(ring.processes.items()))
    channels = ((source, target, tuple(queue)) for (source, target), queue in sorted(ring.channels.items()))
    return Snapshot(tuple(processes), tuple(channels))


def _variables(p: Process) -> Variables:
    if p.state is State.GONE:
        return Variables(p.me, p.state, -1, -1, p.me, p.me, (), wants_out=False, waiting=())
    return Variables(p.me, p.state, p.i, p.j, p.immed_succ, p.immed_pred, tuple(sorted(p.view.items())), p.wants_out, tuple(p.waiting))


def _process(each: Variables) -> Process:
    p = Process(each.me)
    p.state, p.i, p.j, p.immed_succ, p.immed_pred = each.state, each.i, each.j, each.immed_succ, each.immed_pred
    p.view, p.wants_out, p.waiting = dict(each.view), each.wants_out, list(each.waiting)
    return p
