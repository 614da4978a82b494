"""One process of this machine: its pidfd, and what /proc says of it.  Spec: foundation F14.

Agents, ``holdfast run`` and its guardian know by it which processes act under a grant. ``local.family`` ends all those of a command.
"""

from __future__ import annotations

import os
import select
import signal
from typing import NamedTuple

MARK_CHARS = 32  # hexadecimal digits of the mark of a command (``local.family``): nothing else is ever taken for one
PARENT_FIELD, START_FIELD = 4, 22  # of /proc/PID/stat, counted from 1
FIRST_FIELD = 3  # the first one behind the name, which may hold spaces and brackets
TICK = 1 / os.sysconf("SC_CLK_TCK")  # seconds
EVER = float("inf")


class Process:
    """By its pidfd, which never comes to mean another process."""

    def __init__(self, pid: int, fd: int = -1) -> None:
        """Raises OSError or AttributeError where there is no such process, or no pidfds."""
        self.pid = pid
        self._fd = os.pidfd_open(pid) if fd < 0 else fd

    @property
    def dead(self) -> bool:
        """It has ended with all its threads, whether it was waited for or not."""
        if self._fd < 0:
            return True
        poll = select.poll()  # A new one each time: two threads may ask, and an object of this kind refuses the second.
        poll.register(self._fd, select.POLLIN)
        return bool(poll.poll(0))

    def send(self, number: int) -> bool:
        """False: this user may not."""
        try:
            signal.pidfd_send_signal(self._fd, number)
        except ProcessLookupError:
            pass
        except OSError:
            return False
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Stat(NamedTuple):
    """What /proc/PID/stat says."""

    parent: int
    started_at: float  # seconds after boot: it was there at this instant; the kernel counts in ticks, so it started within the tick before


UNKNOWN = Stat(0, EVER)


def is_mark(text: str) -> bool:
    return len(text) == MARK_CHARS and set(text) <= set("0123456789abcdef")


def stat_of(pid: int) -> Stat:
    try:
        fields = read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        started = (int(fields[START_FIELD - FIRST_FIELD]) + 1) * TICK
        return Stat(int(fields[PARENT_FIELD - FIRST_FIELD]), started)
    except (OSError, ValueError, IndexError):
        return UNKNOWN


def read_proc(path: str, limit: int = 1 << 16) -> bytes:
    """At most so many bytes; /proc gives a page at a time."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts, left = [], limit
        while left > 0 and (part := os.read(fd, min(left, 1 << 16))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(fd)
