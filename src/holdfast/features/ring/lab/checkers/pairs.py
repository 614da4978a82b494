"""What must hold between the two ends of a pair: rights need duties, groups overlap, one winner.  Spec: ring 7, I1, I3, I4, I11, I14."""

from __future__ import annotations

from functools import partial

from holdfast.events import Event
from holdfast.features.ring.lab.checkers.ring import LOOK_AGAIN, ROUNDING, Life, RingChecker, RingWatch, Side
from holdfast.features.ring.protocol.facts import GroupProposed, Won
from holdfast.features.ring.protocol.ids import RingId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

Instance = tuple[RingId, RingId, int]  # lower id, higher id, epoch


def instance(a: RingId, b: RingId, epoch: int) -> Instance:
    return min(a, b), max(a, b), epoch


class OneWinner(Checker):
    """I1: never two wins by both ends of the same pair and epoch (Alg. 1, section IV)."""

    name = "I1 one-winner"

    def __init__(self, watch: RingWatch) -> None:
        self._watch = watch
        self.winners: dict[Instance, RingId] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Won):
            life = self._watch.lives[host]
            assert life is not None
            me = life.ring.id
            if self.winners.setdefault(instance(me, event.peer, event.epoch), me) != me:
                self.fail(f"{host.me} won epoch {event.epoch} against {event.peer}, which had won it against {host.me}")


class RightNeedsDuty(RingChecker):
    """I3: P entitled over Q, both valid: Q holds the same epoch obliged, or Q has won that epoch (rule RO).

    It can only break when pairs of one of the two change, so it is judged then. Time alone makes no member valid.
    """

    name = "I3 right-needs-duty"

    def __init__(self, watch: RingWatch, winners: OneWinner) -> None:
        super().__init__(watch)
        self._winners = winners.winners
        self._rights: dict[Life, list[RingId]] = {}
        self._over: dict[RingId, dict[Life, None]] = {}  # who is entitled over this id

    def changed(self, world: World, life: Life) -> None:
        for peer in self._rights.pop(life, ()):
            self._over[peer].pop(life, None)
        rights = [peer for peer, side in life.pairs.items() if side.entitled]
        self._rights[life] = rights
        for peer in rights:
            self._over.setdefault(peer, {})[life] = None
            self._judge(world, life, peer)
        for other in tuple(self._over.get(life.id, ())):
            self._judge(world, other, life.id)

    def _judge(self, world: World, holder: Life, over: RingId) -> None:
        other, now = self.watch.holder(over), world.now
        if other is None or not holder.valid(now) or not other.valid(now, over):
            return
        epoch, duty = holder.pairs[over].epoch, other.pairs.get(holder.id)
        if duty is not None and duty.epoch == epoch and duty.obliged:
            return
        if self._winners.get(instance(holder.id, over, epoch)) == over:
            return
        has = "has no such pair" if duty is None else f"has epoch {duty.epoch}, {duty.state.name}"
        self.fail(f"{holder} is entitled over {other} by epoch {epoch}, which {has}")


class ConfigSkew(RingChecker):
    """I4: both ends obliged by the same epoch: the responder has the opener's group, or the one the opener proposes (Th. 1)."""

    name = "I4 config-skew"

    def changed(self, world: World, life: Life) -> None:
        if life.ring.config.mode != "pairwise":
            return
        for peer, side in life.pairs.items():
            other = self.watch.holder(peer) if side.obliged else None
            back = None if other is None else other.pairs.get(life.id)
            if other is None or back is None or back.epoch != side.epoch or not back.obliged:
                continue
            if side.opener == back.opener:
                self.fail(f"{life} and {other} are both {'opener' if side.opener else 'responder'} of epoch {side.epoch}")
            opener, responder = (side, back) if side.opener else (back, side)
            if responder.group not in (opener.group, opener.next):
                self.fail(f"{life} and {other}, epoch {side.epoch}: {_skew(opener, responder)}")


def _skew(opener: Side, responder: Side) -> str:
    proposed = "nothing" if opener.next is None else f"version {opener.next[0]}"
    return f"the opener has version {opener.group[0]} and proposes {proposed}, the responder has version {responder.group[0]}"


class OneLock(RingChecker):
    """I11: a member serves at most one DORMANT joiner (Th. 7).

    A joiner is an id that never became a member; one that gave up is served until it is dropped.
    """

    name = "I11 one-lock"

    def changed(self, world: World, life: Life) -> None:
        joined = self.watch.joined
        served = [peer for peer, side in life.pairs.items() if not side.obliged and not side.opener and peer not in joined]
        if len(served) > 1 and life.member:
            self.fail(f"{life} serves {len(served)} joiners at a time: {', '.join(map(str, served))}")


class UpgradeLag(Checker):
    """I14: with the lease established throughout, the responder has the proposed group less than 2 T_l after it was set (Th. 1).

    Set at x in session n, s_n <= x < s_n + T_l. Every request of session n+1, which begins at s_n + T_l, carries it; so at s_n + 2 T_l
    <= x + 2 T_l that session was acknowledged, and the acknowledgement confirmed the version, or the opener suspects. On the opener's
    clock. A stop makes the end of a session late by at most its length, and by one drain (D6).
    """

    name = "I14 upgrade-lag"

    def __init__(self, watch: RingWatch) -> None:
        self._watch = watch

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, GroupProposed):
            life = self._watch.lives[host]
            assert life is not None
            bound = 2 * life.ring.config.lease / host.rate + ROUNDING
            self._watch.at(world.now + bound, partial(self._judge, life, life.ring.id, event, world.now, bound))

    def _judge(self, life: Life, me: RingId, event: GroupProposed, since: float, bound: float, world: World, now: float) -> None:
        side = life.pairs.get(event.peer)
        if side is None or life.id != me or side.epoch != event.epoch or not life.valid(now):
            return
        if side.suspected or side.next is None or side.next[0] != event.ver:
            return
        paused = life.paused(since, now)
        late = since + bound + (paused + life.ring.config.drain / life.host.rate if paused else 0.0)
        if now >= late:
            self.fail(f"{life} proposed version {event.ver} to {event.peer} {now - since:g} s ago, and it is not confirmed")
        again = now + LOOK_AGAIN if life.stopped_at <= now else late
        self._watch.at(max(late, again), partial(self._judge, life, me, event, since, bound))
