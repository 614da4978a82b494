"""Names with one rule taken out each: what the checkers must catch.  No configuration reaches them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.events import MembershipEvent
from holdfast.features.names.lab.checkers import NameBehind, NameClear, NameTaken
from holdfast.features.names.lab.scenarios.names import NamesScenario
from holdfast.features.names.protocol.messages import Sighting
from holdfast.features.names.protocol.names import Names
from holdfast.host import Address, Host, Membership, NodeId


class AsksNobodyElse(Names):
    """F5: what others tell is not followed up."""

    def _hear(self, others: tuple[Sighting, ...]) -> None:
        """Heard, and forgotten."""


class BothStay(Names):
    """F5: an answer means nothing."""

    def _judge(self, other: NodeId, address: Address, *, clear: bool) -> None:
        """No agent goes."""


class BothGo(Names):
    """H56: each goes for the other."""

    def _judge(self, other: NodeId, address: Address, *, clear: bool) -> None:
        if not self._over:
            self.stop()
            self._say_conflict(other, address)


class BootDecides(Names):
    """F5: a member goes for a process that is only starting, if that has the lower boot."""

    def _must_go(self, other: NodeId, *, clear: bool) -> bool:
        return super()._must_go(other, clear=self.is_clear)


class NeverBehind(Names):
    """F5: a later life that was seen is no reason to take a higher boot."""

    def _keep_in_mind(self, boot: int, address: Address) -> None:
        """Not kept."""


class NeverLooks(Names):
    """H56: the member list is not looked at, nor anybody asked again."""

    def _on_membership(self, event: MembershipEvent) -> None:
        """Not read."""

    def _on_look(self) -> None:
        """Not looked at."""


class NamesAblation(NamesScenario):
    """The scenario with another class in the place of Names."""

    def __init__(self, machine: type[Names] = Names) -> None:
        self.machine = machine

    def make(self, host: Host, membership: Membership, greeted: Sequence[Address]) -> Names:
        return self.machine(
            host,
            membership,
            greeted,
            clear=lambda: host.emit(NameClear()),
            conflict=lambda life, address: host.emit(NameTaken(life)),
            behind=lambda boot: host.emit(NameBehind(boot)),
        )
