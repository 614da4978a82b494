"""One agent of a group per machine, where it is its own seat.  Spec: foundation F12.

Without seeds, key and network no other agent can vote, so no other agent may believe the same. The lock is the kernel's: it
ends with the process. What is written into it (who, and where it listens) is for the text of an error.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from holdfast.errors import StorageError, StorageLocked

HOLDER_BYTES_MAX = 1024


class Holder(msgspec.Struct):
    """Who holds it, as it says."""

    pid: int
    socket: str


class MachineLock:
    """The lock, held."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path, self._fd = path, fd

    @classmethod
    def take(cls, path: Path, socket: str) -> MachineLock:
        """Raises ``StorageLocked`` naming the process and its socket when another agent of the group is there."""
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StorageError(f"cannot lock {path}: {error.strerror}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(fd)
            os.close(fd)
            raise StorageLocked(
                f"process {holder.pid} is the agent of this group on this machine: attach to its socket {holder.socket}, "
                "stop it, or give both of them seeds"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, msgspec.json.encode(Holder(os.getpid(), socket)), 0)
        return cls(path, fd)

    def close(self) -> None:
        """Give it up. The file stays: removing it would let two processes lock two files of one name."""
        os.close(self._fd)


def _holder(fd: int) -> Holder:
    try:
        return msgspec.json.decode(os.pread(fd, HOLDER_BYTES_MAX, 0), type=Holder)
    except msgspec.DecodeError:
        return Holder(0, "unknown")  # It has just taken it and not yet said who it is.
