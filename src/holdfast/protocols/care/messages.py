"""What agents say to each other to look after a group: names, keys, measurements, farewells.  Spec: foundation F3, F5."""

from __future__ import annotations

from typing import ClassVar

from holdfast.host import Address, Message, NodeId


class Ping(Message, frozen=True, tag=264):
    """Are you there, and does a message of this size reach you?"""

    greeting: ClassVar[bool] = True  # somebody who is no member can be asked too
    serial: int
    attempt: int  # comes back, so that a time belongs to the message that was answered
    back: int  # bytes wanted in the answer, which never has more than this message
    padding: bytes


class Pong(Message, frozen=True, tag=265):
    """Yes. No wall clock in it: what two machines read there is nobody's fault."""

    serial: int
    attempt: int
    version: str
    uptime: float  # seconds since this life started
    paused: float  # seconds for which it was stopped lately
    padding: bytes


class LeaveAsk(Message, frozen=True, tag=266):
    """An operator asks you to drain and leave."""

    serial: int


class LeaveAnswer(Message, frozen=True, tag=267):
    """I do."""

    serial: int


class KeyList(Message, frozen=True, tag=268):
    """Which keys do you hold?"""

    serial: int


class KeyTurn(Message, frozen=True, tag=269):
    """I am about to change keys: tell me which you hold, and take no change from anybody else for a while."""

    serial: int
    turn: int  # names this turn of this asker; a later one is larger
    seconds: float  # 0: I need it no longer; not answered


class KeyChange(Message, frozen=True, tag=270):
    """Change your keys: only in the turn that you gave me."""

    serial: int
    turn: int
    action: str  # "install", "use" or "remove"
    key: str  # the key itself for install, its id otherwise

    def __repr__(self) -> str:
        """Messages are shown in traces and errors; a key is not."""
        shown = "..." if self.action == "install" else self.key
        return f"KeyChange(serial={self.serial}, turn={self.turn}, action={self.action!r}, key={shown!r})"


class KeyAnswer(Message, frozen=True, tag=271):
    """What I did, and which keys I hold now."""

    serial: int
    done: bool
    text: str
    ids: tuple[str, ...]  # the one I write with first
    listed: int  # what my member list adds up to: whoever lists others than the asker knows of somebody who was not asked


class WhoIs(Message, frozen=True, tag=272):
    """Which other lives of my name do you know?"""

    greeting: ClassVar[bool] = True
    serial: int
    address: Address  # where I listen
    clear: bool  # I asked before, and may use my name


class Sighting(Message, frozen=True):
    """A life of the name that was asked for, and where it listened."""

    boot: int
    address: Address


class Known(Message, frozen=True, tag=273):
    """This is who I am, and these are those I heard of."""

    serial: int
    me: NodeId  # as in the envelope
    clear: bool  # of a name that is in use twice, this tells who came first
    others: tuple[Sighting, ...]
