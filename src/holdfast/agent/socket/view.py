"""The group as clients see it: members, the agent's own state and lines of features, one value with a version.  docs/local-api.md."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.agent.feature import ViewLines
from holdfast.agent.socket.changes import ViewChanges
from holdfast.host import Host, Member, Standing
from holdfast.local.calls import GroupView, Lines

Key = tuple[int, str, Mapping[str, bytes], tuple[int, ...], str]


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
