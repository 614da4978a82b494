"""Something that a loop does again and again, as long as its owner is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakMethod


class Beat:
    """Calls a method; it returns the seconds until the next call. It is referenced weakly: with its object it ends."""

    def __init__(self, method: Callable[[], float]) -> None:
        self._method = WeakMethod(method)
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | asyncio.Handle | None = None
        self._over = False

    def hurry(self) -> None:
        """The next call comes as soon as the caller has ended its turn."""
        if self._timer is not None:
            self._timer.cancel()
        if not self._over:
            self._timer = self._loop.call_soon(self._call)

    def stop(self) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _call(self) -> None:
        method = self._method()
        if method is None or self._over:
            return
        pause = method()
        if not self._over:
            self._timer = self._loop.call_later(pause, self._call)
