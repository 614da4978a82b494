"""Arbitrator groups that change, and pairs that are not wanted any more.  Spec: ring 5.3, D7, D11, D14, D15, D17; paper 000, IV-B, Theorem
1.

The opener alone proposes. While its proposal is open it needs a majority of the old group and of the new one; the responder needs
one of whichever it holds. So any two winning sets of votes share an arbitrator, whatever gets lost in between.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.facts import GroupProposed
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.messages import ArbUpgrd, ArbUpgrdAck, Dissolve, Dissolved
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.host import FANOUT_MAX, NodeId

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode


class Groups:
    """Keeps the group of every pair equal to the formula of Equation 1."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring

    def formula(self, pair: Pair) -> frozenset[RingId]:
        """A_PQ: both, and the neighbours of both, without those who are gone or condemned (D17)."""
        ring = self._ring
        gone, condemned = ring.list.gone, ring.condemned
        named = {*ring.nbrs, *pair.peer_nbrs}
        if condemned:
            named.difference_update(condemned)
        return frozenset((ring.id, pair.peer.id, *(each for each in named if each not in gone)))

    def regroup(self, pair: Pair) -> None:
        ring = self._ring
        if not pair.opener or pair.state is not State.ACTIVE or pair.susp is not None:
            return
        if pair.peer.id not in ring.nbrs and not pair.peer_wants:
            self._begin_dissolving(pair)
        elif ring.config.mode == "pairwise" and pair.next is None:
            group = self.formula(pair)
            if group != pair.cfg:
                self._begin_upgrade(pair, self._reachable(pair, group))

    def _reachable(self, pair: Pair, group: frozenset[RingId]) -> frozenset[RingId]:
        """As much of the new group as can be asked together with the old one (F17); the rest follows in the next step."""
        room = FANOUT_MAX - len(pair.cfg)
        new = sorted(group - pair.cfg - {self._ring.id, pair.peer.id})
        return group - frozenset(new[room:])

    def _begin_upgrade(self, pair: Pair, group: frozenset[RingId]) -> None:
        ring = self._ring
        ver = ring.proposals.version_after(pair)
        pair.next, pair.next_at = (ver, group), ring.raw.now
        ring.raw.emit(GroupProposed(pair.peer.id, pair.epoch, ver, len(group)))
        ring.counts["upgrades"] += 1
        if ring.rules.upgrade == "proposal":
            ring.proposals.propose(pair)
        else:
            self.tell(pair)

    def tell(self, pair: Pair) -> None:
        """Said by itself once per session, with addresses, and again with every lease message while it is open."""
        assert pair.next is not None
        ver, group = pair.next
        ring = self._ring
        new = ring.list.peers(sorted(group - pair.cfg))
        ring.raw.send(pair.peer.node, ArbUpgrd(*ring.head(pair.peer.id), pair.epoch, ver, tuple(sorted(group)), new))

    def on_upgrade(self, source: NodeId, message: ArbUpgrd) -> None:
        pair = self._held(message.source, message.epoch)
        if pair is None or pair.opener or pair.state is State.DORMANT:
            return
        for peer in message.peers:
            self._ring.meet(peer)
        self.on_version(pair, message.ver, message.cfg)
        if message.ver <= pair.ver:
            self._ring.raw.send(source, ArbUpgrdAck(*self._ring.head(message.source), pair.epoch, pair.ver))

    def on_upgrade_ack(self, source: NodeId, message: ArbUpgrdAck) -> None:
        del source
        pair = self._held(message.source, message.epoch)
        if pair is not None and pair.opener:
            self.on_version(pair, message.ver, ())

    def on_version(self, pair: Pair, ver: int, cfg: tuple[RingId, ...]) -> None:
        """What the other side has, or proposes, however it was told. The pair is not suspected."""
        if pair.opener:
            if pair.next is not None and ver == pair.next[0]:
                (pair.ver, pair.cfg), pair.next = pair.next, None
                self._ring.dirty = True
        elif cfg and self._follows(pair, ver) and pair.state is not State.DORMANT:
            group = frozenset(cfg)
            if self._ring.id in group and pair.peer.id in group and self._can_ask(group):
                pair.ver, pair.cfg = ver, group

    def _follows(self, pair: Pair, ver: int) -> bool:
        """The next version; a proposal that was refused leaves a gap (5.8)."""
        return ver == pair.ver + 1 or (ver > pair.ver and self._ring.rules.upgrade == "proposal")

    def _can_ask(self, group: frozenset[RingId]) -> bool:
        """Who takes a group must be able to ask it: the opener, which waits for us with both, may crash at once (D14)."""
        ring = self._ring
        return all(each == ring.id or ring.list.peer(each) is not None or each in ring.list.gone for each in group)

    # Dissolution: the opener gives up its right, the responder drops both, the opener drops its duty (D11).

    def _begin_dissolving(self, pair: Pair) -> None:
        # A group that was proposed stays proposed: the responder may have taken it already (I4).
        pair.closing, pair.state = True, State.HALF
        self._on_dissolving(pair)

    def _on_dissolving(self, pair: Pair) -> None:
        ring = self._ring
        if not ring.holds(pair) or pair.susp is not None:
            return
        ring.raw.send(pair.peer.node, Dissolve(*ring.head(pair.peer.id), pair.epoch))
        ring.host.after(ring.config.retry * ring.config.lease, partial(self._on_dissolving, pair))

    def on_dissolve(self, source: NodeId, message: Dissolve) -> None:
        ring = self._ring
        pair = ring.pairs.get(message.source)
        if message.source in ring.condemned or not ring.is_member:
            return
        if pair is not None and pair.epoch == message.epoch:
            if pair.opener or pair.susp is not None:
                return
            ring.opening.drop(pair)
            ring.fencing.forget(message.source)
        ring.epochs[message.source] = max(message.epoch, ring.epochs.get(message.source, 0))
        ring.raw.send(source, Dissolved(*ring.head(message.source), message.epoch))

    def on_dissolved(self, source: NodeId, message: Dissolved) -> None:
        del source
        pair = self._held(message.source, message.epoch)
        if pair is not None and pair.closing:
            self._ring.opening.drop(pair)

    def _held(self, peer: RingId, epoch: int) -> Pair | None:
        """That instance, unless it is suspected: a suspicion is final and changes nothing any more (D3)."""
        pair = self._ring.pairs.get(peer)
        return pair if pair is not None and pair.epoch == epoch and pair.susp is None else None
