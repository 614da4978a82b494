"""The HTTP server on the agent's loop: uvicorn, with limits on everything that strangers can do.  docs/http.md (limits); decision H179.

uvicorn speaks HTTP; what is here decides when it may. Bytes that came wait in the ``Line`` of the budget, and their connection is not read
meanwhile, so a client that asks faster than it is answered is slowed down by TCP. Requests beyond a rate are refused with 503, and who was
refused is not read for as long as it was told to wait. This module needs the ``http`` extra.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.agent.observe.http_guard import App, Receive, Scope, Send, refuse
from holdfast.agent.socket.budget import Bucket, Line

CONNECTIONS_MAX = 128  # at once; a browser opens 6, a scraper 1, and streams are counted apart
ACCEPTS_MAX = 4  # in one turn of the loop: each costs a fifth of a millisecond
ACCEPTS_PER_SECOND = 200.0
ACCEPTS_BURST = 64.0
ACCEPT_PAUSE = 1.0  # seconds without descriptors until it is tried again
HEADER_BYTES_MAX = 16 * 1024
READ_BYTES_MAX = 16 * 1024  # taken from the kernel at once: the longest header
REQUEST_TIMEOUT = 10.0  # seconds from the connection, or the first byte of a request, to the last byte of that request
KEEP_ALIVE = 30  # seconds that an idle connection stays, and that an answer may wait to be read
CLOSE_TIMEOUT = 2  # seconds for answers that have begun

REQUESTS_PER_SECOND = 100.0  # of all connections; a page asks for ten things at its start and a scraper once in 15 s
REQUESTS_BURST = 200.0
REQUESTS_KEPT = 50.0  # of these, for connections that have not asked lately: who hammers does not use up what a scraper needs
OWN_PER_SECOND = 20.0  # of one connection
OWN_BURST = 40.0
PROBES_PER_SECOND = 20.0  # of /healthz and /readyz, beside all others
PROBES_BURST = 20.0
QUEUE_TIMEOUT = 1.0  # seconds for which a request may wait for its turn; then it is refused
RETRY_AFTER = 1  # seconds

PROBES = ("/healthz", "/readyz")


class Admission:
    """Wraps the application: so many requests a second, of one connection and of all; the others get 503."""

    def __init__(self, app: App, now: Callable[[], float]) -> None:
        self._app, self._now = app, now
        self._all = Bucket(REQUESTS_PER_SECOND, REQUESTS_BURST, now())
        self._probes = Bucket(PROBES_PER_SECOND, PROBES_BURST, now())
        self.counts: Counter[str] = Counter({"served": 0, "refused": 0, "probed": 0})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection: Connection = scope["state"]["connection"]
        if scope["path"] in PROBES and self._admits_probe():
            self.counts["probed"] += 1
            await self._app(scope, receive, send)
        elif self._admits(connection):
            self.counts["served"] += 1
            await self._app(scope, receive, send)
        else:
            self.counts["refused"] += 1
            connection.rest(RETRY_AFTER)
            text = (
                f"this agent has no time for it: {REQUESTS_PER_SECOND:g} requests a second are served, {OWN_PER_SECOND:g} of one connection"
            )
            await refuse(send, 503, "Unavailable", f"{text}; try again in {RETRY_AFTER} s", ((b"retry-after", b"%d" % RETRY_AFTER),))

    def _admits_probe(self) -> bool:
        now = self._now()
        if self._probes.left(now) < 1:
            return False
        self._probes.take(1, now)
        return True

    def _admits(self, connection: Connection) -> bool:
        now = self._now()
        own = connection.asked
        kept = 0.0 if own.left(now) >= own.burst else REQUESTS_KEPT
        if connection.waited > QUEUE_TIMEOUT or own.left(now) < 1 or self._all.left(now) < 1 + kept:
            return False
        own.take(1, now)
        self._all.take(1, now)
        return True


class Flow(FlowControl):
    """Reading stops for two reasons: uvicorn's, and ours."""

    held = False

    def pause_reading(self) -> None:
        self.read_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self.read_paused = False
        if not self.held:
            self._transport.resume_reading()

    def hold(self) -> None:
        self.held = True
        self._transport.pause_reading()

    def release(self) -> None:
        self.held = False
        if not self.read_paused:
            self._transport.resume_reading()


class Connection(H11Protocol, asyncio.BufferedProtocol):
    """One client: what it sends waits in line, and what it does not send in time ends it."""

    flow: Flow

    def __init__(self, server: Server) -> None:
        super().__init__(server.config, server.server_state, {"connection": self}, asyncio.get_running_loop())
        self._server = server
        self.asked = Bucket(OWN_PER_SECOND, OWN_BURST, self.loop.time())
        self.waited = 0.0  # seconds that the latest bytes waited in line
        self.idle_since = self.loop.time()
        self._unread = b""
        self._came_at = 0.0
        self._in_line = False
        self._serving = False
        self._rests_until = 0.0
        self._deadline: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None

    # asyncio.BufferedProtocol.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = Flow(transport)
        with suppress(OSError):  # asyncio sets it for sockets that know their protocol, which accepted ones do not.
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > CONNECTIONS_MAX and not self._server.make_room(self):
            # Not an answer of 503: connections that only wait would still use up the descriptors that peers need.
            transport.abort()
            return
        self._set_deadline()

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._server.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._unread += bytes(memoryview(self._server.read_buffer)[:nbytes])
        self._get_in_line()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread = b""
        for timer in (self._deadline, self._resting, self._stalled, self.timeout_keep_alive_task):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read. Whatever is being answered waits for it, so the wait has an end."""
        super().pause_writing()
        self._stalled = self.loop.call_later(KEEP_ALIVE, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()

    # For the server and for ``Admission``.

    @property
    def idle(self) -> bool:
        """No answer is under way. A request that is not complete makes no difference: its bytes may come for ever; nor does an answer
        that the client does not read."""
        cycle: object = self.cycle  # None until a request came, whatever uvicorn's annotation says
        return cycle is None or self.cycle.response_complete or self.cycle.more_body or self.flow.write_paused

    @property
    def in_line(self) -> bool:
        return self._in_line

    def rest(self, seconds: float) -> None:
        """Read nothing of it for so long, whatever it was told."""
        self._rests_until = self.loop.time() + seconds

    # Its turn.

    def _get_in_line(self) -> None:
        self.flow.hold()
        if not self._in_line:
            self._in_line = True
            self._came_at = self.loop.time()
            self._server.line.add(self._on_turn)

    def _on_turn(self) -> None:
        self._in_line = False
        if self.transport.is_closing():
            return
        self.waited = self.loop.time() - self._came_at
        data, self._unread = self._unread, b""
        self._serving = True
        try:
            if data:
                self.data_received(data)
            else:
                self.handle_events()
        finally:
            self._serving = False
        self._watch_request()
        self._release()

    def _release(self) -> None:
        """Read on, unless it has to rest."""
        if self._in_line or self._resting is not None or self.transport.is_closing():
            return
        seconds = self._rests_until - self.loop.time()
        if seconds > 0:
            self.flow.hold()
            self._resting = self.loop.call_later(seconds, self._on_rested)
        else:
            self.flow.release()

    def _on_rested(self) -> None:
        self._resting = None
        self._release()
        self._next_request()

    # uvicorn's.

    def handle_events(self) -> None:
        """Of what was read. Requests that came together have one turn each."""
        if self._serving:
            super().handle_events()
        else:
            self._next_request()

    def on_response_complete(self) -> None:
        self.idle_since = self.loop.time()
        super().on_response_complete()
        if self.transport.is_closing():
            self.loop.call_later(KEEP_ALIVE, self.transport.abort)  # Closing waits for a client that does not read.
            return
        self._watch_request()
        self._release()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _next_request(self) -> None:
        if (
            self._resting is None
            and self._rests_until <= self.loop.time()
            and self.conn.trailing_data[0]
            and not self.transport.is_closing()
        ):
            self._get_in_line()

    def _watch_request(self) -> None:
        """A request has so much time from its first byte to its last, however its bytes are spread."""
        answering = not self.idle or self.flow.write_paused
        between = self.timeout_keep_alive_task is not None and not self.conn.trailing_data[0]
        if (answering or between) and self.conn.their_state is not h11.SEND_BODY:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
        elif self._deadline is None:
            self._set_deadline()

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(REQUEST_TIMEOUT, self._on_deadline)

    def _on_deadline(self) -> None:
        self._deadline = None
        self.transport.abort()


class Acceptor:
    """Takes connections from the kernel, a few per turn of the loop and so many a second."""

    def __init__(self, listener: socket.socket, make: Callable[[], asyncio.BufferedProtocol]) -> None:
        self._listener, self._make = listener, make
        self._loop = asyncio.get_running_loop()
        self._rate = Bucket(ACCEPTS_PER_SECOND, ACCEPTS_BURST, self._loop.time())
        self._connecting: set[asyncio.Task[Any]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        if self._paused is not None:
            self._paused.cancel()
        self._loop.remove_reader(self._listener.fileno())

    async def wait_closed(self) -> None:
        """Nothing is left to wait for (``asyncio.Server``)."""

    def _listen(self) -> None:
        self._paused = None
        self._loop.add_reader(self._listener.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        for _ in range(ACCEPTS_MAX):
            now = self._loop.time()
            if self._rate.left(now) < 1:
                self._pause(self._rate.wait(now, ACCEPTS_MAX))
                return
            try:
                accepted, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                self._pause(ACCEPT_PAUSE)  # No descriptor is left: looking again at once would find none again.
                return
            self._rate.take(1, now)
            accepted.setblocking(False)
            connecting = self._loop.create_task(self._loop.connect_accepted_socket(self._make, accepted))
            self._connecting.add(connecting)
            connecting.add_done_callback(self._connecting.discard)

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener.fileno())
        self._paused = self._loop.call_later(seconds, self._listen)


class Server(uvicorn.Server):
    """uvicorn with its own way to accept. Signals belong to the agent, not to its HTTP server."""

    def __init__(self, app: App, line: Line) -> None:
        super().__init__(
            uvicorn.Config(
                app, loop="none", http=Connection, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
                proxy_headers=False, timeout_keep_alive=KEEP_ALIVE, timeout_graceful_shutdown=CLOSE_TIMEOUT,
                h11_max_incomplete_event_size=HEADER_BYTES_MAX, limit_concurrency=None,
            )
        )  # fmt: skip
        self.line = line
        self.read_buffer = bytearray(READ_BYTES_MAX)  # of all connections: what was read into it is taken out at once
        self.evicted = 0

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        assert sockets is not None
        self.servers = [Acceptor(each, lambda: Connection(self)) for each in sockets]  # type: ignore[misc]
        self.started = True

    @property
    def connections(self) -> int:
        return len(self.server_state.connections)

    def make_room(self, newest: Connection) -> bool:
        """Close the connection that has been idle for longest; False if all of them are being answered."""
        others = (each for each in self.server_state.connections if isinstance(each, Connection) and each is not newest)
        idle = [each for each in others if each.idle]
        if not idle:
            return False
        victim = min(idle, key=lambda each: (each.in_line, each.idle_since))
        self.evicted += 1
        self.server_state.connections.discard(victim)
        victim.transport.abort()
        return True
