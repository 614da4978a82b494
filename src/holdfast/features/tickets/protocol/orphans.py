"""Orphans: cells that no pointer leads to any more.  Spec: tickets 5.1 (FORGET has no answer); docs/decisions.md H109.

A coordinator that dies between making a child cell and pointing to it leaves one behind, and so does a guardian that was down when a
merged cell was to be forgotten. No agent asks about such a cell again. When one has been untouched for long, its guardian walks the ring,
and every guardian of every cell has to answer: a version that only one of them has may still become the last one. What none of them
points to is forgotten.
"""

from __future__ import annotations

from holdfast.features.tickets.protocol.desk import Desk
from holdfast.features.tickets.protocol.guardian import Guardian
from holdfast.features.tickets.protocol.reading import Found, Walk
from holdfast.features.tickets.protocol.values import Key

UNTOUCHED_TTLS = 2.0  # in tombstone_ttl: no message about it is on the road, and no write of its maker goes on for so long
POOLS_MAX = 4  # looked at in one sweep


class Orphans:
    """Looks after the cells of one guardian."""

    def __init__(self, desk: Desk, guardian: Guardian) -> None:
        self._desk, self._guardian = desk, guardian

    def sweep(self) -> None:
        suspects = self._suspects()
        for pool in sorted({key.pool for key in suspects})[:POOLS_MAX]:
            self._walk(pool)

    def _suspects(self) -> list[Key]:
        return self._guardian.untouched(UNTOUCHED_TTLS * self._desk.config.tombstone_ttl)

    def _walk(self, pool: str) -> None:
        walk = Walk(pool, self._desk, lambda found, stuck: self._on_walked(pool, walk, found, stuck), all_of_them=True)
        walk.start()

    def _on_walked(self, pool: str, walk: Walk, found: list[Found], stuck: str) -> None:
        if stuck or not found:
            return
        for key in self._suspects():
            if key.pool == pool and (key.rid, key.cfg) not in walk.referred:
                self._desk.counts["orphans"] += 1
                self._guardian.drop(key)
