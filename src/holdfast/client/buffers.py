"""What waits for a reader: bounded, so that a stream without a reader costs a little memory and nothing else."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from holdfast.errors import AgentLost, HoldfastError, shown
from holdfast.events import Event, EventsLost

T = TypeVar("T")

EVENTS_MAX = 1024  # per watch: the news of a thousand members that come or go at once


class Buffer(Generic[T]):
    """Items in order, and how the stream ended. Subclasses say what happens to what does not fit, and who is woken."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._over = False
        self._error: HoldfastError | None = None

    def end(self, error: HoldfastError | None) -> None:
        """Nothing more will come; what is there can still be read."""
        if not self._over:
            self._over, self._error = True, error
            self._wake()

    @property
    def over(self) -> bool:
        return self._over

    def __repr__(self) -> str:
        name = getattr(self, "about", "")  # what it is a stream of, if that has a name
        about = f" of {shown(name)}" if name else ""
        return f"<{type(self).__name__}{about}: {len(self._items)} to read{', over' if self._over else ''}>"

    def _wake(self) -> None:
        """A reader that waits for an item may look again."""
        raise NotImplementedError


class EventBuffer(Buffer[Event]):
    """Events; where some are missing stands ``EventsLost``."""

    def put(self, event: Event) -> None:
        if self._over:
            return
        items = self._items
        if len(items) < EVENTS_MAX:
            items.append(event)
        else:
            more = event.count if isinstance(event, EventsLost) else 1
            last = items[-1]
            if isinstance(last, EventsLost):
                items[-1] = EventsLost(last.count + more)
            else:
                items.append(EventsLost(more))
        self._wake()


class Watchers:
    """Those who read the same events."""

    def __init__(self) -> None:
        self._watches: WeakSet[EventBuffer] = WeakSet()  # what is not referenced any more is not read any more
        self._lock = Lock()  # of the set alone: threads may begin to watch while another one delivers

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


class Kept(Buffer[T], Generic[T]):
    """A stream of its own on the connection, which another connection may go on with."""

    keep = False

    def end(self, error: HoldfastError | None) -> None:
        """The connection's word. A reader that finds the agent again goes on."""
        if not (self.keep and isinstance(error, AgentLost)):
            super().end(error)

    def finish(self, error: HoldfastError | None) -> None:
        """The group's word."""
        super().end(error)

    def push(self, item: Any) -> None:
        """What the agent said."""
        raise NotImplementedError

    def missed(self) -> None:
        """Another connection carries it from now on: what happened in between is not known."""
        raise NotImplementedError
