"""The outside recorder of `tickets-storm`: who used which ticket when, by one clock, and did two ever use one?

Every client appends lines to a file of its own: "start" with the first reading of CLOCK_BOOTTIME that allowed it to use a ticket, "use"
with later ones, "end" with the last. A reading is the one that was compared with the deadline, so a process that is stopped between the
look and the line writes no untruth. A client that is killed has no "end"; then its last "use" is the end.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec

START, USE, END, WAIT = "start", "use", "end", "wait"


class Line(msgspec.Struct, array_like=True):
    """What a client writes. ``WAIT`` has no ticket: it asked, or came back."""

    what: str
    client: int
    at: float
    number: int = -1
    token: int = 0
    deadline: float = 0.0


class Use(NamedTuple):
    """One ticket in the hands of one process."""

    number: int
    token: int
    client: int
    began_at: float
    ended_at: float
    deadline: float  # the last one it knew


class Writer:
    """A client's end of it."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._client = os.getpid()

    def write(self, what: str, at: float, number: int = -1, token: int = 0, deadline: float = 0.0) -> None:
        line = msgspec.json.encode(Line(what, self._client, at, number, token, deadline))
        os.write(self._file, line + b"\n")


def lines(folder: Path) -> Iterator[Line]:
    """Of all clients. A line that its writer did not finish was never a use."""
    for path in sorted(folder.iterdir()):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield msgspec.json.decode(line, type=Line)


def uses(found: Iterable[Line]) -> list[Use]:
    """In the order of their beginning."""
    of: dict[tuple[int, int, int], Use] = {}
    for line in found:
        if line.what == WAIT:
            continue
        key = line.number, line.token, line.client
        use = of.get(key)
        if use is None:
            of[key] = Use(line.number, line.token, line.client, line.at, line.at, line.deadline)
        else:
            began_at, ended_at = min(use.began_at, line.at), max(use.ended_at, line.at)
            of[key] = use._replace(began_at=began_at, ended_at=ended_at, deadline=max(use.deadline, line.deadline))
    return sorted(of.values(), key=lambda use: use.began_at)


def overlaps(found: Sequence[Use]) -> list[tuple[Use, Use]]:
    """Two that used the same ticket at the same time. A use is compared with the one that lasted longest before it."""
    told = []
    for each in _by_number(found):
        last = each[0]
        for use in each[1:]:
            if use.began_at <= last.ended_at:
                told.append((last, use))
            last = max(last, use, key=lambda use: use.ended_at)
    return told


def shrunk(found: Sequence[Use]) -> list[tuple[Use, Use]]:
    """Later uses of a ticket under a token that is not larger."""
    return [(one, other) for each in _by_number(found) for one, other in pairwise(each) if other.token <= one.token]


def late(found: Sequence[Use]) -> list[Use]:
    """Uses beyond the deadline that their client knew."""
    return [use for use in found if use.ended_at >= use.deadline]


def _by_number(found: Sequence[Use]) -> list[list[Use]]:
    of: defaultdict[int, list[Use]] = defaultdict(list)
    for use in sorted(found, key=lambda use: use.began_at):
        of[use.number].append(use)
    return [of[number] for number in sorted(of)]
