"""What agents say to each other to look after a group: names, keys, measurements, farewells.  Spec: foundation F3, F5."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from holdfast.bounds import PLACES_MAX, U64, Growing, Label, Number, Payload, Seconds, Small, Text
from holdfast.host import Address, Message, NodeId


class Ping(Message, frozen=True, tag=264):
    """Are you there, and does a message of this size reach you?"""

    greeting: ClassVar[bool] = True  # somebody who is no member can be asked too
    serial: Number
    attempt: Small  # comes back, so that a time belongs to the message that was answered
    back: Number  # bytes wanted in the answer, which never has more than this message
    padding: Payload


class Pong(Message, frozen=True, tag=265):
    """Yes. No wall clock in it: what two machines read there is nobody's fault."""

    serial: Number
    attempt: Small
    version: Text
    uptime: Seconds  # seconds since this life started
    paused: Seconds  # seconds for which it was stopped lately
    padding: Payload


class LeaveAsk(Message, frozen=True, tag=266):
    """An operator asks you to drain and leave."""

    serial: Number


class LeaveAnswer(Message, frozen=True, tag=267):
    """I do."""

    serial: Number


class KeyList(Message, frozen=True, tag=268):
    """Which keys do you hold?"""

    serial: Number


class KeyTurn(Message, frozen=True, tag=269):
    """I am about to change keys: tell me which you hold, and take no change from anybody else for a while."""

    serial: Number
    turn: Growing  # names this turn of this asker; a later one is larger
    seconds: Seconds  # 0: I need it no longer; not answered


class KeyChange(Message, frozen=True, tag=270):
    """Change your keys: only in the turn that you gave me."""

    serial: Number
    turn: Growing
    action: Label  # "install", "use" or "remove"
    key: Text  # the key itself for install, its id otherwise

    def __repr__(self) -> str:
        """Messages are shown in traces and errors; a key is not."""
        shown = "..." if self.action == "install" else self.key
        return f"KeyChange(serial={self.serial}, turn={self.turn}, action={self.action!r}, key={shown!r})"


class KeyAnswer(Message, frozen=True, tag=271):
    """What I did, and which keys I hold now."""

    serial: Number
    done: bool
    text: Text
    ids: Annotated[tuple[Label, ...], Meta(max_length=PLACES_MAX)]  # the one I write with first
    listed: U64  # what my member list adds up to: whoever lists others than the asker knows of somebody who was not asked


class WhoIs(Message, frozen=True, tag=272):
    """Which other lives of my name do you know?"""

    greeting: ClassVar[bool] = True
    serial: Number
    address: Address  # where I listen
    clear: bool  # I asked before, and may use my name


class Sighting(Message, frozen=True):
    """A life of the name that was asked for, and where it listened."""

    boot: Growing
    address: Address


class Known(Message, frozen=True, tag=273):
    """This is who I am, and these are those I heard of."""

    serial: Number
    me: NodeId  # as in the envelope
    clear: bool  # of a name that is in use twice, this tells who came first
    others: Annotated[tuple[Sighting, ...], Meta(max_length=PLACES_MAX)]
