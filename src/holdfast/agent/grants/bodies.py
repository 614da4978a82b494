"""Bodies: the processes that act under a grant, and the kernel's word that one of them is dead.  Spec: foundation F14.

A pid alone proves nothing: the kernel gives it to another process as soon as its process was waited for. A pidfd names one process for ever
and becomes readable when that process, with all its threads, has ended. Where the kernel offers none, no death is
ever confirmed, and what was granted ends at its deadline.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from holdfast.errors import ConfigError, Unavailable
from holdfast.local.process import Process, stat_of

SO_PEERPIDFD = 77  # Linux 6.5; the socket module has no name for it yet
PID_MAX = (1 << 31) - 1
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


class Asked(NamedTuple):
    """What a client asked for with a body."""

    before: float  # seconds before the deadline at which it is ended; 0.0: never
    mark: str  # of the command; "": none
    user: int  # whose client it is


NOT_ASKED = Asked(0.0, "", -1)


class Body:
    """One process, by its pidfd."""

    def __init__(self, pid: int, fd: int) -> None:
        self.pid = pid
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dead = False

    @property
    def dead(self) -> bool:
        """The kernel is asked, every time, until it says so: a process that is dead stays dead."""
        if not self._dead and self._fd >= 0:
            self._dead = bool(self._poll.poll(0))
        return self._dead

    def watch(self, on_death: Callable[[], None]) -> None:
        """Call it, once, soon after the process has ended."""
        assert self._loop is None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._on_readable, on_death)

    def process(self) -> Process | None:
        """The same process for who keeps it longer; None when it is closed."""
        return None if self._fd < 0 else Process(self.pid, os.dup(self._fd))

    def close(self) -> None:
        if self._fd < 0:
            return
        self._unwatch()
        os.close(self._fd)
        self._fd = -1

    def _on_readable(self, on_death: Callable[[], None]) -> None:
        self._unwatch()  # A dead process stays readable, and would keep the loop busy.
        on_death()

    def _unwatch(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
            self._loop = None


def body_of(pid: int) -> Body | None:
    """A process that another process keeps from being waited for. None where the kernel has no pidfds."""
    if not 0 < pid <= PID_MAX:
        raise ConfigError(f"pid: {pid}; accepted are 1 to {PID_MAX}")
    try:
        return Body(pid, os.pidfd_open(pid))
    except ProcessLookupError:
        raise ConfigError(f"pid: {pid} is no process; accepted is one that was not waited for yet") from None
    except (AttributeError, OSError) as error:
        _check_not_full(error)
        return None


def peer_pid(sock: socket.socket) -> int:
    """The process that made the connection; 0 if it lives in a pid namespace that cannot be seen from here."""
    try:
        return int(CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[0])
    except (AttributeError, OSError):
        return 0


def peer_user(sock: socket.socket) -> int:
    """Whose process made the connection; -1 if it is not known."""
    try:
        return int(CREDENTIALS.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))[1])
    except (AttributeError, OSError):
        return -1


def peer_body(sock: socket.socket, clock: float) -> Body | None:
    """The process that made the connection; None when that cannot be proved.

    ``clock`` is when it greeted. A kernel that cannot name the process itself is asked for the pid, and that pid's process must have been
    there before the greeting: if the pid went to another process in between, that one is younger.
    """
    pid = peer_pid(sock)
    try:
        return Body(pid, sock.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD))
    except OSError:
        pass
    if pid <= 0:
        return None
    try:
        body = Body(pid, os.pidfd_open(pid))
    except (AttributeError, OSError) as error:
        _check_not_full(error)
        return None
    # The pidfd is open first: from here on the pid belongs to its process, or to no process.
    if stat_of(pid).started_at <= clock and not body.dead:
        return body
    body.close()
    return None


def shares_pids(pid: int) -> bool:
    """Whether that process means the same process by a number as we do: it is not in a pid namespace of its own, as in a container."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return False
    return any(line.split() == ["NSpid:", str(pid)] for line in lines)


def _check_not_full(error: Exception) -> None:
    """A kernel without pidfds is a fact to live with; a lack of file descriptors is not."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        raise Unavailable("this agent has no file descriptors left to watch one more process; raise its limit (ulimit -n)")
