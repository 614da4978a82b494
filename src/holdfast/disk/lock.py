"""A lock file: one process at a time, and in it what that process says of itself.  Spec: foundation F6, F12.

The lock is the kernel's: it ends with the process, whatever the process was doing. The file stays, because removing it would let two
processes lock two files of one name. What is written into it is for the text of an error and for no decision.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

HOLDER_BYTES_MAX = 1024  # that are read of what a holder says: its pid, and perhaps a path
PID_BYTES_MAX = 20


class LockTaken(Exception):  # never an error of ours: each lock names in its own words what is in use
    """Another process holds the lock."""

    def __init__(self, holder: bytes) -> None:
        super().__init__(pid_of(holder))
        self.holder = holder  # what that process wrote; b"": it has just taken the lock, and not written yet


def take(path: str | Path, holder: bytes) -> int:
    """Take the lock and write ``holder`` into it. The descriptor that is returned holds the lock until it is closed.

    Raises ``LockTaken`` if another process has it, and ``OSError`` if there can be no lock, also if ``path`` is a symbolic link: it would
    be written through. Nothing stays open then.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, holder, 0)
    except BlockingIOError:
        former = os.pread(lock, HOLDER_BYTES_MAX, 0)
        os.close(lock)
        raise LockTaken(former) from None
    except BaseException:
        os.close(lock)
        raise
    return lock


def own_pid() -> bytes:
    """What a holder says that is its pid alone."""
    return f"{os.getpid()}\n".encode()


def pid_of(holder: bytes) -> str:
    """The pid of a holder that said ``own_pid``, as text for an error."""
    return holder[:PID_BYTES_MAX].decode("ascii", "replace").strip() or "unknown"
