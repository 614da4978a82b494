"""Values that replace each other by version: the usual content of ``kit.rows``.  Spec: tickets 5.9 (Cview).

The larger (version, author) wins; a value whose body is missing says "gone". Two authors who write the same version
differ in name, so every member picks the same winner.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from holdfast.bounds import Number, Payload, Text

AUTHOR_BYTES_MAX = 256
UNREADABLE = (
    msgspec.DecodeError,
    ValueError,
    RecursionError,
)  # what a peer's bytes may raise: bad UTF-8 and nesting have errors of their own


class Versioned(Struct, frozen=True, array_like=True):
    """One version of a value, as it is kept in a row."""

    version: Number
    author: Text
    body: Payload | None  # None: gone

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)


def read(value: bytes) -> Versioned:
    """The version in a row that ``valid`` has passed."""
    return _DECODER.decode(value)


def valid(value: bytes) -> bool:
    """A peer sent it: is it a version at all?"""
    try:
        return len(_DECODER.decode(value).author.encode()) <= AUTHOR_BYTES_MAX
    except UNREADABLE:
        return False


def newest(a: bytes, b: bytes) -> bytes:
    """The join: a total order, so any order and any repetition of updates ends in the same value."""
    return max(a, b, key=_rank)


def gone(value: bytes) -> bool:
    return read(value).body is None


_DECODER = msgspec.msgpack.Decoder(Versioned)


def _rank(value: bytes) -> tuple[int, str, bool, bytes]:
    """Of one author's two contents under one version, "gone" wins and then the larger bytes: ties must not depend on order."""
    it = read(value)
    return it.version, it.author, it.body is None, value
