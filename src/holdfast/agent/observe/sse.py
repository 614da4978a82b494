"""Server-sent events: what happens, as it happens, to any number of readers.  docs/http.md (/events).

There is one buffer for all readers, bounded; a reader is only a place in it. A reader that is too slow is overtaken by the buffer's end,
is told how many events it missed, and goes on from there. Nothing a reader does slows the agent.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from holdfast.agent.observe.http_answers import EventAnswer
from holdfast.agent.observe.http_guard import Receive, Scope, Send, refuse

KEPT_MAX = 1024  # events kept for readers that come back, or fall behind: some minutes of a large group's troubles
READERS_MAX = 64  # streams at once; each costs a connection and a task
BATCH_MAX = 64  # events per write: a reader that is far behind must not keep the loop
HEARTBEAT_INTERVAL = 15.0  # seconds without a word after which a comment is sent: proxies close what is silent for a minute
STALLED_TIMEOUT = 30.0  # seconds for which a reader may take nothing at all; then its connection is closed
RETRY_MS = 1000  # after a broken connection
PULSE_INTERVAL = 0.25  # seconds between two looks at the leases, for the page; the eye sees no faster change of a number

LINES_PER_SECOND = 1000  # of lists that are sent again and again while a large group changes: each line takes 3 us to write

HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]


class Kept(Struct):
    """One event in the buffer."""

    serial: int
    internal: bool
    answer: EventAnswer
    _frame: bytes = b""

    @property
    def frame(self) -> bytes:
        """Encoded once for all readers, when the first of them asks."""
        if not self._frame:
            self._frame = frame(self.answer, event_id=self.answer.id)
        return self._frame


class Feed:
    """The latest events of one life of one agent."""

    def __init__(self, life: str, *, kept_max: int = KEPT_MAX) -> None:
        self.life = life
        self.last = 0  # serial of the newest
        self.closed = False
        self.readers = 0
        self.lost = 0  # events that readers missed, of all of them together
        self._kept: deque[Kept] = deque(maxlen=kept_max)
        self._waiting: set[asyncio.Event] = set()

    def put(self, at: float, name: str, version: int, fields: dict[str, Any], *, internal: bool) -> None:
        self.last += 1
        self._kept.append(Kept(self.last, internal, EventAnswer(self.id_of(self.last), at, name, internal, version, fields)))
        self._wake()

    def close(self) -> None:
        """No more events: every stream ends."""
        self.closed = True
        self._wake()

    def id_of(self, serial: int) -> str:
        return f"{self.life}:{serial}"

    def serial_of(self, event_id: str) -> int | None:
        """The serial behind an id; None if it is not of this life."""
        life, _, serial = event_id.rpartition(":")
        if life != self.life or not serial.isascii() or not serial.isdigit() or len(serial) > 15:
            return None
        return int(serial) if int(serial) <= self.last else None

    def after(self, serial: int) -> tuple[int, list[Kept]]:
        """How many events after this one are kept no more, and those that are, a batch at most."""
        oldest = self.last - len(self._kept) + 1
        skipped = max(0, serial - oldest + 1)
        batch = [self._kept[index] for index in range(skipped, min(len(self._kept), skipped + BATCH_MAX))]
        return max(0, oldest - serial - 1), batch

    def recent(self, limit: int, *, internal: bool) -> tuple[EventAnswer, ...]:
        found = [kept.answer for kept in reversed(self._kept) if internal or not kept.internal][:limit]
        return tuple(reversed(found))

    def join(self) -> asyncio.Event:
        """A new reader; the event is set whenever there is something new."""
        self.readers += 1
        waiting = asyncio.Event()
        self._waiting.add(waiting)
        return waiting

    def part(self, waiting: asyncio.Event) -> None:
        self.readers -= 1
        self._waiting.discard(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            waiting.set()


def frame(data: Any, *, event: str = "", event_id: str = "") -> bytes:
    """One event on the wire. JSON has no line ends in it, so one ``data`` line is enough."""
    head = (f"event: {event}\n" if event else "") + (f"id: {event_id}\n" if event_id else "")
    return head.encode() + b"data: " + msgspec.json.encode(data) + b"\n\n"


class Lists:
    """One list as the page gets it, encoded once for all readers."""

    def __init__(
        self, version: Callable[[], int], lines: Callable[[], Sequence[Any]], answer: Callable[[], Any], *, event: str = "members"
    ) -> None:
        self.version, self._lines, self._answer, self._event = version, lines, answer, event
        self._frame, self._frame_of = b"", -1

    def __len__(self) -> int:
        return len(self._lines())

    def frame(self) -> bytes:
        version = self.version()
        if version != self._frame_of:
            self._frame, self._frame_of = frame(self._answer(), event=self._event), version
        return self._frame


class Pulse:
    """What the page wants to know several times a second: lists when they changed, leases and health always."""

    def __init__(self, lists: Sequence[Lists], beat: Callable[[], Any], now: Callable[[], float]) -> None:
        self._lists, self._beat, self._now = lists, beat, now
        self._told = [-1] * len(lists)
        self._next_at = [now()] * len(lists)

    def frames(self) -> Iterator[bytes]:
        for number, each in enumerate(self._lists):
            version = each.version()
            if version != self._told[number] and self._now() >= self._next_at[number]:
                self._told[number] = version
                self._next_at[number] = self._now() + len(each) / LINES_PER_SECOND
                yield each.frame()
        yield frame(self._beat(), event="pulse")


class EventStream:
    """One reader: an ASGI application that ends when the reader goes, stalls, or the agent closes."""

    def __init__(
        self,
        feed: Feed,
        *,
        since: str | None,
        internal: bool,
        pulse: Pulse | None = None,
        turn: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """``turn``: waited for before anything is encoded; protocols come first (``budget.Line``)."""
        self._feed, self._internal, self._pulse, self._turn = feed, internal, pulse, turn
        known = None if since is None else feed.serial_of(since)
        self._foreign = since is not None and known is None  # of another life: how much was missed is unknown
        self._serial = feed.last if known is None else known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._feed.readers >= READERS_MAX:
            await refuse(send, 503, "Unavailable", f"{READERS_MAX} streams are open already; close one")
            return
        changed = self._feed.join()
        gone = asyncio.ensure_future(_gone(receive, changed))
        try:
            with suppress(TimeoutError, OSError):
                await self._send(send, {"type": "http.response.start", "status": 200, "headers": HEADERS})
                await self._run(send, changed, gone)
        finally:
            gone.cancel()
            self._feed.part(changed)

    async def _run(self, send: Send, changed: asyncio.Event, gone: asyncio.Future[None]) -> None:
        feed, loop = self._feed, asyncio.get_running_loop()
        await self._write(send, f"retry: {RETRY_MS}\n\n".encode() + self._hello())
        beat_at = loop.time() + (0.0 if self._pulse is not None else HEARTBEAT_INTERVAL)
        while not feed.closed and not gone.done():
            if self._turn is not None:
                await self._turn()
            changed.clear()
            chunk = b"".join(self._news())
            if loop.time() >= beat_at:
                chunk += b": here\n\n" if self._pulse is None else b"".join(self._pulse.frames())
                beat_at = loop.time() + (HEARTBEAT_INTERVAL if self._pulse is None else PULSE_INTERVAL)
            if chunk:
                await self._write(send, chunk)
            if feed.last == self._serial:
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, beat_at - loop.time())):
                        await changed.wait()
        if not gone.done():
            await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})

    def _hello(self) -> bytes:
        """Which life speaks, and where its events stand: a reader of another life knows that it has to look at everything again."""
        feed = self._feed
        hello = frame({"life": feed.life, "last": feed.id_of(self._serial)}, event="hello", event_id=feed.id_of(self._serial))
        return hello + (frame({"count": None}, event="lost") if self._foreign else b"")

    def _news(self) -> Iterator[bytes]:
        lost, batch = self._feed.after(self._serial)
        if lost:
            self._feed.lost += lost
            yield frame({"count": lost}, event="lost")
        for kept in batch:
            if self._internal or not kept.internal:
                yield kept.frame
        if batch:
            self._serial = batch[-1].serial

    async def _write(self, send: Send, body: bytes) -> None:
        await self._send(send, {"type": "http.response.body", "body": body, "more_body": True})

    async def _send(self, send: Send, message: dict[str, Any]) -> None:
        """Waits while the connection's buffer is full, but not for ever."""
        async with asyncio.timeout(STALLED_TIMEOUT):
            await send(message)


async def _gone(receive: Receive, changed: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        """A body, which this server does not want."""
    changed.set()
