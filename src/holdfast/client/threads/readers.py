"""How a thread reads a stream."""

from __future__ import annotations

import os
from threading import Condition
from typing import Generic, TypeVar

from holdfast.client import checks
from holdfast.client.buffers import Buffer
from holdfast.client.checks import Seconds
from holdfast.client.wire import forked
from holdfast.errors import Timeout
from holdfast.net.clock import now

T = TypeVar("T")


class Reader(Buffer[T], Generic[T]):
    """An iterator over a buffer. It ends when the group is left, and raises what ended it otherwise. Several threads may read one: each
    item goes to one of them."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        self._news = Condition()

    def __iter__(self) -> Reader[T]:
        return self

    def __next__(self) -> T:
        return self.next()

    def next(self, timeout: Seconds | None = None) -> T:
        """The next item; raises ``Timeout`` if none came in time. 0 only looks."""
        limit = checks.patience(timeout)
        end_at = None if limit is None else now() + limit
        with self._news:
            while not self._items:
                if os.getpid() != self._pid:
                    raise forked()
                if self._over:
                    raise StopIteration if self._error is None else type(self._error)(*self._error.args)
                if end_at is not None and now() >= end_at:
                    raise Timeout(f"nothing came within {limit:g} s")
                self._news.wait(None if end_at is None else max(0.0, end_at - now()))
            return self._items.popleft()

    def close(self) -> None:
        """Read no further. What is not referenced any more is closed as well."""
        self._items.clear()
        self.end(None)

    def _wake(self) -> None:
        with self._news:
            self._news.notify_all()
