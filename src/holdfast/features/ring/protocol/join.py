"""Joining: the four phases of a candidate.  Spec: ring 5.6, D8, D12, D27; paper 000, section V, Figure 6, Theorems 6 to 8.

1 Discover whose neighbour I will be, 2 lock them all and look again, 3 open a pair with each, 4 be obliged to each.
Any failure ends the attempt: what was locked is unlocked, and the next attempt has a new id.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.facts import JoinStarted, PhaseReached
from holdfast.features.ring.protocol.fencing import GEN_MAX
from holdfast.features.ring.protocol.ids import Peer, RingId, nearest
from holdfast.features.ring.protocol.messages import Answer, Discover, Discovered, Leave, Lock, Locked, Unlock
from holdfast.features.ring.protocol.pair import State
from holdfast.host import Address, Message, NodeId, Timer
from holdfast.kit.phase import Call, Outcome, Phase, PhaseEnd, Questions, count

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

REDIRECTS_MAX = 5
DISCOVER_EVERY, DISCOVER_TRIES = 0.25, 8  # in T_l: 2 T_l in all
LOCK_EVERY = 0.2  # in T_l


class Joiner:
    """One attempt to join."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._locks = Questions()
        self._redirects = 0
        self._call: Call | None = None
        self._phase: Phase[RingId] | None = None
        self._paced: Timer | None = None
        self._began_at = 0.0  # the present phase
        self._doors: deque[Address | NodeId] = deque()  # where to knock next
        self._knocks_left = 0
        self._heard = False  # a process is there, and in no ring
        self._asked_at = 0.0  # Discover, for the first time there
        self.trip = 0.0  # seconds to the first answer of the last attempt that got one, and back
        self._wanted: dict[RingId, Peer] = {}  # N_C
        self._views: dict[RingId, Peer] = {}  # all that the grantors know
        self._ready = False  # phase 4

    def start(self, to: Sequence[Address | NodeId], attempt: int) -> None:
        """Knock there; at the next one if there is no answer, or no ring. The ring gave us a fresh id."""
        ring = self._ring
        self._redirects, self._ready = 0, False
        self._wanted, self._views = {}, {}
        self._began_at = ring.raw.now
        self._doors = deque(to)
        self._knocks_left, self._heard = DISCOVER_TRIES, False
        ring.raw.emit(JoinStarted(ring.id, attempt))
        self._knock()

    def fail(self, why: str) -> None:
        """Silently gone: nothing was promised to a member yet."""
        ring = self._ring
        assert not ring.is_member
        self.cancel()
        for peer in self._wanted.values():
            ring.raw.send(peer.node, Unlock(*ring.head(peer.id)))
        for pair in tuple(ring.pairs.values()):
            ring.raw.send(pair.peer.node, Leave(*ring.head(pair.peer.id), "join failed", 0))
            ring.opening.drop(pair)
        ring.counts[f"join_failed: {why}"] += 1
        ring.give_up(why)

    def cancel(self) -> None:
        for each in (self._call, self._phase, self._paced):
            if each is not None:
                each.cancel()

    def _knock(self) -> None:
        """At the next door. A seed that is silent for one try comes last: a seed that is down costs a quarter of T_l, not two."""
        door = self._doors.popleft()
        self._doors.append(door)
        only = len(self._doors) == 1
        tries = self._knocks_left if only else 1
        self._knocks_left -= tries
        self._discover(door, tries, self._on_knocked)

    def _on_knocked(self, message: Message | None) -> None:
        if message is not None:
            self._on_discovered(message)
        elif self._knocks_left > 0:
            self._knock()
        else:
            self.fail("no_member" if self._heard else "nobody answered")

    def _on_redirected(self, message: Message | None) -> None:
        if message is None:
            self.fail("nobody answered")
        else:
            self._on_discovered(message)

    def _discover(self, to: Address | NodeId, tries: int, done: Callable[[Message | None], None]) -> None:
        ring = self._ring
        self._asked_at = ring.raw.now
        self._call = Call(
            ring.host, ring.knocks, to,
            lambda serial: Discover(serial, ring.id, *ring.departing.claims(), ring.raw.address),
            every=DISCOVER_EVERY * ring.config.lease, tries=tries, done=done,
        )  # fmt: skip
        self._call.start()

    def _on_discovered(self, message: Message) -> None:
        ring = self._ring
        assert isinstance(message, Discovered)
        self.trip = ring.raw.now - self._asked_at
        if message.answer is Answer.NO_MEMBER and len(self._doors) > 1 and self._knocks_left > 0 and not ring.is_seed:
            self._heard = True
            self._doors.pop()  # The one that answered; a seed asks all the others at once, when it founds.
            self._knock()
        elif message.answer is Answer.REDIRECT and message.view and self._redirects < REDIRECTS_MAX:
            self._redirects += 1
            owner = message.view[0]
            ring.raw.meet(owner.node, owner.address)
            if owner.node == ring.raw.me:
                self.fail("my former membership is still listed")
            else:
                self._discover(owner.node, DISCOVER_TRIES, self._on_redirected)
        elif message.answer is Answer.OK and message.view:
            ring.ring = message.ring
            self._next(partial(self._begin_lock, message.view))
        else:
            self.fail(message.answer.name.lower())

    # Phase 2.

    def _begin_lock(self, view: tuple[Peer, ...]) -> None:
        ring = self._ring
        self._views = {peer.id: peer for peer in view}
        self._wanted = self._neighbourhood()
        ring.raw.emit(PhaseReached(ring.id, "lock"))
        for peer in self._wanted.values():
            ring.raw.meet(peer.node, peer.address)
        self._phase = Phase(
            ring.host, self._locks, {peer.id: peer.node for peer in self._wanted.values()},
            lambda serial: Lock(ring.ring, ring.id, 0, serial),
            every=LOCK_EVERY * ring.config.lease, timeout=ring.config.lease,
            enough=count(len(self._wanted), self._wanted), done=self._on_locked,
        )  # fmt: skip
        self._phase.start()

    def on_locked(self, source: NodeId, message: Locked) -> None:
        del source
        self._locks.answer(message.serial, message.source, message, yes=message.granted)

    def _on_locked(self, end: PhaseEnd[RingId]) -> None:
        if end.outcome is not Outcome.ENOUGH:
            self.fail("a neighbour is busy" if end.outcome is Outcome.IMPOSSIBLE else "a neighbour is silent")
            return
        for answer in end.yes.values():
            assert isinstance(answer, Locked)
            self._views.update((peer.id, peer) for peer in answer.view)
        # D8: the first answer may have been old. A member that has granted cannot gain members any more, so this one is not.
        if self._ring.rules.recheck and self._neighbourhood().keys() != self._wanted.keys():
            self.fail("the neighbourhood has changed")
            return
        self._next(self._begin_open)

    def _neighbourhood(self) -> dict[RingId, Peer]:
        ring = self._ring
        ids = sorted(each for each in self._views if each != ring.id)
        return {each: self._views[each] for each in nearest(ids, ring.id, ring.config.k)}

    # Phases 3 and 4.

    def _begin_open(self) -> None:
        ring = self._ring
        ring.raw.emit(PhaseReached(ring.id, "open"))
        ring.neighbours.adopt(tuple(self._wanted.values()))
        for peer in self._wanted.values():
            ring.opening.open(peer)

    def on_acked(self) -> None:
        """A session with one of them was established."""
        ring = self._ring
        pairs = list(ring.pairs.values())
        if not all(pair.acked for pair in pairs):
            return
        if not self._ready and all(pair.n == 1 for pair in pairs):
            self._ready = True
            ring.raw.emit(PhaseReached(ring.id, "ready"))
            if not ring.config.join_pace:
                for pair in pairs:
                    ring.leases.begin(pair, ring.raw.now)
        elif all(pair.n > 1 for pair in pairs):
            if ring.config.join_pace:
                self._paced = ring.host.at(pairs[0].s + ring.config.lease, self._finish)
            else:
                self._finish()

    def _finish(self) -> None:
        ring = self._ring
        now, lease = ring.raw.now, ring.config.lease
        if any(now >= pair.est + 2 * lease for pair in ring.pairs.values()):
            self.fail("too slow")
            return
        self.cancel()
        for pair in ring.pairs.values():
            pair.state = State.ACTIVE
        known = max(ring.fencing.highest, *(pair.pgen for pair in ring.pairs.values()))  # Ours may come from a ring that is over.
        ring.become_member(tuple(self._views.values()), min(GEN_MAX, 1 + known))

    def _next(self, begin: Callable[[], None]) -> None:
        """Paced, every phase takes a whole T_l as in the paper's simulator (Figure 10)."""
        ring = self._ring
        if not ring.config.join_pace:
            begin()
            return
        due, self._began_at = self._began_at + ring.config.lease, self._began_at + ring.config.lease
        self._paced = ring.host.at(due, begin)
