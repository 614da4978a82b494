"""One connection of an event loop to an agent: calls are pipelined, streams go to their readers.

Calls made in one turn of the loop leave in one write, so that fifty tasks that ask at once cost one system call. Time limits are looked at
together, a few times per second: an agent that says nothing at all is what they are for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from holdfast.client.conversation import ENDED, NOBODY, Conversation, Sink, Waiter
from holdfast.client.line import program_name, unreachable
from holdfast.client.wire import CALL_TIMEOUT, agent_lost, check_clock, check_version
from holdfast.errors import HoldfastError, Timeout
from holdfast.local import calls
from holdfast.net.clock import now

LOOK_PERIOD = 0.25  # seconds between looks at the time limits, while calls are under way


class Connection(asyncio.Protocol):
    """A conversation over a transport of the running loop."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.welcome: calls.Welcome  # known when ``open`` returns
        self._on_lost: Callable[[HoldfastError], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._conversation = Conversation(path)
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._looking: asyncio.TimerHandle | None = None

    @classmethod
    async def open(cls, path: str) -> Connection:
        """Connect and greet. Raises AgentLost when no agent answers there, ConfigError when that is no agent for us."""
        try:
            _, self = await asyncio.get_running_loop().create_unix_connection(lambda: cls(path), path)
        except OSError as error:
            raise unreachable(path, error) from error
        try:
            before = now()
            self.welcome = await self.call(calls.Hello, calls.VERSION, program_name(), before)
            check_version(path, self.welcome)
            check_clock(path, before, self.welcome, now())
        except BaseException:
            self.close()
            raise
        return self

    @property
    def lost(self) -> bool:
        return self._conversation.over is not None

    def check(self) -> None:
        """Raises AgentLost if it is lost."""
        if self._conversation.over is not None:
            raise self._conversation.error

    async def call(self, kind: type[calls.Call], *fields: Any, timeout: float = CALL_TIMEOUT) -> Any:  # noqa: ASYNC109 - an agent's, not the loop's
        """Ask and wait. Raises what the agent answers, ``Timeout`` when it is silent, ``AgentLost`` when it is gone."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self.begin(kind, fields, future, timeout=timeout)
        return await future

    ask = call  # The same for a call that the agent answers by itself; threads have a shorter way for these.

    def answer(self) -> asyncio.Future[Any]:
        """For ``begin``: what waits for an answer."""
        return self._loop.create_future()

    async def answered(self, answer: asyncio.Future[Any]) -> Any:
        """Wait for it. Raises as ``call`` does; the time limit is the one that ``begin`` was given."""
        return await answer

    async def stop(self, grant: int) -> None:
        """No process acts under it any more, and its stream is over: said at once, so that the agent wakes up once."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self.begin(calls.Stopped, (grant,), future)
        self.close_stream(grant)
        await future

    def begin(
        self, kind: type[calls.Call], fields: tuple[Any, ...], waiter: Waiter, *, sink: Sink | None = None, timeout: float = CALL_TIMEOUT
    ) -> int:
        """Ask. The answer goes to the waiter, what is pushed to the sink; returns the serial."""
        self._write(self._conversation.begin(kind, fields, waiter, self._loop.time() + timeout, sink))
        if self._looking is None:
            self._looking = self._loop.call_later(LOOK_PERIOD, self._look)
        return self._conversation.serial

    def tell(self, kind: type[calls.Call], *fields: Any) -> None:
        """Ask, and wait for nothing."""
        self.begin(kind, fields, NOBODY)

    def open_stream(self, kind: type[calls.Call], fields: tuple[Any, ...], sink: Sink) -> int:
        """Ask for a stream, and wait for nothing: a refusal ends the stream. Returns its serial."""
        return self.begin(kind, fields, Opening(sink), sink=sink)

    def notice(self, on_lost: Callable[[HoldfastError], None]) -> None:
        """From now on ``on_lost`` is called, once, when the agent is gone. If it is gone already, AgentLost."""
        self.check()
        self._on_lost = on_lost

    def close_stream(self, serial: int) -> None:
        self._write(self._conversation.close_stream(serial))

    def close(self) -> None:
        """What was written is sent before the connection ends."""
        self._on_lost = None
        self._flush()
        self._end(agent_lost(self.path, "this connection was closed"))

    # Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # Other loops have transports of their own class.

    def data_received(self, data: bytes) -> None:
        try:
            self._write(self._conversation.receive(data))
        except HoldfastError as error:
            self._end(error)

    def eof_received(self) -> None:
        self._end(agent_lost(self.path, ENDED))

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(agent_lost(self.path, f"it ended ({exc})" if exc else ENDED))

    def _write(self, frame: bytes) -> None:
        if not frame:
            return
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(frame)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _look(self) -> None:
        self._looking = None
        for waiter in self._conversation.expire(self._loop.time()):
            if not waiter.done():
                waiter.set_exception(Timeout(f"agent {self.path}: no answer in time; is its machine overloaded, or the agent stopped?"))
        if self._conversation.waiting:
            self._looking = self._loop.call_later(LOOK_PERIOD, self._look)

    def _end(self, error: HoldfastError) -> None:
        if self._transport is not None:
            self._transport.close()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self._conversation.lose(error)
        on_lost, self._on_lost = self._on_lost, None
        if on_lost is not None:
            on_lost(self._conversation.error)


class Opening:
    """Waits for the answer that opens a stream: only a refusal matters, and it ends the stream."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def set_result(self, value: Any, /) -> None: ...
    def set_exception(self, error: HoldfastError, /) -> None:
        self._sink.end(error)

    def done(self) -> bool:
        return False
