"""Something that is done again and again, as long as its owner is there; one thread does so for the whole process."""

from __future__ import annotations

import os
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Thread
from weakref import WeakMethod

from holdfast.host import SLEEP_MAX
from holdfast.net.clock import now

IDLE_TIMEOUT = 30.0  # seconds without anything to do, after which the thread ends; the next beat starts another one


class Beat:
    """Calls a method; it returns the seconds until the next call. It is referenced weakly: with its object it ends."""

    def __init__(self, method: Callable[[], float]) -> None:
        self._method = WeakMethod(method)
        self._turn = 0  # only the entry with this number counts
        self._over = False

    def hurry(self) -> None:
        """The next call comes at once, in the thread of all beats."""
        if not self._over:
            _beats().add(self, 0.0)

    def stop(self) -> None:
        self._over = True

    def call(self) -> float | None:
        """Seconds until the next call; None: there is none."""
        method = self._method()
        if method is None or self._over:
            return None
        pause = method()
        return None if self._over else pause


class Beats:
    """The beats of one process, and the thread that does them."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._news = Condition()
        self._due: list[tuple[float, int, Beat]] = []
        self._numbers = count(1)
        self._running = False

    def add(self, beat: Beat, pause: float) -> None:
        with self._news:
            beat._turn = number = next(self._numbers)
            heappush(self._due, (now() + pause, number, beat))
            if self._running:
                self._news.notify()
            else:
                self._running = True
                Thread(target=self._run, name="holdfast beats", daemon=True).start()

    def _run(self) -> None:
        try:
            while (beat := self._next()) is not None:
                pause = beat.call()
                if pause is not None:
                    self._again(beat, pause)
        except BaseException:
            with self._news:
                self._running = False  # The next beat starts another thread.
            raise

    def _again(self, beat: Beat, pause: float) -> None:
        with self._news:
            if not any(number == beat._turn for _, number, each in self._due if each is beat):  # Else it was hurried meanwhile.
                beat._turn = number = next(self._numbers)
                heappush(self._due, (now() + pause, number, beat))

    def _next(self) -> Beat | None:
        """Wait for it. None: nothing came for a long time, and the thread ends."""
        idle_at = now() + IDLE_TIMEOUT
        with self._news:
            while True:
                while self._due and self._due[0][1] != self._due[0][2]._turn:
                    heappop(self._due)  # It was hurried since.
                if not self._due and now() >= idle_at:
                    self._running = False
                    return None
                left = (self._due[0][0] if self._due else idle_at) - now()
                if self._due and left <= 0:
                    return heappop(self._due)[2]
                self._news.wait(min(SLEEP_MAX, max(0.0, left)))


_kept: list[Beats] = []


def _beats() -> Beats:
    """Those of this process: a child of it has none of its parent's threads."""
    if not _kept or _kept[0].pid != os.getpid():
        _kept[:] = [Beats()]
    return _kept[0]
