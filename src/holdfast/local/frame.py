"""Frames on the local socket: four bytes of length, then MessagePack.  docs/local-api.md has the layout.

The side that speaks first is the client. A frame that is too long ends the connection: after it the beginning of the next one is unknown.
What goes to many clients is encoded once, and the frame with the serial of each is written around it: a member list goes to every client
that looks, an event to every client that watches.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import msgspec

from holdfast.bounds import MEMBERS_MAX
from holdfast.errors import HoldfastError
from holdfast.local.calls import Closed, Refused

CALL_BYTES_MAX = 64 * 1024  # client to agent: a message of 32 KiB and its name, with room to spare
ANSWER_BYTES_MAX = MEMBERS_MAX * 512  # agent to client: the list of the largest group fits, half of that, with 1 KiB of rows for each
LENGTH_BYTES = 4

_length = Struct(">I")
_encode = msgspec.msgpack.Encoder().encode
_DONE = b"\x93\x01"  # an array of three, with the tag of Done
_PUSHED = b"\x93\x03"  # the same of Pushed; tests compare both with what msgspec writes
NOTHING = _encode(None)


class FrameTooLong(Exception):  # never an error of ours: it ends a connection
    """The other side announced more than it may send."""


def framed(body: bytes) -> bytes:
    return _length.pack(len(body)) + body


def done(serial: int, value: bytes) -> bytes:
    number = _encode(serial)
    return _length.pack(2 + len(number) + len(value)) + _DONE + number + value


def pushed(serial: int, item: bytes) -> bytes:
    number = _encode(serial)
    return _length.pack(2 + len(number) + len(item)) + _PUSHED + number + item


def refused(serial: int, error: HoldfastError) -> bytes:
    return framed(_encode(Refused(serial, type(error).__name__, str(error), error.numbers)))


def closed(serial: int, error: str, text: str) -> bytes:
    return framed(_encode(Closed(serial, error, text)))


def encoded(value: Any) -> bytes:
    return _encode(value)


class Frames:
    """Cuts a stream of bytes into bodies."""

    __slots__ = ("_bytes_max", "_rest")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies that are complete now, in order. Raises ``FrameTooLong`` as soon as the length says so."""
        data = self._rest + data if self._rest else data
        at, end, bodies = 0, len(data), []
        while end - at >= LENGTH_BYTES:
            size = _length.unpack_from(data, at)[0]
            if size > self._bytes_max:
                raise FrameTooLong
            if end - at - LENGTH_BYTES < size:
                break
            at += LENGTH_BYTES
            bodies.append(data[at : at + size])
            at += size
        self._rest = data[at:]
        return bodies
