"""Streams: what is too large for a datagram, as a whole or not at all.  Spec: foundation 3 (Host.send); docs/sockets.md.

One connection per peer and direction, opened when something has to be sent and closed when nothing had to be for a while.
Whoever connects only speaks, whoever accepts only listens. A frame that did not arrive in full did not arrive.
"""

from __future__ import annotations

import asyncio
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
INCOMING_MAX = 256  # connections we keep; the one that was silent for longest makes room
UNFINISHED_BYTES_MAX = 32 << 20  # parts of frames over all connections: whoever has no key can make us hold these
CONNECT_TIMEOUT = 3.0  # seconds; one SYN may be lost (Linux repeats it after 1 s), two mean that nobody is there
WRITE_TIMEOUT = 10.0  # seconds a peer may take no byte at all
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
        self._incoming: dict[Incoming, None] = {}  # the one heard last is last
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
            self.drops[Drop.QUEUE_FULL] += 1
            next(iter(self._incoming)).abort()
        self._incoming[connection] = None

    def heard(self, connection: Incoming) -> None:
        """It is the last that would have to go."""
        self._incoming.pop(connection, None)
        self._incoming[connection] = None

    def forget(self, connection: Incoming) -> None:
        self._incoming.pop(connection, None)

    def forget_peer(self, peer: Outgoing) -> None:
        if self._outgoing.get(peer.to) is peer:
            del self._outgoing[peer.to]

    def _on_sweep(self) -> None:
        loop = asyncio.get_running_loop()
        for connection in list(self._incoming):
            if loop.time() - connection.heard_at > INCOMING_IDLE_TIMEOUT:
                connection.abort()
        self._sweep = loop.call_later(INCOMING_IDLE_TIMEOUT / 2, self._on_sweep)


class Incoming(asyncio.Protocol):
    """One accepted connection: frames in, nothing out. Whoever sends rubbish loses it."""

    def __init__(self, streams: Streams) -> None:
        self.heard_at = 0.0  # on the loop's clock
        self._streams = streams
        self._reader = FrameReader()
        self._unfinished = 0
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
        if self._unfinished:
            self._streams.drops[Drop.TRUNCATED] += 1
        self._release()

    def _take(self, data: bytes) -> None:
        streams = self._streams
        self.heard_at = asyncio.get_running_loop().time()
        streams.heard(self)
        frames = self._reader.feed(data)
        self._count(len(data) - sum(len(sealed) + LENGTH_BYTES for sealed in frames))
        if streams.unfinished > UNFINISHED_BYTES_MAX:
            raise Rejected(Drop.QUEUE_FULL)
        for sealed in frames:
            streams.deliver(streams.sealer.open(sealed, Channel.STREAM))

    def _count(self, change: int) -> None:
        self._unfinished += change
        self._streams.unfinished += change

    def _release(self) -> None:
        self._count(-self._unfinished)
        self._streams.forget(self)


class Outgoing:
    """One peer we have something large for: a bounded queue, and a task that empties it."""

    def __init__(self, streams: Streams, to: Address) -> None:
        self.to = to
        self._streams = streams
        self._queue: deque[bytes] = deque()
        self._bytes = 0
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
        async with asyncio.timeout(CONNECT_TIMEOUT):
            return await asyncio.open_connection(self.to.host, self.to.port, local_addr=self._streams.local)

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        payload = self._queue.popleft()
        self._bytes -= len(payload)
        writer.write(frame(self._streams.sealer.seal(payload, Channel.STREAM)))
        async with asyncio.timeout(WRITE_TIMEOUT):
            await writer.drain()

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
        if self._queue:
            self._streams.drops[Drop.UNREACHABLE] += len(self._queue)
            self._queue.clear()
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._streams.on_bug(error)


def _abort(writer: asyncio.StreamWriter | None) -> None:
    if writer is not None:
        writer.transport.abort()
