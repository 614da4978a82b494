"""One client: its calls come in, answers and streams go out.  docs/local-api.md.

Bytes become calls with one typed decode. What only reads the agent's state is answered at once; what enters a protocol has a turn of the
host (F10), one for all calls that came together. Answers are collected and leave in one write per batch. A client that does not read is
paused: none of its calls is read, its events wait in their buffer, and nothing it was granted is extended. A client that sends more than
one turn has time for waits in line, unread, while protocols and other clients have theirs (``budget.Slices``).
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import monotonic
from typing import Any, Protocol, cast

from holdfast.agent.grants.bodies import Body, peer_body, peer_pid, peer_user
from holdfast.agent.grants.granted import Turns
from holdfast.agent.grants.grants import Grants
from holdfast.agent.socket.budget import Slices
from holdfast.agent.socket.table import UNREADABLE, Table, head_of
from holdfast.agent.socket.unread import Reading, unread_bytes
from holdfast.errors import ConfigError, HoldfastError, Unavailable
from holdfast.local import frame as frames
from holdfast.local.calls import Call, GrantItem, Hello
from holdfast.local.frame import ANSWER_BYTES_MAX, CALL_BYTES_MAX, Frames, FrameTooLong

GREETING_TIMEOUT = 10.0  # seconds from the connection to Hello; a machine that stands still for some of them is no reason to hang up
LINGER = 5.0  # seconds in which a client that is sent away may read why
CALLS_MAX = 1024  # calls of one client that wait for a protocol
STREAMS_MAX = 512  # of one client: as many grants as it may have, and as much again
SERIAL_MAX = (1 << 53) - 1
HIGH_BYTES = 256 * 1024  # written and not taken by the kernel yet: the client is paused
LOW_BYTES = 64 * 1024  # and goes on
BACKLOG_BYTES_MAX = 2 * ANSWER_BYTES_MAX  # answers to calls that were under way when it stopped reading; two of the longest frames
ITEMS_BATCH = 64  # items of a stream that are written before the next stream has its turn
ITEMS_MAX = 256  # items of all streams of one client in one turn of the loop
READ_BYTES_MAX = 16 * 1024  # taken from the kernel at once: 500 short calls, a few milliseconds
ENTER_MAX = 16  # calls that enter a protocol in one turn, of one client: any of them may take a tenth of a millisecond

UNREADABLE_MAX = 1024  # calls of one connection that cannot be read: one that goes on so speaks another language


class Stream(Protocol):
    """What follows the answer to a call."""

    def take(self, limit: int) -> Sequence[bytes]:
        """Encoded items, oldest first."""

    def close(self) -> None: ...


Handler = Callable[["Connection", Any], None]  # raises what the client is to be told


class TurnsNow(Turns, Protocol):
    """A host that need not be waited for."""

    def enter(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """As if each had been posted, in a turn that is now."""


class Service(Protocol):
    """What a connection needs of its server."""

    turns: TurnsNow
    slices: Slices
    read_buffer: bytearray  # of all connections: what was read into it is taken out at once
    grants: Grants
    counts: Counter[str]
    connections: dict[int, Connection]
    watched: dict[int, Connection]
    table: Table

    def admit(self, connection: Connection) -> int:
        """The number of its session. Raises Unavailable."""


class Connection(asyncio.BufferedProtocol):
    """A session: what was granted on it ends with it, and not before F14 allows."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._table = service.table
        self._at_once = service.table.at_once
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._frames = Frames(CALL_BYTES_MAX)
        self._unread = b""  # not cut into frames yet
        self._bodies: deque[bytes] = deque()  # frames that wait for their turn, or because the client does not read
        self._out: list[bytes] = []
        self._out_bytes = 0
        self.sent = 0  # bytes of all answers and items, written or about to be
        self._reading = Reading()
        self._flush_due = False
        self._paused = False
        self._waiting_for_turn = False
        self._ending = False
        self._last_serial = 0
        self._unreadable = 0  # calls that could not be read
        self._entering: list[Callable[[], None]] = []  # calls of one read that need a turn
        self._waiting: set[int] = set()  # serials of calls that are under way
        self._streams: dict[int, Stream | None] = {}  # None: a grant, whose items are pushed by the law
        self._ready: dict[int, Stream] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._body: Body | None = None
        self._asked_for_body = False
        self.number = 0  # of the session; 0: not admitted
        self.pid = 0
        self.user = -1  # not known
        self.program = ""
        self.clock = float("inf")  # when it greeted; before that nothing is believed about its process
        self.greeted = False

    # asyncio.BufferedProtocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_BYTES, LOW_BYTES)
        self.pid = peer_pid(transport.get_extra_info("socket"))
        self.user = peer_user(transport.get_extra_info("socket"))
        self._timer = self._loop.call_later(GREETING_TIMEOUT, self._on_silence)
        try:
            self.number = self._service.admit(self)
        except Unavailable as error:
            self.end_all("Unavailable", str(error))

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._service.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        if not self._ending:
            data = bytes(memoryview(self._service.read_buffer)[:nbytes])
            self._unread = self._unread + data if self._unread else data
            self._service.slices.enter(self)

    def pause_writing(self) -> None:
        self._paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._paused = False
        if self._transport is None or self._ending:
            return
        if not self._waiting_for_turn:
            self._transport.resume_reading()
        self._service.turns.post(partial(self._service.grants.readable, self))
        self._service.slices.enter(self)

    def eof_received(self) -> bool:
        """A client that hangs up half-way is gone: no process is left that could say "stopped"."""
        self._ending = True
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._ending = True
        if self._timer is not None:
            self._timer.cancel()
        self._service.slices.forget(self)
        self._unread = b""
        self._bodies.clear()
        self._out.clear()
        self._ready.clear()
        self._waiting.clear()
        for stream in self._streams.values():
            if stream is not None:
                stream.close()
        self._streams.clear()
        self._service.connections.pop(self.number, None)
        self._service.turns.post(partial(self._service.grants.disconnected, self))

    # A session, for the law of grants.

    @property
    def connected(self) -> bool:
        return not self._ending

    @property
    def reads(self) -> bool:
        return not (self._ending or self._paused)

    def follows(self, sent: int) -> bool:
        if self._transport is None:
            return False
        kernel = unread_bytes(self._transport.get_extra_info("socket").fileno())
        return self._reading.follows(sent, self.sent, self._out_bytes + self._transport.get_write_buffer_size() + kernel)

    def push(self, serial: int, item: GrantItem) -> None:
        if serial in self._streams:
            self._send(frames.pushed(serial, frames.encoded(item)))
            if item.what == "granted":
                self._write()  # Its client waits for nothing else, and this turn may have much to say to others before it ends.

    def end(self, serial: int, error: str, text: str) -> None:
        if serial in self._streams:
            self.close_stream(serial)
            self._send(frames.closed(serial, error, text))

    def body(self) -> Body | None:
        if not self._asked_for_body and self._transport is not None:
            self._asked_for_body = True
            self._body = peer_body(self._transport.get_extra_info("socket"), self.clock)
            if self._body is not None:
                self._service.watched[self.number] = self
                self._body.watch(self._on_death)
        return self._body

    def forget(self) -> None:
        self._service.watched.pop(self.number, None)
        if self._body is not None:
            self._body.close()

    # For handlers.

    def done(self, serial: int, value: bytes = frames.NOTHING) -> None:
        self._waiting.discard(serial)
        self._send(frames.done(serial, value))

    def refuse(self, serial: int, error: HoldfastError) -> None:
        self._waiting.discard(serial)
        self._service.counts["refused"] += 1
        self._send(frames.refused(serial, error))

    def open_stream(self, serial: int, stream: Stream | None) -> None:
        self._streams[serial] = stream

    def check_room(self) -> None:
        if len(self._streams) >= STREAMS_MAX:
            raise Unavailable(f"too many streams: accepted are {STREAMS_MAX} on one connection; close some")

    def close_stream(self, serial: int) -> bool:
        """False if there is none."""
        if serial not in self._streams:
            return False
        stream = self._streams.pop(serial)
        self._ready.pop(serial, None)
        if stream is not None:
            stream.close()
        return True

    def wake(self, serial: int) -> None:
        """A stream has something to say."""
        stream = self._streams.get(serial)
        if stream is not None:
            self._ready[serial] = stream
            self._flush_soon()

    def end_all(self, error: str, text: str) -> None:
        """Say why, and hang up. Who does not read it in time is not waited for."""
        if self._ending or self._transport is None:
            return
        self._ending = True
        self._bodies.clear()
        self._transport.write(b"".join((*self._out, frames.closed(0, error, text))))
        self._out.clear()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER, self._transport.abort)
        self._transport.close()

    # Calls in.

    def wait(self) -> None:
        """There is no time for it in this turn (``budget.Sliced``)."""
        self._waiting_for_turn = True
        if self._transport is not None:
            self._transport.pause_reading()

    def serve(self, end_at: float) -> bool:
        """What has come, as long as there is time and the client takes the answers; True if something is left."""
        self._cut()
        was_due, self._flush_due = self._flush_due, True
        bodies = self._bodies
        while bodies and not self._paused and not self._ending:
            self._on_frame(bodies.popleft())
            if self._out_bytes >= HIGH_BYTES:
                self._write()
            if len(self._entering) >= ENTER_MAX or monotonic() >= end_at:
                break
        if self._entering:
            entering, self._entering = self._entering, []
            self._service.turns.enter(entering)
        self._flush_due = was_due
        self._pull()
        self._write()
        more = bool(bodies) and not self._paused and not self._ending
        if not more and self._waiting_for_turn:
            self._waiting_for_turn = False
            if self._transport is not None and not self._paused and not self._ending:
                self._transport.resume_reading()
        return more

    def _cut(self) -> None:
        """What was read, into frames."""
        if not self._unread or self._ending:
            return
        data, self._unread = self._unread, b""
        try:
            self._bodies.extend(self._frames.feed(data))
        except FrameTooLong:
            self._violation("too_long", f"a call of more than {CALL_BYTES_MAX} bytes")

    def _on_frame(self, body: bytes) -> None:
        try:
            call = self._table.decode(body)
        except UNREADABLE as error:
            self._on_unreadable(body, error)
        else:
            if self._table.needs and self._table.load(type(call)):
                self._bodies.appendleft(body)  # One module was imported for it. This slice ends when its time is over (H382).
            else:
                self._on_call(call)

    def _on_call(self, call: Call) -> None:
        if not self._grows(call.serial):
            return
        if self.greeted == isinstance(call, Hello):
            self._violation("malformed", "Hello comes first, and once")
            return
        self._dispatch(call)

    def _grows(self, serial: int) -> bool:
        """Whether this call comes after all before. Who breaks that is not understood any more."""
        if not self._last_serial < serial <= SERIAL_MAX:
            self._violation("malformed", f"serial {serial} after {self._last_serial}; accepted are growing numbers up to {SERIAL_MAX}")
            return False
        self._last_serial = serial
        return True

    def _on_unreadable(self, body: bytes, error: Exception) -> None:
        """One call that makes no sense costs its client that call: the frame says where the next one begins (H171)."""
        head = head_of(body)
        try:
            found = self._table.find(head.tag)
        except Unavailable as missing:
            if self._grows(head.serial):
                self.refuse(head.serial, missing)
            return
        if found is None:
            self._bodies.appendleft(body)  # It is read again when another module is there (H382).
            return
        if found:
            self._on_frame(body)
            return
        self._unreadable += 1
        if not self.greeted or self._unreadable > UNREADABLE_MAX:
            self._violation("malformed", f"a call that cannot be read: {str(error)[:200]}")
        elif head.serial == 0 or self._grows(head.serial):
            self._service.counts["malformed"] += 1
            self.refuse(head.serial, ConfigError(self._table.unread(head.tag, str(error))))

    def _dispatch(self, call: Call) -> None:
        try:
            handler = self._at_once.get(type(call))
            if handler is not None:
                handler(self, call)
                return
            if len(self._waiting) >= CALLS_MAX:
                raise Unavailable(f"too many calls: accepted are {CALLS_MAX} under way on one connection; wait for some answers")
        except HoldfastError as error:
            self.refuse(call.serial, error)
            return
        self._waiting.add(call.serial)
        self._entering.append(partial(self._in_turn, call))

    def _in_turn(self, call: Call) -> None:
        if self._ending:
            return
        try:
            self._table.in_turn[type(call)](self, call)
        except HoldfastError as error:
            self.refuse(call.serial, error)

    def _violation(self, kind: str, text: str) -> None:
        self._service.counts[kind] += 1
        self.end_all("HoldfastError", f"this is not the language of the local socket: {text}")

    # Answers out.

    def _send(self, frame: bytes) -> None:
        if self._ending:
            return
        self._out.append(frame)
        self._out_bytes += len(frame)
        self.sent += len(frame)
        if not self._flush_due:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        self._pull()
        self._write()

    def _pull(self) -> None:
        """Items of streams, a batch of each in turn, as long as the client takes them; what is too much for one turn comes in the next."""
        left = ITEMS_MAX
        while self._ready and not self._paused and not self._ending:
            if left <= 0:
                self._flush_soon()
                return
            serial, stream = next(iter(self._ready.items()))
            items = stream.take(ITEMS_BATCH)
            left -= len(items) + 1
            del self._ready[serial]
            if len(items) == ITEMS_BATCH:
                self._ready[serial] = stream  # Behind the others.
            for item in items:
                frame = frames.pushed(serial, item)
                self._out.append(frame)
                self._out_bytes += len(frame)
                self.sent += len(frame)
            if self._out_bytes >= HIGH_BYTES:
                self._write()

    def _write(self) -> None:
        if not self._out or self._transport is None or self._ending:
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._out_bytes = 0
        self._transport.write(data)
        if self._paused and self._transport.get_write_buffer_size() > BACKLOG_BYTES_MAX:
            self._service.counts["too_slow"] += 1
            self.end_all("Unavailable", f"this client does not read: more than {BACKLOG_BYTES_MAX} bytes of answers wait for it")

    # Ends.

    def _on_silence(self) -> None:
        if not self.greeted:
            self._service.counts["silent"] += 1
            self.end_all("HoldfastError", f"no Hello within {GREETING_TIMEOUT} s")

    def _on_death(self) -> None:
        """The process that made the connection has ended; a child of it may still have the socket."""
        self._service.turns.post(partial(self._service.grants.client_died, self))
        self.end_all("Forked", "the process that made this connection has ended")


def describe(connection: Connection) -> dict[str, Any]:
    """One line of ``holdfast info``."""
    return {"session": connection.number, "pid": connection.pid, "program": connection.program}
