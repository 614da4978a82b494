"""The local socket: who may connect, and the table of calls.  docs/local-api.md has the language, docs/grants.md the law.

The socket belongs to its user (0600 unless told otherwise). A lock beside it says whether its agent lives: the kernel gives it up with
the process, so the socket file of a dead agent is replaced and that of a living one, stopped or not, never.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent.socket.budget import Slices
from holdfast.agent.socket.connection import READ_BYTES_MAX, Connection, TurnsNow
from holdfast.agent.socket.files import CLIENTS_MAX, make_room
from holdfast.agent.socket.handlers import Handlers
from holdfast.disk.lock import LockTaken, own_pid, pid_of, take
from holdfast.errors import ConfigError, StorageError, StorageLocked, Unavailable, shown

if TYPE_CHECKING:
    from holdfast.agent.life.agent import Agent

BACKLOG = 256  # connections that wait to be accepted while the agent is busy; the kernel keeps them
ACCEPTS_MAX = 8  # connections that are accepted in one turn of the loop: each costs a tenth of a millisecond
PATH_BYTES_MAX = 107  # what the kernel has room for


class LocalServer:
    """Serves one agent on one path."""

    def __init__(self, agent: Agent, path: str, lock: int) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()  # connected, refused, malformed, too_long, too_slow, silent, version, clock, too_many
        self.connections: dict[int, Connection] = {}  # by session
        self.watched: dict[int, Connection] = {}  # sessions whose process is watched; some longer than they are connected
        self.turns: TurnsNow = agent.host
        self.grants = agent.grants
        self.slices = Slices(asyncio.get_running_loop())
        self.read_buffer = bytearray(READ_BYTES_MAX)
        self.handlers = Handlers(agent, self.connections, self.counts)
        self.table = self.handlers.table
        self._sessions = 0
        self._lock = lock
        self._server: asyncio.Server | None = None

    @classmethod
    async def start(cls, agent: Agent, path: str, mode: int = 0o600) -> LocalServer:
        """Raises StorageLocked if a living agent serves there, ConfigError if nothing can be served there."""
        make_room()
        lock = _lock(path)
        try:
            sock = _bind(path, mode)
        except BaseException:
            os.close(lock)
            raise
        server = cls(agent, path, lock)
        # asyncio accepts as many connections in one turn as its backlog has room for; the kernel may well keep more.
        server._server = await asyncio.get_running_loop().create_unix_server(lambda: Connection(server), sock=sock, backlog=ACCEPTS_MAX)
        sock.listen(BACKLOG)
        return server

    @property
    def clients(self) -> int:
        """Processes that attached; one that has not said Hello is none."""
        return sum(connection.greeted for connection in self.connections.values())

    async def close(self, why: str = "the agent has ended") -> None:
        """Answers that are ready still go out."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        for connection in tuple(self.connections.values()):
            connection.end_all("AgentLost", why)
        for connection in tuple(self.watched.values()):
            connection.forget()
        self.grants.abandon()
        _remove(self.path)
        await asyncio.sleep(0)  # Sockets close in the next turn of the loop.
        os.close(self._lock)

    # For connections.

    def admit(self, connection: Connection) -> int:
        if len(self.connections) >= CLIENTS_MAX:
            self.counts["too_many"] += 1
            raise Unavailable(f"too many clients: accepted are {CLIENTS_MAX} of one agent")
        self.counts["connected"] += 1
        self._sessions += 1
        self.connections[self._sessions] = connection
        return self._sessions


def _lock(path: str) -> int:
    """The kernel's word that no other agent serves here."""
    if not 0 < len(os.fsencode(path)) <= PATH_BYTES_MAX or "\0" in path:
        raise ConfigError(f"socket: {shown(path)}; accepted are paths of 1 to {PATH_BYTES_MAX} bytes")
    name = f"{path}.alive"  # No group file ends so: a group may be called "x.sock", and its own lock is "x.sock.lock".
    try:
        return take(name, own_pid())
    except LockTaken as taken:
        pid = pid_of(taken.holder)
        raise StorageLocked(f"socket: another agent (pid {pid}) serves {path}; stop it, or choose another socket") from None
    except OSError as error:
        raise StorageError(f"socket: cannot use {name}: {error.strerror}; its folder must exist and be writable") from None


def _bind(path: str, mode: int) -> socket.socket:
    """No client can connect before it listens, and it listens only when its permissions are right."""
    file = Path(path)
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(file.lstat().st_mode):
            raise ConfigError(f"socket: {path} is there and is no socket; remove it, or choose another path")
        file.unlink()  # Of a dead agent: we hold the lock.
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(path)
        file.chmod(mode)
    except OSError as error:
        sock.close()
        raise StorageError(f"socket: cannot listen at {path}: {error.strerror}") from None
    return sock


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        Path(path).unlink()
