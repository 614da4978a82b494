"""How a task waits for what it holds, and works under it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import TypeVar

from holdfast.client.holding import Held
from holdfast.host import SLEEP_MAX
from holdfast.net.clock import now

R = TypeVar("R")

LOOK_PERIOD = 1.0  # seconds; timers of a loop stand still while the machine is suspended (F10)

Ended = asyncio.Future  # what a function returned or raised


class Awaited(Held):
    """Something held that tasks wait for."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(kind, name)
        self._news = asyncio.Event()
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def lost(self) -> asyncio.Future[str]:
        """Awaitable: completes, with the reason, when it is lost, told to stop, or its deadline has passed on this machine's clock."""
        self._changed()
        return asyncio.shield(self._lost)

    async def _until(self, true: Callable[[], bool], end_at: float) -> bool:
        """Wait until something is true of it; False if time is up before."""
        while not true():
            if now() >= end_at:
                return False
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if end_at == inf else max(0.0, end_at - now())):
                    await self._news.wait()
        return True

    def _changed(self) -> None:
        self._news.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._look():
            if not self._lost.done():
                self._lost.set_result(self.why)
        elif self._granted:
            # Timers of a loop stand still while the machine is suspended, so none is longer than a second (F10).
            wait = min(SLEEP_MAX, max(0.0, self.deadline - now()))
            self._timer = self._lost.get_loop().call_later(wait, self._changed)


H = TypeVar("H", bound=Awaited)


async def worked(function: Callable[[H], Awaitable[R]], held: H, notice: float) -> Ended[R] | None:
    """Run a function while something is held. It is cancelled ``notice`` seconds before the deadline, or when the hold is over.

    None: it had to be stopped, or stopped because ``check()`` said so. In any case it has ended."""
    work = asyncio.ensure_future(_awaited(function, held))
    lost = held.lost
    try:
        while not work.done() and held.left > notice:
            await asyncio.wait((work, lost), timeout=min(LOOK_PERIOD, held.left - notice), return_when=asyncio.FIRST_COMPLETED)
        in_time = work.done()
    finally:
        await _stopped(work)
    checked = not work.cancelled() and isinstance(work.exception(), held.lost_error) and not held.valid
    return work if in_time and not checked else None


async def _awaited(function: Callable[[H], Awaitable[R]], held: H) -> R:
    return await function(held)


async def _stopped(work: asyncio.Future[R]) -> None:
    """Ends it, however often this is cancelled meanwhile: the agent hears "stopped" after this (F14)."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        work.cancel()
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
