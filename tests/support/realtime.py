"""Running tests in real time: one loop per test, and waiting that ends as soon as it can.

A test on real sockets never sleeps for a guessed while. It says what must become true and waits for that, up to a
deadline that only a broken program or a broken machine reaches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

DEADLINE = 30.0  # seconds; generous, because a shared machine may stand still for some of them
POLL_INTERVAL = 0.005


def run(main: Coroutine[Any, Any, T], *, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> T:
    """Run a test's coroutine to its end on a loop of its own, with asyncio's debug checks off and the deadline on."""
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(asyncio.wait_for(main, DEADLINE))


async def eventually(holds: Callable[[], object], what: str = "") -> None:
    """Wait until it holds; fails with its name after the deadline."""
    loop = asyncio.get_running_loop()
    end_at = loop.time() + DEADLINE
    while not holds():
        assert loop.time() < end_at, f"never happened: {what or holds}"
        await asyncio.sleep(POLL_INTERVAL)
