"""What changed in the view since clients were last told: what an event of a ``Watch`` carries.  docs/local-api.md (streams).

Two views are compared when the second one is made. The names of the lines that differ are kept until the next event takes them, and are
told as the lines are then. A client that has looked in between can apply the same change: it hears again what it knows already.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import compress, count
from operator import attrgetter, is_not
from typing import Any

from holdfast.host import Member
from holdfast.local.calls import GroupView, LeaderView, Listed, ViewChange

NAMES_MAX = 2048  # names of one change, members and leaders together; beyond it clients ask for the list, which is not much longer

Columns = Sequence[Sequence[Any]]  # of a list that is sorted by name; what is in the first one has it

_name = attrgetter("name")


class ViewChanges:
    """The names whose lines changed after version ``since``."""

    def __init__(self) -> None:
        self._view: GroupView | None = None
        self._since = 0
        self._me = False
        self._members: dict[str, None] = {}
        self._leaders: dict[str, None] = {}

    def note(self, view: GroupView) -> None:
        """A view was made; it follows the one that was noted before."""
        former, self._view = self._view, view
        if former is None:
            self._begin(view.version)
            return
        self._me = self._me or view.me != former.me
        self._members.update(_changed((former.members, _places(former)), (view.members, _places(view))))
        self._leaders.update(_changed((former.leaders,), (view.leaders,)))
        if len(self._members) + len(self._leaders) > NAMES_MAX:
            self._begin(view.version)

    def take(self) -> ViewChange | None:
        """What clients have not been told yet; None if that is nothing."""
        view = self._view
        if view is None or view.version == self._since:
            return None
        listed, leaders = _found(view.members, self._members), _found(view.leaders, self._leaders)
        change = ViewChange(
            self._since,
            view.state,
            view.me if self._me else None,
            tuple(Listed(view.members[at], _places(view)[at]) for at in listed.values()),
            tuple(sorted(self._members.keys() - listed.keys())),
            tuple(view.leaders[at] for at in leaders.values()),
            tuple(sorted(self._leaders.keys() - leaders.keys())),
            view.waits_for,
        )
        self._begin(view.version)
        return change

    def _begin(self, version: int) -> None:
        self._since, self._me = version, False
        self._members, self._leaders = {}, {}


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


def _found(lines: Sequence[Member] | Sequence[LeaderView], names: Iterable[str]) -> dict[str, int]:
    """Where those of the names stand that do, in a list that is sorted by name."""
    places = ((name, bisect_left(lines, name, key=_name)) for name in sorted(names))
    return {name: at for name, at in places if at < len(lines) and lines[at].name == name}
