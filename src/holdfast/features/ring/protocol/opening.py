"""Opening a pair between two members, and letting one go.  Spec: ring 5.4, D10; rule RO of section 2.

opener   DORMANT  LR(1, open) ->
responder DORMANT             <- ACK(1, group)
opener   HALF     LR(2, ready) ->           obliged before the other becomes entitled
responder ACTIVE              <- ACK(2)
opener   ACTIVE
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.ids import Peer, RingId
from holdfast.features.ring.protocol.messages import LeaseAck, LeaseRequest
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.host import NodeId

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

PAIRS_MAX = 64  # 2k of our own wish, as many of others' while views differ
DORMANT_LEASES_MAX = 3  # in T_l: then a responder that was never told "ready" drops the pair
RETRY_MIN, RETRY_MAX = 0.5, 1.5  # in T_l: when an opener tries again


class Opening:
    """Creates, activates and drops the pairs of one member."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.retry_at: dict[RingId, float] = {}  # not before

    # The opener.

    def open(self, peer: Peer) -> Pair:
        ring = self._ring
        assert peer.id not in ring.pairs
        epoch = ring.epochs[peer.id] = ring.epochs.get(peer.id, 0) + 1
        pair = Pair(peer, epoch, opener=True, now=ring.raw.now, lease=ring.config.lease)
        ring.pairs[peer.id] = pair
        ring.leases.begin(pair, ring.raw.now)
        return pair

    def on_acked(self, pair: Pair, message: LeaseAck) -> None:
        """A session of a pair that is not ACTIVE was established."""
        ring = self._ring
        if not pair.opener:
            return
        if pair.n == 1 and not self._agree(pair, message):
            return
        if not ring.is_member:
            ring.joiner.on_acked()
        elif pair.n == 1:
            if ring.rules.half:
                pair.state = State.HALF
                ring.bind(pair)
            if not ring.config.join_pace:
                ring.leases.begin(pair, ring.raw.now)
            ring.dirty = True
        elif not pair.closing:
            pair.state = State.ACTIVE
            ring.bind(pair)
            ring.dirty = True

    def _agree(self, pair: Pair, message: LeaseAck) -> bool:
        """ACK(1) brings the arbitrator group that the responder has formed."""
        group = frozenset(message.cfg)
        if pair.peer.id not in group or self._ring.id not in group:
            self._ring.counts["malformed"] += 1
            pair.acked = False
            return False
        pair.ver, pair.cfg = message.ver, group
        return True

    def refused(self, pair: Pair) -> None:
        """NAK: the other side will never hold this instance, so no member can be entitled by it."""
        if self._ring.is_member:
            self.abandon(pair)
        else:
            self._ring.joiner.fail("refused")

    def abandon(self, pair: Pair) -> None:
        """Drop it and, if it is still wanted, try again later."""
        ring = self._ring
        self.drop(pair)
        self.retry_at[pair.peer.id] = ring.raw.now + ring.raw.random.uniform(RETRY_MIN, RETRY_MAX) * ring.config.lease

    # The responder.

    def respond(self, source: NodeId, message: LeaseRequest) -> Pair | None:
        """Our side of a pair that a peer opens; None to refuse. No obliged pair with that peer is held."""
        ring = self._ring
        peer = message.peer
        if peer is None or peer.id != message.source or peer.node != source:
            ring.counts["malformed"] += 1
            return None
        if message.join and not ring.door.admits(peer.id):
            return None
        if len(ring.pairs) >= PAIRS_MAX:
            ring.counts["pairs_full"] += 1
            return None
        leftover = ring.pairs.get(peer.id)
        if leftover is not None:
            self.drop(leftover)
        ring.epochs[peer.id] = message.epoch
        ring.meet(peer)
        if not message.join:
            ring.list.hear([peer])
        theirs = [each.id for each in message.nbrs if each.id not in ring.list.gone and each.id not in ring.condemned]
        group = frozenset([ring.id, peer.id, *ring.nbrs, *theirs])
        pair = Pair(peer, message.epoch, opener=False, now=ring.raw.now, lease=ring.config.lease, cfg=group)
        ring.pairs[peer.id] = pair
        if message.join:
            ring.door.renew(peer.id)
        ring.host.after(DORMANT_LEASES_MAX * ring.config.lease, partial(self._on_never_ready, pair))
        ring.leases.begin(pair, ring.raw.now)
        return pair

    def activate(self, pair: Pair) -> bool:
        """LR(ready): the opener is obliged, so we may be entitled. False: not yet, the opener will ask again."""
        ring = self._ring
        if ring.door.serves(pair) and ring.fencing.handed_over_at(pair.peer.id) > ring.raw.now:
            return False  # A client was told that it may act for one of the joiner's keys a little longer (F14).
        ring.list.hear([pair.peer])
        if pair.peer.id not in ring.list:
            ring.counts["list_full"] += 1  # A process that we cannot list does not become a member: its keys would stay ours, too.
            return False
        pair.state = State.ACTIVE
        ring.bind(pair)
        ring.door.release(pair.peer.id)
        ring.dirty = True
        return True

    def when_handed_over(self, pair: Pair, then: Callable[[], None]) -> None:
        """The keys of a candidate that is ready are not free yet. It may not ask again in this session (r = 1), so we look ourselves."""
        ring = self._ring
        if not ring.door.serves(pair):
            return
        if pair.handover is not None:
            pair.handover.cancel()
        pair.handover = ring.host.at(ring.fencing.handed_over_at(pair.peer.id), then)

    def _on_never_ready(self, pair: Pair) -> None:
        if self._ring.holds(pair) and not pair.obliged:
            self.drop(pair)

    def drop(self, pair: Pair) -> None:
        """This instance is over on this side."""
        ring = self._ring
        pair.quiet()
        ring.fencing.remember(pair)
        if ring.pairs.get(pair.peer.id) is pair:
            del ring.pairs[pair.peer.id]
        if not pair.opener and not pair.obliged:
            ring.door.release(pair.peer.id)
        ring.dirty = True
