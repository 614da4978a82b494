"""The least that answers on a Unix socket: framed msgpack on asyncio, every frame decoded, encoded and sent back; both sides of it.

    python -m benchmarks.agent_echo PATH [settled]

asyncio reads into 256 KiB of fresh memory, which glibc maps page by page until the process has once freed a block as large: then such a
read costs nothing extra. An agent is there by what it imports, a bare echo is not; ``settled`` brings it there.

The server is what an agent would be without anything to say: an ``asyncio.Protocol`` on the same loop, one write per read. Of the
client there are two: one blocking, as short as it can be written, and one for many tasks on one connection.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from struct import Struct
from typing import Any, cast

import msgspec

from holdfast.local.frame import LENGTH_BYTES, Frames

BYTES_MAX = 1 << 20
READ_BYTES = 1 << 16
LARGE_BYTES = 4 << 20

_length = Struct(">I")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def _framed(value: Any) -> bytes:
    body = _encode(value)
    return _length.pack(len(body)) + body


class Echo(asyncio.Protocol):
    """Serves one client."""

    def __init__(self) -> None:
        self._frames = Frames(BYTES_MAX)
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(b"".join([_framed(_decode(body)) for body in self._frames.feed(data)]))


class EchoLine:
    """A blocking client."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)

    def ask(self, value: Any) -> Any:
        self._socket.sendall(_framed(value))
        data = self._socket.recv(READ_BYTES)
        while len(data) < LENGTH_BYTES or len(data) < LENGTH_BYTES + _length.unpack_from(data)[0]:
            data += self._socket.recv(READ_BYTES)
        return _decode(data[LENGTH_BYTES:])

    def close(self) -> None:
        self._socket.close()


class EchoConnection(asyncio.Protocol):
    """A client for many tasks. ``batched``: what is asked in one turn of the loop leaves in one write, as with ours."""

    def __init__(self, *, batched: bool) -> None:
        self._batched = batched
        self._loop = asyncio.get_running_loop()
        self._frames = Frames(BYTES_MAX)
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._out: list[bytes] = []
        self._serial = 0

    @classmethod
    async def open(cls, path: str, *, batched: bool) -> EchoConnection:
        return (await asyncio.get_running_loop().create_unix_connection(lambda: cls(batched=batched), path))[1]

    async def ask(self, value: Any) -> Any:
        self._serial += 1
        future = self._waiting[self._serial] = self._loop.create_future()
        self._write(_framed((self._serial, value)))
        return await future

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for body in self._frames.feed(data):
            serial, value = _decode(body)
            self._waiting.pop(serial).set_result(value)

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        if not self._batched:
            self._transport.write(frame)
            return
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(frame)

    def _flush(self) -> None:
        assert self._transport is not None
        out, self._out = self._out, []
        self._transport.write(b"".join(out))


async def serve(path: str) -> None:
    server = await asyncio.get_running_loop().create_unix_server(Echo, path)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if "settled" in sys.argv[2:]:
        bytearray(LARGE_BYTES)  # Made, and gone.
    asyncio.run(serve(sys.argv[1]))
