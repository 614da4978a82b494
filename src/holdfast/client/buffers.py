"""What waits for a reader: bounded, so that a reader who never comes costs a little memory and nothing else."""

from __future__ import annotations

from collections import deque
from typing import Any, Generic, TypeVar

from msgspec import Struct

from holdfast.client.wire import ITEMS
from holdfast.errors import AgentLost, HoldfastError, shown
from holdfast.events import Event, EventsLost
from holdfast.features.mail.calls import MessageItem, Messages
from holdfast.features.tickets.calls import WatchTickets
from holdfast.host import NodeId
from holdfast.local.news import event_of

T = TypeVar("T")

EVENTS_MAX = 1024  # per watch: the news of a thousand members that come or go at once
MESSAGES_MAX = 256  # per stream: 8 MiB of the longest


class Received(Struct, frozen=True):
    """A message that came for this process."""

    sender: NodeId
    data: bytes
    topic: str  # "" if it was sent to this member alone
    lost: int = 0  # at least so many went missing just before it, because they were not read in time


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
        about = next((f" of {shown(each)}" for each in (getattr(self, "topic", ""), getattr(self, "pool", "")) if each), "")
        return f"<{type(self).__name__}{about}: {len(self._items)} to read{', over' if self._over else ''}>"

    def _wake(self) -> None:
        """Whoever waits for an item may look again."""
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


class Kept(Buffer[T], Generic[T]):
    """A stream of its own on the connection, which another connection may go on with."""

    keep = False

    def end(self, error: HoldfastError | None) -> None:
        """The connection's word. Whoever finds the agent again goes on."""
        if not (self.keep and isinstance(error, AgentLost)):
            super().end(error)

    def finish(self, error: HoldfastError | None) -> None:
        """The group's word."""
        super().end(error)

    def push(self, item: Any) -> None:
        """What the agent said."""
        raise NotImplementedError

    def missed(self) -> None:
        """The connection was another one for a while: nobody knows what happened."""
        raise NotImplementedError


class PoolBuffer(EventBuffer, Kept[Event]):
    """Events of one pool of tickets."""

    def push(self, item: Any) -> None:
        event = event_of(ITEMS[WatchTickets](item))
        if event is not None:
            self.put(event)

    def missed(self) -> None:
        self.put(EventsLost(0))


class MessageBuffer(Kept[Received]):
    """Messages; the first one after a gap says how many are missing."""

    def __init__(self) -> None:
        super().__init__()
        self._lost = 0

    def push(self, item: Any) -> None:
        message: MessageItem = ITEMS[Messages](item)
        self._lost += message.lost
        if self._over or len(self._items) >= MESSAGES_MAX:
            self._lost += 1
            return
        self._items.append(Received(message.sender, message.payload, message.topic, self._lost))
        self._lost = 0
        self._wake()

    def missed(self) -> None:
        self._lost += 1
