"""The list as users ask for it: by topic, by key.  Spec: gossip 2 (members), D21; foundation 3 (Membership).

What is worked out of the list is kept until its version changes.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.features.gossip.protocol.core import Core
from holdfast.host import Member, NodeId
from holdfast.kit.positions import closest, position_of

TOPICS_MAX = 256  # whose members are kept; a node has a few dozen tables and topics


class Owners:
    """Views of one version of the list."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._topics: dict[str, tuple[int, tuple[Member, ...]]] = {}
        self._positions: tuple[int, dict[NodeId, int]] = (-1, {})
        self._ordered: tuple[int, list[tuple[int, Member]]] = (-1, [])

    def members(self, topic: str | None) -> tuple[Member, ...]:
        core = self._core
        if not core.is_member:
            return ()
        listed = core.table.members()
        if topic is None:
            return listed
        kept = self._topics.get(topic)
        if kept is None or kept[0] != core.table.version:
            row = f"topic:{topic}"
            kept = core.table.version, tuple(member for member in listed if row in member.rows)
            if len(self._topics) >= TOPICS_MAX:
                self._topics.clear()
            self._topics[topic] = kept
        return kept[1]

    def positions(self) -> Mapping[NodeId, int]:
        """As on the ring, of the name: a process that comes back is where it was."""
        core = self._core
        if self._positions[0] != core.table.version or not core.is_member:
            former = self._positions[1]
            found = {each.id: former.get(each.id) or position_of(each.id.name) for each in self.members(None)}
            self._positions = core.table.version, found
        return self._positions[1]

    def owner(self, key: str | bytes) -> Member | None:
        core = self._core
        if not core.is_member:
            return None
        if self._ordered[0] != core.table.version:
            positions = self.positions()
            self._ordered = core.table.version, sorted(((positions[each.id], each) for each in self.members(None)), key=_position)
        ordered = self._ordered[1]
        return ordered[closest([position for position, _ in ordered], position_of(key))][1]


def _position(item: tuple[int, Member]) -> int:
    return item[0]
