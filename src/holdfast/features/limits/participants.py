"""The members of a list that take part in limits: those that publish that they do.  Spec: limits 5.11, H278.

Over agreed views all members of the view gossip. A member list has agents in it that use no limit; they shall not load what they do not
use, and no limit is divided for them.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.events import MembershipEvent
from holdfast.host import Member, Membership

ROW = "limits"  # what a member publishes that takes part


class Participants:
    """A ``Membership`` of those alone."""

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    @property
    def version(self) -> int:
        return self._membership.version

    def members(self, topic: str | None = None) -> tuple[Member, ...]:
        return tuple(member for member in self._membership.members(topic) if ROW in member.rows)

    def get(self, name: str) -> Member | None:
        found = self._membership.get(name)
        return found if found is not None and ROW in found.rows else None

    def publish(self, row: str, value: bytes | None) -> None:
        self._membership.publish(row, value)

    def subscribe(self, listener: Callable[[MembershipEvent], None]) -> None:
        self._membership.subscribe(listener)

    def usable_until(self) -> float:
        return self._membership.usable_until()
