"""What a reader of all records can prove about a limit without asking any agent.  Spec: limits 1, 7 (RL4, RL8); issue 16.

Every worker program writes each permit with the machine's clock (F9) to a file of its own (``worker``). All of them run on one machine, so
their lines have one order. A reader needs nothing else to say how much went in any interval, and whose requests waited for how long.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

SECOND: Final = 1_000_000_000  # nanoseconds
WINDOWS: Final = (0.1, 1.0, 10.0)  # seconds
GLANCE: Final = 0.25  # seconds: the length in which a rate is looked at, to say since when it is too low
STEP: Final = 0.05  # seconds from one glance to the next
ENOUGH: Final = 0.9  # of what was to come: below it a glance is too low, by more than one permit


class State(NamedTuple):
    """What a program knew of its limit."""

    at: int
    state: str
    share: float
    late: int  # requests of it that did not go in time, so far


class Record(NamedTuple):
    """One worker program from its first share to its end. Instants are in nanoseconds of the machine's clock."""

    head: dict[str, Any]
    permits: list[int]
    states: list[State]

    @property
    def member(self) -> str:
        return str(self.head["member"])

    @property
    def want(self) -> float:
        return float(self.head["want"])

    @property
    def began_at(self) -> int:
        return int(self.head["at"])


class Bound(NamedTuple):
    """Limits 1: the most that goes in any interval of T seconds is R * T + B + m, with a cost of 1 each."""

    rate: float  # R
    burst: float  # B
    workers: int  # m

    def most(self, window: float) -> float:
        return self.rate * window + self.burst + self.workers


class Peak(NamedTuple):
    """The interval of a length in which most went."""

    most: int
    at: int  # its begin
    window: float

    def excess(self, rate: float) -> float:
        """Beside what the rate alone lets go in it: the whole at most 1 in the long run."""
        return self.most / (rate * self.window)


class Records:
    """The files of one run. Each line is read once; the last one may be cut off by a kill."""

    def __init__(self) -> None:
        self._found: dict[Path, Record] = {}
        self._read: dict[Path, int] = {}

    def read(self, path: Path) -> Record | None:
        """All lines so far. None before the program had a share."""
        if path.exists():
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._read[path] = self._read.get(path, 0) + len(line)
                    self._take(path, line)
        return self._found.get(path)

    def _take(self, path: Path, line: bytes) -> None:
        record = self._found.get(path)
        words = line.split()
        if record is None:
            self._found[path] = Record(json.loads(line), [], [])
        elif len(words) == 1:
            record.permits.append(int(line))
        else:
            record.states.append(State(int(words[0]), words[1].decode(), float(words[2]), int(words[3])))


def merged(records: Iterable[Record], since: int = 0) -> list[int]:
    """All permits from then on, in order."""
    return sorted(at for record in records for at in record.permits[bisect_left(record.permits, since) :])


def peak(permits: Sequence[int], window: float) -> Peak:
    """Of all intervals of this length, both ends included."""
    length = round(window * SECOND)
    best, best_at, first = 0, 0, 0
    for last, at in enumerate(permits):
        while permits[first] < at - length:
            first += 1
        if last - first + 1 > best:
            best, best_at = last - first + 1, permits[first]
    return Peak(best, best_at, window)


def peaks(records: Iterable[Record], since: int = 0, windows: Sequence[float] = WINDOWS) -> list[Peak]:
    permits = merged(records, since)
    return [peak(permits, window) for window in windows]


def wrongs(records: Iterable[Record], bound: Bound, since: int = 0, windows: Sequence[float] = WINDOWS) -> list[str]:
    """What policy ``exact`` must never let go, whatever happened to processes and links."""
    return [
        f"{found.most} went in {found.window:g} s from {found.at / SECOND:.3f} on; at most {bound.most(found.window):g} may"
        for found in peaks(records, since, windows)
        if found.most > bound.most(found.window)
    ]


def too_low(permits: Sequence[int], least: float, since: int, until: int) -> tuple[float, int]:
    """The longest time in seconds for which less than ``least`` per second went, and when it began. A program that gets nothing for s
    seconds is seen for up to s + ``GLANCE``."""
    expected = ENOUGH * least * GLANCE - 1
    glance, step = round(GLANCE * SECOND), round(STEP * SECOND)
    longest, longest_at, began_at = 0, since, None
    for at in range(since, until - glance + 1, step):
        if bisect_left(permits, at + glance) - bisect_left(permits, at) >= expected:
            began_at = None
            continue
        began_at = at if began_at is None else began_at
        if at - began_at > longest:
            longest, longest_at = at - began_at, began_at
    return longest / SECOND, longest_at


def behind(permits: Sequence[int], least: float, since: int, until: int) -> float:
    """Seconds of ``least`` that were missing at most: how far what went fell back behind it, from the best moment on."""
    worst = lag = 0.0
    for before, after in pairwise([since, *permits[bisect_left(permits, since) : bisect_left(permits, until)], until]):
        lag += (after - before) / SECOND * least
        worst = max(worst, lag)
        lag = max(0.0, lag - 1)
    return worst / least


def rate(permits: Sequence[int], since: int, until: int) -> float:
    """Per second, on average."""
    return (bisect_left(permits, until) - bisect_left(permits, since)) / ((until - since) / SECOND)


def whole_since(permits: Sequence[int], least: float, since: int, until: int) -> int:
    """The instant from which on at least so much per second went in every second until the end."""
    for at in range(until - SECOND, since, -round(STEP * SECOND)):
        if rate(permits, at, at + SECOND) < least:
            return at + SECOND
    return since
