"""Leases: has this peer answered lately?  Spec: ring 5.1, D1, D3, D6; paper 000, section III (Rule 1), Figure 2.

Sessions follow each other at nominal times s, s + T_l, s + 2 T_l, ... whatever a timer does. ACK(n) says that the peer was
acking at or after the start of session n, so asking again inside a session moves no bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.config import BOTH_LISTS_K_MAX
from holdfast.features.ring.protocol.facts import LinkBroken, LinkMended, Overslept
from holdfast.features.ring.protocol.fencing import GEN_MAX
from holdfast.features.ring.protocol.ids import hash_of
from holdfast.features.ring.protocol.messages import Lease, LeaseAck, LeaseNak, LeaseRequest, Relay, Relayed, RelayedAck
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.host import NodeId

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

RELAYS = 3  # P1: neighbours that are asked to pass a request on
RELAYED_MAX = 60  # P1: sessions in a row that live by others alone; then the broken link is reported, not hidden (H27)
RELAY_AFTER = 2  # P1: tries without an answer

OVERSLEPT = (0.25, 1.0, 4.0)  # in T_l: less than the first is nothing, more than the last is a suspended machine

Reply = Callable[[LeaseAck], None]


class Leases:
    """The sessions of all pairs of one member."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._host = ring.host
        self._lease = ring.config.lease
        self._in_turn = ring.config.k > BOTH_LISTS_K_MAX
        self._retry = ring.config.retry * ring.config.lease
        self._oversleep, self._drain = ring.config.oversleep, ring.config.drain

    def begin(self, pair: Pair, s: float) -> None:
        """Start the next session, nominally at ``s``."""
        pair.easy = pair.acked and pair.tries == 1
        pair.n += 1
        pair.s = s
        pair.acked = pair.drained = False
        pair.tries = 0
        if pair.timer is not None:
            pair.timer.cancel()
        pair.timer = self._host.at(s + self._lease, partial(self._on_session_end, pair))
        pair.sent_at = self._ring.raw.now
        if pair.next is not None and not self._ring.proposals.pending(pair):
            self._ring.groups.tell(pair)
        self._ask(pair)

    def _ask(self, pair: Pair) -> None:
        ring = self._ring
        pair.tries += 1
        request = self._request(pair)
        ring.raw.send(pair.peer.node, request)
        if pair.tries > 1:
            ring.counts["lease_retries"] += 1
            if ring.config.indirect and pair.tries > RELAY_AFTER and ring.is_member:
                self._ask_by_others(pair, request)
        if ring.raw.now + self._retry < pair.s + self._lease:
            pair.retry_timer = self._host.after(self._retry, partial(self._on_retry, pair, pair.n))
        elif ring.config.here and pair.tries > 1 and pair.obliged:
            ring.arbitration.tell_here(pair)

    def repeat(self, pair: Pair) -> None:
        """The request of this session once more, beside its tries: to hear whether there is an answer (H162). It moves no bound (D1)."""
        self._ring.raw.send(pair.peer.node, self._request(pair))

    def _request(self, pair: Pair) -> LeaseRequest:
        ring = self._ring
        news = pair.next if pair.next is not None and not ring.proposals.pending(pair) else None
        opening = pair.opener and pair.state is State.DORMANT and pair.n == 1
        told = pair.knows == ring.view or (news is not None and self._in_turn)  # Our answers bring the neighbours meanwhile (H28).
        return LeaseRequest(
            ring.ring, ring.id, pair.peer.id.inc,
            pair.epoch, pair.n,
            pair.ver if news is None else news[0],
            pair.peer.id in ring.nbrs, ring.fencing.gen, pair.pgen, ring.view, pair.peer_view,
            () if told else ring.nbr_peers,
            () if news is None else tuple(sorted(news[1])),
            opening, not ring.is_member, pair.opener and pair.n > 1,
            ring.me if pair.opener and pair.n <= 2 else None,
        )  # fmt: skip

    def ack(self, pair: Pair, n: int) -> LeaseAck:
        ring = self._ring
        news = pair.next if pair.next is not None and not ring.proposals.pending(pair) else None
        nbrs = () if pair.knows == ring.view else ring.nbr_peers
        cfg = () if news is None or (nbrs and self._in_turn) else tuple(sorted(news[1]))  # Our requests bring the group meanwhile (H28).
        if pair.state is State.DORMANT and not pair.opener:
            cfg = tuple(sorted(pair.cfg))  # The group is agreed on by this answer, which may get lost.
        return LeaseAck(
            ring.ring, ring.id, pair.peer.id.inc,
            pair.epoch, n,
            pair.ver if news is None else news[0],
            pair.peer.id in ring.nbrs, ring.fencing.gen, pair.pgen, ring.view, pair.peer_view,
            nbrs, cfg,
        )  # fmt: skip

    def on_request(self, source: NodeId, message: LeaseRequest) -> None:
        self.serve(source, message, partial(self._ring.raw.send, source))

    def serve(self, source: NodeId, message: LeaseRequest, reply: Reply) -> None:
        """One request, whichever way it came; ``reply`` takes the answer back that way."""
        ring = self._ring
        pair = ring.pairs.get(message.source)
        if pair is None or pair.epoch != message.epoch:
            pair = self._on_unknown(source, message)
            if pair is None:
                return
        if pair.susp is not None:
            return  # Rule 1: who suspects does not ack. The peer's lease runs out, too.
        if not self._take(pair, message):
            return
        pair.asked_at = ring.raw.now
        if message.ready and pair.state is State.DORMANT and not pair.opener and not ring.opening.activate(pair):
            ring.opening.when_handed_over(pair, partial(self._on_handed_over, pair, message.n, reply))
            return
        reply(self.ack(pair, message.n))

    def _on_handed_over(self, pair: Pair, n: int, reply: Reply) -> None:
        if self._ring.holds(pair) and pair.susp is None and pair.state is State.DORMANT and self._ring.opening.activate(pair):
            reply(self.ack(pair, n))

    def on_ack(self, source: NodeId, message: LeaseAck) -> None:
        pair = self._ring.pairs.get(message.source)
        if pair is None or pair.epoch != message.epoch or pair.susp is not None:
            return
        if not self._take(pair, message):
            return
        if source == pair.peer.node:
            pair.answers += 1  # Not what came by others: it is asked for more often (P1).
        if message.n != pair.n:
            return  # An ack of an earlier session proves nothing about this one.
        if pair.relayed and source == pair.peer.node:
            self._on_direct(pair)
        if pair.acked:
            return
        pair.acked = True
        pair.est = pair.s
        if pair.tries == 1:
            pair.rtt = self._ring.raw.now - pair.sent_at
        if pair.retry_timer is not None:
            pair.retry_timer.cancel()
            pair.retry_timer = None
        if source != pair.peer.node:
            self._on_detour(pair)
        if pair.state is not State.ACTIVE:
            self._ring.opening.on_acked(pair, message)

    def on_nak(self, source: NodeId, message: LeaseNak) -> None:
        del source
        pair = self._ring.pairs.get(message.source)
        if pair is None or pair.epoch != message.epoch or not pair.opener or pair.state is State.ACTIVE or pair.susp is not None:
            return
        self._ring.opening.refused(pair)

    def _on_unknown(self, source: NodeId, message: LeaseRequest) -> Pair | None:
        """A request for an instance that is not held here. Creates this side of it, refuses it, or says nothing."""
        ring = self._ring
        peer = message.source
        if not ring.is_member or peer in ring.condemned:
            return None
        held = ring.pairs.get(peer)
        if held is not None and held.obliged:
            if message.epoch < held.epoch:
                self._refuse(source, message)
            return None
        if message.open and message.epoch > ring.epochs.get(peer, 0):
            pair = ring.opening.respond(source, message)
            if pair is not None:
                return pair
        ring.epochs[peer] = max(message.epoch, ring.epochs.get(peer, 0))  # Never accepted later.
        self._refuse(source, message)
        return None

    def _refuse(self, source: NodeId, message: LeaseRequest) -> None:
        self._ring.raw.send(source, LeaseNak(*self._ring.head(message.source), message.epoch))

    def _take(self, pair: Pair, message: Lease) -> bool:
        """What a lease message says beside "I am here" (5.3). False: it contradicts itself and is dropped."""
        if message.view != pair.peer_view and message.nbrs and not self._on_view(pair, message):
            return False
        pair.knows = message.knows
        if pair.pgen < message.gen <= GEN_MAX:
            pair.pgen = message.gen
            self._ring.fencing.note(message.gen)
        if message.seen > pair.pseen:
            pair.pseen = message.seen
        if message.want != pair.peer_wants:
            pair.peer_wants = message.want
            self._ring.dirty = True
        if message.ver != pair.ver or pair.next is not None:
            self._ring.groups.on_version(pair, message.ver, message.cfg)
        return True

    def _on_view(self, pair: Pair, message: Lease) -> bool:
        ids = tuple(peer.id for peer in message.nbrs)
        if hash_of(ids) != message.view:
            self._ring.counts["malformed"] += 1
            return False
        pair.peer_nbrs, pair.peer_view = ids, message.view
        for peer in message.nbrs:
            self._ring.meet(peer)
        if self._ring.is_member and not self._ring.door.serves(pair):
            self._ring.list.hear(message.nbrs)  # A joiner that may yet fail teaches no member.
        self._ring.dirty = True
        return True

    def _on_retry(self, pair: Pair, n: int) -> None:
        if pair.n == n and not pair.acked and pair.susp is None and self._ring.holds(pair):
            self._ask(pair)

    def _on_session_end(self, pair: Pair) -> None:
        ring = self._ring
        if pair.susp is not None or not ring.holds(pair):
            return
        now, due = ring.raw.now, pair.s + self._lease
        if pair.acked:
            if now >= due + self._lease:
                ring.arbitration.suspect(pair, due + self._lease)
            else:
                self.begin(pair, due)  # The nominal start, never ``now`` (D1).
        elif now - due > self._oversleep and not pair.drained and ring.rules.drain:
            self._on_overslept(pair, now - due)
        else:
            ring.arbitration.suspect(pair, due)

    def _on_overslept(self, pair: Pair, seconds: float) -> None:
        """D6: we were away, so the silence may be ours. Read what waits in the socket before accusing a member."""
        ring = self._ring
        ring.raw.emit(Overslept(seconds))
        ring.counts[f"overslept: {_size_of(seconds / self._lease)}"] += 1
        if not ring.is_member:
            ring.joiner.fail("overslept")
            return
        pair.drained = True
        pair.timer = self._host.after(self._drain, partial(self._on_session_end, pair))

    # P1: the same request by another road. It still says that the peer was acking at or after s, so nothing ends here, however long
    # it lasts: a broken link is reported and costs no membership (H27).

    def _ask_by_others(self, pair: Pair, request: LeaseRequest) -> None:
        ring = self._ring
        others = [each for each in ring.pairs.values() if each is not pair and each.entitled and each.susp is None and each.acked]
        for other in ring.raw.random.sample(others, min(RELAYS, len(others))):
            ring.raw.send(other.peer.node, Relay(*ring.head(other.peer.id), pair.peer.id, request))
            ring.counts["relays_asked"] += 1

    def on_relay(self, source: NodeId, message: Relay) -> None:
        del source
        peer = self._ring.list.peer(message.target)
        if peer is not None and self._ring.is_member:
            self._ring.raw.send(peer.node, Relayed(*self._ring.head(peer.id), message.request))

    def on_relayed(self, source: NodeId, message: Relayed) -> None:
        """The request of another member through ``message.source``. Members may open a pair this way; candidates come to the door
        themselves."""
        ring, request = self._ring, message.request
        if (request.ring, request.to) != (ring.ring, ring.id.inc) or request.source in ring.list.gone or request.join:
            return
        known = ring.pairs.get(request.source)
        held = known is not None and known.epoch == request.epoch
        peer = known.peer if known is not None and held else request.peer
        if peer is not None and (held or request.open):
            self.serve(peer.node, request, lambda ack: ring.raw.send(source, RelayedAck(*ring.head(message.source), request.source, ack)))

    def on_relayed_ack(self, source: NodeId, message: RelayedAck) -> None:
        ring, ack = self._ring, message.ack
        if message.origin != ring.id:
            peer = ring.list.peer(message.origin)
            if peer is not None:
                ring.raw.send(peer.node, RelayedAck(*ring.head(peer.id), message.origin, ack))
        elif (ack.ring, ack.to) == (ring.ring, ring.id.inc):
            self.on_ack(source, ack)

    def _on_detour(self, pair: Pair) -> None:
        pair.relayed += 1
        self._ring.counts["relays_needed"] += 1
        if pair.relayed % RELAYED_MAX == 0:
            self._ring.counts["links_reported"] += 1
            self._ring.raw.emit(LinkBroken(pair.peer.id, pair.relayed * self._lease))

    def _on_direct(self, pair: Pair) -> None:
        if pair.relayed >= RELAYED_MAX:
            self._ring.raw.emit(LinkMended(pair.peer.id, pair.relayed * self._lease))
        pair.relayed = 0


def _size_of(leases: float) -> str:
    """A word for the histogram of pauses."""
    return next((f"under {bound:g} leases" for bound in OVERSLEPT if leases < bound), f"{OVERSLEPT[-1]:g} leases or more")
