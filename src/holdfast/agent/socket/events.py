"""The event hub: every subscriber has a buffer of its own, and none of them is waited for.  Spec: foundation 5, STYLE 4.

A machine emits in the middle of a turn, so all that happens there is one append. The rest follows when the turn is over: the event
gets the version that the view has by then, is encoded once for all, and goes into the buffers. The first event for users carries what
changed in the view. Who does not read loses the oldest, is told once how many (``EventsLost``), and goes on with the newest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import Raw

from holdfast.events import Event, EventsLost, Internal
from holdfast.local.calls import EventItem, ViewChange
from holdfast.local.news import encoded_fields, name_of

BUFFER_MAX = 1024  # events a subscriber may be behind: a fleet of 1000 that restarts at once
SUBSCRIBERS_MAX = 4096  # one per connection and page that is allowed to be there, with room

_encode = msgspec.msgpack.Encoder().encode


class Record:
    """One event as all subscribers get it."""

    __slots__ = ("_item", "at", "change", "event", "version")

    def __init__(self, event: Event, at: float, version: int, change: ViewChange | None = None) -> None:
        self.event, self.at, self.version, self.change = event, at, version, change
        self._item: bytes | None = None

    @property
    def item(self) -> bytes:
        """The bytes of its ``EventItem``, made when the first subscriber reads it."""
        if self._item is None:
            fields = Raw(encoded_fields(self.event))
            self._item = _encode(EventItem(self.version, self.at, name_of(self.event), fields, self.change))
        return self._item


class Subscription:
    """What one subscriber has not read yet."""

    def __init__(self, hub: EventHub, wake: Callable[[], None], *, internal: bool, buffer_max: int) -> None:
        self.internal = internal
        self._hub, self._wake, self._buffer_max = hub, wake, buffer_max
        self._records: deque[Record] = deque()
        self._lost = 0
        self._awake = False  # told that there is something, and has not read since

    def __len__(self) -> int:
        return len(self._records) + (self._lost > 0)

    def take(self, limit: int) -> list[Record]:
        """The oldest ones, at most so many; ``EventsLost`` first if some are missing."""
        taken: list[Record] = []
        if self._lost:
            taken.append(self._hub.missing(self._lost))
            self._lost = 0
        while self._records and len(taken) < limit:
            taken.append(self._records.popleft())
        self._awake = bool(self._records)
        return taken

    def close(self) -> None:
        self._records.clear()
        self._hub.forget(self)

    def put(self, record: Record) -> None:
        if len(self._records) >= self._buffer_max:
            self._records.popleft()
            self._lost += 1
            self._hub.lost += 1
        self._records.append(record)

    def tell(self) -> None:
        """Once, until it reads: a subscriber that is slow is not woken again and again."""
        if self._records and not self._awake:
            self._awake = True
            self._wake()


def _nothing() -> ViewChange | None:
    """These events are not about a view."""
    return None


class EventHub:
    """Hands events to those that watch. While there are no ``subscribers`` an agent publishes nothing here."""

    def __init__(
        self,
        version: Callable[[], int],
        wall: Callable[[], float],
        soon: Callable[[Callable[[], None]], object],
        *,
        changes: Callable[[], ViewChange | None] = _nothing,
        buffer_max: int = BUFFER_MAX,
    ) -> None:
        """``version`` is that of the view and ``changes`` what is new in it, each time since the last; ``soon`` runs something after the
        present turn (``loop.call_soon``)."""
        assert buffer_max >= 1
        self._version, self._wall, self._soon, self._buffer_max = version, wall, soon, buffer_max
        self._changes = changes
        self.subscribers: dict[Subscription, None] = {}
        self._fresh: list[tuple[Event, float]] = []
        self.lost = 0  # of all subscribers together

    def __len__(self) -> int:
        return len(self.subscribers)

    @property
    def full(self) -> bool:
        return len(self.subscribers) >= SUBSCRIBERS_MAX

    def publish(self, event: Event) -> None:
        """Called inside turns: it must cost next to nothing, and raises nothing."""
        if not self._fresh:
            self._soon(self.distribute)
        self._fresh.append((event, self._wall()))
        if len(self._fresh) >= self._buffer_max:
            self.distribute()  # One turn that emits more than a buffer holds: no need to keep more than that.

    def subscribe(self, wake: Callable[[], None], *, internal: bool = False) -> Subscription:
        """``wake`` is called when there is something to read, and not again before it was read."""
        assert not self.full
        self.distribute()  # What happened before is for those who were there.
        if not self.subscribers:
            self._version()
            self._changes()  # What changed while no client listened is in the view that the first one begins with.
        subscription = Subscription(self, wake, internal=internal, buffer_max=self._buffer_max)
        self.subscribers[subscription] = None
        return subscription

    def forget(self, subscription: Subscription) -> None:
        self.subscribers.pop(subscription, None)

    def missing(self, count: int) -> Record:
        return Record(EventsLost(count), self._wall(), self._version())

    def distribute(self) -> None:
        """Give out what was emitted since the last time."""
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, []
        version = self._version()
        for event, at in fresh:
            internal = isinstance(event, Internal)
            record = Record(event, at, version, None if internal else self._changes())  # The first of a turn takes all of it.
            for subscriber in self.subscribers:
                if subscriber.internal or not internal:
                    subscriber.put(record)
        for subscriber in tuple(self.subscribers):
            subscriber.tell()
