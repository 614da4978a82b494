"""The state directory of one agent: one process at a time, one boot number per life, one journal.

Spec: foundation F1 (boot), F6 (the exclusive lock), 3 (Storage). The lock is the kernel's: it ends with the process,
whatever the process was doing. The boot number is on disk before any peer hears of it, so no two lives share one.

What a seat saves in the journal is named in ``kit/seat_records.py``; docs/storage.md lists all files and records.
"""

from __future__ import annotations

import os
import re
import time
from binascii import crc32
from collections.abc import Callable
from pathlib import Path

from holdfast.disk.files import Disk
from holdfast.disk.journal import Journal
from holdfast.disk.lock import LockTaken, own_pid, pid_of, take
from holdfast.disk.places import check_state
from holdfast.errors import StorageDamaged, StorageError, StorageLocked

FILE_BYTES_MAX = 64 * 1024  # of a small file: a name, a keyring
BOOT_TEXT = re.compile(rb"(\d{1,16}) ([0-9a-f]{8})\n")


class State:
    """A locked state directory."""

    def __init__(
        self,
        path: Path,
        lock: int,
        boot: int,
        journal: Journal,
        disk: Disk | None = None,
        *,
        former: int = 0,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.former = former  # the number of the last life; 0: this directory is new
        self.boot = boot
        self.journal = journal
        self.warnings = warnings  # one line each, for the user who starts the agent
        self._lock = lock
        self._disk = disk or Disk()

    @classmethod
    def open(cls, path: Path, *, wall: Callable[[], float] = time.time, disk: Disk | None = None) -> State:
        """Create or reopen the directory, take its lock and begin a life. It waits for the disk: call it before the loop."""
        disk = disk or Disk()
        _create(path, disk)
        warnings = check_state(path)
        lock = _lock(path / "lock")
        try:
            former = _stored_boot(path)
            return cls(path, lock, *_begin_life(path, wall, disk), disk, former=former, warnings=warnings)
        except BaseException:
            os.close(lock)
            raise

    def begin_again(self, above: int) -> int:
        """F5: the wall clock went back, and a member remembers a higher boot of this name. A life above that, stored before use."""
        self.boot = _next_boot(self.path, max(above, self.boot), lambda: 0.0, self._disk)
        return self.boot

    def read(self, name: str) -> bytes | None:
        """A small file beside the journal; None if it was never written."""
        try:
            with (self.path / name).open("rb") as file:
                return file.read(FILE_BYTES_MAX)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"cannot read {self.path / name}: {error.strerror or error}") from error

    def write(self, name: str, data: bytes) -> None:
        """Put it there as a whole, for this user alone. It waits for the disk: for what people do, not for what protocols do."""
        assert len(data) <= FILE_BYTES_MAX
        try:
            os.close(self._disk.create(self.path / name, data))
        except OSError as error:
            raise StorageError(f"cannot write {self.path / name}: {error.strerror or error}") from error

    def close(self) -> None:
        """Give the directory up. A caller that wants the pending saves kept waits for ``journal.drain()`` first."""
        self.journal.close()
        os.close(self._lock)


def _create(path: Path, disk: Disk) -> None:
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in reversed(missing):
            disk.sync_directory(folder.parent)
    except OSError as error:
        raise StorageError(
            f"cannot use the state directory {path}: {error.strerror or error}; choose one that this user can write"
        ) from error


def _lock(path: Path) -> int:
    try:
        return take(path, own_pid())
    except LockTaken as taken:
        holder = pid_of(taken.holder)
        raise StorageLocked(
            f"the state directory {path.parent} is in use by process {holder}: stop that process, or give this one a directory of its own"
        ) from None
    except OSError as error:
        raise StorageError(f"cannot lock the state directory {path.parent}: {error.strerror or error}") from error


def _begin_life(path: Path, wall: Callable[[], float], disk: Disk) -> tuple[int, Journal]:
    """The first life writes its boot before there is a journal, so that a journal without a boot is damage. Later ones open
    the journal first: if it is damaged, everything stays as it was found."""
    stored, file = _stored_boot(path), path / "journal"
    if not file.exists():
        boot = _next_boot(path, stored, wall, disk)
        return boot, Journal.open(file, disk)
    journal = Journal.open(file, disk)
    try:
        return _next_boot(path, stored, wall, disk), journal
    except BaseException:
        journal.close()
        raise


def _stored_boot(path: Path) -> int:
    """The number of the last life, 0 if this is the first."""
    file = path / "boot"
    if not file.exists() and (path / "journal").exists():
        raise StorageDamaged(f"{file} is missing beside a journal, so the number of the last life is lost: restore it from a copy")
    try:
        return _read_boot(file) if file.exists() else 0
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"cannot read the boot number in {file}: {error.strerror or error}") from error


def _next_boot(path: Path, stored: int, wall: Callable[[], float], disk: Disk) -> int:
    """F1: max(stored + 1, wall-clock ms), stored before use."""
    file = path / "boot"
    boot = max(stored + 1, int(wall() * 1000))
    try:
        os.close(disk.create(file, _boot_text(boot)))
    except OSError as error:
        raise StorageError(f"cannot store the boot number in {file}: {error.strerror or error}") from error
    return boot


def _read_boot(file: Path) -> int:
    found = BOOT_TEXT.fullmatch(file.read_bytes())
    if found is None or _boot_text(int(found[1])) != found[0]:
        raise StorageDamaged(f"{file} is damaged at offset 0: not a boot number. Nothing was overwritten: restore it from a copy")
    return int(found[1])


def _boot_text(boot: int) -> bytes:
    digits = str(boot).encode()
    return b"%s %08x\n" % (digits, crc32(digits))
