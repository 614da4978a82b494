"""Both spellings of the client behind one set of verbs, so that a test says what must hold once and runs twice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

from holdfast.client.aio import group as aio
from holdfast.client.sync import group as blocking

DEADLINE = 60.0  # seconds; only a broken program reaches it


class Blocking:
    """Calls are made as they stand."""

    name = "blocking"

    def join(self, *args: Any, **options: Any) -> Any:
        return blocking.join(*args, **options)

    def run(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return function(*args, **options)

    def next(self, stream: Any) -> Any:
        return stream.next(timeout=DEADLINE)

    def enter(self, holding: Any) -> Any:
        return holding.__enter__()

    def exit(self, holding: Any) -> None:
        holding.__exit__(None, None, None)

    def lost(self, holding: Any) -> str:
        assert holding.lost.wait(DEADLINE)
        return str(holding.why)

    def close(self) -> None:
        """Nothing runs."""


class Aio:
    """Calls are made inside an event loop that runs in a thread; the test's thread waits."""

    name = "aio"

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            self._stop = asyncio.Event()
            runner.run(self._stop.wait())

    def join(self, *args: Any, **options: Any) -> Any:
        return self.run(lambda: aio.join(*args, **options))

    def run(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self.start(function, *args, **options).result(DEADLINE)

    def start(self, function: Callable[..., Any], *args: Any, **options: Any) -> Future[Any]:
        async def inside() -> Any:
            result = function(*args, **options)
            return await result if inspect.isawaitable(result) else result

        return asyncio.run_coroutine_threadsafe(inside(), self.loop)

    def next(self, stream: Any) -> Any:
        return self.run(stream.__anext__)

    def enter(self, holding: Any) -> Any:
        return self.run(holding.__aenter__)

    def exit(self, holding: Any) -> None:
        self.run(holding.__aexit__, None, None, None)

    def lost(self, holding: Any) -> str:
        return str(self.run(lambda: holding.lost))

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


Spelling = Blocking | Aio
