"""Arbitration: a lease ran out; who of the two stays?  Spec: ring 5.2, D3, D4, D12, D16, D22, D25, D26, D28; paper 000, III.

First come, first served: each arbitrator accepts one accuser per pair and instance, for good. A member that gets a majority stays
and waits until the other must have left; one that cannot get one leaves. The accused votes like all others.

Other ways out of the member list: ``orphans`` (no monitor is left, so all are asked), ``door`` (a process that comes back buries its
former memberships), ``departing`` (a member says that it leaves).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.bounds import MEMBERS_MAX
from holdfast.events import Decided, Suspected
from holdfast.features.ring.protocol.facts import Lost, Suspicion, Won
from holdfast.features.ring.protocol.hearing import TESTS, Hearing
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.messages import Arb, Gone, Here, Vote
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.host import Address, MemberStatus, NodeId
from holdfast.kit.phase import Outcome, Phase, PhaseEnd, Questions, Quorum, joint, weighted

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

VOTES_MAX = 4096  # pairs this node has voted on lately; a member is in 8 k^2 groups at most, 512 for k = 8
TIMEOUT = "arbitration timeout"
DEAF = "deaf"
ASKS = 4  # times an arbitrator is asked within T_a
PATIENCE = 8  # P2: each further suspicion within one T_l waits another T_a / 8
PATIENCE_MAX = 4  # P2: at most T_a / 2, so that an answer can still come
HOLD = 4  # P3: the first question of a member that was not heard waits T_a / 4
HEARD_MAX = MEMBERS_MAX // 2  # P3: members heard lately

Key = tuple[RingId, RingId, int]


class Arbitration:
    """Suspicions and votes of one member."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.questions = Questions()
        self.hearing = Hearing(ring)
        self._host = ring.host
        self._t_a = ring.config.t_a
        self.votes: dict[Key, tuple[RingId, float]] = {}  # Recently-Failed: who was accepted, and when
        self._suspicions: list[float] = []  # when, within the last T_l (P2)
        self.took_last = 0.0  # seconds from the last suspicion to its end
        self._heard: dict[RingId, float] = {}  # P3
        self._held: set[Key] = set()  # P3: questions that wait

    # The accuser.

    def suspect(self, pair: Pair, at: float) -> None:
        """The lease ran out at ``at``, nominally."""
        ring = self._ring
        if not ring.is_member:
            ring.joiner.fail("a lease ran out")
            return
        if not pair.obliged:
            ring.opening.abandon(pair)
            return
        now = ring.raw.now
        pair.susp, pair.stop = at, now
        ring.bind(pair)
        ring.counts["suspicions"] += 1
        ring.raw.emit(Suspicion(pair.peer.id, pair.epoch, at, now, pair.entitled))
        if pair.entitled and ring.list.mark(pair.peer.id, MemberStatus.SUSPECTED):
            ring.announce(Suspected(ring.list.member(pair.peer.id)))
        if now >= at + self._t_a:
            ring.depart("late")
            return
        if ring.rules.deaf and ring.config.mode == "pairwise" and self.hearing.is_doubtful(pair):
            self._listen(pair, TESTS)
        else:
            self._ask_patiently(pair)

    def _listen(self, pair: Pair, tests: int) -> None:
        self.hearing.listen(partial(self._on_listened, pair, tests - 1))

    def _on_listened(self, pair: Pair, tests: int, deaf: bool) -> None:
        """H162: what one test has shown, and so many are left."""
        ring = self._ring
        if not ring.holds(pair):
            return  # It was closed, or this membership ended.
        if not deaf:
            self._ask_patiently(pair)
        elif tests > 0:
            self._listen(pair, tests)
        else:
            self._lose(pair, DEAF)
            ring.depart(DEAF)

    def _ask_patiently(self, pair: Pair) -> None:
        assert pair.susp is not None
        now = self._ring.raw.now
        wait = self._patience(now)
        if wait > 0 and now + wait < pair.susp + self._t_a:
            pair.phase_at = self._host.after(wait, partial(self._ask, pair))
        else:
            self._ask(pair)

    def need(self, pair: Pair) -> Quorum[RingId]:
        """Whose votes decide: while a group changes, the opener needs a majority of the old and of the new one (D14)."""
        if pair.next is None or self._ring.proposals.pending(pair):
            return weighted(pair.cfg)
        new = weighted(pair.next[1])
        return joint(weighted(pair.cfg), new) if self._ring.rules.upgrade == "joint" else new

    def _asked(self, pair: Pair) -> frozenset[RingId]:
        if pair.next is None or self._ring.proposals.pending(pair):
            return pair.cfg
        return pair.cfg | pair.next[1] if self._ring.rules.upgrade == "joint" else pair.next[1]

    def _ask(self, pair: Pair) -> None:
        ring = self._ring
        if not ring.holds(pair):
            return  # It waited (P2), and meanwhile this membership ended.
        assert pair.susp is not None
        timeout = pair.susp + self._t_a - ring.raw.now
        if timeout <= 0:  # The clock goes on inside a turn too: the deadline passed since it was looked at.
            self._lose(pair, TIMEOUT)
            ring.depart(TIMEOUT)
            return
        if ring.config.mode == "central":
            self._ask_arbitrators(pair, timeout)
            return
        group = sorted(self._asked(pair))
        where = {each: self._where(each) for each in group}
        pair.phase = phase = Phase(
            self._host, self.questions, {each: to for each, to in where.items() if to is not None or each == ring.id},
            lambda serial: self._question(pair, serial),
            every=self._t_a / ASKS, timeout=timeout, enough=self.need(pair), done=partial(self._on_end, pair),
        )  # fmt: skip
        ring.counts["arbitrations"] += 1
        ring.counts["arb_addressed"] += len(group)
        phase.start()
        if ring.holds(pair):  # else there was no arbitrator to ask, and it is over
            own = self._decide(ring.id, pair.peer.id, pair.epoch, pair.ver)
            self.questions.answer(phase.serial, ring.id, Vote(*ring.head(ring.id), phase.serial, own), yes=own)

    def _ask_arbitrators(self, pair: Pair, timeout: float) -> None:
        ring = self._ring
        where: dict[str, NodeId | Address | None] = {each.name: each.address for each in ring.config.arbitrators}
        pair.phase = phase = Phase(
            self._host, self.questions, where, lambda serial: self._question(pair, serial),
            every=self._t_a / ASKS, timeout=timeout, enough=weighted(where.keys()), done=partial(self._on_end, pair),
        )  # fmt: skip
        ring.counts["arbitrations"] += 1
        phase.start()

    def _where(self, ring_id: RingId) -> NodeId | None:
        peer = None if ring_id == self._ring.id else self._ring.list.peer(ring_id)
        return None if peer is None else peer.node

    def _question(self, pair: Pair, serial: int) -> Arb:
        ring = self._ring
        ver = pair.ver if pair.next is None or ring.proposals.pending(pair) else pair.next[0]
        return Arb(ring.ring, ring.id, 0, serial, pair.peer.id, pair.epoch, ver)

    def _on_end(self, pair: Pair, end: PhaseEnd[RingId] | PhaseEnd[str]) -> None:
        ring = self._ring
        if not ring.holds(pair):
            return
        self.took_last = ring.raw.now - pair.stop
        if end.won:
            self._win(pair)
            return
        why = "rejected" if end.outcome is Outcome.IMPOSSIBLE else TIMEOUT
        self._lose(pair, why)
        ring.depart(why)

    def on_deadline(self) -> str:
        """The own deadline has passed: because of an arbitration that took too long, or because the clock was not looked at?"""
        ring, reason = self._ring, "deadline"
        for pair in ring.pairs.values():
            if pair.susp is not None and ring.raw.now >= pair.susp + self._t_a:
                self._lose(pair, TIMEOUT)
                reason = TIMEOUT
        return reason

    def _lose(self, pair: Pair, why: str) -> None:
        self._ring.counts["losses"] += 1
        self._ring.raw.emit(Lost(pair.peer.id, pair.epoch, why))

    def on_vote(self, source: NodeId, message: Vote) -> None:
        self._ring.counts["votes_received"] += 1
        voter = source.name if self._ring.config.mode == "central" else message.source
        self.questions.answer(message.serial, voter, message, yes=message.accept)

    def _win(self, pair: Pair) -> None:
        """Repair begins now; recovery only when the loser must have left (Cor. 3)."""
        ring, peer = self._ring, pair.peer.id
        entitled = pair.state is State.ACTIVE
        assert pair.susp is not None
        ring.counts["wins"] += 1
        ring.opening.drop(pair)
        ring.raw.emit(Won(peer, pair.epoch, entitled, pair.stop))
        if not entitled:
            return  # HALF: nothing is known about the peer.
        ring.condemn(peer, pair.stop)
        since = pair.stop if ring.rules.from_stop else pair.susp
        self._host.at(since + ring.config.wait, partial(self._on_declaration, peer, ring.id))
        if ring.list.mark(peer, MemberStatus.DECIDED):
            ring.announce(Decided(ring.list.member(peer)))
            ring.news.tell(peer)

    def _on_declaration(self, peer: RingId, me: RingId) -> None:
        ring = self._ring
        if ring.is_member and ring.id == me and peer in ring.condemned:
            ring.changes.remove(peer, certain=True, reason="failed")

    def _patience(self, now: float) -> float:
        """P2: a member that complains about many is probably the cause, and should come second."""
        ring = self._ring
        self._suspicions = [each for each in self._suspicions if each > now - ring.config.lease]
        self._suspicions.append(now)
        if not ring.config.patient:
            return 0.0
        return min(len(self._suspicions) - 1, PATIENCE_MAX) * self._t_a / PATIENCE

    # The arbitrator.

    def on_arb(self, source: NodeId, message: Arb) -> None:
        ring = self._ring
        if not ring.is_member:
            return
        ring.counts["arbs_received"] += 1
        key = _key(message.source, message.accused, message.epoch)
        if ring.config.here and self._must_wait(key, message):
            if key not in self._held:
                self._held.add(key)
                self._host.after(self._t_a / HOLD, partial(self._on_held, key, source, message))
            return
        self._vote(source, message)

    def _on_held(self, key: Key, source: NodeId, message: Arb) -> None:
        self._held.discard(key)
        if self._ring.is_member:
            self._vote(source, message)

    def _vote(self, source: NodeId, message: Arb) -> None:
        ring = self._ring
        accept = self._decide(message.source, message.accused, message.epoch, message.ver)
        ring.raw.send(source, Vote(*ring.head(message.source), message.serial, accept))
        if message.source in ring.list.gone:
            ring.raw.send(source, Gone(*ring.head(message.source), message.source, ring.list.gone[message.source][0].certain))

    def _decide(self, accuser: RingId, accused: RingId, epoch: int, ver: int) -> bool:
        """One decision per pair and instance; asked again, the same answer. A member that is gone wins nothing (D25)."""
        ring, now = self._ring, self._ring.raw.now
        key = _key(accuser, accused, epoch)
        stored = self.votes.get(key)
        if stored is not None and now - stored[1] <= ring.config.vote_ttl:
            return stored[0] == accuser
        if ring.rules.old_accusers and accuser in ring.list.gone:
            return False
        if ring.rules.start_up and now - ring.since < ring.config.t_arb:
            return False
        if ring.proposals.stale(accuser, accused, epoch, ver):
            return False
        if stored is None and len(self.votes) >= VOTES_MAX:
            ring.counts["votes_full"] += 1
            return False
        self.votes[key] = accuser, now
        return True

    def trim(self) -> None:
        """Forget decisions that no member can ask about any more (Cor. 2)."""
        now, config = self._ring.raw.now, self._ring.config
        self.votes = {key: vote for key, vote in self.votes.items() if now - vote[1] <= config.vote_ttl}
        self._heard = {peer: at for peer, at in self._heard.items() if now - at <= config.lease}

    # P3: I am here.

    def tell_here(self, pair: Pair) -> None:
        """Shortly before the lease would expire, the arbitrators hear that this side lives."""
        ring = self._ring
        for each in sorted(pair.cfg):
            to = self._where(each)
            if to is not None:
                ring.raw.send(to, Here(*ring.head(each), pair.peer.id))

    def on_here(self, source: NodeId, message: Here) -> None:
        del source
        if message.source in self._heard or len(self._heard) < HEARD_MAX:
            self._heard[message.source] = self._ring.raw.now

    def _must_wait(self, key: Key, message: Arb) -> bool:
        """The accused was heard lately, the accuser was not, and nothing is decided."""
        since = self._ring.raw.now - self._ring.config.lease
        accused, accuser = self._heard.get(message.accused, -1e300), self._heard.get(message.source, -1e300)
        return key not in self.votes and accused > since >= accuser


def _key(a: RingId, b: RingId, epoch: int) -> Key:
    return (a, b, epoch) if a < b else (b, a, epoch)
