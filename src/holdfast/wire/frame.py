"""Streams: where one sealed message ends and the next begins.  docs/wire.md, "Streams".

A frame is a length (4 bytes, big-endian) and so many sealed bytes. The length is not authenticated: it can be used to waste
``FRAME_BYTES_MAX`` of memory per connection, never to make a message out of parts of others.
"""

from __future__ import annotations

from holdfast.drops import Drop, Rejected
from holdfast.host import MESSAGE_BYTES_MAX

LENGTH_BYTES = 4
FRAME_BYTES_MAX = LENGTH_BYTES + MESSAGE_BYTES_MAX  # what a reader keeps of an unfinished frame, at most


def frame(sealed: bytes) -> bytes:
    """The bytes to write to a stream."""
    assert len(sealed) <= MESSAGE_BYTES_MAX
    return len(sealed).to_bytes(LENGTH_BYTES, "big") + sealed


class FrameReader:
    """Cuts one connection's bytes into sealed messages, whatever pieces they arrive in."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._broken = False

    def feed(self, data: bytes | bytearray | memoryview) -> list[bytes]:
        """The messages that are complete now, still sealed. ``Rejected`` means that the connection is of no more use."""
        if self._broken:
            raise Rejected(Drop.OVERSIZED)
        self._pending += data
        sealed: list[bytes] = []
        start, end = 0, self._end(0)
        with memoryview(self._pending) as view:
            while end is not None and end <= len(view):
                sealed.append(bytes(view[start + LENGTH_BYTES : end]))
                start, end = end, self._end(end)
        del self._pending[:start]
        return sealed

    def _end(self, start: int) -> int | None:
        """Where the frame that starts there ends; None while its length has not arrived."""
        if len(self._pending) < start + LENGTH_BYTES:
            return None
        size = int.from_bytes(self._pending[start : start + LENGTH_BYTES], "big")
        if size > MESSAGE_BYTES_MAX:
            self._broken, self._pending = True, bytearray()
            raise Rejected(Drop.OVERSIZED)
        return start + LENGTH_BYTES + size
