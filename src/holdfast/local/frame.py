"""Frames on the local socket: four bytes of length, then MessagePack.  docs/local-api.md has the layout.

The side that speaks first is the client. A frame that is too long ends the connection: after it the beginning of the next one is unknown.
"""

from __future__ import annotations

from struct import Struct

from holdfast.bounds import MEMBERS_MAX

CALL_BYTES_MAX = 64 * 1024  # client to agent: a message of 32 KiB and its name, with room to spare
ANSWER_BYTES_MAX = MEMBERS_MAX * 1024  # agent to client: a full member list fits, with 1 KiB of rows for each
LENGTH_BYTES = 4

_length = Struct(">I")


class FrameTooLong(Exception):  # never an error of ours: it ends a connection
    """The other side announced more than it may send."""


def framed(body: bytes) -> bytes:
    return _length.pack(len(body)) + body


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
