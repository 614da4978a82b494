"""Views as clients of this agent hear of them: the streams of ``WatchViews``.  docs/local-api.md (streams).

A stream tells events in order, each with how the agent stands by then, so that a client compares deadlines with its own clock while the
agent is silent. That a lease was extended is told every two heartbeats (``BEAT``). A client that does not read loses events and is told how
many; the newest state and the newest view replace all that it missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import isfinite
from typing import Any, NamedTuple, Protocol

from holdfast.events import Changing, ViewChanged, ViewEvent, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.calls import CHANGING, LEASE, LOST, MISSED, NOW, RESTORED, TRIPPED, VIEW, NextView, ViewItem
from holdfast.host import Timer, View, Views, ViewState
from holdfast.local.frame import encoded

WAITING_MAX = 32  # events that one client may be behind: a view of 2,000 members is 16 KiB of references
# Heartbeats between two looks whether the lease was extended. A lease lasts for 6, and the last extension is told within 2: a client whose
# server died knows its whole lease before the agent has another server (views D28).
BEAT = 2.0


class Turns(Protocol):
    """What this needs of the host."""

    def post(self, callback: Callable[[], None]) -> None: ...
    def after(self, delay: float, callback: Callable[[], None]) -> Timer: ...


class Standing(NamedTuple):
    """How this agent stands with its view, as it is told."""

    state: int
    leased_until: float | None
    settled_at: float | None


LOST_STANDING = Standing(ViewState.LOST, None, None)


class ViewStream:
    """A ``WatchViews``."""

    def __init__(self, news: ViewNews, wake: Callable[[], None]) -> None:
        self._news, self._wake = news, wake
        self._events: deque[ViewEvent] = deque()  # that were not told yet
        self._missed = 0
        self._view: View | None = None  # as it was told last
        self._standing: Standing | None = None  # the same; None: nothing was told yet

    def take(self, limit: int) -> list[bytes]:
        """Encoded items, oldest first."""
        items = []
        if self._standing is None:
            items.append(self._item(NOW, self._news.view))
        elif self._missed:
            items.append(self._item(MISSED, self._news.view, missed=self._missed))
        elif not self._events and self._standing != self._news.standing:
            items.append(self._item(LEASE, self._news.view))
        self._missed, self._standing = 0, self._news.standing
        while self._events and len(items) < limit:
            items.append(self._told(self._events.popleft()))
        return [encoded(item) for item in items]

    def close(self) -> None:
        """From anywhere."""
        self._news.forget(self)

    def put(self, events: list[ViewEvent]) -> None:
        """What happened, and perhaps a lease that was extended."""
        if self._standing is None:
            return  # It is in what the client is about to be told first.
        if self._missed or len(self._events) + len(events) > WAITING_MAX:
            lost = len(self._events) + len(events)
            self._missed += lost
            self._news.missed += lost
            self._events.clear()
        else:
            self._events.extend(events)
        if events or self._standing != self._news.standing:
            self._wake()

    def _told(self, event: ViewEvent) -> ViewItem:
        match event:
            case ViewChanged():
                return self._item(VIEW, event.view)
            case ViewRestored():
                return self._item(RESTORED, event.view)
            case Changing():
                return self._item(CHANGING, number=event.number)
            case ViewTripped():
                return self._item(TRIPPED, why=event.why, peer=event.peer)
            case ViewLost():
                return self._item(LOST, why=event.why)

    def _item(self, what: str, view: View | None = None, **more: Any) -> ViewItem:
        """``view`` is told unless it was told last."""
        told = None
        if view is not None and (self._view is None or view.id != self._view.id):
            told, self._view = self._news.between(self._view, view), view
        return ViewItem(what, *self._as_told(), told, **more)

    def _as_told(self) -> Standing:
        """How this agent stands with the view that the client knows. One that a later view has taken the place of has no lease any more,
        and the lease of the later one must not be told beside it."""
        view = self._news.view
        return self._news.standing if view is None or (self._view is not None and self._view.id == view.id) else LOST_STANDING


class ViewNews:
    """How this agent stands with its view, and the streams that tell it. All but ``forget`` belongs into turns."""

    def __init__(self, host: Turns, heartbeat: float) -> None:
        self.standing = LOST_STANDING
        self.view: View | None = None
        self.missed = 0  # events, by all clients together
        self._host, self._period = host, BEAT * heartbeat
        self._views: Views | None = None
        self._streams: dict[ViewStream, None] = {}
        self._fresh: list[ViewEvent] = []
        self._due = False
        self._beat: Timer | None = None
        self._between: tuple[View | None, View, NextView] | None = None
        self.empty: Callable[[], None] = _nothing  # the last stream was closed

    def follow(self, views: Views) -> None:
        """Tell of these from now on."""
        self._views = views
        views.subscribe(self._on_event)

    def __len__(self) -> int:
        return len(self._streams)

    def open(self, wake: Callable[[], None]) -> ViewStream:
        """The caller wakes it when the client can be told something."""
        self._look()
        stream = ViewStream(self, wake)
        self._streams[stream] = None
        if self._beat is None:
            self._beat = self._host.after(self._period, self._on_beat)
        return stream

    def forget(self, stream: ViewStream) -> None:
        self._host.post(lambda: self._forget(stream))

    def between(self, former: View | None, view: View) -> NextView:
        """What makes one view of the other; made once, however many clients are told it."""
        if self._between is None or self._between[0] is not former or self._between[1] is not view:
            self._between = former, view, difference(former, view)
        return self._between[2]

    def _forget(self, stream: ViewStream) -> None:
        if stream not in self._streams:
            return
        del self._streams[stream]
        if not self._streams:
            if self._beat is not None:
                self._beat.cancel()
                self._beat = None
            self._fresh.clear()
            self.empty()

    def _on_event(self, event: ViewEvent) -> None:
        """In the middle of a turn of the machine: how it stands is read when that is over."""
        if not self._streams:
            return
        self._fresh.append(event)
        if not self._due:
            self._due = True
            self._host.post(self._look)

    def _on_beat(self) -> None:
        self._beat = self._host.after(self._period, self._on_beat)
        self._look()

    def _look(self) -> None:
        self._due = False
        if self._views is None:
            return
        self.standing, self.view = standing_of(self._views), self._views.view
        fresh, self._fresh = self._fresh, []
        for stream in self._streams:
            stream.put(fresh)


def standing_of(views: Views) -> Standing:
    leased_until, settled_at = views.leased_until, views.settled_at
    return Standing(int(views.state), leased_until if isfinite(leased_until) else None, settled_at if isfinite(settled_at) else None)


def difference(former: View | None, view: View) -> NextView:
    """The whole view where that is not longer."""
    if former is not None:
        was, names = set(former.members), {member.id.name for member in view.members}
        changed = tuple(member for member in view.members if member not in was)
        gone = tuple(member.id.name for member in former.members if member.id.name not in names)
        if len(changed) + len(gone) < view.size:
            return NextView(view.id, view.servers, False, changed, gone, view.fleet)
    return NextView(view.id, view.servers, True, view.members, (), view.fleet)


def _nothing() -> None:
    """Nothing follows from it."""
