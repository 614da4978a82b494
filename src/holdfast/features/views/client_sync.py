# Made by scripts/spell.py from src/holdfast/features/views/client.py: edit that file and run the script.
"""Views for a program: who is in the view, and how long that may be counted on.  views 10; docs/views.md."""

from __future__ import annotations

import os
from math import inf
from types import TracebackType
from typing import Any

from holdfast.client import checks
from holdfast.client.buffers import EventBuffer, Watchers
from holdfast.client.checks import Seconds
from holdfast.client.sync.link import Link
from holdfast.client.sync.streams import Opened
from holdfast.client.threads.connection import Connection
from holdfast.client.threads.readers import Reader
from holdfast.client.threads.tasks import News
from holdfast.client.wire import CALL_TIMEOUT, ITEMS
from holdfast.errors import HoldfastError, Unavailable
from holdfast.events import Event, EventsLost
from holdfast.features.views import calls
from holdfast.features.views.client_base import ViewMirror, checked_reason, not_ready
from holdfast.host import View
from holdfast.net.clock import now


class ViewWatch(EventBuffer, Reader[Event]):
    """Events of views, in order, from the call of ``watch`` on."""

    def __init__(self, stream: ViewStream) -> None:
        super().__init__()
        self._stream = stream  # as long as this is read, this agent takes part


class ViewStream(Opened[Event]):
    """One ``WatchViews``, and those in this process who wait for what it says."""

    call = calls.WatchViews

    def __init__(self) -> None:
        super().__init__()
        self.mirror = ViewMirror()
        self.news = News()
        self._watchers = Watchers()

    def open(self, connection: Connection) -> None:
        self._connection = connection
        self._serial = connection.open_stream(self.call, (), self)

    def push(self, item: Any) -> None:
        if not self.over:
            for event in self.mirror.follow(ITEMS[self.call](item)):
                self._watchers.tell(event)
            self.news.tell()

    def missed(self) -> None:
        """Another agent goes on with it, in another life."""
        self.mirror.forget()
        self._watchers.tell(EventsLost(0))
        self.news.tell()

    def end(self, error: HoldfastError | None) -> None:
        super().end(error)
        self._on_end()

    def finish(self, error: HoldfastError | None) -> None:
        super().finish(error)
        self._on_end()

    def watch(self) -> ViewWatch:
        watch = ViewWatch(self)
        self._watchers.add(watch)
        if self.over:
            watch.end(self._error)
        return watch

    def check(self) -> None:
        """Raises what ended it."""
        if self.over:
            if self._error is None:
                raise Unavailable("views: they were closed, or the group was left; call `group.views()` again")
            raise type(self._error)(*self._error.args)

    def _on_end(self) -> None:
        """A lease that a dead agent had told stands until its deadline. One that this process gave up does not."""
        if self.over and self._error is None:
            self.mirror.forget()
        if self.over:
            self._watchers.finish(self._error)
        self.news.tell()


class GroupViews:
    """The agreed view of this agent. Made by ``group.views()``: from then on this agent takes part in views, until ``close``, or the end
    of the block if it is entered with ``with``.

    Every member of a view can reach every other one, or another view comes. A network that is cut makes several views at once, one on
    each side. ``leased`` says whether this process may count on its view now: it reads the clock of this machine and nothing else, so it
    is right also when the agent is dead or this process was stopped for a while. ``settled`` says in addition that all members that this
    view left out have stopped to count on theirs.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self._stream = link.open(ViewStream())

    def __enter__(self) -> GroupViews:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if os.getpid() == self._link.pid:  # A child that runs out of its parent's block leaves nothing.
            self.close()

    @property
    def view(self) -> View | None:
        """The view that this agent is in, or None while that is lost. Never waits."""
        standing = self._mirror.standing
        return standing.view if standing.leased else None

    @property
    def state(self) -> str:
        """Of this agent: "stable", "changing" (another view will come) or "lost" (there is no view to count on). Never waits."""
        return self._mirror.standing.word

    @property
    def leased(self) -> bool:
        """Whether this process may count on its view now."""
        return self._mirror.standing.leased

    @property
    def settled(self) -> bool:
        """Whether the view is leased, stable, and old enough that no member outside of it counts on another view with a member of it."""
        return self._mirror.standing.settled

    def ready(self, timeout: Seconds | None = None) -> View:
        """Wait until there is a view, and return it. Raises ``Timeout`` after ``timeout`` seconds, ``ConfigError`` that names the setting
        if the group has no view servers, ``AgentLost`` when the agent is lost."""
        limit, stream = checks.patience(timeout), self._stream
        self._link.check_pid()
        if not stream.news.until(self._decided, inf if limit is None else now() + limit):
            raise not_ready(stream.mirror, limit or 0.0)
        stream.check()
        view = stream.mirror.standing.view
        assert view is not None
        return view

    def watch(self) -> ViewWatch:
        """Events from now on: an iterator of ``ViewChanged``, ``Changing``, ``ViewLost``, ``ViewRestored`` and ``ViewTripped``.

        When one is read, ``view`` is at least as new as it. A reader that falls more than 1024 events behind, or a process that does not
        read what its agent says, reads ``EventsLost(n)``; then ``view`` says what is. Ends when these views are closed, and raises
        ``AgentLost`` when the agent is lost (with ``reconnect``: ``EventsLost(0)``, and it goes on)."""
        self._link.check_pid()
        return self._stream.watch()

    def trip(self, reason: str) -> None:
        """Believe the present view no more, because a member of it was found to be out of reach. On return this view is lost; another one
        comes. Raises ``Unavailable`` if this agent did it too lately; the text says when it may again."""
        told = checked_reason(reason)
        self._link.check_pid()
        self._stream.check()
        former = self._stream.mirror.standing.view
        self._link.call(calls.TripView, told)
        self._stream.news.until(lambda: self._stream.over or not self._stream.mirror.standing.counts_on(former), now() + CALL_TIMEOUT)

    def close(self) -> None:
        """Do not take part any more, as far as this object is concerned. A second call does nothing."""
        self._link.check_pid()
        if not self._stream.over:
            self._stream.close()

    def __repr__(self) -> str:
        """Works in every process and state: it is for logs and debuggers."""
        standing = self._stream.mirror.standing
        view = f", view {standing.view.id} of {standing.view.size}" if standing.leased and standing.view is not None else ""
        return f"<GroupViews: {'closed' if self._stream.over else standing.word}{view}>"

    @property
    def _mirror(self) -> ViewMirror:
        self._link.check_pid()
        return self._stream.mirror

    def _decided(self) -> bool:
        return self._stream.over or self._stream.mirror.standing.leased
