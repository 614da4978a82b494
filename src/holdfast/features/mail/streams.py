"""Messages for clients: what was sent to this agent alone, and rumours of topics.  docs/local-api.md (Messages, Send, Cast).

Every stream has a bounded queue of its own. A letter that no queue has room for is refused, and its sender knows; a rumour has no sender
to tell, so the oldest one goes and the client reads how many it missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from holdfast.errors import ConfigError, shown
from holdfast.features.mail.calls import MessageItem
from holdfast.features.mail.protocol.messages import Outcome
from holdfast.host import NodeId
from holdfast.kit.broadcast import PAYLOAD_BYTES_MAX, TOPIC_BYTES_MAX, Broadcast, RumourId
from holdfast.local.frame import encoded

QUEUE_MAX = 1024  # messages of one stream
QUEUE_BYTES_MAX = 4 << 20  # of payload in them: a hundred of the largest letters
PREFIX = "u:"  # topics of users; machines have topics too, and no client may speak in their name
USER_TOPIC_BYTES_MAX = TOPIC_BYTES_MAX - len(PREFIX)
LETTERS = ""  # the topic of what was sent to this agent alone


class MessageStream:
    """The queue of one ``Messages``."""

    def __init__(self, hub: MessageHub, topic: str, owner: object, wake: Callable[[], None]) -> None:
        self.topic, self.owner = topic, owner
        self._hub, self._wake = hub, wake
        self._queue: deque[MessageItem] = deque()
        self._bytes = 0
        self._lost = 0

    def put(self, item: MessageItem) -> None:
        """What does not fit pushes out the oldest."""
        self._queue.append(item)
        self._bytes += len(item.payload)
        while len(self._queue) > QUEUE_MAX or self._bytes > QUEUE_BYTES_MAX:
            self._bytes -= len(self._queue.popleft().payload)
            self._lost += 1
            self._hub.lost += 1
        self._wake()

    def has_room(self, payload: bytes) -> bool:
        return len(self._queue) < QUEUE_MAX and self._bytes + len(payload) <= QUEUE_BYTES_MAX

    def take(self, limit: int) -> list[bytes]:
        taken = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
        self._bytes -= sum(len(item.payload) for item in taken)
        if taken and self._lost:
            first, self._lost = MessageItem(taken[0].sender, taken[0].topic, taken[0].payload, self._lost), 0
            taken[0] = first
        return [encoded(item) for item in taken]

    def close(self) -> None:
        self._queue.clear()
        self._hub.forget(self)


class MessageHub:
    """All streams of messages of an agent."""

    def __init__(self, broadcast: Broadcast, post: Callable[[Callable[[], None]], None]) -> None:
        self._broadcast, self._post = broadcast, post
        self._streams: dict[str, dict[MessageStream, None]] = {}
        self.lost = 0

    def open(self, topic: str, owner: object, wake: Callable[[], None]) -> MessageStream:
        """In a turn: the first listener of a topic tells the group. What the owner casts itself is not told to it. Raises ConfigError."""
        if topic != LETTERS:
            check_topic(topic)
            if topic not in self._streams:
                self._broadcast.on_rumour(PREFIX + topic, self._on_rumour)
        stream = MessageStream(self, topic, owner, wake)
        self._streams.setdefault(topic, {})[stream] = None
        return stream

    def forget(self, stream: MessageStream) -> None:
        """From anywhere."""
        streams = self._streams.get(stream.topic, {})
        streams.pop(stream, None)
        if not streams:
            self._post(partial(self._leave, stream.topic))

    def cast(self, topic: str, payload: bytes, me: NodeId, owner: object) -> None:
        """A rumour begins; the other clients of this agent hear it as well. Raises ConfigError."""
        check_topic(topic)
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise ConfigError(f"payload: {len(payload)} bytes; accepted are at most {PAYLOAD_BYTES_MAX}")
        self._broadcast.cast(PREFIX + topic, payload)
        self._hear(MessageItem(me, topic, payload), owner)

    def deliver(self, sender: NodeId, payload: bytes) -> Outcome:
        """A letter: to every client here that listens and has room."""
        streams = tuple(self._streams.get(LETTERS, ()))
        free = [stream for stream in streams if stream.has_room(payload)]
        for stream in free:
            stream.put(MessageItem(sender, LETTERS, payload))
        if free:
            return Outcome.QUEUED
        return Outcome.FULL if streams else Outcome.NOBODY

    def _on_rumour(self, rumour: RumourId, payload: bytes) -> None:
        self._hear(MessageItem(rumour.origin, rumour.topic.removeprefix(PREFIX), payload), None)

    def _hear(self, item: MessageItem, caster: object) -> None:
        for stream in tuple(self._streams.get(item.topic, ())):
            if caster is None or stream.owner is not caster:
                stream.put(item)

    def _leave(self, topic: str) -> None:
        if not self._streams.get(topic, {None: None}):
            del self._streams[topic]
            if topic != LETTERS:
                self._broadcast.leave(PREFIX + topic)


def check_topic(topic: str) -> None:
    size = len(topic.encode())
    if not (topic.isprintable() and 1 <= size <= USER_TOPIC_BYTES_MAX):
        raise ConfigError(f"topic: {shown(topic)}; accepted are 1 to {USER_TOPIC_BYTES_MAX} bytes of printable text")
