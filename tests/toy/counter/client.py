"""Counters for a program: ``group.counter(name)``."""

from __future__ import annotations

from holdfast.client.aio.link import Link
from tests.toy.counter.calls import CounterAdd, CounterValues


class Counter:
    """One counter of the group. Made by ``group.counter``."""

    def __init__(self, link: Link, name: str) -> None:
        self.name, self._link = name, link

    async def add(self, by: int = 1) -> int:
        """Add to it. Returns the value that this agent knows then."""
        return int(await self._link.call(CounterAdd, self.name, by))

    async def value(self) -> int:
        """As this agent knows it: what others added arrives within a second or two."""
        values: dict[str, int] = await self._link.ask(CounterValues)
        return values.get(self.name, 0)


ENTRIES = {"counter": Counter}
