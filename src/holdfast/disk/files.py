"""The journal as a file: what it looks like, what may be wrong with it, and the steps that make a change durable.

Spec: foundation 3 (Storage). Everything here may wait for the disk, so it runs before the loop does or in the journal's
worker thread. The order of the steps is the point: a change counts when its sync returned, and a rewritten journal takes
the old one's place only after every byte of it is on disk.

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

import os
from binascii import crc32
from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import Struct as Layout
from typing import NamedTuple

import msgspec

from holdfast.errors import StorageDamaged, StorageError

MAGIC = b"holdfast journal 1\n"
END = b"\xf0end"  # no byte of it is zero, so that a tail of zeros is never taken for a unit
HEAD = Layout("<II")
TAIL = Layout("<I4s")
BODY_BYTES_MAX = 1 << 28  # what one unit may hold: far above any batch, far below a length of rubbish
GARBAGE_BYTES_MIN = 64 * 1024  # below this a rewrite saves nothing worth a sync
RECORD_BYTES = 12  # what one change costs on disk besides its key and its value, about

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


class Disk:
    """The system calls that make something durable. Tests stand in for it to fail, to tear and to die at each of them."""

    def write(self, fd: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def sync(self, fd: int) -> None:
        os.fdatasync(fd)

    def replace(self, new: Path, path: Path) -> None:
        new.replace(path)

    def sync_directory(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def create(self, path: Path, data: bytes) -> int:
        """Put a whole file in place of ``path``, or leave what is there; the new file stays open for appending."""
        new = path.with_name(path.name + ".new")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            self.write(fd, data)
            self.sync(fd)
            self.replace(new, path)
            self.sync_directory(path.parent)
        except BaseException:
            os.close(fd)
            raise
        return fd


class JournalFile:
    """One journal on disk, and what it holds."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self.path = path
        self.values: dict[str, bytes] = {}
        self.used: dict[str, None] = {}  # prefixes that something was ever saved below, in order of first use
        self._disk = disk
        self._live = 0  # bytes that a rewrite would keep, about
        self._size = 0
        self._fd = -1

    @classmethod
    def open(cls, path: Path, disk: Disk | None = None) -> JournalFile:
        """Read what is there and cut off a torn tail; raises StorageDamaged and touches nothing if more is wrong."""
        file = cls(path, disk or Disk())
        try:
            data = _content(path)
            file._fd = file._begin() if data is None else file._repair(file._read(data), len(data))
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"cannot use the journal {path}: {error.strerror or error}") from error
        return file

    @property
    def wants_rewrite(self) -> bool:
        garbage = self._size - self._live
        return garbage > GARBAGE_BYTES_MIN and garbage * 2 > self._size

    @property
    def size(self) -> int:
        return self._size

    def append(self, changes: Sequence[Change]) -> None:
        """Durable when it returns."""
        data = unit(changes)
        self._disk.write(self._fd, data)
        self._disk.sync(self._fd)
        self._size += len(data)
        self._apply(changes)

    def rewrite(self) -> None:
        """Drop the garbage: the same content in a new file, in the old one's place."""
        marks: list[Change] = [(prefix, True) for prefix in self.used]
        data = MAGIC + unit([*marks, *self.values.items()])
        fd = self._disk.create(self.path, data)
        os.close(self._fd)
        self._fd = fd
        self._size = self._live = len(data)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _read(self, data: bytes) -> int:
        try:
            changes, intact = scan(data)
        except Damage as damage:
            raise StorageDamaged(
                f"the journal {self.path} is damaged: {damage}. Nothing was overwritten: restore this file from a copy of this machine, "
                "or move it away to start without what it remembers"
            ) from None
        self._apply(changes)
        return intact

    def _begin(self) -> int:
        """The first journal of this name."""
        self._size = len(MAGIC)
        return self._disk.create(self.path, MAGIC)

    def _repair(self, intact: int, size: int) -> int:
        """Open for appending, without the torn tail and without a rewrite that was not finished."""
        self.path.with_name(self.path.name + ".new").unlink(missing_ok=True)
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if intact < size:
            os.ftruncate(fd, intact)
            self._disk.sync(fd)
        self._size = intact
        return fd

    def _apply(self, changes: Sequence[Change]) -> None:
        for key, value in changes:
            if value is True:
                self.used.setdefault(key)
                continue
            mark_used(self.used, key)
            before = self.values.pop(key, None)
            if before is not None:
                self._live -= len(key) + len(before) + RECORD_BYTES
            if isinstance(value, bytes):
                self.values[key] = value
                self._live += len(key) + len(value) + RECORD_BYTES


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


def _content(path: Path) -> bytes | None:
    """None if there is no such file. An empty one is there: only its absence means that nothing was ever saved."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def mark_used(used: dict[str, None], key: str) -> None:
    """Note every prefix of a key: something was saved below it, and stays saved when the key is deleted."""
    at = 0
    while at >= 0:
        used.setdefault(key[:at])
        cut = key.find("/", at)
        at = cut + 1 if cut >= 0 else -1
