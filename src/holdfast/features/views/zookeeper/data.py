"""Paths and data of the znodes of a group.  Spec: views 5Z (layout), D23.

    /holdfast/<group>/members/<name>              ephemeral: boot, address, rows and their version
    /holdfast/<group>/mail/<name>                 persistent: the mailbox of that member
    /holdfast/<group>/mail/<name>/m-0000000042    ephemeral: a letter; the number orders them

Any client of the ensemble can write there, so what is read is decoded within bounds; what cannot be read is None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NamedTuple, TypeVar
from urllib.parse import quote, unquote

import msgspec
from msgspec import Meta, Struct

from holdfast.bounds import Growing, Number, highest_of, is_beyond
from holdfast.host import ROW_BYTES_MAX, ROW_NAME_BYTES_MAX, ROWS_MAX, Address, NodeId
from holdfast.kit.parcels import PARCEL_BYTES_MAX, Parcel

ROOT = "/holdfast"
LETTER_PREFIX = "m-"
LETTER_DIGITS = 10  # that ZooKeeper counts with
MEMBER_BYTES_MAX = 32 * 1024  # all rows, each with its name, are 21 KiB
LETTER_BYTES_MAX = PARCEL_BYTES_MAX + 1024  # a parcel, two lives and a number

RowName = Annotated[str, Meta(max_length=ROW_NAME_BYTES_MAX)]
RowValue = Annotated[bytes, Meta(max_length=ROW_BYTES_MAX)]
D = TypeVar("D", bound=Struct)


class MemberData(Struct, frozen=True, array_like=True, gc=False):
    """The data of a member's znode; the member's name is that of the znode."""

    boot: Growing
    address: Address
    rows: Annotated[dict[RowName, RowValue], Meta(max_length=ROWS_MAX)] = {}
    version: Number = 0  # of the rows, counted by this life; 0: it publishes none


class Letter(Struct, frozen=True, array_like=True, gc=False):
    """One message on its way to one life."""

    source: NodeId
    to: NodeId
    mid: Number  # counts the letters of the source's life
    message: Parcel


class Paths(NamedTuple):
    """Where a group and one of its members are."""

    group: str
    name: str

    @property
    def root(self) -> str:
        return f"{ROOT}/{segment(self.group)}"

    @property
    def members(self) -> str:
        return f"{self.root}/members"

    @property
    def mail(self) -> str:
        return f"{self.root}/mail"

    @property
    def own(self) -> str:
        return self.member(self.name)

    @property
    def mailbox(self) -> str:
        return self.mailbox_of(self.name)

    @property
    def persistent(self) -> tuple[str, ...]:
        """The znodes that a member needs before its own, outermost first."""
        return (ROOT, self.root, self.members, self.mail, self.mailbox)

    def member(self, name: str) -> str:
        return f"{self.members}/{segment(name)}"

    def mailbox_of(self, name: str) -> str:
        return f"{self.mail}/{segment(name)}"


def segment(name: str) -> str:
    """A name as one part of a path. Names are any printable text; "." and ".." and what ZooKeeper refuses are escaped."""
    return name.replace(".", "%2E") if set(name) == {"."} else quote(name, safe="")


def name_of(part: str) -> str | None:
    """The name that such a part stands for; None if this version would have written it otherwise."""
    name = unquote(part)
    return name if name and segment(name) == part else None


def order_of(part: str) -> int | None:
    """The place of a letter among those of its mailbox; None if it is no letter."""
    digits = part.removeprefix(LETTER_PREFIX)
    return int(digits) if part != digits and len(digits) == LETTER_DIGITS and digits.isascii() and digits.isdigit() else None


def encode(data: MemberData | Letter) -> bytes:
    return msgspec.msgpack.encode(data)


def read_member(data: bytes, wall: Callable[[], float]) -> MemberData | None:
    return _read(data, _MEMBER, MEMBER_BYTES_MAX, wall)


def read_letter(data: bytes, wall: Callable[[], float]) -> Letter | None:
    return _read(data, _LETTER, LETTER_BYTES_MAX, wall)


class _Kind(NamedTuple):
    decode: Callable[[bytes], Struct]
    highest: Callable[[Struct], int]


def _kind(kind: type[Struct]) -> _Kind:
    highest = highest_of(kind)
    assert highest is not None
    return _Kind(msgspec.msgpack.Decoder(kind).decode, highest)


_MEMBER, _LETTER = _kind(MemberData), _kind(Letter)


def _read(data: bytes, kind: _Kind, bytes_max: int, wall: Callable[[], float]) -> D | None:
    if len(data) > bytes_max:
        return None
    try:
        read = kind.decode(data)
    except Exception:  # bad UTF-8 and nesting have errors of their own; the bytes of another process caused it
        return None
    return None if is_beyond(kind.highest(read), wall) else read  # type: ignore[return-value]
