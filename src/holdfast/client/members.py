"""The member list as a client sees it: an immutable snapshot that knows its version.  Spec: PRODUCT (the Python API); ring 5.7 (owner)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from holdfast.client import checks
from holdfast.errors import Unavailable
from holdfast.host import Member
from holdfast.kit.positions import closest, position_of
from holdfast.local.calls import GroupView


class Members(Sequence[Member]):
    """Who was in the group when this was read, sorted by name. It never changes; ``group.members`` is the next one."""

    __slots__ = ("_by_name", "_list", "_order", "_positions", "state", "version")

    def __init__(self, view: GroupView) -> None:
        self.version = view.version  # of this agent's list; comparable only with its others
        self.state = view.state  # of this agent: "joining", "member", "leaving", "left"
        self._list = view.members
        self._positions = view.positions
        self._by_name: dict[str, Member] | None = None
        self._order: tuple[list[int], list[int]] | None = None  # positions, sorted, and whose each of them is

    def get(self, name: str) -> Member | None:
        """The member of this name, if it is in the list."""
        checks.text(name, "name")
        if self._by_name is None:
            self._by_name = {member.name: member for member in self._list}
        return self._by_name.get(name)

    def owner(self, key: str | bytes) -> Member | None:
        """The member whose position on the ring is closest to the key's; None while the list is empty.

        Raises ``Unavailable`` where members have no positions.
        """
        if self._list and not self._positions:
            raise Unavailable(
                "membership: in this group keys have no owners, because its members have no positions; keys have owners on the ring"
            )
        if not self._list:
            return None
        if self._order is None:
            places = sorted(range(len(self._positions)), key=self._positions.__getitem__)
            self._order = [self._positions[place] for place in places], places
        positions, places = self._order
        return self._list[places[closest(positions, position_of(checks.key(key)))]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self._list)

    @overload
    def __getitem__(self, at: int) -> Member: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Member, ...]: ...
    def __getitem__(self, at: int | slice) -> Member | tuple[Member, ...]:
        return self._list[at]

    def __len__(self) -> int:
        return len(self._list)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._list)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Members) and self._list == other._list

    __hash__ = None  # type: ignore[assignment]  # a member's rows are a mapping

    def __repr__(self) -> str:
        return f"<Members {', '.join(self.names) or 'none'}, version {self.version}>"
