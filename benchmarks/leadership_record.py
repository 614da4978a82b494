"""The recorder of `leadership`: an outsider to whom every candidate says what it does, and who looks at one clock.

A candidate says "standing" when it asks to lead, "deed" while it leads, each deed with its token, the reading of CLOCK_BOOTTIME that
allowed it, and until when it was allowed, and "stopped" when its last deed under a token is done. The recorder adds when it heard of it.
A *reign* is what one process did under one token.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from benchmarks.ring_fleet import PATIENCE, NeverHappened, now

STANDING, DEED, STOPPED = "standing", "deed", "stopped"
WORD_BYTES_MAX = 4096
LOOK_INTERVAL = 0.5  # seconds

T = TypeVar("T")


class Word(msgspec.Struct, array_like=True):
    """What a candidate says. ``until`` is infinite where a holder is not told when its time is over."""

    what: str
    pid: int
    token: int = 0
    at: float = 0.0
    until: float = 0.0


@dataclass
class Reign:
    """One process under one token."""

    pid: int
    token: int
    heard_at: float  # of its first deed, by the recorder
    first_at: float  # by its own reading
    last_at: float
    until: float
    deeds: int = 1


class Voice:
    """The candidate's end."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.connect(path)

    def standing(self) -> None:
        self._say(Word(STANDING, os.getpid()))

    def deed(self, token: int, at: float, until: float) -> None:
        self._say(Word(DEED, os.getpid(), token, at, until))

    def stopped(self, token: int, at: float) -> None:
        self._say(Word(STOPPED, os.getpid(), token, at))

    def close(self) -> None:
        self._socket.close()

    def _say(self, word: Word) -> None:
        self._socket.send(msgspec.msgpack.encode(word))


@dataclass
class Record:
    """What was heard so far, in the order of hearing."""

    reigns: list[Reign] = field(default_factory=list)
    standing: dict[int, float] = field(default_factory=dict)  # pid -> when it was first heard to ask
    stopped: dict[int, float] = field(default_factory=dict)  # pid -> when it ended its work the last time, by its own reading
    _of: dict[tuple[int, int], Reign] = field(default_factory=dict)

    def hear(self, word: Word, at: float) -> None:
        if word.what == STANDING:
            self.standing.setdefault(word.pid, at)
            return
        if word.what == STOPPED:
            self.stopped[word.pid] = word.at
            return
        reign = self._of.get((word.pid, word.token))
        if reign is None:
            reign = Reign(word.pid, word.token, at, word.at, word.at, word.until)
            self._of[word.pid, word.token] = reign
            self.reigns.append(reign)
            return
        reign.last_at, reign.until, reign.deeds = word.at, word.until, reign.deeds + 1

    def holder(self) -> Reign | None:
        """Whose first deed was the latest."""
        return self.reigns[-1] if self.reigns else None

    def stopped_after(self, at: float, pid: int) -> float | None:
        """When this process ended its work, if that was after an instant."""
        return stopped_at if (stopped_at := self.stopped.get(pid, at)) > at else None

    def next_after(self, at: float, but: int) -> Reign | None:
        """The first reign of another process than ``but`` that began after an instant."""
        return next((reign for reign in self.reigns if reign.heard_at > at and reign.pid != but), None)


class Recorder:
    """Listens in a thread of its own, because deeds come whatever the benchmark is doing."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.record = Record()
        self._changed = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as goodbye:
            goodbye.sendto(b"", self.path)
        self._thread.join()
        self._socket.close()

    def until(self, found: Callable[[Record], T | None], what: str, within: float = PATIENCE) -> T:
        """Wait until there is something; it is looked for whenever a word was heard, and now and then."""
        end_at = now() + within
        with self._changed:
            while (thing := found(self.record)) is None:
                if now() >= end_at:
                    raise NeverHappened(f"never happened: {what}")
                self._changed.wait(min(LOOK_INTERVAL, within))
            return thing

    def _listen(self) -> None:
        while data := self._socket.recv(WORD_BYTES_MAX):
            heard_at = now()
            with self._changed:
                self.record.hear(msgspec.msgpack.decode(data, type=Word), heard_at)
                self._changed.notify_all()


def overlaps(reigns: Sequence[Reign]) -> list[tuple[Reign, Reign]]:
    """Two processes that worked at the same time, by their own readings of one clock."""
    in_order = sorted(reigns, key=lambda reign: reign.first_at)
    return [(a, b) for a, b in combinations(in_order, 2) if a.pid != b.pid and a.last_at >= b.first_at]


def false_takeovers(reigns: Sequence[Reign], dead: Iterable[int] = (), given: Iterable[int] = ()) -> int:
    """How often another process began although the one before it was not killed, and had not given up its token by will."""
    gone, handed = set(dead), set(given)
    others = [former for former, latter in pairwise(reigns) if former.pid != latter.pid]
    return sum(former.pid not in gone and former.token not in handed for former in others)


def interruptions(reigns: Sequence[Reign]) -> int:
    """How often one process lost it and got it again with none in between."""
    return sum(former.pid == latter.pid for former, latter in pairwise(reigns))
