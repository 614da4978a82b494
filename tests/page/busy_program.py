"""A program that uses rate limits, for pictures: ``python busy_program.py SOCKET STORY``.

``STORY`` is JSON: for each limit what ``group.limit`` is told, and how many requests a second arrive from when on.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from contextlib import suppress
from typing import Any

import holdfast
from holdfast.errors import LimitTimeout

TICK = 0.05  # seconds
PATIENCE = 3.0  # seconds for which a request waits


async def request(limit: Any) -> None:
    with suppress(LimitTimeout):
        await limit.acquire(timeout=PATIENCE)


async def use(limit: Any, wants: list[tuple[float, float]]) -> None:
    """Requests at random times; ``wants`` has seconds and requests a second."""
    loop, chance, under_way = asyncio.get_running_loop(), random.Random(1), set[asyncio.Task[None]]()
    began_at = loop.time()
    while True:
        want = next(want for since, want in reversed(wants) if loop.time() - began_at >= since)
        due = want * TICK
        for _ in range(int(due) + (chance.random() < due % 1)):
            task = asyncio.create_task(request(limit))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
        await asyncio.sleep(TICK)


async def main(socket: str, story: list[dict[str, Any]]) -> None:
    async with holdfast.join(agent=socket, reconnect=True) as group, asyncio.TaskGroup() as tasks:
        for each in story:
            tasks.create_task(use(group.limit(each["name"], **each["terms"]), each["wants"]))


asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
