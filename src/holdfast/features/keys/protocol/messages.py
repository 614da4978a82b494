"""What agents say to each other to list and to change the keys of a group.  Spec: foundation F3, F5."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta

from holdfast.bounds import PLACES_MAX, U64, Growing, Label, Number, Seconds, Small, Text
from holdfast.host import Address, Message, NodeId

NAMED_MAX = 128  # members in one page: with the longest names and hosts 42 KiB


class KeyList(Message, frozen=True, tag=268):
    """Which keys do you hold?"""

    serial: Number


class KeyTurn(Message, frozen=True, tag=269):
    """I am about to change keys: tell me which you hold, and take no change from another member for a while."""

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
    listed: U64  # what my member list adds up to: a member that lists others than the asker knows of a member that was not asked


class Named(NamedTuple):
    """A member and where it listens."""

    id: NodeId
    address: Address


class KeyNames(Message, frozen=True, tag=274):
    """Your list differs from mine: whom do you list? (H354)"""

    serial: Number
    page: Small


class KeyNamed(Message, frozen=True, tag=275):
    """A page of my list."""

    serial: Number
    page: Small
    of: Small
    listed: U64  # what the whole list adds up to; another number than on the page before: it has changed
    members: Annotated[tuple[Named, ...], Meta(max_length=NAMED_MAX)]
