"""A store that several writers share, each write behind a fence; what it says of the writers.  Spec: election 1 (A2), D22; foundation F16.

Every act of a command is one transaction of SQLite: the fence admits its token or refuses it, an admitted one writes, and the act is
written down with the time at which it began. The order of the rows is the order in which they were committed. The store is the outside
recorder: it knows nothing of agents, and no agent knows of it.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.client.fence import Fence
from holdfast.errors import StaleToken
from holdfast.net.clock import now

LOCKED_TIMEOUT = 30.0  # seconds that a writer waits for another one
TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS acts
    (place INTEGER PRIMARY KEY AUTOINCREMENT, token INTEGER, member TEXT, pid INTEGER, at REAL, admitted INTEGER);
"""  # What is looked at are processes that die, and not machines: no write waits for a disk.

READ = "SELECT place, token, member, pid, at, admitted FROM acts WHERE place > ? ORDER BY place"


class Actor(NamedTuple):
    """One life of a command."""

    member: str
    pid: int

    def __str__(self) -> str:
        return f"{self.member} (pid {self.pid})"


class Act(NamedTuple):
    """One write that was tried."""

    token: int
    actor: Actor
    at: float  # CLOCK_BOOTTIME, read by the command before it began
    admitted: bool


class Life(NamedTuple):
    """All acts of one command."""

    token: int
    actor: Actor
    first_at: float
    last_at: float


class Writer:
    """A command that writes to the store under one token."""

    def __init__(self, path: Path, token: int, actor: Actor, *, fenced: bool = True) -> None:
        self._token, self._actor, self._store = token, actor, opened(path)
        self._fence = Fence(self._store, name="led") if fenced else None

    def act(self) -> None:
        at = now()
        with self._store:  # One transaction: no other writer comes between the fence and the write.
            self._store.execute(
                "INSERT INTO acts (token, member, pid, at, admitted) VALUES (?, ?, ?, ?, ?)",
                (self._token, *self._actor, at, self._admitted()),
            )

    def _admitted(self) -> bool:
        if self._fence is None:
            return True
        try:
            self._fence.admit(self._token)
        except StaleToken:
            return False
        return True


class Acts:
    """Reads the store, and goes on where it was."""

    def __init__(self, path: Path) -> None:
        self._store = opened(path)
        self._place = 0
        self._acts: list[Act] = []

    def read(self) -> Sequence[Act]:
        """All so far."""
        for place, token, member, pid, at, admitted in self._store.execute(READ, (self._place,)):
            self._place = place
            self._acts.append(Act(token, Actor(member, pid), at, bool(admitted)))
        return self._acts

    def since(self, at: float) -> list[Act]:
        return [act for act in self.read() if act.at >= at]

    def close(self) -> None:
        self._store.close()


def opened(path: Path) -> sqlite3.Connection:
    store = sqlite3.connect(path, timeout=LOCKED_TIMEOUT, check_same_thread=False)
    store.executescript(TABLES)
    return store


def lives(acts: Iterable[Act]) -> list[Life]:
    """In the order in which they began."""
    found: dict[tuple[int, Actor], Life] = {}
    for act in acts:
        known = found.get((act.token, act.actor))
        first, last = (act.at, act.at) if known is None else (min(known.first_at, act.at), max(known.last_at, act.at))
        found[act.token, act.actor] = Life(act.token, act.actor, first, last)
    return sorted(found.values(), key=lambda life: life.first_at)


def shared_tokens(acts: Iterable[Act]) -> list[str]:
    """Tokens under which two commands acted, at whatever time (A2)."""
    actors: defaultdict[int, dict[Actor, None]] = defaultdict(dict)
    for act in acts:
        actors[act.token][act.actor] = None
    return [f"token {token} acted for {' and '.join(map(str, found))}" for token, found in actors.items() if len(found) > 1]


def late_writes(acts: Iterable[Act]) -> list[str]:
    """Writes of the store that came after one with a larger token: no fence may let them through."""
    highest, wrongs = 0, list[str]()
    for act in acts:
        if act.admitted and act.token < highest:
            wrongs.append(f"{act.actor} wrote under {act.token} at {act.at:.3f}, after a write under {highest}")
        if act.admitted:
            highest = max(highest, act.token)
    return wrongs


def refused(acts: Iterable[Act]) -> int:
    return sum(not act.admitted for act in acts)
