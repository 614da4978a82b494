"""The group as clients see it: members, the agent's own state and lines of features, one value with a version; and what changed in it since
clients were last told, which is what an event of a ``Watch`` carries.  docs/local-api.md (streams).

Two views are compared when the second one is made. The names of the lines that differ are kept until the next event takes them, and are
told as the lines are then. A client that has looked in between can apply the same change: it hears again what it knows already.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count
from operator import attrgetter, is_not
from typing import Any

from msgspec import Raw

from holdfast.agent.feature import ViewLines
from holdfast.host import Host, Member, Standing
from holdfast.local.calls import GroupView, Lines, Listed, ViewChange

NAMES_MAX = 2048  # names of one change, members and lines together; beyond it clients ask for the list, which is not much longer

Key = tuple[int, str, Mapping[str, bytes], tuple[int, ...], str]
Columns = Sequence[Sequence[Any]]  # of a list that is sorted by name; what is in the first one has it

NONE: Mapping[str, Raw] = {}
_name = attrgetter("name")


class Viewer:
    """Makes a view when something changed, and notes what."""

    def __init__(self, host: Host, membership: Standing, lines: Mapping[str, ViewLines]) -> None:
        """``lines`` of features, by the name of the feature."""
        self.changes = ViewChanges()
        self._host, self._membership, self._lines = host, membership, lines
        self._view: GroupView | None = None
        self._key: Key | None = None  # of that view: it is another one when this is

    def view(self, state: str) -> GroupView:
        """The same object until something changes."""
        membership = self._membership
        versions = tuple(each.version for each in self._lines.values())
        key = membership.version, state, membership.rows, versions, membership.waits_for
        if self._view is None or key != self._key:
            self._view, self._key = self._made(state, versions), key
            self.changes.note(self._view)
        return self._view

    def _made(self, state: str, versions: tuple[int, ...]) -> GroupView:
        membership, host, former = self._membership, self._host, self._view
        if former is None or self._key is None or versions != self._key[3]:
            told: Lines = {name: lines for name, each in self._lines.items() if (lines := each.lines)}
        else:
            told = former.lines
        members = membership.members()
        places = membership.positions() if members else {}
        me = next((member for member in members if member.id == host.me), None)
        return GroupView(
            1 if former is None else former.version + 1,
            state,
            me or Member(host.me, host.address, membership.rows),
            members,
            tuple(places.get(member.id, 0) for member in members) if places else (),
            told,
            membership.waits_for,
        )


class ViewChanges:
    """The names whose lines changed after version ``since``."""

    def __init__(self) -> None:
        self._view: GroupView | None = None
        self._since = 0
        self._me = False
        self._members: dict[str, None] = {}
        self._lines: dict[tuple[str, str], None] = {}  # the feature and the name of each

    def note(self, view: GroupView) -> None:
        """A view was made; it follows the one that was noted before."""
        former, self._view = self._view, view
        if former is None:
            self._begin(view.version)
            return
        self._me = self._me or view.me != former.me
        self._members.update(_changed((former.members, _places(former)), (view.members, _places(view))))
        self._lines.update(_changed_lines(former.lines, view.lines))
        if len(self._members) + len(self._lines) > NAMES_MAX:
            self._begin(view.version)

    def take(self) -> ViewChange | None:
        """What clients have not been told yet; None if that is nothing."""
        view = self._view
        if view is None or view.version == self._since:
            return None
        listed = _found(view.members, self._members)
        lines, gone = _told(view.lines, self._lines)
        change = ViewChange(
            self._since,
            view.state,
            view.me if self._me else None,
            tuple(Listed(view.members[at], _places(view)[at]) for at in listed.values()),
            tuple(sorted(self._members.keys() - listed.keys())),
            lines,
            gone,
            view.waits_for,
        )
        self._begin(view.version)
        return change

    def _begin(self, version: int) -> None:
        self._since, self._me = version, False
        self._members, self._lines = {}, {}


def _places(view: GroupView) -> Sequence[int | None]:
    """A membership without positions leaves them out."""
    return view.positions or (None,) * len(view.members)


def _changed(before: Columns, after: Columns) -> dict[str, None]:
    """Names with another line, a new one, or none any more.

    Lines that have not changed are the same objects, and mostly all but one have not: those before and behind it are passed over quickly.
    """
    start = _same(before, after)
    before, after = ([column[start:][::-1] for column in columns] for columns in (before, after))
    end = _same(before, after)
    old, new = ({line[0].name: line for line in zip(*(column[end:] for column in columns), strict=True)} for columns in (before, after))
    return {name: None for name in (*old, *new) if old.get(name) != new.get(name)}


def _same(before: Columns, after: Columns) -> int:
    """How many lines are the same, from the first on."""
    return min(
        next(compress(count(), map(is_not, one, other)), min(len(one), len(other))) for one, other in zip(before, after, strict=True)
    )


def _changed_lines(before: Lines, after: Lines) -> dict[tuple[str, str], None]:
    """The feature and the name of each line that is another one, a new one, or not there any more. Most are the same objects."""
    changed: dict[tuple[str, str], None] = {}
    for feature in (*before, *(each for each in after if each not in before)):
        old, new = before.get(feature, NONE), after.get(feature, NONE)
        if old is not new:
            changed.update(((feature, name), None) for name in old if name not in new)
            changed.update(((feature, name), None) for name, line in new.items() if (was := old.get(name)) is not line and was != line)
    return changed


def _told(lines: Lines, names: Iterable[tuple[str, str]]) -> tuple[dict[str, dict[str, Raw]], dict[str, tuple[str, ...]]]:
    """Those of the lines that are there, and the names of the others."""
    found: dict[str, dict[str, Raw]] = {}
    gone: dict[str, tuple[str, ...]] = {}
    for feature, name in sorted(names):
        line = lines.get(feature, NONE).get(name)
        if line is None:
            gone[feature] = (*gone.get(feature, ()), name)
        else:
            found.setdefault(feature, {})[name] = line
    return found, gone


def _found(lines: Sequence[Member], names: Iterable[str]) -> dict[str, int]:
    """Where those of the names stand that do, in a list that is sorted by name."""
    places = ((name, bisect_left(lines, name, key=_name)) for name in sorted(names))
    return {name: at for name, at in places if at < len(lines) and lines[at].name == name}
