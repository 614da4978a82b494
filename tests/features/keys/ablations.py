"""KeyKeeper with one rule taken out each: what the checkers must catch.  No configuration reaches them."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.features.keys.lab.scenarios.keys import KeysScenario
from holdfast.features.keys.protocol.keys import SILENT, Done, KeyKeeper
from holdfast.features.keys.protocol.messages import KeyAnswer, KeyChange, KeyTurn
from holdfast.features.keys.protocol.warden import KeyringPort, KeysChanged, Warden
from holdfast.host import Host, Membership, NodeId


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
