"""TCP connections that can be cut: forwarders on loopback, in a thread of their own.  Spec: views 5Z (tests), 8 (T1, Z1, Z2).

A wire listens at an address and passes what comes there on to a target. Cut, it closes what passed and takes no more. The wires of
ZooKeeper's elections need one more thing: a server says first where others reach it for elections, and a server with a higher number
connects to that place instead of answering. So these wires put the address of the wire back in the place of the server's own, or a cut
would not cut.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from socket import AF_INET, IPPROTO_TCP, SO_REUSEADDR, SOCK_STREAM, SOL_SOCKET, socket
from threading import Thread
from typing import Any, TypeVar

from holdfast.host import Address

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 65_536
HELLO = struct.Struct(">qqi")  # version, server, length of the address that follows
ADDRESS_BYTES_MAX = 1024
PATIENCE = 30.0  # seconds for the thread to do what takes no time

T = TypeVar("T")
Opening = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Wire:
    """One of them. Its methods are called from any thread."""

    def __init__(self, wires: Wires, target: Address) -> None:
        self.target = target
        self.address = Address(LOOPBACK, 0)
        self.is_cut = False
        self.back: Wire | None = None  # of an election: the wire that leads to the server which uses this one
        self._wires = wires
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._place: socket | None = None  # keeps the port while the wire is cut: bound, it refuses connections

    def cut(self) -> None:
        """Close all that passes, and refuse connections from now on."""
        self._wires.call(self._cut())

    def heal(self) -> None:
        self._wires.call(self._heal())

    async def open(self) -> None:
        await self._listen(_bound(0))

    async def close(self) -> None:
        await self._cut()
        assert self._place is not None
        self._place.close()

    async def _listen(self, place: socket) -> None:
        self._server = await asyncio.start_server(self._on_connection, sock=place)
        self.address = Address(LOOPBACK, place.getsockname()[1])

    async def _heal(self) -> None:
        self.is_cut = False
        if self._place is not None:
            place, self._place = self._place, None
            await self._listen(place)

    async def _cut(self) -> None:
        self.is_cut = True
        if self._server is not None:
            self._server.close()
            self._server, self._place = None, _bound(self.address.port)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                if not self.is_cut:  # It was accepted just before.
                    await self._pass(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self.target.host, self.target.port)
        pumps: set[asyncio.Task[None]] = set()
        try:
            if self.back is not None:
                far_writer.write(await _readdressed(reader, self.back.address))
            pumps = {asyncio.create_task(_pump(reader, far_writer)), asyncio.create_task(_pump(far_reader, writer))}
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            far_writer.transport.abort()
            for pump in pumps:
                pump.cancel()
            if pumps:
                await asyncio.wait(pumps)


class Wires:
    """The thread, and the wires in it: a context."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="wires", daemon=True)
        self._all: list[Wire] = []

    def __enter__(self) -> Wires:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        for wire in self._all:
            self.call(wire.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def open(self, target: Address) -> Wire:
        wire = Wire(self, target)
        self.call(wire.open())
        self._all.append(wire)
        return wire

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(PATIENCE)


def _bound(port: int) -> socket:
    place = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP)  # asyncio knows connections by that, and then sends small messages at once
    place.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
    place.bind((LOOPBACK, port))
    return place


async def _readdressed(reader: asyncio.StreamReader, address: Address) -> bytes:
    """The first message of a server in an election, with another address."""
    version, server, length = HELLO.unpack(await reader.readexactly(HELLO.size))
    if not 0 < length <= ADDRESS_BYTES_MAX:
        raise OSError("this is no election")
    await reader.readexactly(length)
    text = str(address).encode()
    return HELLO.pack(version, server, len(text)) + text


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
