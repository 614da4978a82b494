"""An agent that answers, found or started while a loop runs.  ``start`` does the work, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from holdfast.client import start
from holdfast.client.options import Plan
from holdfast.client.start import NotWanted, Reached
from holdfast.errors import HoldfastError


async def reach(plan: Plan, end_at: float, stopped: Callable[[], bool]) -> Reached:
    """``start.reach`` in a thread. If this task is cancelled it ends what it started before the cancellation goes on; if it is cancelled
    once more, the thread does so without it."""
    stop = False

    def reached() -> Reached:
        found = start.reach(plan, end_at, lambda: stop or stopped())
        if stop and found.child is not None:  # It was ready in the same moment.
            found.child.end()
        return found

    running = asyncio.ensure_future(asyncio.to_thread(reached))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop = True
        with suppress(NotWanted, HoldfastError):
            found = await running
            if found.child is not None:
                await asyncio.to_thread(found.child.end)
        raise
