"""What a reader of all records can prove about views without asking any agent.  Spec: views 1 (G1, G2, G6), 7 (CB1 to CB4, CB6).

Every client program writes what its agent told it (``body``). All of them run on one machine and read one clock, so their lines have one
order. The logs of the agents add when a member left an attachment, which clients are not told. A lease counts in full: also after the
member installed another view, tripped, was stopped or died. The proof of G6 needs none of that, and a program that is held up between two
lines acts on the former one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import combinations, pairwise
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

TICK = 0.001  # seconds: to how much the logs of agents know a time
ROUNDING = 1e-6  # seconds: what is left of a sum of floating point numbers


class Listed(NamedTuple):
    """One member of a view."""

    life: str  # "x#7"
    attach: int
    server: str


class Seen(NamedTuple):
    """A view, as one program was told it."""

    id: str
    number: int
    servers: tuple[str, ...]
    members: tuple[Listed, ...]

    def find(self, life: str) -> Listed | None:
        return next((each for each in self.members if each.life == life), None)


class Line(NamedTuple):
    """One item of a stream of views."""

    at: float
    me: str  # the life of the agent
    what: str
    state: int  # ``host.ViewState``
    view: Seen | None
    leased_until: float  # -inf: there is no lease
    installed_at: float


class Move(NamedTuple):
    """A member began an attachment."""

    life: str
    attach: int
    at: float  # at most ``TICK`` before it did


class Holding(NamedTuple):
    """For so long one client program counted on one view without a gap."""

    me: str
    view: Seen
    installed_at: float
    since: float
    until: float


class Lives:
    """The records of one run. Each line is read once."""

    def __init__(self) -> None:
        self.lines: dict[Path, list[Line]] = {}
        self._read: dict[Path, int] = {}
        self._views: dict[Path, Seen | None] = {}

    def read(self, path: Path) -> list[Line]:
        """All lines so far."""
        lines = self.lines.setdefault(path, [])
        if not path.exists():
            return lines
        with path.open("rb") as file:
            file.seek(self._read.get(path, 0))
            for raw in file:
                if not raw.endswith(b"\n"):
                    break
                self._read[path] = self._read.get(path, 0) + len(raw)
                lines.append(self._line(path, json.loads(raw)))
        return lines

    def _line(self, path: Path, raw: Mapping[str, Any]) -> Line:
        if raw["view"] is not None:
            told = raw["view"]
            members = tuple(Listed(life, attach, server) for life, attach, server in told["members"])
            self._views[path] = Seen(told["id"], told["number"], tuple(told["servers"]), members)
        until, installed_at = raw["leased_until"], raw["installed_at"]
        view = None if installed_at is None else self._views.get(path)
        return Line(
            raw["at"], raw["me"], raw["what"], raw["state"], view, -inf if until is None else until, inf if view is None else installed_at
        )


def moves_in(log: Sequence[Mapping[str, Any]], life: str, ahead: float) -> list[Move]:
    """From the log of an agent. ``ahead``: how far wall-clock time is ahead of the clock of the records."""
    return [
        Move(life, line["attach"], datetime.fromisoformat(line["at"]).timestamp() - ahead)
        for line in log
        if line.get("event") == "Detached"
    ]


def wrongs(lines: Sequence[Line], moves: Sequence[Move], settle: float) -> list[str]:
    """Everything that must never be seen, whatever happened to processes and links."""
    ordered = sorted(lines, key=lambda line: line.at)
    found = [
        *unequal(ordered), *numbers_that_fell(ordered), *without_self(ordered, moves), *sharing_a_number(ordered),
        *superseded(ordered, settle), *two_groups(ordered, settle), *after_a_move(ordered, moves, settle),
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def wrongs_of_znodes(lines: Sequence[Line], settle: float) -> list[str]:
    """The same of views from ZooKeeper, which have no servers of ours; nothing bounds how long a former attachment is listed (5Z)."""
    ordered = sorted(lines, key=lambda line: line.at)
    found = [
        *unequal(ordered), *numbers_that_fell(ordered), *without_znode(ordered), *superseded(ordered, settle), *two_groups(ordered, settle),
    ]  # fmt: skip
    return list(dict.fromkeys(found))


def unequal(lines: Sequence[Line]) -> Iterator[str]:
    """CB1: one id, one list."""
    known: dict[str, Seen] = {}
    for line in lines:
        if line.view is not None and known.setdefault(line.view.id, line.view) != line.view:
            yield f"CB1: {line.view.id} at {line.me} is another list than before"


def numbers_that_fell(lines: Sequence[Line]) -> Iterator[str]:
    """CB2: the next view of a life has a larger number."""
    for me, views in _installed(lines).items():
        for (before, _), (after, _) in pairwise(views):
            if after.number <= before.number:
                yield f"CB2: {me} installed {after.id} after {before.id}"


def without_self(lines: Sequence[Line], moves: Sequence[Move]) -> Iterator[str]:
    """CB3: a view lists who installs it, by the attachment that it has then."""
    for me, views in _installed(lines).items():
        for view, installed_at in views:
            own = view.find(me)
            if own is None:
                yield f"CB3: {me} installed {view.id} and is not in it"
            elif own.attach not in _attachments(me, moves, installed_at):
                yield f"CB3: {me} installed {view.id}, which lists its attachment {own.attach}"


def without_znode(lines: Sequence[Line]) -> Iterator[str]:
    """CB3: a view lists who installs it, by a znode that was made before it, and by no older one than the views before."""
    for me, views in _installed(lines).items():
        newest = 0
        for view, _ in views:
            own = view.find(me)
            if own is None:
                yield f"CB3: {me} installed {view.id} and is not in it"
            elif not newest <= own.attach <= view.number:
                yield f"CB3: {me} installed {view.id}, which lists its znode {own.attach} after {newest}"
            else:
                newest = own.attach


def sharing_a_number(lines: Sequence[Line]) -> Iterator[str]:
    """CB4: two views of one number are equal, or no server is in both."""
    by_number: dict[int, dict[str, Seen]] = {}
    for line in lines:
        if line.view is not None:
            by_number.setdefault(line.view.number, {})[line.view.id] = line.view
    for views in by_number.values():
        for one, other in combinations(views.values(), 2):
            if set(one.servers) & set(other.servers):
                yield f"CB4: {one.id} and {other.id} share a server"


def superseded(lines: Sequence[Line], settle: float) -> Iterator[str]:
    """CB6 (a): from ``settle`` after a client installed a view on, no lease on one that it had before is valid."""
    over: dict[str, tuple[float, str]] = {}
    for me, views in _installed(lines).items():
        for (before, _), (after, at) in pairwise(views):  # An earlier one is over even sooner.
            over[before.id] = min(over.get(before.id, (inf, "")), (at + settle, f"{me} installed {after.id} after it"))
    yield from _leased_beyond("a", lines, over)


def two_groups(lines: Sequence[Line], settle: float) -> Iterator[str]:
    """CB6 (b): two clients with valid leases on views of at least ``settle``, one listed in the other's, are in one view."""
    for one, other in combinations(_holdings(lines), 2):
        related = other.view.find(one.me) is not None or one.view.find(other.me) is not None
        since = max(one.installed_at + settle, other.installed_at + settle, one.since, other.since)
        if one.me != other.me and one.view.id != other.view.id and related and since + ROUNDING < min(one.until, other.until):
            yield f"CB6 (b): {one.me} in {one.view.id} and {other.me} in {other.view.id} from {since:.6f} on"


def after_a_move(lines: Sequence[Line], moves: Sequence[Move], settle: float) -> Iterator[str]:
    """CB6 (c): from ``settle`` after a client left an attachment on, no lease on a view that lists it is valid."""
    over: dict[str, tuple[float, str]] = {}
    for view in {line.view for line in lines if line.view is not None}:
        for move in moves:
            listed = view.find(move.life)
            if listed is not None and listed.attach < move.attach:
                left = move.at + TICK + settle, f"{move.life} began attachment {move.attach}"
                over[view.id] = min(over.get(view.id, (inf, "")), left)
    yield from _leased_beyond("c", lines, over)


def _leased_beyond(part: str, lines: Sequence[Line], over: Mapping[str, tuple[float, str]]) -> Iterator[str]:
    for holding in _holdings(lines):
        at, why = over.get(holding.view.id, (inf, ""))
        if holding.until > at + ROUNDING:
            yield f"CB6 ({part}): {holding.me} counts on {holding.view.id} until {holding.until:.6f}, over at {at:.6f}: {why}"


def _installed(lines: Sequence[Line]) -> dict[str, list[tuple[Seen, float]]]:
    """Of each life, what it installed and when, in order."""
    found: dict[str, list[tuple[Seen, float]]] = {}
    for line in lines:
        if line.view is not None:
            views = found.setdefault(line.me, [])
            if not views or views[-1][0].id != line.view.id:
                views.append((line.view, line.installed_at))
    return found


def _holdings(lines: Sequence[Line]) -> list[Holding]:
    """A lease that was over before the next word of it is another holding."""
    found: list[Holding] = []
    last: dict[tuple[str, str], int] = {}
    for line in lines:
        if line.view is None or line.leased_until <= line.at:
            continue
        key = line.me, line.view.id
        before = found[last[key]] if key in last else None
        if before is None or before.until < line.at:
            last[key] = len(found)
            found.append(Holding(line.me, line.view, line.installed_at, line.at, line.leased_until))
        else:
            found[last[key]] = before._replace(until=max(before.until, line.leased_until))
    return found


def _attachments(life: str, moves: Sequence[Move], at: float) -> set[int]:
    """Those that this life may have had then, as far as its log knows the time."""
    own = [move for move in moves if move.life == life]
    certain = [move.attach for move in own if move.at + TICK <= at]
    return {*certain[-1:], *(move.attach for move in own if move.at <= at < move.at + TICK)}


def settled_pairs(lines: Sequence[Line], settle: float) -> int:
    """How often CB6 (b) had two settled clients to compare: a record without any shows nothing."""
    count = 0
    for one, other in combinations(_holdings(lines), 2):
        since = max(one.installed_at + settle, other.installed_at + settle, one.since, other.since)
        count += one.me != other.me and since < min(one.until, other.until)
    return count
