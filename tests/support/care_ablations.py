"""Names and KeyKeeper with one rule taken out each: what the checkers must catch.  No configuration reaches them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.events import MembershipEvent
from holdfast.features.keys.lab.scenarios.keys import KeysScenario
from holdfast.features.keys.protocol.keys import SILENT, Done, KeyKeeper
from holdfast.features.keys.protocol.messages import KeyAnswer, KeyChange, KeyTurn
from holdfast.features.keys.protocol.warden import KeyringPort, KeysChanged, Warden
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
        """Nobody goes."""


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


class AnyTurn(Warden):
    """H57: everybody has a turn, and any change is taken."""

    def on_turn(self, source: NodeId, message: KeyTurn) -> KeyAnswer | None:
        return self.say(message.serial)

    def on_change(self, source: NodeId, message: KeyChange) -> KeyAnswer:
        text = self._change[message.action](message.key) or ""
        self._host.emit(KeysChanged(source, message.action, self.ring.ids(), text))
        return self.say(message.serial, text)


class WithoutTurns(KeyKeeper):
    """H57: as above, for a whole keeper."""

    def __init__(self, host: Host, membership: Membership, ring: KeyringPort, *, sealed: bool) -> None:
        super().__init__(host, membership, ring, sealed=sealed)
        self.warden = AnyTurn(host, membership, ring)


class UsesAnyway(KeyKeeper):
    """docs/keys.md: whoever lacks the key is no obstacle."""

    def obstacle(self, action: str, key: str, held: KeyAnswer | None) -> str:
        return "" if action == "use" and held is not None and held.done else super().obstacle(action, key, held)


class RemovesAnyway(KeyKeeper):
    """docs/keys.md: whoever writes with the key is no obstacle."""

    def obstacle(self, action: str, key: str, held: KeyAnswer | None) -> str:
        return "" if action == "remove" and held is not None and held.done else super().obstacle(action, key, held)


class SilenceIsConsent(KeyKeeper):
    """docs/keys.md: the silent are left behind."""

    def obstacle(self, action: str, key: str, held: KeyAnswer | None) -> str:
        return "" if held is None else super().obstacle(action, key, held)


class HidesTheSilent(KeyKeeper):
    """docs/keys.md: a report without those who did not answer."""

    def ask(self, action: str, key: str, timeout: float, done: Done, *, force: bool = False) -> None:
        shown: Callable[..., None] = lambda reports: done(tuple(each for each in reports if each.text != SILENT))  # noqa: E731
        super().ask(action, key, timeout, shown, force=force)


class KeysAblation(KeysScenario):
    """The scenario with another class in the place of KeyKeeper."""

    def __init__(self, machine: type[KeyKeeper] = KeyKeeper) -> None:
        self.machine = machine

    def make(self, host: Host, membership: Membership, ring: KeyringPort) -> KeyKeeper:
        return self.machine(host, membership, ring, sealed=True)
