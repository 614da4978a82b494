"""Running tests in real time: one loop per test, and waiting that ends as soon as it can.

A test on real sockets never sleeps for a guessed while. It says what must become true and waits for that, up to a
deadline that only a broken program or a broken machine reaches.

Where something must have happened before a moment, a machine that is late by more than the margin proves nothing. How late it is is
measured meanwhile: such an attempt is repeated and says so, every other miss fails at once (H208).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")

DEADLINE = 30.0  # seconds; generous, because a shared machine may stand still for some of them
POLL_INTERVAL = 0.005
TRIES = 3  # of what a late machine makes meaningless
LOOK_INTERVAL = 0.1  # seconds; a look at ten processes takes a millisecond or two
WINDOW = 1.0  # seconds; who waits a little all the time is not late, who waits for as long in one second is
LATE = "The machine was late by"  # how a line begins that every run shows (tests/told.py)


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


class Lateness:
    """How late the machine is in this block: for how long a process of this test, however it was started, waited for a core within a
    second, or a sleep of this process took too long (a machine that stood still). Linux; elsewhere sleeps alone are known."""

    def __init__(self) -> None:
        self.longest = 0.0  # seconds
        self._waited: dict[int, deque[tuple[float, float]]] = {}  # by process: when, and how long it had waited by then
        self._over = Event()
        self._thread = Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Self:
        for pid in family():
            self._waited[pid] = deque([(time.monotonic(), waited(pid))])
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _look_on(self) -> None:
        asleep_at = time.monotonic()
        while not self._over.wait(LOOK_INTERVAL):
            self.longest = max(self.longest, time.monotonic() - asleep_at - LOOK_INTERVAL)
            self._look()
            asleep_at = time.monotonic()

    def _look(self) -> None:
        now = time.monotonic()
        for pid in family():
            seen = self._waited.setdefault(pid, deque([(now, 0.0)]))
            seen.append((now, waited(pid)))
            while seen[1][0] < now - WINDOW:
                seen.popleft()
            self.longest = max(self.longest, seen[-1][1] - seen[0][1])


def repeated(attempt: Callable[[int], str], *, margin: float, lateness: Callable[[], Lateness] = Lateness) -> None:
    """An attempt gets its number, and returns what it missed, or "". A miss fails at once unless the machine was late by more than the
    margin, in seconds: then that is said, and it is tried again."""
    for number in range(TRIES):
        with lateness() as late:
            missed = attempt(number)
        if not missed:
            return
        assert late.longest > margin, (
            f"{missed}; the machine was late by {late.longest * 1000:.0f} ms, and {margin * 1000:.0f} ms are allowed"
        )
        say_late(late.longest, missed)
    raise AssertionError(f"{missed}, in each of {TRIES} attempts, and each time the machine was late")


def say_late(seconds: float, missed: str) -> None:
    """For the reader of the run: this is tried again, and why."""
    print(f"{LATE} {seconds * 1000:.0f} ms; tried again: {missed}")  # noqa: T201 - read by tests/told.py


def family() -> Iterator[int]:
    """This process and all that descend from it."""
    found = [os.getpid()]
    for pid in found:
        with suppress(OSError):
            found += [int(each) for task in Path(f"/proc/{pid}/task").iterdir() for each in (task / "children").read_text().split()]
        yield pid


def waited(pid: int) -> float:
    """Seconds for which its main thread was ready and had no core."""
    with suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0
