"""Early news: a decision is told to all members at once, and is void when no declaration can follow.  Spec: ring P4, H380.

Advisory: good for routing away. The member's keys are its own until it is declared.

A member that departs or ends after it has won never declares (5.2), and the one it has won against may stay. Those that were told of such
a decision would hold a living member to be dead for ever. So a decision stands only while the membership that made it is listed, and no
longer than the declaration may take to come (H380).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.events import Cleared, Decided
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.memberlist import id_of, key_of
from holdfast.host import MemberStatus, NodeId
from holdfast.kit.broadcast import RumourId

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

TOPIC = "ring-news:"
SPREAD_LEASES = 2  # in T_l: a tombstone whose rumour was missed comes with one of the next two comparisons (H160)
DECIDERS_MAX = 16  # kept per member: as many as monitor one with k = 8

Deciders = dict[NodeId, tuple[RingId | None, float]]  # per life: its membership, None if it is not listed here; until when its word stands


class News:
    """Decisions of others, how others learn of ours, and when they end."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._keep = ring.config.wait + SPREAD_LEASES * ring.config.lease
        self._decided: dict[RingId, Deciders] = {}  # heard from others, about members that are listed
        self.topic = ""

    def open(self, ring: int) -> None:
        self.topic = f"{TOPIC}{ring:016x}"
        self._ring.broadcast.on_rumour(self.topic, self._on_rumour)

    def close(self) -> None:
        self._decided = {}
        if self.topic:
            self._ring.broadcast.leave(self.topic)
            self.topic = ""

    def tell(self, decided: RingId) -> None:
        if self._ring.config.early_news:
            self._ring.broadcast.cast(self.topic, key_of(decided).encode())

    def on_gone(self, gone: RingId) -> None:
        """A membership is over: nothing is to be said about it any more, and what it has decided is void."""
        self._decided.pop(gone, None)
        for decided, deciders in tuple(self._decided.items()):
            if any(decider == gone for decider, _ in deciders.values()):
                self._decided[decided] = {life: word for life, word in deciders.items() if word[0] != gone}
                self._review(decided)

    def on_tick(self) -> None:
        """Every T_l: decisions after which no declaration came."""
        for decided in tuple(self._decided):
            self._review(decided)

    def _on_rumour(self, rumour: RumourId, payload: bytes) -> None:
        ring = self._ring
        decided = id_of(payload.decode("ascii", "replace"))
        if decided is None or decided == ring.id or decided not in ring.list:
            return
        decider = next((ring_id for ring_id, entry in ring.list.of_name(rumour.origin.name) if entry.node == rumour.origin), None)
        if decider is None and ring.rules.void and self._is_over(rumour.origin):
            return  # The news of its end was faster than its last word.
        deciders = self._decided.setdefault(decided, {})
        if rumour.origin in deciders or len(deciders) < DECIDERS_MAX:
            deciders[rumour.origin] = decider, ring.raw.now + self._keep
        if ring.list.mark(decided, MemberStatus.DECIDED):
            ring.announce(Decided(ring.list.member(decided)))

    def _is_over(self, origin: NodeId) -> bool:
        gone = self._ring.list.peers(self._ring.list.gone)
        return any(peer.node == origin for peer in gone)

    def _review(self, decided: RingId) -> None:
        """Does a decision about this member stand?"""
        ring, now = self._ring, self._ring.raw.now
        pair = ring.pairs.get(decided)
        if not ring.rules.void or (pair is not None and pair.susp is not None):
            return  # Our own arbitration ends within T_a: then it is decided here, or this membership is over.
        deciders = self._decided[decided]
        if any(until > now for _, until in deciders.values()):
            return
        del self._decided[decided]
        if decided in ring.condemned:
            self.tell(decided)  # Ours stands; it was no news when it was made.
        elif ring.list.clear(decided):
            ring.announce(Cleared(ring.list.member(decided)))
