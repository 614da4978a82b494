"""A token bucket in a real Redis, as programs without Holdfast limit a fleet: what P3 compares with.  Spec: limits 8 (P3).

The bucket is a script that the server runs, so all clients see one. A client that may not go is told in how many milliseconds to ask again.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

from holdfast.errors import HoldfastError

SERVER = "redis-server"
SETTINGS = ("--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning")
PATIENCE = 20.0  # seconds until it serves
LEAST_WAIT = 0.001  # seconds between two questions of one client
SCRIPT = """
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local held = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local tokens = tonumber(held[1]) or 0
tokens = math.min(burst, tokens + (now - (tonumber(held[2]) or now)) * rate)
local wait = 0
if tokens >= 1 then tokens = tokens - 1 else wait = math.ceil((1 - tokens) / rate * 1000) end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', string.format('%.6f', now))
return wait
"""


class RedisGone(HoldfastError):
    """The server does not answer."""


def missing() -> str:
    """The package that has to be installed first; "" if it is there."""
    return "" if shutil.which(SERVER) else "Redis is not here: apt-get install redis-server"


class RedisServer:
    """One server, on a socket in this folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "redis.sock"
        command = [SERVER, *SETTINGS, "--dir", str(folder), "--unixsocket", str(self.path)]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self) -> RedisServer:
        until = monotonic() + PATIENCE
        while not self.path.exists():
            if self._process.poll() is not None or monotonic() > until:
                raise RedisGone(f"{SERVER} does not start")
            sleep(0.02)
        return self

    def __exit__(self, *error: object) -> None:
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


class RedisClient:
    """One program's connection."""

    def __init__(self, reader: StreamReader, writer: StreamWriter, rate: float, burst: float) -> None:
        self._reader, self._writer = reader, writer
        self._ask = _command("EVAL", SCRIPT, "1", "api", f"{rate:g}", f"{burst:g}")

    @classmethod
    async def connect(cls, path: Path, rate: float, burst: float) -> RedisClient:
        reader, writer = await asyncio.open_unix_connection(str(path))
        return cls(reader, writer, rate, burst)

    async def acquire(self) -> None:
        """Wait until one request may go. Raises ``RedisGone``."""
        while True:
            wait = await self._look()
            if wait == 0:
                return
            await asyncio.sleep(max(LEAST_WAIT, wait / 1000))

    def close(self) -> None:
        self._writer.close()

    async def _look(self) -> int:
        try:
            self._writer.write(self._ask)
            await self._writer.drain()
            line = await self._reader.readline()
        except OSError as error:
            raise RedisGone(str(error)) from error
        if not line.startswith(b":"):
            raise RedisGone(line.decode(errors="replace") or "the connection ended")
        return int(line[1:])


def _command(*parts: str) -> bytes:
    encoded = [part.encode() for part in parts]
    return b"".join([b"*%d\r\n" % len(encoded), *(b"$%d\r\n%s\r\n" % (len(part), part) for part in encoded)])


async def play(client: RedisClient, gap: float, begin: float, until: float, went: Callable[[float, float], None]) -> None:
    """Requests that come every ``gap`` seconds, in turn. ``went``: when one went, and how long it had waited. Ends with the server."""
    clock = asyncio.get_running_loop().time
    due = begin
    while due < until:
        await asyncio.sleep(max(0.0, due - clock()))
        try:
            await client.acquire()
        except RedisGone:
            return
        now = clock()
        if now >= until:
            return
        went(now, now - due)
        due += gap
