"""Timers of a host: what is due next?  Spec: foundation 3 (Host), F10 (order of due timers).

Protocols cancel most of the timers they set: a timeout is set with every request and cancelled by its answer. So cancelling only
empties the timer. It leaves the heap when it surfaces, or when most of the heap is dead.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

DEAD_MIN = 64  # cancelled timers that never trigger a compaction: a heap that small is cheap to carry


class HostTimer:
    """A callback that will run once. It is spent when it ran or was cancelled."""

    __slots__ = ("_timers", "callback", "due_at")

    def __init__(self, timers: Timers, due_at: float, callback: Callable[[], None]) -> None:
        self._timers = timers
        self.due_at = due_at
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers.on_cancelled()


class Timers:
    """A heap of timers. Timers with one due time run in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, HostTimer]] = []
        self._serial = 0
        self._dead = 0

    def __len__(self) -> int:
        """How many timers will still run."""
        return len(self._heap) - self._dead

    @property
    def held(self) -> int:
        """How many entries the heap holds, cancelled ones included."""
        return len(self._heap)

    def add(self, due_at: float, callback: Callable[[], None]) -> HostTimer:
        timer = HostTimer(self, due_at, callback)
        self._serial += 1
        heappush(self._heap, (due_at, self._serial, timer))
        return timer

    def next_due(self) -> float | None:
        """When the earliest timer that will still run is due."""
        heap = self._heap
        while heap:
            due_at, _, timer = heap[0]
            if timer.callback is not None:
                return due_at
            heappop(heap)
            self._dead -= 1
        return None

    def pop(self) -> Callable[[], None]:
        """The callback of the timer that ``next_due`` just spoke of. It is spent from here on."""
        timer = heappop(self._heap)[2]
        callback, timer.callback = timer.callback, None
        assert callback is not None
        return callback

    def on_cancelled(self) -> None:
        """A timer in the heap was emptied."""
        self._dead += 1
        if self._dead > DEAD_MIN and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapify(self._heap)
            self._dead = 0
