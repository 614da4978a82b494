"""Limits that a test fills by hand: tokens, a queue, what was told to the group. The same for threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec

from holdfast import Timeout

P = ParamSpec("P")


def in_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine, in an event loop of its own."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class FakeAsyncLimiter:
    """Costs go while there are ``tokens``; the others wait in their order."""

    def __init__(self, tokens: float = 0.0, share: float = 10.0) -> None:
        self.tokens, self.share = tokens, share
        self.waiters: deque[tuple[float, asyncio.Future[None]]] = deque()
        self.costs: list[float] = []
        self.penalties: list[tuple[float, float]] = []
        self.fails_with: Exception | None = None

    def try_acquire(self, cost: float = 1) -> bool:
        if self.waiters or self.tokens < cost:
            return False
        self.tokens -= cost
        self.costs.append(cost)
        return True

    async def acquire(self, cost: float = 1, *, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as the real one
        if self.fails_with:
            raise self.fails_with
        if self.try_acquire(cost):
            return
        entry = (cost, asyncio.get_running_loop().create_future())
        self.waiters.append(entry)
        try:
            async with asyncio.timeout(timeout):
                await entry[1]
        except TimeoutError:
            raise Timeout("not in time") from None
        finally:
            with suppress(ValueError):
                self.waiters.remove(entry)
        self.costs.append(cost)

    async def penalize(self, seconds: float, *, factor: float = 0.5) -> None:
        if self.fails_with:
            raise self.fails_with
        self.penalties.append((seconds, factor))

    def give(self) -> None:
        """The first waiter may go."""
        self.waiters.popleft()[1].set_result(None)


class FakeLimiter:
    """As above, for threads, without a queue: who may not go waits until ``tokens`` are there."""

    def __init__(self, tokens: float = 0.0, share: float = 10.0) -> None:
        self.tokens, self.share = tokens, share
        self.costs: list[float] = []
        self.timeouts: list[float | None] = []
        self.penalties: list[tuple[float, float]] = []
        self._changed = threading.Condition()  # of an RLock: what waits calls try_acquire

    def try_acquire(self, cost: float = 1) -> bool:
        with self._changed:
            if self.tokens < cost:
                return False
            self.tokens -= cost
            self.costs.append(cost)
            return True

    def acquire(self, cost: float = 1, *, timeout: float | None = None) -> None:
        with self._changed:
            self.timeouts.append(timeout)
            if not self._changed.wait_for(lambda: self.try_acquire(cost), timeout):
                raise Timeout("not in time")

    def penalize(self, seconds: float, *, factor: float = 0.5) -> None:
        self.penalties.append((seconds, factor))

    def give(self, tokens: float) -> None:
        with self._changed:
            self.tokens += tokens
            self._changed.notify_all()


class FakeGroup:
    """Makes a limiter per name, and remembers what it was asked for."""

    def __init__(self, kind: type[Any], **of_each: float) -> None:
        self._kind, self._of_each = kind, of_each
        self.made: dict[str, Any] = {}
        self.asked: dict[str, dict[str, Any]] = {}
        self.left = 0

    def limit(self, name: str, **options: Any) -> Any:
        assert name not in self.made
        self.made[name], self.asked[name] = self._kind(**self._of_each), options
        return self.made[name]

    def leave(self) -> None:
        self.left += 1
