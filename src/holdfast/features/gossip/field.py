"""The field of the page: where each member stands in it, and how it is.  docs/page.md; spec: gossip 10.

An agent gives each name a place when it first looks. A name keeps its place while the table remembers it, a dead one too, so the
field of a page does not move when members come and go, and all pages of one agent show the same field.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from holdfast.features.gossip.protocol.messages import Status

if TYPE_CHECKING:
    from holdfast.features.gossip.protocol.node import GossipNode

NUMBER = re.compile(r"(\d+)")
HEALTH_DIGITS = 2  # a page shows no finer difference

CellStatus = Literal["alive", "suspected", "dead", "left"]
STATUSES: Mapping[Status, CellStatus] = {
    Status.ALIVE: "alive", Status.SUSPECT: "suspected", Status.DEAD: "dead", Status.LEFT: "left",
}  # fmt: skip


class Cell(Struct, frozen=True):
    """One name that this agent remembers."""

    place: int  # in the field; the name keeps it while it is remembered
    name: str
    status: CellStatus
    unhealthy: float  # suspicions of late, decayed


class FieldAnswer(Struct, frozen=True):
    """All that this agent remembers, by their places: the members, and those that died or left of late."""

    version: int  # grows with every change of the list
    places: int  # how many there are; some may be free
    cells: tuple[Cell, ...]
    next: int | None  # where the next page begins; null: this was the last one


class Places:
    """The place of each name."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._free: list[int] = []  # a heap: the first free place is taken first, so the field grows no further than it has to
        self.count = 0

    def of(self, names: Collection[str]) -> Mapping[str, int]:
        """Of these names, and of no others: who is not among them gives its place up. New names come in the order in which people count."""
        for name in [each for each in self._at if each not in names]:
            heappush(self._free, self._at.pop(name))
        for name in sorted((each for each in names if each not in self._at), key=counted):
            if self._free:
                self._at[name] = heappop(self._free)
            else:
                self._at[name] = self.count
                self.count += 1
        return self._at


class Field:
    """What one member remembers, as cells."""

    def __init__(self, node: GossipNode) -> None:
        self._node, self._places = node, Places()

    @property
    def version(self) -> int:
        return self._node.version

    def place(self, name: str) -> int | None:
        """None: it is not remembered."""
        return self._look().get(name)

    def answer(self, start: int, limit: int) -> FieldAnswer:
        """So many cells, from this place on."""
        node, places = self._node, self._look()
        found = sorted((place, name) for name, place in places.items() if place >= start)
        cells = []
        for place, name in found[:limit]:
            entry = node.entry(name)
            assert entry is not None
            cells.append(Cell(place, name, STATUSES[entry.status], round(node.unhealthy(entry.id), HEALTH_DIGITS)))
        return FieldAnswer(self.version, self._places.count, tuple(cells), found[limit][0] if len(found) > limit else None)

    def _look(self) -> Mapping[str, int]:
        return self._places.of({entry.id.name: None for entry in self._node.table.entries()})


def counted(name: str) -> list[tuple[int, int | str]]:
    """To sort by: web-2 comes before web-10."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in NUMBER.split(name)]
