"""One agent of a group per machine, where it is its own seat.  Spec: foundation F12.

Without seeds, key and network no other agent can vote, so no other agent may believe the same. The lock is the kernel's: it
ends with the process. What is written into it (who, and where it listens) is for the text of an error.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from holdfast.disk.lock import LockTaken, take
from holdfast.errors import StorageError, StorageLocked


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
            return cls(path, take(path, msgspec.json.encode(Holder(os.getpid(), socket))))
        except LockTaken as taken:
            holder = _holder(taken.holder)
            raise StorageLocked(
                f"process {holder.pid} is the agent of this group on this machine: attach to its socket {holder.socket}, "
                "stop it, or give both of them seeds"
            ) from None
        except OSError as error:
            raise StorageError(f"cannot lock {path}: {error.strerror}") from None

    def close(self) -> None:
        """Give it up. The file stays (``disk/lock.py``)."""
        os.close(self._fd)


def _holder(said: bytes) -> Holder:
    try:
        return msgspec.json.decode(said, type=Holder)
    except msgspec.DecodeError:
        return Holder(0, "unknown")  # It has just taken it and not yet said who it is.
