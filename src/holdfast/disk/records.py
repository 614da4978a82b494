"""What a journal looks like on disk, and what may be wrong with it.  Spec: foundation 3 (Storage).

    file  = magic, unit, unit, ...
    unit  = length (4 bytes), check of the length (4), body, check of the body (4), end mark (4)
    body  = MessagePack array of changes: [key, value], value nil for a delete
          | [prefix, true]: something was once saved below this prefix

A unit is what one sync made durable: all of it counts, or nothing. A write that was cut short leaves the beginning of
a unit, or a unit whose end is still zeros (a file system that grew the file before it wrote the data). Such a tail was
never confirmed and is cut off. Everything else that does not check out was once confirmed: nothing is guessed, the
journal is refused and left as it is. That includes the magic: a journal gets its name when its beginning is on disk, so
a file that is empty, zeroed or cut within the magic was damaged later. The length has a check of its own, because a
flipped bit in it would make the rest of the file look like a tail.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterable
from struct import Struct as Layout
from typing import NamedTuple

import msgspec

MAGIC = b"holdfast journal 1\n"
END = b"\xf0end"  # no byte of it is zero, so that a tail of zeros is never taken for a unit
HEAD = Layout("<II")
TAIL = Layout("<I4s")
BODY_BYTES_MAX = 1 << 28  # what one unit may hold: far above any batch, far below a length of rubbish

Change = tuple[str, bytes | bool | None]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[str, bytes | bool | None]]).decode


class Damage(Exception):
    """A unit that was written in full and is not what was written."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(f"{what} at offset {offset}")
        self.offset = offset
        self.what = what


class Scan(NamedTuple):
    """What a journal holds."""

    changes: list[Change]  # in the order in which they were saved
    intact: int  # bytes up to the end of the last whole unit; what follows is a torn tail


def unit(changes: Iterable[Change]) -> bytes:
    """The bytes that make these changes durable together."""
    body = _encode(list(changes))
    assert len(body) <= BODY_BYTES_MAX
    length = len(body).to_bytes(4, "little")
    return b"".join((length, crc32(length).to_bytes(4, "little"), body, TAIL.pack(crc32(body), END)))


def scan(data: bytes) -> Scan:
    """Read a whole journal; raises Damage for anything but a torn tail."""
    changes: list[Change] = []
    if not data.startswith(MAGIC):
        raise Damage(0, "not the beginning of a journal")
    at = len(MAGIC)
    while at < len(data):
        body = _read_unit(data, at)
        if body is None:
            break
        try:
            changes.extend(_decode(body))
        except msgspec.DecodeError:
            raise Damage(at, "unreadable record") from None
        at += HEAD.size + len(body) + TAIL.size
    return Scan(changes, at)


def _read_unit(data: bytes, at: int) -> memoryview | None:
    """The body of the unit at this offset, or None for a torn tail."""
    left = len(data) - at
    if left < HEAD.size:
        return None
    length, check = HEAD.unpack_from(data, at)
    if check != crc32(data[at : at + 4]) or length > BODY_BYTES_MAX:
        if not data[at + HEAD.size :].strip(b"\0"):
            return None
        raise Damage(at, "damaged record length")
    end = at + HEAD.size + length
    if len(data) < end + TAIL.size:
        return None
    body = memoryview(data)[at + HEAD.size : end]
    if TAIL.unpack_from(data, end) == (crc32(body), END):
        return body
    if not data[end:].strip(b"\0"):
        return None
    raise Damage(at, "checksum mismatch")
