"""Callers of one process: single requests that arrive, wait in order and go.  Spec: limits 5.1, 8 (P2, P2m, P3).

The scenario's processes want so much per second; here each request counts, with how long it waited.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from holdfast.features.limits.bucket import NEVER, cost_micros, nanos
from holdfast.features.limits.lab.crews import Crew, Part, Process

COST = 1.0
MOMENT = 1e-6  # seconds: rounding of instants
Gap = Callable[[], float]  # seconds until the next request


def paced(rate: float) -> Gap:
    return lambda: 1 / rate


def poisson(rate: float, random: Random) -> Gap:
    return lambda: random.expovariate(rate)


class Callers:
    """Open loop: requests arrive whatever became of the earlier ones. Closed loop (``tasks``): each begins when the one before it went."""

    def __init__(self, crew: Crew, limit: str, *, gap: Gap | None = None, tasks: int = 0) -> None:
        self.crew, self.limit = crew, limit
        self.gap = gap
        self.went: list[tuple[float, float]] = []  # when, and after how long a wait
        self._world = crew.world
        self._tasks = tasks
        self._queue: deque[float] = deque()
        self._round = 0  # of arrivals: what was planned before does not count any more
        self._process: Process | None = None
        self._ready_at = 0.0  # it looks again then, if requests wait; one such look at a time

    def begin(self) -> None:
        """From now on."""
        for _ in range(self._tasks):
            self._arrive()
        self.change(self.gap)

    def change(self, gap: Gap | None) -> None:
        """Requests arrive at another pace, or none do."""
        self.gap = gap
        self._round += 1
        self._plan(self._round)

    def rate(self, begin: float, end: float) -> float:
        """Requests per second that went in this time."""
        return sum(begin <= at < end for at, _ in self.went) / (end - begin)

    def waits(self, begin: float, end: float) -> list[float]:
        return sorted(wait for at, wait in self.went if begin <= at < end)

    def _plan(self, number: int) -> None:
        if self.gap is not None and number == self._round:
            self._world.at(self._world.now + self.gap(), lambda: self._on_arrival(number))

    def _on_arrival(self, number: int) -> None:
        if number == self._round:
            self._arrive()
            self._plan(number)

    def _arrive(self) -> None:
        process = self.crew.processes[0]
        if not process.running:
            return
        part = self._part(process)
        part.arrived += COST
        part.waiting += COST
        self._queue.append(self._world.now)
        self._serve(process, part)

    def _part(self, process: Process) -> Part:
        part = process.parts[self.limit]
        if process is not self._process:
            self._process = process
            self._queue.clear()
            part.on_taken = self._on_taken
        return part

    def _serve(self, process: Process, part: Part) -> None:
        process.look()
        now = self._world.now
        if self._queue and process.running and self._ready_at <= now:
            wait = part.bucket.ready_in(nanos(self.crew.now), cost_micros(COST))
            if wait != NEVER:
                self._ready_at = now + wait / 1e9 / self.crew.agent.rate + MOMENT
                self._world.at(self._ready_at, lambda: self._on_ready(process, part))

    def _on_ready(self, process: Process, part: Part) -> None:
        self._ready_at = 0.0
        if process.running and self._queue and part.waiting >= COST:
            self._serve(process, part)

    def _on_taken(self) -> None:
        if self._queue:
            self.went.append((self._world.now, self._world.now - self._queue.popleft()))
        if self._tasks:
            self._world.soon(self._arrive)


def most_in(callers: list[Callers], seconds: float, begin: float, end: float) -> int:
    """The most requests of all of them that went in any window of so many seconds."""
    times = sorted(at for each in callers for at, _ in each.went if begin <= at < end)
    most, first = 0, 0
    for last, at in enumerate(times):
        while at - times[first] >= seconds:
            first += 1
        most = max(most, last - first + 1)
    return most


def at_share(values: list[float], share: float) -> float:
    """A percentile of sorted values."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0
