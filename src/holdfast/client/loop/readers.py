"""How a task reads a stream."""

from __future__ import annotations

import asyncio
import os
from typing import Generic, TypeVar

from holdfast.client.buffers import Buffer
from holdfast.client.wire import forked

T = TypeVar("T")


class Reader(Buffer[T], Generic[T]):
    """An async iterator over a buffer. It ends when the group is left, and raises what ended it otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        self._ready = asyncio.Event()

    def __aiter__(self) -> Reader[T]:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if os.getpid() != self._pid:
                raise forked()
            if self._over:
                raise StopAsyncIteration if self._error is None else type(self._error)(*self._error.args)
            self._ready.clear()
            await self._ready.wait()
        return self._items.popleft()

    def close(self) -> None:
        """Read no further. What is not referenced any more is closed as well."""
        self._items.clear()
        self.end(None)

    def _wake(self) -> None:
        self._ready.set()
