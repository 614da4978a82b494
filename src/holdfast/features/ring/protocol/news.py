"""Early news: a decision is told to all members at once.  Spec: ring P4; foundation 5 (Decided).

Advisory: good for routing away. The member's keys are its own until it is declared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.events import Decided
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.memberlist import id_of, key_of
from holdfast.host import MemberStatus
from holdfast.kit.broadcast import RumourId

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

TOPIC = "ring-news:"


class News:
    """Decisions of others, and how others learn of ours."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.topic = ""

    def open(self, ring: int) -> None:
        self.topic = f"{TOPIC}{ring:016x}"
        self._ring.broadcast.on_rumour(self.topic, self._on_rumour)

    def close(self) -> None:
        if self.topic:
            self._ring.broadcast.leave(self.topic)
            self.topic = ""

    def tell(self, decided: RingId) -> None:
        if self._ring.config.early_news:
            self._ring.broadcast.cast(self.topic, key_of(decided).encode())

    def _on_rumour(self, rumour: RumourId, payload: bytes) -> None:
        del rumour
        ring = self._ring
        decided = id_of(payload.decode("ascii", "replace"))
        if decided is None or decided == ring.id or not ring.list.mark(decided, MemberStatus.DECIDED):
            return
        ring.announce(Decided(ring.list.member(decided)))
