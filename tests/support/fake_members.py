"""A membership that a test writes itself: who is listed, and what is said about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

from holdfast.events import Failed, Joined, MembershipEvent
from holdfast.host import Address, Member, NodeId


def member(life: NodeId, rows: dict[str, bytes] | None = None) -> Member:
    return Member(life, Address(life.name, 1), rows or {})


class FakeMembers:
    """Implements ``holdfast.host.Membership``; several lives of one name may be listed, as on the ring."""

    def __init__(self, *lives: NodeId) -> None:
        self.listed = {life: member(life) for life in lives}
        self.version = 1
        self._listeners: list[Callable[[MembershipEvent], None]] = []

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        newest = {life.name: self.listed[life] for life in sorted(self.listed)}
        return tuple(each for _, each in sorted(newest.items()) if topic is None or f"topic:{topic}" in each.rows)

    def get(self, name: str) -> Member | None:
        return next((each for each in self.members() if each.id.name == name), None)

    def publish(self, row: str, value: bytes | None) -> None:
        """Nobody reads it here."""

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._listeners.append(listener)

    def usable_until(self) -> float:
        return inf

    # What only tests call.

    def join(self, life: NodeId, address: Address | None = None) -> None:
        self.listed[life] = member(life) if address is None else Member(life, address, {})
        self.say(Joined(self.listed[life]))

    def fail(self, life: NodeId) -> None:
        self.say(Failed(self.listed.pop(life), certain=True))

    def say(self, event: MembershipEvent) -> None:
        self.version += 1
        for listener in self._listeners:
            listener(event)

    def keep(self, lives: Iterable[NodeId]) -> None:
        """Only these are listed, and nobody is told."""
        self.listed = {life: self.listed[life] for life in lives}
