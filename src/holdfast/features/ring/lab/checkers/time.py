"""How long things may take in a ring: detection, declaration, the life of a loser, a join.  Spec: ring 7, I5, I6, I7, I12.

Bounds are counted on the clock of the member that keeps them. The specification scales its bounds to true time; on the own clock they need
no scale for the own sessions, and ``wait`` carries the drift of the other's clock already, so what is checked here is the tighter.
"""

from __future__ import annotations

from functools import partial
from math import inf

from holdfast.events import Event
from holdfast.features.ring.lab.checkers.ring import LOOK_AGAIN, ROUNDING, Life, RingChecker, RingWatch
from holdfast.features.ring.protocol.facts import BecameMember, Departed, JoinStarted, PhaseReached, Removed, Suspicion, Won
from holdfast.features.ring.protocol.ids import RingId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

CALM_LEASES = 20  # in T_l: everything that a fault set going is over, waits, repairs and locks included
PACED_SLACK = 0.01  # in T_l: a paced join takes exactly 3 T_l after its first phase, and the messages of the last


def allowance(life: Life, since: float, now: float) -> float:
    """What stops add to a bound of this life: their length, because a timer waits for the end of a stop, and one drain (D6)."""
    paused = life.paused(since, now)
    return paused + life.ring.config.drain / life.host.rate if paused else 0.0


class Detection(RingChecker):
    """I5: a crash is suspected by every monitor that is not stopped less than 2 T_l later (Th. 2).

    The last session that was acknowledged began at s, before the crash: the answer left before it. The next one ends at s + 2 T_l
    without an answer. A pair that becomes binding by a message that the dead had sent is younger than that and ends earlier.
    """

    name = "I5 detection"

    def died(self, world: World, life: Life) -> None:
        for other in self.watch.lives.values():
            side = None if other is None else other.pairs.get(life.id)
            if other is None or side is None or not side.obliged or side.suspected or other.host.dead or not other.member:
                continue
            due = world.now + 2 * other.ring.config.lease / other.host.rate + ROUNDING
            self.watch.at(due, partial(self._judge, other, other.id, life, side.epoch, due))

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if not isinstance(event, Suspicion):
            return
        life, dead = self.watch.lives[host], self.watch.by_id.get(event.peer)
        if life is None or dead is None or dead.died_at == inf:
            return
        took, bound = world.now - dead.died_at, 2 * life.ring.config.lease / host.rate
        if took > bound + allowance(life, dead.died_at - bound, world.now) + ROUNDING:
            self.fail(f"{life} suspects {dead} {took:g} s after its death; the bound is {bound:g} s")

    def _judge(self, life: Life, me: RingId, dead: Life, epoch: int, due: float, world: World, now: float) -> None:
        side = life.pairs.get(dead.id)
        if side is None or side.epoch != epoch or side.suspected or not side.obliged or not life.valid(now, me):
            return
        late = due + allowance(life, dead.died_at - 2 * life.ring.config.lease, now)
        if now >= late:
            self.fail(f"{life} has not suspected {dead}, dead for {now - dead.died_at:g} s")
        again = now + LOOK_AGAIN if life.stopped_at <= now else late
        self.watch.at(max(late, again), partial(self._judge, life, me, dead, epoch, due))


class Declaration(Checker):
    """I6: a crash is declared by each monitor that won within 4 T_l + T_a, scaled by drift (Th. 5).

    The suspicion comes less than 2 T_l after the crash (I5), the declaration ``wait`` after it: together 2 T_l + wait on the own clock.
    And a member that has won declares then, dead or not, or has departed.
    """

    name = "I6 declaration"

    def __init__(self, watch: RingWatch) -> None:
        self._watch = watch
        self._won: set[tuple[RingId, RingId]] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        life = self._watch.lives.get(host)
        if life is None:
            return
        if isinstance(event, Won) and event.entitled:
            me = life.ring.id
            self._won.add((me, event.peer))
            due = life.true(event.stop + life.ring.config.wait) + ROUNDING
            self._watch.at(due, partial(self._judge, life, me, event.peer, world.now, due))
        elif isinstance(event, Removed) and (life.ring.id, event.id) in self._won:
            self._on_declared(world, life, event)

    def _on_declared(self, world: World, life: Life, event: Removed) -> None:
        dead = self._watch.by_id.get(event.id)
        if dead is None or dead.died_at == inf or dead.id != event.id:
            return
        config = life.ring.config
        took, bound = world.now - dead.died_at, (2 * config.lease + config.wait) / life.host.rate
        if took > bound + allowance(life, dead.died_at - 2 * config.lease, world.now) + ROUNDING:
            self.fail(f"{life} declares {dead} {took:g} s after its death; the bound is {bound:g} s")

    def _judge(self, life: Life, me: RingId, peer: RingId, since: float, due: float, world: World, now: float) -> None:
        if not life.valid(now, me) or peer not in life.ring.list:
            return
        late = due + allowance(life, since, now)
        if now >= late:
            self.fail(f"{life} has won against {peer} {now - since:g} s ago and has not declared it")
        again = now + LOOK_AGAIN if life.stopped_at <= now else late
        self._watch.at(max(late, again), partial(self._judge, life, me, peer, since, due))


class Lifespan(Checker):
    """I7: when the wait of an entitled winner is over, counted from when it stopped acking, the loser is not valid (Th. 4, Cor. 2).

    The loser's last established session began before its last acknowledgement left the winner, at or before ``stop``: on its own clock it
    is valid for at most T_arb longer. Judged at that very instant, whether anything happens then or not.
    """

    name = "I7 lifespan"

    def __init__(self, watch: RingWatch) -> None:
        self._watch = watch

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Won) and event.entitled:
            life = self._watch.lives[host]
            assert life is not None
            due = life.true(event.stop + life.ring.config.wait)
            self._watch.at(due, partial(self._judge, life, life.ring.id, event.peer))

    def _judge(self, winner: Life, me: RingId, peer: RingId, world: World, now: float) -> None:
        loser = self._watch.by_id.get(peer)
        if loser is not None and loser.valid(now + ROUNDING, peer) and winner.valid(now, me):
            self.fail(f"{winner} has waited for {loser}, which is valid for another {loser.until - now:g} s")


class JoinTime(RingChecker):
    """I12: without faults and contention a candidate is a member less than 3 T_l after its first phase (Th. 8).

    Judged if nothing went wrong and no member left for ``CALM_LEASES`` or ever, all list the same members, none is condemned or
    across a gap, and no other candidate was there from then on.
    """

    name = "I12 join-time"

    def __init__(self, watch: RingWatch, *, lossless: bool) -> None:
        super().__init__(watch)
        self._lossless = lossless
        self._candidates: set[RingId] = set()
        self._active_at: dict[Life, float] = {}  # when each last began or ended an attempt
        self._left_at = -inf
        self.judged = 0

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        life = self.watch.lives.get(host)
        if life is None:
            return
        if isinstance(event, JoinStarted):
            self._candidates.add(event.id)
            self._active_at[life] = world.now
        elif isinstance(event, BecameMember | Departed):
            self._candidates.discard(event.id)
            if isinstance(event, Departed) and event.was_member:
                self._left_at = world.now
            else:
                self._active_at[life] = world.now
        elif isinstance(event, PhaseReached) and event.phase == "lock" and self._candidates == {event.id} and self._is_calm(world, life):
            config = life.ring.config
            bound = (3 + (PACED_SLACK if config.join_pace else 0.0)) * config.lease / host.rate
            self.watch.at(world.now + bound, partial(self._judge, life, event.id, world.now))

    def died(self, world: World, life: Life) -> None:
        self._candidates.discard(life.ring.id)

    def _is_calm(self, world: World, candidate: Life) -> bool:
        since = max(self.watch.calm_since(world), self._left_at)
        if not self._lossless or world.now - since < CALM_LEASES * candidate.ring.config.lease:
            return False
        members = list(self.watch.valid(candidate.ring.ring, world.now))
        ids = sorted(each.id for each in members)
        return all(each.ring.list.ids == ids and each.ring.settled and not each.ring.condemned for each in members)

    def _judge(self, life: Life, ring_id: RingId, since: float, world: World, now: float) -> None:
        # A lock of an attempt that failed may stand until its time is over, if the word that frees it came before it.
        alone_since = since - life.ring.config.lock_ttl - life.ring.config.lease
        contended = any(at >= alone_since for other, at in self._active_at.items() if other is not life)
        if contended or max(self.watch.calm_since(world), self._left_at) > since:
            return
        self.judged += 1
        if ring_id not in self.watch.joined:
            self.fail(f"{life} reached the second phase {now - since:g} s ago, nothing went wrong, and it is no member")
