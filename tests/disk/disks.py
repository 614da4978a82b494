"""Disks that fail, die or remember, in the place of ``holdfast.disk.files.Disk``."""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from holdfast.disk.files import Disk

Plan = list[tuple[str, bytes | None]]


def plan(saves: int) -> Plan:
    """A fixed sequence of saves over a few keys, with deletes."""
    return [(f"part/k{i % 7}", None if i % 5 == 4 else b"value-%d" % i) for i in range(saves)]


def states(saves: Plan) -> list[dict[str, bytes]]:
    """What the journal holds after none, one, two ... of them."""
    state: dict[str, bytes] = {}
    found = [dict(state)]
    for key, value in saves:
        if value is None:
            state.pop(key, None)
        else:
            state[key] = value
        found.append(dict(state))
    return found


class CountingDisk(Disk):
    """Counts the syncs; waits in them for as long as ``gate`` is closed."""

    def __init__(self) -> None:
        self.syncs = 0
        self.gate = threading.Event()
        self.gate.set()

    def sync(self, fd: int) -> None:
        assert self.gate.wait(30)
        self.syncs += 1
        super().sync(fd)


class FailingDisk(Disk):
    """Works until it is told to fail: with a write that stops half-way, or with a sync that reports an error."""

    def __init__(self) -> None:
        self.full = False
        self.broken = False

    def write(self, fd: int, data: bytes) -> None:
        if self.full:
            os.write(fd, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(fd, data)

    def sync(self, fd: int) -> None:
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(fd)


class DyingDisk(Disk):
    """Kills its process at one operation: before it, half-way through a write, or after it."""

    def __init__(self, at: int, how: str) -> None:
        self.operations = 0
        self._at = at
        self._how = how

    def write(self, fd: int, data: bytes) -> None:
        self._count()
        if self._dies("during"):
            os.write(fd, data[: len(data) // 2])
            _die()
        super().write(fd, data)
        if self._dies("after"):
            _die()

    def sync(self, fd: int) -> None:
        self._count()
        super().sync(fd)
        if self._dies("after"):
            _die()

    def replace(self, new: Path, path: Path) -> None:
        self._count()
        super().replace(new, path)
        if self._dies("after"):
            _die()

    def sync_directory(self, path: Path) -> None:
        self._count()
        super().sync_directory(path)
        if self._dies("after"):
            _die()

    def _count(self) -> None:
        self.operations += 1
        if self._dies("before"):
            _die()

    def _dies(self, how: str) -> bool:
        return self.operations == self._at and self._how == how


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class RememberingDisk(Disk):
    """Knows what a power failure may leave: of every file a beginning no shorter than its last sync, of every directory
    the names of its last sync or the ones of now."""

    def __init__(self) -> None:
        self._content: dict[int, bytes] = {}  # by inode
        self._durable: dict[int, int] = {}  # bytes that were synced
        self._names: dict[str, int] = {}
        self._durable_names: dict[str, int] = {}
        self.replaced = 0
        self.images: list[list[dict[str, bytes]]] = []  # after every operation: each state a power failure may leave

    def write(self, fd: int, data: bytes) -> None:
        super().write(fd, data)
        inode = os.fstat(fd).st_ino
        new = os.fstat(fd).st_size == len(data)  # An inode may have had another file before.
        self._content[inode] = data if new else self._content[inode] + data
        if new:
            self._durable[inode] = 0
        self._note()

    def sync(self, fd: int) -> None:
        super().sync(fd)
        inode = os.fstat(fd).st_ino
        self._durable[inode] = len(self._content[inode])
        self._note()

    def replace(self, new: Path, path: Path) -> None:
        super().replace(new, path)
        self._names[path.name] = path.stat().st_ino
        self.replaced += 1
        self._note()

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self._durable_names = dict(self._names)
        self._note()

    def _note(self) -> None:
        self.images.append([image for names in (self._durable_names, self._names) for image in self._possible(names)])

    def _possible(self, names: dict[str, int]) -> Iterator[dict[str, bytes]]:
        choices = []
        for inode in names.values():
            content, durable = self._content[inode], self._durable[inode]
            choices.append([content[:end] for end in sorted({durable, (durable + len(content)) // 2, len(content)})])
        for chosen in product(*choices):
            yield dict(zip(names, chosen, strict=True))
