"""Parcels: a message inside a message, and how it is handed to the machine that owns its type.  Spec: views D30; foundation F4.

What carries messages for others (the overlay of views) packs them here, and unpacks them at the far end. A parcel is decoded like a
datagram: within the bounds of every field, for types that are declared ``carried`` and for no others, and with the fingerprint of its type
checked, and what is said of its sender is held to the rules of an envelope. So a machine cannot tell how a message came; one that has to
know declares a type of its own for what is carried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Protocol, Union

import msgspec
from msgspec import Meta, Struct

from holdfast.bounds import highest_of, is_beyond, why_unread
from holdfast.drops import Drop, Drops
from holdfast.host import Message, NodeId

PARCEL_BYTES_MAX = 36 * 1024  # the longest letter, and what surrounds it
DIGEST_BYTES_MAX = 8  # as in the envelope, where it is of so many bytes or empty
NAME_BYTES_MAX = 64  # of a sender, as in the envelope: names reach logs, pages and file names

Contents = Annotated[bytes, Meta(max_length=PARCEL_BYTES_MAX)]
Digest = Annotated[bytes, Meta(max_length=DIGEST_BYTES_MAX)]


class Parcel(Struct, frozen=True, array_like=True, gc=False):
    """One message of a ``carried`` type as bytes: its tag and its fields, with the fingerprint that its owner counts with (F4)."""

    fingerprint: Digest
    contents: Contents


class _Tagged(Struct, array_like=True):
    """The first element of a message."""

    tag: int


_peek_tag = msgspec.msgpack.Decoder(_Tagged).decode


class Router(Protocol):
    """The part of a node that parcels need."""

    drops: Drops

    @property
    def types(self) -> tuple[type[Message], ...]: ...
    @property
    def digests(self) -> Mapping[type[Message], bytes]: ...
    def hand_on(self, sender: NodeId, fingerprint: bytes, message: Message) -> None:
        """To the owner of its type, as if ``sender`` had sent it."""


class Parcels:
    """Packs and unpacks for one node."""

    def __init__(self, router: Router, wall: Callable[[], float]) -> None:
        self._router, self._wall = router, wall
        self._types: Sequence[type[Message]] = ()
        self._tags: frozenset[object] = frozenset()
        self._decode: Callable[[bytes], Message] | None = None
        self._highest: dict[type[Message], Callable[[Any], int]] = {}

    def pack(self, message: Message) -> Parcel | None:
        """None: it is too large."""
        assert message.carried, f"{type(message).__name__} is not declared for the overlay"
        contents = msgspec.msgpack.encode(message)
        if len(contents) > PARCEL_BYTES_MAX:
            return None
        return Parcel(self._router.digests.get(type(message), b""), contents)

    def unpack(self, sender: NodeId, parcel: Parcel) -> None:
        """Hand on what is in it. What cannot be read, or may not travel so, is a counted drop."""
        self._read_types()
        message = self._read(sender, parcel)
        if isinstance(message, Drop):
            self._router.drops[message] += 1
        else:
            self._router.hand_on(sender, parcel.fingerprint, message)

    def _read(self, sender: NodeId, parcel: Parcel) -> Message | Drop:
        if not _is_life(sender) or len(parcel.fingerprint) not in (0, DIGEST_BYTES_MAX):
            return Drop.MALFORMED
        if self._decode is None:
            return Drop.UNKNOWN_TAG
        try:
            message = self._decode(parcel.contents)
        except Exception as error:  # bad UTF-8 and nesting have errors of their own; the bytes of a peer caused it
            return why_unread(error, lambda: _peek_tag(parcel.contents).tag, self._tags)
        highest = self._highest.get(type(message))
        if is_beyond(sender.boot, self._wall) or (highest is not None and is_beyond(highest(message), self._wall)):
            return Drop.FAR_AHEAD
        return message

    def _read_types(self) -> None:
        """Machines come and go while a node runs."""
        types = self._router.types
        if types == self._types:
            return
        self._types = types
        kinds = tuple(kind for kind in types if kind.carried)
        bodies: Any = Union[kinds] if kinds else None  # noqa: UP007 - made at run time
        self._tags = frozenset(kind.__struct_config__.tag for kind in kinds)
        self._decode = msgspec.msgpack.Decoder(bodies).decode if kinds else None
        self._highest = {kind: found for kind in kinds if (found := highest_of(kind)) is not None}


def _is_life(sender: NodeId) -> bool:
    """No life has boot 0: an answer to it would be addressed to any life (F3)."""
    return sender.boot > 0 and sender.name.isprintable() and 0 < len(sender.name.encode()) <= NAME_BYTES_MAX
