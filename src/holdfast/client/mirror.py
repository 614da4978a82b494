"""The group as a client knows it, kept current by one ``Watch``; no I/O here.

An event says that something changed, a ``Look`` says what the list is now. Events wait until the list is at least as new as they
are: whoever hears that a member joined finds it in ``group.members``. One look is on its way at a time, however many events come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakSet

from msgspec.structs import replace

from holdfast.client.buffers import EVENTS_MAX, EventBuffer
from holdfast.client.conversation import Waiter
from holdfast.client.members import Members
from holdfast.client.wire import ITEMS
from holdfast.errors import HoldfastError
from holdfast.events import Event, EventsLost
from holdfast.host import Address, Member, NodeId
from holdfast.local.calls import EventItem, GroupView, Watch
from holdfast.local.news import event_of

UNKNOWN = GroupView(0, "joining", Member(NodeId("", 0), Address("", 0), {}), (), ())  # before an agent said more


class Mirror:
    """The stream of a ``Watch`` and the answers to ``Look``; ``look`` asks for one."""

    def __init__(self, look: Callable[[], None]) -> None:
        self._watches: WeakSet[EventBuffer] = WeakSet()  # who is not referenced any more does not read any more
        self._lock = Lock()  # of the set alone: threads may begin to watch while another one delivers
        self._look = look
        self._looking = False
        self._asked_for = 0  # events that waited when the look was asked for
        self._waiting: deque[EventItem] = deque()
        self._started = False
        self.adopt(UNKNOWN)

    def adopt(self, view: GroupView) -> None:
        self.view = view
        self.me: Member = view.me
        self.members = Members(view)
        self.leaders = {line.name: line for line in view.leaders}

    def become(self, state: str) -> None:
        """The agent cannot say it itself any more."""
        self.adopt(replace(self.view, state=state))

    # A stream of the conversation.

    def push(self, item: Any) -> None:
        event: EventItem = ITEMS[Watch](item)
        if event.version <= self.members.version and not self._waiting:
            self._deliver(event)
            return
        self._waiting.append(event)
        if len(self._waiting) > EVENTS_MAX:
            self._deliver_next()
        self._ask()

    def end(self, error: HoldfastError | None) -> None:
        """The connection is gone. What waited is delivered: it happened."""
        self._looking = False
        self._flush(None)

    # The one who waits for a ``Look``.

    def set_result(self, view: GroupView) -> None:
        """What waited when it was asked for is in it, whatever its version says: nobody asks for the same event twice."""
        self._looking = False
        if view.version >= self.members.version:
            self.adopt(view)
        while self._asked_for:
            self._deliver_next()
        self.update(view)

    def update(self, view: GroupView) -> None:
        """A list that was just read."""
        if view.version >= self.members.version:
            self.adopt(view)
        self._flush(self.members.version)
        if self._waiting:
            self._ask()

    def set_exception(self, error: BaseException) -> None:
        """No list came. What waited happened all the same; the next event asks again."""
        self._looking = False
        self._flush(None)

    def done(self) -> bool:
        return False

    # Those who watch.

    def start(self, view: GroupView) -> None:
        """A ``Watch`` was opened with this view. If it is not the first one, what happened in between is not known."""
        self._flush(None)
        self.adopt(view)
        if self._started:
            self.tell(EventsLost(0))
        self._started = True

    def add(self, watch: EventBuffer) -> None:
        with self._lock:
            self._watches.add(watch)

    def tell(self, event: Event) -> None:
        for watch in self._watching():
            watch.put(event)

    def finish(self, error: HoldfastError | None) -> None:
        for watch in self._watching():
            watch.end(error)

    def _watching(self) -> list[EventBuffer]:
        with self._lock:
            return list(self._watches)

    def _ask(self) -> None:
        if not self._looking:
            self._looking = True
            self._asked_for = len(self._waiting)
            self._look()

    def _flush(self, version: int | None) -> None:
        while self._waiting and (version is None or self._waiting[0].version <= version):
            self._deliver_next()

    def _deliver_next(self) -> None:
        self._asked_for = max(0, self._asked_for - 1)
        self._deliver(self._waiting.popleft())

    def _deliver(self, item: EventItem) -> None:
        event = event_of(item)
        if event is not None:
            self.tell(event)


class Looking:
    """Waits for the answer to a ``Look`` that somebody else waits for as well."""

    def __init__(self, mirror: Mirror, then: Waiter) -> None:
        self._mirror, self._then = mirror, then

    def set_result(self, view: GroupView, /) -> None:
        self._mirror.update(view)
        self._then.set_result(view)

    def set_exception(self, error: Any, /) -> None:
        self._then.set_exception(error)

    def done(self) -> bool:
        return self._then.done()


class Opening(Looking):
    """Waits for the answer to a ``Watch``: its events may come in the same read, so the view is there before anybody is woken."""

    def set_result(self, view: GroupView, /) -> None:
        self._mirror.start(view)
        self._then.set_result(view)
