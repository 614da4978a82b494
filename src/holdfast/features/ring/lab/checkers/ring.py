"""What all checkers of a ring stand on: who is a member now, until when, and with whom in which state.  Spec: ring 5 (valid), 7.

``valid`` is judged in true time: a process that is stopped stays a member until its own clock passes its ``safe_until``, and no event
tells of that instant. After each event only the touched life is looked at, and the checkers hear of it only if more changed than
the time of a lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from math import inf
from typing import NamedTuple

from holdfast.events import Event
from holdfast.features.ring.protocol.facts import BecameMember, JoinStarted, Removed
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.ring import RingNode, Status
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

ROUNDING = 1e-6  # seconds; clocks with rates and offsets round, and every timer of the lab is 1e-9 s late
LOOK_AGAIN = 0.5  # seconds: a deadline of a stopped process is looked at so often

Group = tuple[int, frozenset[RingId]]  # version, arbitrators


class Side(NamedTuple):
    """One side of a pair, as it was after the last event of its owner."""

    epoch: int
    state: State
    opener: bool
    group: Group
    next: Group | None
    suspected: bool

    @property
    def obliged(self) -> bool:
        return self.state is not State.DORMANT

    @property
    def entitled(self) -> bool:
        return self.state is State.ACTIVE


class Life:
    """What is kept of one life of one process."""

    def __init__(self, host: LabHost, ring: RingNode) -> None:
        self.host, self.ring = host, ring
        self.id = ring.id
        self.number = 0  # of the ring
        self.member = False
        self.until = -inf  # true time at which ``safe_until`` is over
        self.died_at = inf
        self.pairs: dict[RingId, Side] = {}
        self.state: list[object] = []  # all that checkers look at; equal means that nothing changed
        self.pauses: list[tuple[float, float]] = []
        self.stopped_at = inf

    def __str__(self) -> str:
        return f"{self.host.me}@{self.id.pos:016x}"

    def own(self, at: float) -> float:
        """This life's clock at an instant of true time."""
        return self.host._offset + at * self.host.rate

    def true(self, own: float) -> float:
        return (own - self.host._offset) / self.host.rate

    def valid(self, at: float, ring_id: RingId | None = None) -> bool:
        """A member (of this id) that may act, judged by what it knew after its last event."""
        return self.member and at < self.until and at < self.died_at and (ring_id is None or ring_id == self.id)

    def paused(self, since: float, until: float) -> float:
        """For how long it was stopped within this time."""
        spans = [*self.pauses, (self.stopped_at, until)]
        return sum(max(0.0, min(end, until) - max(begin, since)) for begin, end in spans)


class RingChecker(Checker):
    """A checker that is told by the watch when a life has changed, instead of looking after every event."""

    def __init__(self, watch: RingWatch) -> None:
        self.watch = watch
        watch.checkers.append(self)

    def changed(self, world: World, life: Life) -> None:
        """Status, id, list, pairs, lock, generation or condemnations of this life are others than before."""

    def died(self, world: World, life: Life) -> None:
        """This life was killed just now. ``life`` is what it was."""


class RingWatch(Checker):
    """No invariant of its own. It stands before the checkers that ask it, so that it has seen what they see."""

    name = "ring"

    def __init__(self) -> None:
        self.checkers: list[RingChecker] = []
        self.lives: dict[LabHost, Life | None] = {}  # None: a process that is no member of a ring (CA's arbitrators)
        self.by_id: dict[RingId, Life] = {}
        self.joined: set[RingId] = set()  # ids that ever were members
        self.orphans: set[RingId] = set()  # removed by a member without certainty: G3 and G2 say nothing about them (D19)
        self._due: list[tuple[float, int, Callable[[World, float], None]]] = []
        self._numbered = 0
        self._fault_at = -inf
        self._disturbed = False

    def at(self, when: float, look: Callable[[World, float], None]) -> None:
        """Look at this instant, before anything that happens then or later has changed what is kept."""
        self._numbered += 1
        heappush(self._due, (when, self._numbered, look))

    def calm_since(self, world: World) -> float:
        """Since when no process was stopped, killed or cut off."""
        stopped = any(not host.running and not host.dead for host in world.nodes.values())
        return world.now if self._disturbed or stopped else self._fault_at

    def valid(self, number: int, at: float) -> Iterator[Life]:
        """The valid members of one ring."""
        return (each for each in self.lives.values() if each is not None and each.number == number and each.valid(at))

    def holder(self, ring_id: RingId) -> Life | None:
        """Who has this id now, as a member or as a candidate."""
        life = self.by_id.get(ring_id)
        return life if life is not None and life.id == ring_id and not life.host.dead else None

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, BecameMember | JoinStarted):
            life = self._life(host)
            assert life is not None
            self.by_id[event.id] = life
            if isinstance(event, BecameMember):
                self.joined.add(event.id)
        elif isinstance(event, Removed) and not event.certain:
            self.orphans.add(event.id)

    def after(self, world: World, host: LabHost | None) -> None:
        now = world.clock.now
        while self._due and self._due[0][0] <= now:
            when, _, look = heappop(self._due)
            look(world, when)
        if host is None:
            self._look_at_processes(world)
            return
        life = self.lives[host] if host in self.lives else self._life(host)
        if life is None or not host.running:
            return
        if life.stopped_at != inf:
            life.pauses.append((life.stopped_at, now))
            life.stopped_at = inf
            self._fault_at = now
        if self._look(life):
            for checker in self.checkers:
                checker.changed(world, life)

    def _look(self, life: Life) -> bool:
        """Take in the touched life. False: at most its leases were renewed."""
        ring = life.ring
        gen = ring.fencing.gen
        state: list[object] = [ring.status, ring.id, ring.list, ring.list.version, ring.view, ring.condemnations, gen, ring.door.lock]
        for pair in ring.pairs.values():
            state += (pair, pair.state, pair.ver, pair.cfg, pair.next, pair.susp, pair.pseen >= gen)
        was_over = life.until <= life.host.world.now
        life.member = ring.status is Status.MEMBER
        life.until = -inf
        if life.member:
            life.until = life.true(ring.safe_until) if ring.rules.guard else inf
        if state == life.state and not (was_over and life.member):
            return False
        life.state = state
        life.id, life.number = ring.id, ring.ring
        life.pairs = {
            peer: Side(pair.epoch, pair.state, pair.opener, (pair.ver, pair.cfg), pair.next, pair.susp is not None)
            for peer, pair in ring.pairs.items()
        }
        return True

    def _look_at_processes(self, world: World) -> None:
        """A fault or a step of the scenario: a process may have been stopped or killed."""
        now = world.now
        disturbed = world.network.disturbed
        if disturbed or self._disturbed:
            self._fault_at = now
        self._disturbed = disturbed
        for host in world.nodes.values():
            life = self.lives[host] if host in self.lives else self._life(host)
            if not host.running:
                self._fault_at = now if life is None or life.died_at == inf else self._fault_at
            if life is None or host.running:
                continue
            if not host.dead:
                life.stopped_at = min(life.stopped_at, now)
            elif life.died_at == inf:
                life.died_at = now
                for checker in self.checkers:
                    checker.died(world, life)

    def _life(self, host: LabHost) -> Life | None:
        if host not in self.lives:
            ring = next((machine for machine in host.node.machines if isinstance(machine, RingNode)), None)
            self.lives[host] = None if ring is None else Life(host, ring)
        return self.lives[host]
