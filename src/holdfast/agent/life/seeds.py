"""Where to knock: seeds as a user wrote them, as addresses.  Spec: foundation F12 (literal addresses and names).

An address is used as it is. A name is asked for until it answers, and asked again as long as the agent lives, because in a cloud the seeds
of tomorrow are other ones: a group that lost sight of its seeds looks for them there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from holdfast.agent.observe.logs import Log
from holdfast.host import SEEDS_MAX, Address
from holdfast.net.resolve import REFRESH_INTERVAL, Lookup, Resolver, parse

RETRY_MIN, RETRY_MAX = 1.0, 30.0  # seconds between questions while no name has answered; doubled each time


class Seeds:
    """Calls ``found`` with the addresses when they are known, and again when they have changed."""

    def __init__(
        self, texts: Sequence[str], log: Log, found: Callable[[tuple[Address, ...]], None], *, lookup: Lookup | None = None
    ) -> None:
        self._endpoints = [parse(text) for text in texts]
        self._log, self._found = log, found
        self._resolver = Resolver(self._endpoints, on_change=self._on_change, lookup=lookup)
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def start(self) -> None:
        literal = [endpoint.literal for endpoint in self._endpoints]
        if None not in literal:
            self._on_change([address for address in literal if address is not None])
        else:
            self._task = asyncio.get_running_loop().create_task(self._ask())

    def stop(self) -> None:
        """Ask no more."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        self.stop()
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task

    async def _ask(self) -> None:
        delay = RETRY_MIN
        while not await self._resolver.refresh():
            self._log.warning("seeds unresolved", seeds=[str(each) for each in self._endpoints], retry_in=delay)
            await asyncio.sleep(delay)
            delay = min(RETRY_MAX, 2 * delay)
        while True:
            await asyncio.sleep(REFRESH_INTERVAL)
            await self._resolver.refresh()

    def _on_change(self, addresses: list[Address]) -> None:
        if self._stopped:
            return
        self._log.info("seeds", addresses=[str(each) for each in addresses])
        self._found(tuple(dict.fromkeys(addresses))[:SEEDS_MAX])


async def resolved(text: str) -> Address:
    """The first address that ``HOST:PORT`` stands for. Raises ``AddressUnusable``."""
    resolver = Resolver([parse(text)])
    try:
        return (await resolver.start())[0]
    finally:
        await resolver.close()
