"""How this node changes the member list, its own rows included, and what follows when the list changes.

Spec: ring 3 (rows), 5.2 (remove), 5.7; foundation 3 (Membership.publish), 5 (events). The rows say about a member: its tags, its topics,
flags of other machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.events import Failed, Joined, Left, Updated
from holdfast.features.ring.protocol import memberlist, news
from holdfast.features.ring.protocol.facts import Removed
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.memberlist import Listed, Tombstone
from holdfast.host import Member, changed_rows

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

OWN_TOPICS = (f"topic:{memberlist.TOPIC}", f"topic:{news.TOPIC}")  # every member is in these


class Changes:
    """Told by the list of every entry that is new, other, or gone, from any source."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring

    def remove(self, ring_id: RingId, *, certain: bool, reason: str, gen: int = 0) -> None:
        """An id is over, and all members shall know. ``gen``: its last generation, if it said so itself."""
        ring = self._ring
        if ring_id == ring.id:
            ring.depart("declared")
        elif ring_id in ring.list:
            pair = ring.pairs.get(ring_id)
            known = max(gen, ring.fencing.gens.get(ring_id, 0), pair.pgen if pair is not None and pair.entitled else 0)
            ring.list.announce(ring_id, Tombstone(certain, known, reason))

    def on_listed(self, ring_id: RingId, before: Listed | None, now: Listed) -> None:
        ring = self._ring
        if before is None:
            ring.dirty = True
            ring.announce(Joined(ring.list.member(ring_id)))
        elif before.rows != now.rows:
            ring.announce(Updated(ring.list.member(ring_id)))

    def on_gone(self, ring_id: RingId, before: Listed | None, tombstone: Tombstone) -> None:
        ring = self._ring
        if ring_id == ring.id:
            ring.depart("declared")
            return
        if ring.condemned.pop(ring_id, None) is not None:
            ring.condemnations += 1
        pair = ring.pairs.get(ring_id)
        if pair is not None:
            ring.opening.drop(pair)
        ring.door.release(ring_id)
        ring.dirty = True
        if before is None:
            return
        ring.fencing.raise_above(ring_id, tombstone.gen, certain=tombstone.certain)
        ring.raw.emit(Removed(ring_id, tombstone.certain, tombstone.reason, ring.fencing.gen))
        member = Member(before.node, before.address, before.rows)
        ring.announce(Left(member) if tombstone.reason == "left" else Failed(member, tombstone.certain))
        ring.news.on_gone(ring_id)


class Publishing:
    """The own rows. They outlive a membership: a process that comes back brings them along."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.rows: Mapping[str, bytes] = {}  # another object after every change
        self._version = 1

    def publish(self, row: str, value: bytes | None) -> None:
        if row.startswith(OWN_TOPICS):
            return
        rows = changed_rows(self.rows, row, value)
        if rows is not None:
            self.rows = rows
            self._version += 1
            if self._ring.is_member:
                self.tell()

    def tell(self) -> None:
        """All members shall know."""
        ring = self._ring
        ring.list.announce(ring.id, Listed(ring.raw.me, ring.raw.address, ring.since_wall, self._version, dict(self.rows)))
