"""A list that has just changed is compared with a random member's, once per T_l.  Spec: ring 5 (anti-entropy); H160.

A rumour reaches all members but about one in fifty (kit). In a group that grows, some member misses one all the time, and the
usual anti-entropy would take several leases to tell it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

FRESH_TICKS = 2  # in T_l: for so long after a change the list is compared; what a rumour missed, one of these finds


class Freshness:
    """Counts the ticks since the list of one node changed."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._seen = 0  # what was in the list at the last tick, as a hash
        self._left = 0  # ticks in which it is still compared

    def on_tick(self) -> None:
        ring = self._ring
        if not ring.is_member:
            return
        if ring.list.table.root != self._seen:
            self._seen, self._left = ring.list.table.root, FRESH_TICKS
        others = len(ring.list) - 1
        if self._left > 0 and others > 0:
            self._left -= 1
            at = ring.raw.random.randrange(others)
            ids = ring.list.ids
            peer = ring.list.peer(ids[at] if ids[at] < ring.id else ids[at + 1])
            assert peer is not None
            ring.list.compare_with(peer)
