"""Keys of the group in an agent: the call ``Keys``, and what a rotation does to the keys of this agent.  docs/keys.md."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.agent.feature import Calls, Feature, Parts, Running
from holdfast.agent.socket.answers import checked_timeout
from holdfast.errors import HoldfastError
from holdfast.features.keys.protocol.keys import KeyKeeper, Report
from holdfast.local.frame import encoded
from holdfast.wire.keys import Keyring, parse_key

if TYPE_CHECKING:
    from holdfast.agent.socket.connection import Connection
    from holdfast.features.keys.calls import Keys


class KeyringOfAgent:
    """What the group may do with the keys of this agent, when all members agreed (``features.keys.protocol.warden.KeyringPort``)."""

    def __init__(self, ring: Callable[[], Keyring | None], rekey: Callable[[Keyring], None]) -> None:
        self._ring, self._rekey = ring, rekey

    def ids(self) -> tuple[str, ...]:
        ring = self._ring()
        return () if ring is None else tuple(key.id.hex() for key in ring.keys)

    def install(self, key: str) -> str | None:
        return self._change(lambda ring: ring.add(parse_key(key)))

    def use(self, key_id: str) -> str | None:
        return self._change(lambda ring: ring.use(bytes.fromhex(key_id)))

    def remove(self, key_id: str) -> str | None:
        return self._change(lambda ring: ring.remove(bytes.fromhex(key_id)) if ring.get(bytes.fromhex(key_id)) else ring)

    def _change(self, change: Callable[[Keyring], Keyring]) -> str | None:
        """None, or why it was not done; a text for people on another machine, so it never holds the key."""
        ring = self._ring()
        if ring is None:
            return "this agent has no key"
        try:
            self._rekey(change(ring))
        except (HoldfastError, ValueError) as error:
            return str(error) or type(error).__name__
        return None


class KeyAgent(Running):
    """One ``KeyKeeper``."""

    def __init__(self, parts: Parts) -> None:
        life = parts.life
        self.keys = KeyKeeper(parts.host, parts.membership, KeyringOfAgent(lambda: life.keyring, life.rekey), sealed=parts.config.has_key)
        self.machines = (self.keys,)

    def calls(self) -> Calls:
        from holdfast.features.keys.calls import Keys

        return Calls(in_turn={Keys: self._ask})

    def _ask(self, client: Connection, call: Keys) -> None:
        self.keys.ask(call.action, call.key, checked_timeout(call.timeout), partial(_on_reports, client, call.serial), force=call.force)


class KeyFeature(Feature):
    """Every agent has it."""

    name = "keys"

    def build(self, parts: Parts) -> KeyAgent:
        return KeyAgent(parts)


def _on_reports(client: Connection, serial: int, reports: tuple[Report, ...]) -> None:
    from holdfast.features.keys.calls import MemberReport

    told = tuple(MemberReport(report.member.name, report.done, report.text, report.keys) for report in reports)
    client.done(serial, encoded(told))
