"""The group as clients see it: members, the agent's own state and lines of features, one value with a version; and what changed in it since
an earlier version, which an event of a ``Watch`` carries and a ``Look`` asks for.  docs/local-api.md (streams), H340.

Two views are compared when the second one is made. The names of the lines that differ are kept with the version of their last change, and
are told as the lines are then. A client that has looked in between can apply the same change: it hears again what it knows already.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress, count, takewhile
from operator import attrgetter, is_not
from typing import Any

from msgspec import Raw

from holdfast.agent.feature import ViewLines
from holdfast.host import Host, Member, Standing
from holdfast.local.calls import GroupView, Lines, Listed, ViewChange

# Names whose last change is remembered, members and lines together, the latest ones: 0.3 MiB. A fleet of 1000 that restarts at once fits
# twice. A client that misses more than that asks for the list, which is not much longer.
NAMES_MAX = 2048

Name = tuple[str, str]  # the feature and the name of a line; of a member NO_FEATURE and its name
Key = tuple[int, str, Mapping[str, bytes], tuple[int, ...], str]
Columns = Sequence[Sequence[Any]]  # of a list that is sorted by name; what is in the first one has it

NO_FEATURE = ""
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

    def since(self, state: str, version: int) -> GroupView:
        """With what differs from that version in place of the list, where that is known and is less than half of it: the whole list is
        encoded once for all clients."""
        view = self.view(state)
        change = self.changes.since(version)
        if change is None or 2 * len(change.listed) > len(view.members):
            return view
        return GroupView(view.version, view.state, view.me, (), (), {}, view.waits_for, change)

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
    """The names whose lines changed, with the version of the last change of each, the one that changed longest ago first."""

    def __init__(self) -> None:
        self._view: GroupView | None = None
        self._known_since = 0  # the version from which on all changes are known
        self._told = 0  # the version up to which events have told what changed
        self._me_at = 0  # the version at which the agent itself was last another one
        self._changed_at: dict[Name, int] = {}

    def note(self, view: GroupView) -> None:
        """A view was made; it follows the one that was noted before."""
        former, self._view = self._view, view
        if former is None:
            self._known_since = self._told = self._me_at = view.version
            return
        if view.me != former.me:
            self._me_at = view.version
        for member in _changed((former.members, _places(former)), (view.members, _places(view))):
            self._note((NO_FEATURE, member), view.version)
        for line in _changed_lines(former.lines, view.lines):
            self._note(line, view.version)

    def take(self) -> ViewChange | None:
        """What events have not told yet; None if that is nothing, or is not known any more."""
        view = self._view
        if view is None or view.version == self._told:
            return None
        told, self._told = self._told, view.version
        return self.since(told)

    def since(self, version: int) -> ViewChange | None:
        """What differs between the view of this version and the present one. None: that is not known."""
        view = self._view
        if view is None or not self._known_since <= version <= view.version:
            return None
        members, lines = self._names_since(version)
        listed = _found(view.members, members)
        now, gone = _told(view.lines, lines)
        return ViewChange(
            version,
            view.state,
            view.me if self._me_at > version else None,
            tuple(Listed(view.members[at], _places(view)[at]) for at in listed.values()),
            tuple(sorted(set(members) - listed.keys())),
            now,
            gone,
            view.waits_for,
        )

    def _note(self, name: Name, version: int) -> None:
        changed_at = self._changed_at
        changed_at.pop(name, None)
        changed_at[name] = version
        if len(changed_at) > NAMES_MAX:
            self._known_since = changed_at.pop(next(iter(changed_at)))

    def _names_since(self, version: int) -> tuple[list[str], list[Name]]:
        """Of members, and of lines of features."""
        recent = takewhile(lambda each: self._changed_at[each] > version, reversed(self._changed_at))
        members: list[str] = []
        lines: list[Name] = []
        for name in recent:
            if name[0] == NO_FEATURE:
                members.append(name[1])
            else:
                lines.append(name)
        return members, lines


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


def _changed_lines(before: Lines, after: Lines) -> dict[Name, None]:
    """The feature and the name of each line that is another one, a new one, or not there any more. Most are the same objects."""
    changed: dict[Name, None] = {}
    for feature in (*before, *(each for each in after if each not in before)):
        old, new = before.get(feature, NONE), after.get(feature, NONE)
        if old is not new:
            changed.update(((feature, name), None) for name in old if name not in new)
            changed.update(((feature, name), None) for name, line in new.items() if (was := old.get(name)) is not line and was != line)
    return changed


def _told(lines: Lines, names: Iterable[Name]) -> tuple[dict[str, dict[str, Raw]], dict[str, tuple[str, ...]]]:
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
