"""What both spellings of a views client share: the view as this process knows it, and reasons to trip.  views 10; docs/views.md.

Deadlines are compared with the clock whenever they are asked for (F9): a view counts as lost when its lease is over, also while the agent
is silent, stopped or dead.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from holdfast.client import checks
from holdfast.errors import ConfigError, Timeout, shown
from holdfast.events import Changing, Event, EventsLost, ViewChanged, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.calls import CHANGING, LOST, MISSED, NOW, RESTORED, TRIPPED, VIEW, WHY_CHARS_MAX, NextView, ViewItem
from holdfast.host import View, ViewState
from holdfast.net.clock import now


class Standing(NamedTuple):
    """How the agent stands with its view, as it said last. One object, because other threads read it."""

    state: ViewState
    leased_until: float
    settled_at: float
    view: View | None

    @property
    def leased(self) -> bool:
        return self.view is not None and self.state is not ViewState.LOST and now() < self.leased_until

    @property
    def settled(self) -> bool:
        """Compared with the clock from the settling to the lease: what passes meanwhile only shortens it."""
        return self.state is ViewState.STABLE and now() >= self.settled_at and self.leased

    @property
    def word(self) -> str:
        return self.state.name.lower() if self.leased else "lost"

    def counts_on(self, view: View | None) -> bool:
        return self.leased and view is not None and self.view is not None and self.view.id == view.id


UNKNOWN = Standing(ViewState.LOST, -inf, inf, None)  # before the agent said more


class ViewMirror:
    """The view as a client knows it, kept current by one ``WatchViews`` after the other. No I/O."""

    def __init__(self) -> None:
        self.standing = UNKNOWN
        self.why = ""  # it was lost last, or tripped
        self._view: View | None = None  # as it was told last, also while it is lost: the next one may be told as what differs

    def follow(self, item: ViewItem) -> list[Event]:
        """What the item says, as events. The standing is as new as they are."""
        former = self._view
        if item.view is not None:
            self._view = advanced(former, item.view)
        self.standing = Standing(
            ViewState(item.state),
            -inf if item.leased_until is None else item.leased_until,
            inf if item.settled_at is None else item.settled_at,
            self._view,
        )
        self.why = item.why or self.why
        return self._events(item, former)

    def forget(self) -> None:
        """Another agent will say how it stands; what was known of the one before does not count."""
        self.standing, self._view = UNKNOWN, None

    def _events(self, item: ViewItem, former: View | None) -> list[Event]:
        view = self._view
        if item.what == MISSED:
            return [EventsLost(item.missed)]
        if item.what == CHANGING:
            return [Changing(item.number)]
        if item.what == LOST:
            return [ViewLost(item.why)]
        if item.what == TRIPPED:
            return [ViewTripped(item.peer, item.why)]
        if view is None:
            return []
        if item.what == RESTORED:
            return [ViewRestored(view)]
        # The first item of a stream tells a view that is there already: to this reader it is a change.
        return [changed(former, view)] if item.what == VIEW or (item.what == NOW and view is not former) else []


def advanced(former: View | None, following: NextView) -> View:
    """The view after it."""
    members = {} if following.whole or former is None else {member.id.name: member for member in former.members}
    for name in following.gone:
        members.pop(name, None)
    members.update((member.id.name, member) for member in following.members)
    return View(following.id, following.servers, tuple(sorted(members.values())), following.fleet)


def changed(former: View | None, view: View) -> ViewChanged:
    was = set() if former is None else {member.id for member in former.members}
    are = {member.id for member in view.members}
    return ViewChanged(view, tuple(sorted(are - was)), tuple(sorted(was - are)))


def not_ready(mirror: ViewMirror, limit: float) -> Timeout:
    why = f": {mirror.why}" if mirror.why else ""
    return Timeout(f"views: this agent has no view after {limit:g} s{why}; `holdfast views` says which servers it tries")


def checked_reason(value: str) -> str:
    reason = checks.text(value, "reason")
    if not reason.isprintable() or not 1 <= len(reason) <= WHY_CHARS_MAX or checks.utf8(reason) is None:
        raise ConfigError(f"reason: {shown(value)}; accepted are 1 to {WHY_CHARS_MAX} characters of printable text")
    return reason
