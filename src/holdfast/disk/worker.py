"""A thread that waits for the disk, so that the loop does not.  Spec: foundation 3 (Storage).

A client that is granted something waits for this: a step costs one wake-up of the thread and one of the loop, and nothing else. An executor
of the standard library adds two futures to that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

Then = Callable[[BaseException | None], None]


class Step(NamedTuple):
    """What is to be done, and who hears of it where."""

    loop: asyncio.AbstractEventLoop
    do: Callable[[], None]
    then: Then


class Worker:
    """Does one step after the other. A process that ends does not wait for it: that is a crash, which journals survive."""

    def __init__(self, name: str) -> None:
        self._steps: SimpleQueue[Step | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._started = False

    def ask(self, do: Callable[[], None], then: Then) -> None:
        """``then`` runs on the present loop, with what was raised."""
        if not self._started:
            self._started = True
            self._thread.start()
        self._steps.put(Step(asyncio.get_running_loop(), do, then))

    def close(self) -> None:
        """Wait for the steps that were asked for."""
        if self._started:
            self._steps.put(None)
            self._thread.join()

    def _run(self) -> None:
        while (step := self._steps.get()) is not None:
            error: BaseException | None = None
            try:
                step.do()
            except BaseException as caught:  # Whatever it is: what should be durable is not.
                error = caught
            with suppress(RuntimeError):  # The loop is closed, and with it all that waited.
                step.loop.call_soon_threadsafe(step.then, error)
