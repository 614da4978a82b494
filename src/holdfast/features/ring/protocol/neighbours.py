"""Who the k nearest on each side are, and that there is a pair with each of them.  Spec: ring 5.3 (recompute, Want), D18, D29.

A pair exists while either side wants it. The lower id opens it; the higher one says Want, which also teaches the lower one
what it did not know. A neighbour that is wanted and has no obliged pair for long is an orphan, perhaps (D19).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.facts import NeighbourhoodChanged
from holdfast.features.ring.protocol.ids import Peer, RingId, hash_of, nearest, sides
from holdfast.features.ring.protocol.messages import Want
from holdfast.host import NodeId

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

NOBODY = hash_of(())


class Neighbours:
    """The neighbourhood of one member, derived from its list."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.unmet: dict[RingId, float] = {}  # wanted, without an obliged pair, since
        self._asked: dict[RingId, float] = {}  # when we last said Want
        self._derived_at: tuple[int, int] = (-1, -1)

    def recompute(self) -> None:
        """After any change of the view, and every T_l."""
        ring = self._ring
        self._derive()
        now = ring.raw.now
        for peer in ring.nbrs:
            if peer not in ring.pairs:
                self._meet(peer, now)
        self._note_unmet(now)
        for pair in tuple(ring.pairs.values()):
            ring.groups.regroup(pair)

    def adopt(self, peers: tuple[Peer, ...]) -> None:
        """A candidate takes its future neighbourhood from those who granted it their locks."""
        ring = self._ring
        ring.nbrs = tuple(sorted(peer.id for peer in peers))
        ring.nbr_peers = tuple(sorted(peers))
        ring.view = hash_of(ring.nbrs)

    def reset(self) -> None:
        """A new membership begins, or one has ended."""
        self.adopt(())
        self.unmet.clear()
        self._asked.clear()
        self._derived_at = (-1, -1)

    @property
    def settled(self) -> bool:
        """With the nearest neighbour on each side there is a pair that is not DORMANT (D29). True with no neighbours."""
        ring = self._ring
        beside = sides(ring.nbrs, ring.id)
        if beside is None or not ring.rules.gap:
            return True
        return all((pair := ring.pairs.get(each)) is not None and pair.obliged for each in beside)

    def on_want(self, source: NodeId, message: Want) -> None:
        ring = self._ring
        if not ring.is_member or message.source in ring.condemned:
            return
        if not any(peer.id == message.source and peer.node == source for peer in message.nbrs):
            ring.counts["malformed"] += 1
            return
        ring.list.hear(message.nbrs)
        self.recompute()
        if message.source not in ring.pairs and message.source in ring.list:
            self._open(message.source)

    def _derive(self) -> None:
        ring = self._ring
        state = ring.list.version, ring.condemnations
        if state == self._derived_at:
            return
        self._derived_at = state
        ids = ring.list.ids
        if ring.condemned:
            ids = [each for each in ids if each not in ring.condemned]
        nbrs = nearest(ids, ring.id, ring.config.k)
        peers = ring.list.peers(nbrs)
        if nbrs != ring.nbrs:
            ring.nbrs, ring.view = nbrs, hash_of(nbrs)
            ring.raw.emit(NeighbourhoodChanged(nbrs))
        ring.nbr_peers = peers

    def _meet(self, peer: RingId, now: float) -> None:
        ring = self._ring
        if ring.id < peer:
            if now >= ring.opening.retry_at.get(peer, now):
                self._open(peer)
        elif now >= self._asked.get(peer, now - ring.config.lease) + ring.config.lease:
            to = ring.list.peer(peer)
            if to is not None:
                self._asked[peer] = now
                ring.raw.send(to.node, Want(*ring.head(peer), (ring.me, *ring.nbr_peers)))

    def _open(self, peer: RingId) -> None:
        where = self._ring.list.peer(peer)
        if where is not None:
            self._ring.opening.open(where)

    def _note_unmet(self, now: float) -> None:
        pairs = self._ring.pairs
        missing = [each for each in self._ring.nbrs if each not in pairs or not pairs[each].obliged]
        if missing or self.unmet:
            self.unmet = {each: self.unmet.get(each, now) for each in missing}
        self._asked = {each: at for each, at in self._asked.items() if each in self._ring.nbrs} if self._asked else {}
