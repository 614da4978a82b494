"""Who monitors whom, and where they are reached.  Spec: fast-detection D17b; foundation F12, F17.

Seats are reached at the addresses of their slots, whether or not they are members; all others by the member list.
Lists may differ between nodes: nothing but speed rests on this.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast.features.leadership.protocol.config import MONITORS_MAX
from holdfast.host import Address, Host, Member, Membership, MemberStatus, NodeId
from holdfast.kit.seats import Seats


class Roads:
    """The seats and the members, as one node sees them."""

    def __init__(self, host: Host, membership: Membership, seats: Seats) -> None:
        self._host, self._membership, self._seats = host, membership, seats
        self.slots = tuple(slot.number for slot in seats.slots)
        self.quorum = len(self.slots) // 2 + 1
        self._met: dict[NodeId, Address] = {}

    def monitors(self, watched: str = "") -> dict[str, NodeId | Address]:
        """The monitors of this process, or of ``watched`` without this process: name -> where."""
        out = {watched or self._host.me.name, self._host.me.name}
        found: dict[str, NodeId | Address] = {name: at for name, at in self.seats().items() if name not in out}
        taken = {slot.address for slot in self._seats.slots}
        for member in self._membership.members():
            if len(found) >= MONITORS_MAX:
                break
            if member.name not in out and member.name not in found and member.address not in taken and self._usable(member):
                found[member.name] = self.to_member(member)
        return found

    def seats(self) -> dict[str, Address]:
        """The other seats: name -> slot's address. A slot without a name is called by its address until an agent was heard there."""
        found: dict[str, Address] = {}
        for slot in self._seats.slots:
            if slot.number != self._seats.own:
                life = self._seats.life(slot.number)
                found[slot.name if life is None else life.name] = slot.address
        return found

    def seats_among(self, names: Collection[str]) -> int:
        """How many of the slots are filled by these."""
        lives = [self._seats.life(number) for number in self.slots]
        return sum(life is not None and life.name in names for life in lives)

    def listed(self, life: NodeId) -> bool:
        """The member list has this life, and holds it to be alive."""
        member = self._membership.get(life.name)
        return member is not None and member.id == life and self._usable(member)

    def to_life(self, life: NodeId) -> NodeId | Address | None:
        """Where to tell this life something; None if it is not known."""
        at = self.seats().get(life.name)
        if at is not None:
            return at
        member = self._membership.get(life.name)
        return None if member is None or member.id != life else self.to_member(member)

    def to_member(self, member: Member) -> NodeId:
        if self._met.get(member.id) != member.address:
            if len(self._met) >= 4 * MONITORS_MAX:
                self._met.clear()
            self._met[member.id] = member.address
            self._host.meet(member.id, member.address)
        return member.id

    @staticmethod
    def _usable(member: Member) -> bool:
        return member.status is not MemberStatus.DECIDED
