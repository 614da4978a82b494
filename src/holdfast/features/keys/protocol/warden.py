"""The asked side of a key rotation: one asker at a time, one change per turn.  docs/keys.md, docs/decisions.md H57.

Before a member changes keys it takes a turn with every member. Until the change is done, or the turn's time is over, this member takes no
change from another member; and a change that comes outside of its turn, because it was late or its sender was stopped, is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import ClassVar, Protocol

from msgspec.structs import replace

from holdfast.errors import shown
from holdfast.events import Internal
from holdfast.features.keys.protocol.messages import KeyAnswer, KeyChange, KeyTurn
from holdfast.host import Host, Member, Membership, NodeId

TURN_SECONDS = 60.0  # an asker uses the first half of it at most
ASKERS_MAX = 256  # lives whose turns are remembered; the oldest goes first. Rotations are made by hand.
TURN_MAX = 1 << 53
TEXT_CHARS_MAX = 200  # of an answer; a longer one would not be read at all
LISTED_BYTES = 6  # of the hash of a list; exact in every language


class KeyringPort(Protocol):
    """The keys of this agent. Each change is on disk, and in use, before it returns; a text says why it was not made.

    ``install`` of a key that is held, ``use`` of the one in use and ``remove`` of one that is not held are no errors.
    """

    def ids(self) -> tuple[str, ...]:
        """Hexadecimal; the one this agent writes with first."""

    def install(self, key: str) -> str | None: ...
    def use(self, key_id: str) -> str | None: ...
    def remove(self, key_id: str) -> str | None: ...


class KeysChanged(Internal, frozen=True):
    """A member asked this one to change its keys. The key itself is not in it."""

    family: ClassVar[str] = "care"
    by: NodeId
    action: str
    ids: tuple[str, ...]
    text: str  # "" if it was done


class Warden:
    """What one member does with its keys."""

    def __init__(self, host: Host, membership: Membership, ring: KeyringPort) -> None:
        self._host, self._membership, self.ring = host, membership, ring
        self._change: dict[str, Callable[[str], str | None]] = {"install": ring.install, "use": ring.use, "remove": ring.remove}
        self._listed = 0
        self._listed_of: tuple[Member, ...] = ()  # the list that it is of
        self._holder: NodeId | None = None
        self._until = 0.0
        self._answer: KeyAnswer | None = None  # to the change of this turn, once it was made
        self._turns: dict[NodeId, int] = {}  # per asker the last one: an older message of it is late

    def on_turn(self, source: NodeId, message: KeyTurn) -> KeyAnswer | None:
        """None: it is late, or the end of a turn, and no member waits for an answer."""
        last = self._turns.get(source, 0)
        if not last <= message.turn < TURN_MAX or not message.seconds > 0:
            if source == self._holder and message.turn == last and message.seconds == 0:
                self._until = self._host.now
            return None
        if source != self._holder and self._taken():
            left = self._until - self._host.now
            return self.say(message.serial, f"{self._holder} is changing keys; this turn is free in {left:.0f} s at the latest")
        if message.turn > last:
            self._begin_turn(source, message)
        return self.say(message.serial)

    def on_change(self, source: NodeId, message: KeyChange) -> KeyAnswer:
        if source != self._holder or message.turn != self._turns[source] or self._host.now >= self._until:
            return self.say(message.serial, "its turn is over; nothing was changed")
        if self._answer is None:
            change = self._change.get(message.action)
            text = f"{shown(message.action)} is no change" if change is None else change(message.key)
            self._answer = self.say(0, text or "")
            self._host.emit(KeysChanged(source, message.action[:20], self._answer.ids, text or ""))
        return replace(self._answer, serial=message.serial)

    def say(self, serial: int, text: str = "") -> KeyAnswer:
        return KeyAnswer(serial, not text, text[:TEXT_CHARS_MAX], self.ring.ids(), self.listed())

    def listed(self) -> int:
        """The same at two members who list the same lives."""
        members = self._membership.members()
        if members is not self._listed_of or not members:
            lives = "\n".join(str(member.id) for member in members)
            self._listed = int.from_bytes(blake2b(lives.encode(), digest_size=LISTED_BYTES).digest(), "big")
            self._listed_of = members
        return self._listed

    def _taken(self) -> bool:
        return self._holder is not None and self._answer is None and self._host.now < self._until

    def _begin_turn(self, source: NodeId, message: KeyTurn) -> None:
        self._turns.pop(source, None)
        if len(self._turns) >= ASKERS_MAX:
            del self._turns[next(iter(self._turns))]
        self._turns[source] = message.turn
        self._holder, self._answer = source, None
        self._until = self._host.now + min(message.seconds, TURN_SECONDS)
