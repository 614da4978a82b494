"""A fake kind of grant: locks with leases, kept by a service in the test process and shared by real agents.

The service is the resource that must never have two holders. It gives a lock to the next one when the holder released it, or when its lease
ran out on the service's clock. The agent's side counts its deadline from before it asked, as every holder does (F8), so it ends first.

Lines of JSON over a Unix socket. The agent says {"op": "ask" | "take" | "renew" | "release", "id", ...}, the service
{"id", "what": "turn" | "held" | "gone", ...}: who waited is told that it is its turn, and only what it takes from then on counts.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.errors import ConfigError
from holdfast.host import Timer
from holdfast.kit.hold import Deposed, Holder
from holdfast.net.host import NetHost

KIND = "lock"
LENGTHS = (0.5, 60.0)  # accepted
RENEWALS = 4  # in one length


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


# The agent's side.


class HeldLock:
    """One ``acquire``."""

    def __init__(self, kind: LockKind, number: int, name: str, length: float, holder: Holder) -> None:
        self.number, self.name, self.length, self.holder = number, name, length, holder
        self.token = 0
        self.deadline = 0.0
        self.granted = False
        self.allowed = True
        self.timer: Timer | None = None
        self._kind = kind

    def cancel(self) -> None:
        self._end()

    def release(self) -> None:
        self._end()

    def renew_allowed(self, allowed: bool) -> None:
        self.allowed = allowed

    def on_turn(self, token: int) -> None:
        self.token = token
        self._kind.say(op="take", id=self.number, sent=self._kind.host.now)

    def on_held(self, sent: float) -> None:
        self.deadline = sent + self.length
        if self.granted:
            self.holder.on_extended(self.deadline)
        else:
            self.granted = True
            self.holder.on_granted(self.token, self.deadline)
            self._renew_later()

    def on_gone(self) -> None:
        self._stop()
        self.holder.on_lost(Deposed())

    def _renew_later(self) -> None:
        self.timer = self._kind.host.after(self.length / RENEWALS, self._on_renew)

    def _on_renew(self) -> None:
        if not self.allowed:
            return
        if self._kind.host.now > self.deadline - self.length / 2:
            self.holder.on_at_risk()
        self._kind.say(op="renew", id=self.number, sent=self._kind.host.now)
        self._renew_later()

    def _end(self) -> None:
        self._stop()
        self._kind.say(op="release", id=self.number)

    def _stop(self) -> None:
        self._kind.held.pop(self.number, None)
        if self.timer is not None:
            self.timer.cancel()


class LockKind:
    """Asks the service on behalf of one agent."""

    kind = KIND

    def __init__(self, host: NetHost, path: str) -> None:
        self.host = host
        self.held: dict[int, HeldLock] = {}
        self._last = 0
        self._rest = b""
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.connect(path)
        self._sock.setblocking(False)
        asyncio.get_running_loop().add_reader(self._sock, self._on_readable)

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> HeldLock:
        length = options.get("length", 1.0)
        if not isinstance(length, float) or not LENGTHS[0] <= length <= LENGTHS[1]:
            raise ConfigError(f"length: {length!r}; accepted are {LENGTHS[0]} to {LENGTHS[1]} seconds")
        self._last += 1
        held = self.held[self._last] = HeldLock(self, self._last, name, length, holder)
        self.say(op="ask", id=self._last, name=name, length=length)
        return held

    def say(self, **fields: Any) -> None:
        self._sock.send(json.dumps(fields).encode() + b"\n")

    def _on_readable(self) -> None:
        data = self._sock.recv(1 << 16)
        if not data:
            asyncio.get_running_loop().remove_reader(self._sock)
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self.host.post(partial(self._on_line, json.loads(line)))

    def _on_line(self, line: dict[str, Any]) -> None:
        held = self.held.get(line["id"])
        if held is None:
            return
        if line["what"] == "turn":
            held.on_turn(line["token"])
        elif line["what"] == "held":
            held.on_held(line["sent"])
        else:
            held.on_gone()


# The service.


class Asker:
    """One agent's wish for one lock."""

    def __init__(self, say: Callable[..., None], number: int, length: float) -> None:
        self.say, self.number, self.length = say, number, length


class Lock:
    """One lock: who has it until when, and who waits."""

    def __init__(self, soon: Callable[[float, Callable[[], None]], object]) -> None:
        self.holder: Asker | None = None
        self.until = 0.0
        self.token = int(time.time() * 1000)
        self.waiting: deque[Asker] = deque()
        self._soon = soon

    def next(self) -> None:
        """Give it to the next one, if nobody has it."""
        if self.holder is not None and now() < self.until:
            self._soon(self.until - now(), self.next)
            return
        self.holder = None
        if self.waiting:
            self.holder = self.waiting.popleft()
            self.token += 1
            self._lease()
            self.holder.say(id=self.holder.number, what="turn", token=self.token)

    def renew(self, asker: Asker, sent: float) -> None:
        if self.holder is not asker or now() >= self.until:
            asker.say(id=asker.number, what="gone")
        else:
            self._lease()
            asker.say(id=asker.number, what="held", sent=sent)

    def release(self, asker: Asker) -> None:
        if asker in self.waiting:
            self.waiting.remove(asker)
        if self.holder is asker:
            self.holder = None
        self.next()

    def _lease(self) -> None:
        assert self.holder is not None
        self.until = now() + self.holder.length
        self._soon(self.holder.length, self.next)


class Line(asyncio.Protocol):
    """One agent at the service."""

    def __init__(self, locks: Callable[[str], Lock]) -> None:
        self._locks = locks
        self._askers: dict[int, tuple[Asker, Lock]] = {}
        self._rest = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_line(json.loads(line))

    def _on_line(self, line: dict[str, Any]) -> None:
        number = line["id"]
        if line["op"] == "ask":
            lock = self._locks(line["name"])
            asker = Asker(self._say, number, line["length"])
            self._askers[number] = asker, lock
            lock.waiting.append(asker)
            lock.next()
            return
        asker, lock = self._askers[number]
        if line["op"] == "release":
            del self._askers[number]
            lock.release(asker)
        else:
            lock.renew(asker, line["sent"])

    def _say(self, **fields: Any) -> None:
        self._transport.write(json.dumps(fields).encode() + b"\n")


class LockService:
    """The service, in a thread of the test process."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._locks: dict[str, Lock] = {}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="locks")
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def take_away(self, name: str) -> None:
        """The protocol loses it: the holder hears so at its next renewal. Its lease runs to its end all the same."""

        def step() -> None:
            lock = self._lock(name)
            lock.holder = Asker(lambda **fields: None, 0, 1.0)

        self._loop.call_soon_threadsafe(step)

    async def _run(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_unix_server(lambda: Line(self._lock), self.path)
        self._ready.set()
        await self._over.wait()
        server.close()

    def _lock(self, name: str) -> Lock:
        return self._locks.setdefault(name, Lock(self._loop.call_later))
