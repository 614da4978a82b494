"""A real agent inside the test process: its loop runs in a thread, so that tests may block.

with Live(folder) as live, RawClient(live.path) as client:
    live.call(lambda: live.agent.host.emit(event))
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from holdfast.agent.life.agent import Agent
from holdfast.agent.life.home import Home
from holdfast.agent.observe.logs import Log
from holdfast.agent.socket.api import LocalServer
from holdfast.config import load
from tests.support.agents import until

T = TypeVar("T")

WAIT = 60.0  # seconds; only a broken agent or a broken machine reaches it


class Live:
    """One agent and its local socket."""

    def __init__(self, folder: Path, *, prepare: Callable[[Agent], None] = lambda agent: None, **settings: Any) -> None:
        self.path = str(folder / "agent.sock")
        self._folder, self._prepare = folder, prepare
        self._settings = {"group": "live", "bind": "127.0.0.1:0", "socket": self.path, "preset": "local", **settings}
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, name="agent")
        self.loop: asyncio.AbstractEventLoop
        self.agent: Agent
        self.server: LocalServer
        self._over: asyncio.Event

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result(WAIT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.loop.call_soon_threadsafe(self._over.set)
        self._thread.join(WAIT)
        assert not self._thread.is_alive()

    def until_member(self) -> None:
        """It has founded its ring, and owns every key."""
        until(lambda: self.turn(lambda: self.agent.owns(b"key")) is not None, "it is a member")

    def call(self, step: Callable[[], T]) -> T:
        """Run it in the loop's thread."""

        async def run() -> T:
            return step()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(WAIT)

    def turn(self, step: Callable[[], T]) -> T:
        """Run it in a turn of the host."""
        answer: Future[T] = Future()

        def run() -> None:
            answer.set_result(step())

        self.call(lambda: self.agent.host.post(run))
        return answer.result(WAIT)

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _run(self) -> None:
        self.loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        home = Home.open(load(None, {}, self._settings), {"HOLDFAST_RUNTIME_DIR": str(self._folder)})
        quiet = os.open(os.devnull, os.O_WRONLY)
        try:
            self.agent = await Agent.open(home, Log(level="error", fd=quiet))
            self._prepare(self.agent)
            self.agent.start()
            self.server = await LocalServer.start(self.agent, self.path)
            self._started.set_result(None)
            await self._over.wait()
            await self.server.close()
            await self.agent.close()
        finally:
            home.close()
            os.close(quiet)
