"""How tasks of one event loop take turns, wait, and run something beside them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any

from holdfast.host import SLEEP_MAX
from holdfast.net.clock import now

ROOM = "client"  # the module in a feature's folder that has its client, in this spelling

in_thread = asyncio.to_thread  # What would hold up the loop.
as_block = asynccontextmanager  # A function with one ``yield`` is entered as a block.


class Guard:
    """Of what several callers change. Tasks of one loop take turns at an ``await`` alone, so there is nothing to do."""

    def __enter__(self) -> None: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...


class Flag:
    """Set once; callers may wait for it."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self, timeout: float) -> bool:  # noqa: ASYNC109 - as threading.Event
        """Whether it was set in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._event.wait()
        return self._event.is_set()


class News:
    """What is true of something may have changed; callers wait until it is what they want."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def tell(self) -> None:
        self._event.set()

    async def until(self, true: Callable[[], bool], end_at: float) -> bool:
        """Wait until it is true; False if time is up before. Timers of a loop stand still while the machine is suspended (F10)."""
        while not true():
            if now() >= end_at:
                return False
            self._event.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, min(SLEEP_MAX, end_at - now()))):
                    await self._event.wait()
        return True


class Beside:
    """One function that runs while its caller goes on."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def run(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = asyncio.get_running_loop().create_task(function())

    async def stop(self) -> None:
        """It does not run on return."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


async def all_done(functions: Iterable[Callable[[], Coroutine[Any, Any, None]]]) -> None:
    """Call all of them, at the same time."""
    await asyncio.gather(*(function() for function in functions))
