"""Envelope and message to bytes and back.  Spec: foundation F3 (envelope), section 6 (tags); docs/wire.md has the layout.

One MessagePack array per message: sender, the life it is meant for, the fingerprint, and the body, which is an array again:
the tag and the fields. One typed decode checks all of it; what fails is looked at a second time, only to give it its name.
Arrays grow at the end: an old decoder passes over fields it does not know, a new one fills in their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Generic, TypeVar, Union

import msgspec
from msgspec import Meta, Raw, Struct

from holdfast.bounds import NUMBER_MAX, highest_of, is_beyond, why_unread
from holdfast.drops import Drop, Rejected
from holdfast.host import MESSAGE_BYTES_MAX, Message, NodeId

NAME_BYTES_MAX = 64  # a node's name, as UTF-8; longer than any host name label and six letters
BOOT_MAX = NUMBER_MAX
FINGERPRINT_BYTES = 8  # what Node writes; 0 bytes where nothing must match
SENDERS_MAX = 256  # senders whose name was checked before: each keeps 190 bytes, and to check again takes a third of a microsecond

Body = TypeVar("Body")


class Envelope(Struct, Generic[Body], array_like=True, gc=False):
    """What surrounds a message: who says it, to which life, counting with which numbers (F3, F4)."""

    sender: NodeId
    to_life: Annotated[int, Meta(ge=0, le=BOOT_MAX)]  # 0: a greeting, to an address
    fingerprint: Annotated[bytes, Meta(max_length=FINGERPRINT_BYTES)]
    message: Body


class Peeked(Struct, array_like=True):
    """An envelope that is not believed yet: four well-formed values, whatever they are."""

    sender: Raw
    to_life: Raw
    fingerprint: Raw
    message: Raw


class Tagged(Struct, array_like=True):
    """The first element of a body."""

    tag: int


_peek = msgspec.msgpack.Decoder(Peeked).decode
_peek_tag = msgspec.msgpack.Decoder(Tagged).decode


class Codec:
    """Reads the message types it was made with; writes any message."""

    def __init__(self, types: Iterable[type[Message]], *, wall: Callable[[], float] | None = None) -> None:
        """``wall``: numbers that are further ahead of this clock than honest ones can be are refused. None: any are read."""
        kinds = tuple(types)
        assert kinds, "a codec that reads nothing"
        self.tags = frozenset(_tag(kind) for kind in kinds)
        assert len(self.tags) == len(kinds), "two types with one tag"
        bodies: Any = Union[kinds]  # noqa: UP007 - made at run time, from what the machines of this node handle
        self._decode = msgspec.msgpack.Decoder(Envelope[bodies]).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._senders: set[NodeId] = set()
        self._wall = wall
        self._highest = {kind: found for kind in kinds if (found := highest_of(kind)) is not None} if wall is not None else {}

    def encode(self, sender: NodeId, to_life: int, fingerprint: bytes, message: Message) -> bytes:
        return self._encode((sender, to_life, fingerprint, message))

    def decode(self, payload: bytes | bytearray | memoryview) -> Envelope[Message]:
        """Raises ``Rejected`` for everything that is no message of ours, and nothing else."""
        if len(payload) > MESSAGE_BYTES_MAX:
            raise Rejected(Drop.OVERSIZED)
        try:
            envelope: Envelope[Message] = self._decode(payload)
        except Exception as error:
            # Not only msgspec's errors: bad UTF-8 has its own, and a type may bring its own checks. The peer's bytes caused it.
            raise Rejected(why_unread(error, lambda: _peek_tag(_peek(payload).message).tag, self.tags)) from None
        if envelope.sender not in self._senders:
            self._admit(envelope.sender)
        if len(envelope.fingerprint) % FINGERPRINT_BYTES:
            raise Rejected(Drop.MALFORMED)
        highest = self._highest.get(type(envelope.message))
        if highest is not None and self._wall is not None and is_beyond(highest(envelope.message), self._wall):
            raise Rejected(Drop.FAR_AHEAD)
        return envelope

    def _admit(self, sender: NodeId) -> None:
        """Names reach logs, pages and file names, so they are short and printable; checked once per sender, it costs a set."""
        if not (sender.name.isprintable() and 0 < len(sender.name.encode()) <= NAME_BYTES_MAX):
            raise Rejected(Drop.MALFORMED)
        if not 0 < sender.boot <= BOOT_MAX:
            raise Rejected(Drop.MALFORMED)  # No life has boot 0: an answer to it would be addressed to any life.
        if self._wall is not None and is_beyond(sender.boot, self._wall):
            raise Rejected(Drop.FAR_AHEAD)
        if len(self._senders) >= SENDERS_MAX:
            self._senders.clear()
        self._senders.add(sender)


def _tag(kind: type[Message]) -> int:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, int), f"{kind.__name__} has no integer tag"
    return tag
