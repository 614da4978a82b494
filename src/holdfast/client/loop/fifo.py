"""How tasks wait in line for something that comes back with time.  The first one looks; the others wait behind it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from math import inf

from holdfast.client.loop.tasks import Guard
from holdfast.host import SLEEP_MAX
from holdfast.net.clock import now


class Fifo:
    """A line. Cancelling a task that waits takes it out of the line, and nothing else."""

    def __init__(self) -> None:
        self.lock = Guard()  # of what ``take`` changes; a task runs to its next ``await`` by itself
        self._places: deque[_Place] = deque()

    def __len__(self) -> int:
        return len(self._places)

    def tell(self) -> None:
        """What the first one waits for may have changed."""
        if self._places:
            self._places[0].wake()

    async def wait(self, take: Callable[[], float], end_at: float) -> bool:
        """Wait until ``take`` took it, and returned 0. It is called for the first in the line alone, and else returns the seconds after
        which to try again. False if time is up before. Raises what it raises."""
        place = _Place()
        self._places.append(place)
        try:
            while True:
                left = take() if self._places[0] is place else inf
                if left <= 0:
                    return True
                if (rest := end_at - now()) <= 0:
                    return False
                await place.sleep(min(left, rest, SLEEP_MAX))  # Timers of a loop stand still while the machine is suspended (F10).
        finally:
            self._leave(place)

    def _leave(self, place: _Place) -> None:
        if self._places[0] is place:
            self._places.popleft()
            self.tell()
        else:
            self._places.remove(place)


class _Place:
    """One task in the line."""

    __slots__ = ("_sleeping",)

    def __init__(self) -> None:
        self._sleeping: asyncio.Future[None] | None = None

    async def sleep(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._sleeping = loop.create_future()
        timer = loop.call_later(seconds, self.wake)
        try:
            await self._sleeping
        finally:
            timer.cancel()
            self._sleeping = None

    def wake(self) -> None:
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)
