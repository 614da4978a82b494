"""Streams: what is too large for a datagram, as a whole or not at all.  Spec: foundation 3 (Host.send); docs/sockets.md.

One connection per peer and direction, opened when something has to be sent and closed when nothing had to be for a while.
The side that connects only sends, the side that accepts only receives. A frame that did not arrive in full did not arrive.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from holdfast.drops import Drop, Drops, Rejected
from holdfast.host import MESSAGE_BYTES_MAX, Address
from holdfast.net.bind import is_wildcard
from holdfast.net.resolve import literal
from holdfast.wire.frame import LENGTH_BYTES, FrameReader, frame
from holdfast.wire.seal import Channel, Sealer

QUEUE_MESSAGES_MAX = 64  # per peer: as many as F17 lets one callback send
QUEUE_BYTES_MAX = 4 * MESSAGE_BYTES_MAX  # per peer: a peer that reads slower than that is behind for good
OUTGOING_MAX = 256  # connections we open; more large messages at once are not what a coordination layer is for
INCOMING_MAX = 256  # connections we keep; half of them stay with peers that have shown a key, however many strangers call
UNFINISHED_BYTES_MAX = 32 << 20  # parts of frames over all connections: a sender without a key can make us hold these
CONNECT_TIMEOUT = 3.0  # seconds; one SYN may be lost (Linux repeats it after 1 s), two mean that no process is there
WRITE_TIMEOUT = 10.0  # seconds for one frame to leave for the kernel: a peer that takes less than 100 KB/s is behind for good
OUTGOING_IDLE_TIMEOUT = 30.0  # seconds; the side that opened closes first, so that the other never closes on a message
INCOMING_IDLE_TIMEOUT = 90.0
CLOSE_TIMEOUT = 1.0  # seconds that a leaving host gives to what is queued

Failed = Callable[[BaseException], None]


class Streams:
    """All connections of one host."""

    def __init__(self, bound: Address, sealer: Sealer, drops: Drops, deliver: Callable[[bytes], None], on_bug: Failed) -> None:
        self.sealer = sealer
        self.drops = drops
        self.deliver = deliver
        self.on_bug = on_bug
        self.unfinished = 0  # bytes of incomplete frames, over all connections
        # A peer's firewall knows the address we listen on, so connections leave from it too.
        self.local = None if is_wildcard(bound.host) else (bound.host, 0)
        self._incoming: dict[Incoming, None] = {}  # by the last frame that opened, or else by when it connected
        self._outgoing: dict[Address, Outgoing] = {}
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def listen(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Incoming(self), sock=sock)
        self._sweep = loop.call_later(INCOMING_IDLE_TIMEOUT / 2, self._on_sweep)

    def send(self, payload: bytes, to: Address) -> None:
        """Queue one message. It is sealed when it is written: what waits must not grow old for the replay window."""
        peer = self._outgoing.get(to)
        if peer is None:
            if literal(to.host) is None or not 0 < to.port < 1 << 16:
                self.drops[Drop.UNREACHABLE] += 1
                return
            if len(self._outgoing) >= OUTGOING_MAX:
                self.drops[Drop.QUEUE_FULL] += 1
                return
            peer = self._outgoing[to] = Outgoing(self, to)
        peer.put(payload)

    async def close(self) -> None:
        """Let what is queued leave, for a moment; then close everything."""
        tasks = [peer.finish() for peer in self._outgoing.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_TIMEOUT)
        self.abort()
        if tasks:
            await asyncio.wait(tasks)

    def abort(self) -> None:
        """Close everything now."""
        if self._server is not None:
            self._server.close()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._incoming):
            connection.abort()
        for peer in list(self._outgoing.values()):
            peer.task.cancel()

    def admit(self, connection: Incoming) -> None:
        if len(self._incoming) >= INCOMING_MAX:
            strangers = [each for each in self._incoming if not each.known]
            crowded = 2 * len(strangers) > len(self._incoming)
            self._turn_out(strangers[0] if crowded else next(iter(self._incoming)))
        self._incoming[connection] = None

    def limit_unfinished(self) -> None:
        """Make room by what is least likely to become a message. The one that spoke last is no worse than the others: if it had to
        go, a few frames that one sender never finishes would cut off all other senders."""
        while self.unfinished > UNFINISHED_BYTES_MAX:
            hoarders = [each for each in self._incoming if each.unfinished]
            self._turn_out(min(hoarders, key=lambda each: (each.known, each.began_at)))

    def heard(self, connection: Incoming) -> None:
        """A frame of it opened: it is the last that would have to go."""
        self._incoming.pop(connection, None)
        self._incoming[connection] = None

    def forget(self, connection: Incoming) -> None:
        self._incoming.pop(connection, None)

    def forget_peer(self, peer: Outgoing) -> None:
        if self._outgoing.get(peer.to) is peer:
            del self._outgoing[peer.to]

    def _turn_out(self, connection: Incoming) -> None:
        self.drops[Drop.QUEUE_FULL] += 1
        connection.abort()

    def _on_sweep(self) -> None:
        loop = asyncio.get_running_loop()
        for connection in list(self._incoming):
            if loop.time() - connection.heard_at > INCOMING_IDLE_TIMEOUT:
                connection.abort()
        self._sweep = loop.call_later(INCOMING_IDLE_TIMEOUT / 2, self._on_sweep)


class Incoming(asyncio.Protocol):
    """One accepted connection: frames in, nothing out. A sender of malformed frames loses it.

    Only a frame that opened says anything about the far end. Other bytes cost nothing to send, so they keep no connection alive.
    """

    def __init__(self, streams: Streams) -> None:
        self.known = False  # a frame of it opened
        self.heard_at = 0.0  # when the last frame opened, or else when it connected; all instants are on the loop's clock
        self.unfinished = 0  # bytes of a frame that is not complete yet
        self.began_at = 0.0  # when the first of them arrived
        self._streams = streams
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._release()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.heard_at = asyncio.get_running_loop().time()
        self._streams.admit(self)

    def data_received(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        try:
            self._take(data)
        except Rejected as rejected:
            self._streams.drops[rejected.why] += 1
            self.abort()
        except Exception as error:
            self._streams.on_bug(error)

    def eof_received(self) -> bool:
        return False  # Close our side too.

    def connection_lost(self, exc: Exception | None) -> None:
        if self.unfinished:
            self._streams.drops[Drop.TRUNCATED] += 1
        self._release()

    def _take(self, data: bytes) -> None:
        """Deliver what is complete. A frame that does not open is the end of the connection, and with it of every frame behind
        it: they may come from another sender. A length that is too large also takes the frames before it that came in the same piece."""
        now = asyncio.get_running_loop().time()
        frames = self._reader.feed(data)
        if frames or not self.unfinished:
            self.began_at = now
        self._count(len(data) - sum(len(sealed) + LENGTH_BYTES for sealed in frames))
        for sealed in frames:
            payload = self._streams.sealer.open(sealed, Channel.STREAM)
            self.known, self.heard_at = True, now
            self._streams.heard(self)
            self._streams.deliver(payload)
        self._streams.limit_unfinished()

    def _count(self, change: int) -> None:
        self.unfinished += change
        self._streams.unfinished += change

    def _release(self) -> None:
        self._count(-self.unfinished)
        self._streams.forget(self)


class Outgoing:
    """One peer we have something large for: a bounded queue, and a task that empties it."""

    def __init__(self, streams: Streams, to: Address) -> None:
        self.to = to
        self._streams = streams
        self._queue: deque[bytes] = deque()
        self._bytes = 0
        self._writing = 0  # messages that left the queue and are not yet with the kernel
        self._ready = asyncio.Event()
        self._finishing = False
        self.task = asyncio.get_running_loop().create_task(self._run())
        self.task.add_done_callback(self._on_done)

    def put(self, payload: bytes) -> None:
        if len(self._queue) >= QUEUE_MESSAGES_MAX or self._bytes + len(payload) > QUEUE_BYTES_MAX:
            self._streams.drops[Drop.QUEUE_FULL] += 1
            return
        self._queue.append(payload)
        self._bytes += len(payload)
        self._ready.set()

    def finish(self) -> asyncio.Task[None]:
        """End as soon as the queue is empty."""
        self._finishing = True
        self._ready.set()
        return self.task

    async def _run(self) -> None:
        writer: asyncio.StreamWriter | None = None
        reader: asyncio.StreamReader | None = None
        try:
            while await self._more():
                if reader is None or reader.at_eof():  # A peer that went away while we were idle may be back.
                    _abort(writer)
                    reader, writer = await self._connect()
                assert writer is not None
                await self._write(writer)
            if writer is not None:
                writer.close()
                await writer.wait_closed()
        except OSError:  # Refused, unreachable, reset, or a timeout: what is queued cannot arrive.
            pass
        finally:
            _abort(writer)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Numbers only: what a peer told us as an address is never looked up."""
        flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                reader, writer = await asyncio.open_connection(self.to.host, self.to.port, local_addr=self._streams.local, flags=flags)
        except ValueError as error:  # A UnicodeError is one: text that no address can be made of.
            raise OSError(errno.EHOSTUNREACH, "no address that can be connected to") from error
        writer.transport.set_write_buffer_limits(high=0)  # A drained frame is with the kernel: what is lost before that is counted.
        return reader, writer

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        payload = self._queue.popleft()
        self._bytes -= len(payload)
        self._writing = 1
        writer.write(frame(self._streams.sealer.seal(payload, Channel.STREAM)))
        async with asyncio.timeout(WRITE_TIMEOUT):
            await writer.drain()
        self._writing = 0

    async def _more(self) -> bool:
        """Wait for the next message; False when it is time to close."""
        if not self._queue and not self._finishing:
            self._ready.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(OUTGOING_IDLE_TIMEOUT):
                    await self._ready.wait()
        if self._queue:
            return True
        # Nothing may be queued from here on: the next message opens a connection of its own.
        self._streams.forget_peer(self)
        return False

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._streams.forget_peer(self)
        if lost := len(self._queue) + self._writing:
            self._streams.drops[Drop.UNREACHABLE] += lost
            self._queue.clear()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._streams.on_bug(error)


def _abort(writer: asyncio.StreamWriter | None) -> None:
    if writer is not None:
        writer.transport.abort()
