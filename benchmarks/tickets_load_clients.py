"""Clients of `tickets-load`: ``python -m benchmarks.tickets_load_clients AGENT GROUP POOL OF CLIENTS``, each with a connection of its own.

Orders come as lines of JSON, each is answered by one line:

    {"do": "hold", "count": 12, "within": 60}   so many tickets, by one client after the other: how many were granted, when the last one was
    {"do": "look"}                              how many are held, how many were lost and why
    {"do": "churn", "seconds": 10, "extra": 8}  so many more wait; a client that is served gives one back and asks again
    {"do": "ask", "wait": false, "timeout": 3}  one more: what it is told
    {"do": "end"}                               all is given back
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import holdfast
from benchmarks.ring_fleet import now
from holdfast.errors import HoldfastError

TEXTS_MAX = 8  # different reasons that are told


class Clients:
    """All clients of one agent, and what they hold."""

    def __init__(self, groups: list[holdfast.Group], pool: str, of: int) -> None:
        self._groups, self._pool, self._of = groups, pool, of
        self._held: deque[holdfast.Ticket] = deque()
        self._whys: Counter[str] = Counter()
        self.lost = 0

    async def hold(self, count: int, within: float) -> Mapping[str, Any]:
        began_at = now()
        takers = [self._groups[number % len(self._groups)] for number in range(count)]
        waits = await asyncio.gather(*(self._take(group, within) for group in takers))
        taken = sorted(wait for wait in waits if wait is not None)
        return {"granted": len(taken), "seconds": now() - began_at, "last": taken[-1] if taken else 0.0, **self.look()}

    async def _take(self, group: holdfast.Group, within: float) -> float | None:
        """Seconds until it was held; None if it never was."""
        asked_at = now()
        ticket = group.ticket(self._pool, of=self._of, timeout=within)
        try:
            await ticket.__aenter__()
        except HoldfastError as error:
            self._whys[f"{type(error).__name__}: {error}"] += 1
            return None
        self._held.append(ticket)
        return now() - asked_at

    def look(self) -> Mapping[str, Any]:
        for ticket in [each for each in self._held if not each.valid]:
            self._held.remove(ticket)
            self._lose(ticket)
        return {"held": len(self._held), "lost": self.lost, "whys": dict(self._whys.most_common(TEXTS_MAX))}

    def _lose(self, ticket: holdfast.Ticket) -> None:
        self.lost += 1
        self._whys[f"lost: {ticket.why or 'its deadline has passed'}"] += 1

    async def churn(self, seconds: float, extra: int) -> Mapping[str, Any]:
        """Closed loop: ``extra`` of them always wait, because each that is served gives back the ticket that was held longest."""
        end_at = now() + seconds
        waits: list[float] = []

        async def one(number: int) -> None:
            group = self._groups[number % len(self._groups)]
            while now() < end_at:
                took = await self._take(group, max(0.1, end_at + 5.0 - now()))
                if took is None:
                    return
                waits.append(took)
                await self._give_back()

        # There have to be some to be waited for: each gives one back, and its next owner is one that waits.
        await asyncio.gather(*(one(number) for number in range(extra)), *(self._give_back() for _ in range(extra)))
        waits.sort()
        return {"granted": len(waits), "p50": waits[len(waits) // 2] if waits else 0.0, **self.look()}

    async def _give_back(self) -> None:
        while self._held:
            ticket = self._held.popleft()
            if ticket.valid:
                await ticket.release()
                return
            self._lose(ticket)

    async def ask(self, **options: Any) -> Mapping[str, Any]:
        try:
            async with self._groups[0].ticket(self._pool, of=self._of, **options) as ticket:
                return {"told": f"ticket {ticket.number}"}
        except HoldfastError as error:
            return {"told": f"{type(error).__name__}: {error}"}

    async def end(self) -> Mapping[str, Any]:
        await asyncio.gather(*(ticket.release() for ticket in self._held))
        return {}


async def main() -> None:
    agent, group, pool, of, count = sys.argv[1:]
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        groups = [await stack.enter_async_context(holdfast.join(group, agent=agent)) for _ in range(int(count))]
        clients = Clients(groups, pool, int(of))
        _say({"ready": True})
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            order = json.loads(line)
            answer = getattr(clients, order.pop("do"))(**order)
            _say(await answer if asyncio.iscoroutine(answer) else answer)


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
