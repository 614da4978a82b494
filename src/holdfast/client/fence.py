"""A fence: a resource admits the tokens of holders, and refuses those below the highest it has seen.  docs/client.md (fencing).

Every holder may be late: it checks that it holds, stands still, and writes. And some holders exclude no other. So whatever they change
compares the token of the one who writes with the highest it admitted before. A fence does that comparison; the store decides how long it
remembers: in this process, in a file of SQLite, or in the same transaction of SQLite as the change itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from holdfast.errors import ConfigError, StaleToken, StorageError, shown

if TYPE_CHECKING:
    from sqlite3 import Connection

TOKEN_MAX = (1 << 53) - 1  # F16
NAME_BYTES_MAX = 128
LOCKED_TIMEOUT = 10.0  # seconds that a file is waited for while another process writes to it
TABLE = "CREATE TABLE IF NOT EXISTS holdfast_fence (name TEXT PRIMARY KEY, token INTEGER NOT NULL)"
RAISE = (
    "INSERT INTO holdfast_fence (name, token) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET token = excluded.token WHERE excluded.token >= holdfast_fence.token"
)
READ = "SELECT token FROM holdfast_fence WHERE name = ?"


class Store(Protocol):
    """Where the highest token is."""

    def raised(self, token: int) -> bool:
        """It is the highest now. False, and nothing changes, if a larger one was there."""

    def highest(self) -> int: ...
    def close(self) -> None: ...


class Fence:
    """Keeps the highest token that it admitted. Any thread may use it.

    ``store`` is None for as long as this object lives; a path for a file of SQLite that it opens, where each admission is durable before it
    returns; or an open ``sqlite3.Connection``, where an admission is part of the caller's transaction: commit it with the change that it
    guards, and no other writer comes between the two. ``name`` tells several fences of one store apart.
    """

    def __init__(self, store: str | Path | Connection | None = None, *, name: str = "") -> None:
        if not isinstance(name, str) or len(name.encode()) > NAME_BYTES_MAX or not (name.isprintable() or not name):
            raise ConfigError(f"name: {shown(name)}; accepted are up to {NAME_BYTES_MAX} bytes of printable text")
        self.name = name
        self._lock = Lock()
        self._store = _store(store, name)

    def admit(self, token: int) -> None:
        """Go on only if this returns. Raises ``StaleToken`` if a larger token was admitted before; the same one is admitted again."""
        if isinstance(token, bool) or not isinstance(token, int) or not 1 <= token <= TOKEN_MAX:
            raise ConfigError(f"token: {shown(token)}; accepted is the token of a grant, 1 to {TOKEN_MAX}")
        with self._lock:
            if not self._store.raised(token):
                highest = self._store.highest()
                about = f"fence {shown(self.name)}" if self.name else "fence"
                raise StaleToken(
                    f"{about}: token {token} is below {highest}, which was admitted before: its holder has a successor, and stops here",
                    token=token, highest=highest,
                )  # fmt: skip

    @property
    def highest(self) -> int:
        """The highest token that was admitted; 0: none."""
        with self._lock:
            return self._store.highest()

    def close(self) -> None:
        """Close the file that it opened; a caller's connection stays open."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> Fence:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _store(store: Any, name: str) -> Store:
    if store is None:
        return Memory()
    from sqlite3 import Connection

    if isinstance(store, Connection):
        return Table(store, name)
    if isinstance(store, str | os.PathLike) and os.fspath(store):
        return File(os.fspath(store), name)
    raise ConfigError(f"store: {shown(store)}; accepted are a path, an open sqlite3.Connection, and None")


class Memory:
    """As long as the process lives."""

    def __init__(self) -> None:
        self._highest = 0

    def raised(self, token: int) -> bool:
        if token < self._highest:
            return False
        self._highest = token
        return True

    def highest(self) -> int:
        return self._highest

    def close(self) -> None:
        """Nothing is open."""


class Table:
    """A row of a caller's database, in the caller's transaction."""

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self._name = connection, name
        connection.execute(TABLE)

    def raised(self, token: int) -> bool:
        return self._connection.execute(RAISE, (self._name, token)).rowcount == 1

    def highest(self) -> int:
        row = self._connection.execute(READ, (self._name,)).fetchone()
        return 0 if row is None else int(row[0])

    def close(self) -> None:
        """It is the caller's."""


class File:
    """A file of its own, or shared with fences of other processes. Each admission is on disk before it returns."""

    def __init__(self, path: str, name: str) -> None:
        import sqlite3

        self._error, self._path = sqlite3.Error, path
        try:
            self._connection = sqlite3.connect(path, timeout=LOCKED_TIMEOUT, isolation_level=None, check_same_thread=False)
            self._connection.execute("PRAGMA synchronous = FULL")
            self._table = Table(self._connection, name)
        except sqlite3.Error as error:
            raise StorageError(f"fence {path}: {error}; accepted is a file that SQLite can open and write") from None

    def raised(self, token: int) -> bool:
        try:
            return self._table.raised(token)
        except self._error as error:
            raise StorageError(f"fence {self._path}: {error}; the token was not admitted") from None

    def highest(self) -> int:
        try:
            return self._table.highest()
        except self._error as error:
            raise StorageError(f"fence {self._path}: {error}") from None

    def close(self) -> None:
        self._connection.close()
