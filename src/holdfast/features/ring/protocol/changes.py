"""How this node changes the member list, its own rows included, and what follows when the list changes.

Spec: ring 3 (rows), 5.2 (remove), 5.7; foundation 3 (Membership.publish), 5 (events). The rows say about a member: its tags, its topics,
flags of other machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.errors import ConfigError, shown
from holdfast.events import Failed, Joined, Left, Updated
from holdfast.features.ring.protocol import memberlist, news
from holdfast.features.ring.protocol.facts import Removed
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.memberlist import ROWS_BYTES_MAX, Listed, Tombstone, rows_bytes
from holdfast.host import ROW_BYTES_MAX, ROW_NAME_BYTES_MAX, ROWS_MAX, Member

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


class Publishing:
    """The own rows. They outlive a membership: a process that comes back brings them along."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._rows: dict[str, bytes] = {}
        self._version = 1

    @property
    def rows(self) -> Mapping[str, bytes]:
        """Another object after every change."""
        return self._rows

    def publish(self, row: str, value: bytes | None) -> None:
        if row.startswith(OWN_TOPICS):
            return
        rows = {name: kept for name, kept in self._rows.items() if name != row}
        if value is not None:
            _check_row(row, value, rows)
            rows[row] = value
        if rows != self._rows:
            self._rows = rows
            self._version += 1
            if self._ring.is_member:
                self.tell()

    def tell(self) -> None:
        """All members shall know."""
        ring = self._ring
        ring.list.announce(ring.id, Listed(ring.raw.me, ring.raw.address, ring.since_wall, self._version, self._rows))


def _check_row(row: str, value: bytes, others: dict[str, bytes]) -> None:
    if not 1 <= len(row.encode()) <= ROW_NAME_BYTES_MAX:
        raise ConfigError(f"row: {shown(row)} has {len(row.encode())} bytes; accepted are 1 to {ROW_NAME_BYTES_MAX}")
    if len(value) > ROW_BYTES_MAX:
        raise ConfigError(f"row {shown(row)}: {len(value)} bytes; accepted are at most {ROW_BYTES_MAX}")
    if len(others) >= ROWS_MAX:
        raise ConfigError(f"row {shown(row)}: would be row {len(others) + 1}; a member publishes at most {ROWS_MAX}")
    if rows_bytes({**others, row: value}) > ROWS_BYTES_MAX:
        raise ConfigError(f"row {shown(row)}: all rows of a member together may have {ROWS_BYTES_MAX} bytes")
