"""The group as a client knows it, kept current by one ``Watch``; no I/O here.

An event says that something changed, a ``Look`` says what the list is now. Events wait until the list is at least as new as they
are: whoever hears that a member joined finds it in ``group.members``. One look is on its way at a time, however many events come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from holdfast.client.buffers import EventBuffer
from holdfast.client.members import Members
from holdfast.client.wire import ITEMS, event_of
from holdfast.errors import HoldfastError
from holdfast.events import Event, EventsLost
from holdfast.host import Member
from holdfast.local.calls import EventItem, GroupView, Watch


class Mirror:
    """The stream of a ``Watch`` and the answers to ``Look``; ``look`` asks for one."""

    def __init__(self, view: GroupView, look: Callable[[], None]) -> None:
        self.watches: WeakSet[EventBuffer] = WeakSet()  # who is not referenced any more does not read any more
        self._look = look
        self._looking = False
        self._waiting: deque[EventItem] = deque()
        self.adopt(view)

    def adopt(self, view: GroupView) -> None:
        """A list that was just read. One from before a newer one says nothing."""
        self.me: Member = view.me
        self.members = Members(view)

    # A stream of the conversation.

    def push(self, item: Any) -> None:
        event: EventItem = ITEMS[Watch](item)
        if event.version <= self.members.version and not self._waiting:
            self._deliver(event)
            return
        self._waiting.append(event)
        self._ask()

    def end(self, error: HoldfastError | None) -> None:
        """The connection is gone. What waited is delivered: it happened."""
        self._looking = False
        self._flush(None)

    # The one who waits for a ``Look``.

    def set_result(self, view: GroupView) -> None:
        self._looking = False
        if view.version >= self.members.version:
            self.adopt(view)
        self._flush(self.members.version)
        if self._waiting:
            self._ask()

    def set_exception(self, error: BaseException) -> None:
        self._looking = False

    def done(self) -> bool:
        return False

    # Those who watch.

    def resume(self, view: GroupView) -> None:
        """Another connection has this view: what happened in between is not known."""
        self._flush(None)
        self.adopt(view)
        self.tell(EventsLost(0))

    def tell(self, event: Event) -> None:
        for watch in list(self.watches):
            watch.put(event)

    def finish(self, error: HoldfastError | None) -> None:
        for watch in list(self.watches):
            watch.end(error)

    def _ask(self) -> None:
        if not self._looking:
            self._looking = True
            self._look()

    def _flush(self, version: int | None) -> None:
        while self._waiting and (version is None or self._waiting[0].version <= version):
            self._deliver(self._waiting.popleft())

    def _deliver(self, item: EventItem) -> None:
        event = event_of(item)
        if event is not None:
            self.tell(event)
