"""Requests one by one: when each came, how long it waited, and in which second it went.  Spec: limits 5.1, 8 (P2, P2m, P3).

A caller is the program in one worker process of a machine. Its requests wait in the order in which they came. The process looks whenever
one comes, when its bucket says that the next one may go, and when its agent tells it something.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from math import inf
from random import Random
from typing import Literal, NamedTuple

from holdfast.features.limits.bucket import NEVER, SECOND, cost_micros, nanos
from holdfast.features.limits.lab.crews import Crew, Process
from holdfast.lab.host import LabTimer
from holdfast.lab.world import World

COST = 1.0  # of each request
WAITING_MAX = 200_000  # requests of one caller: a minute of the largest load, twice


class Load(NamedTuple):
    """What a program asks for."""

    kind: Literal["none", "paced", "poisson", "tasks"]
    amount: float = 0.0  # requests per second; or tasks, each of which asks again as soon as it was let go


NO_LOAD = Load("none")


class Went(NamedTuple):
    """One request."""

    at: float
    waited: float


class Caller:
    """One program. It lives as long as the machine: a worker process that takes the place of a dead one goes on with the same load."""

    def __init__(self, world: World, crew: Crew, limit: str, seed: str) -> None:
        self._world, self._crew, self._limit = world, crew, limit
        self._random = Random(f"{seed}/callers/{crew.name}")
        self.load = NO_LOAD
        self.went: list[Went] = []
        self._waiting: deque[float] = deque()
        self._turn = 0  # grows with every load: arrivals of a former one do not come
        self._timer: LabTimer | None = None
        told = crew.on_admission

        def admitted(limit: str, cost: float) -> None:
            told(limit, cost)
            self._on_admitted()

        crew.on_admission = admitted
        crew.on_look = self._on_look

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def begin(self, load: Load) -> None:
        """From now on; what waits goes on to wait, but for the requests of tasks."""
        if self.load.kind == "tasks":
            self.drop()
        self.load = load
        self._turn += 1
        if load.kind == "tasks":
            for _ in range(int(load.amount)):
                self._ask()
        elif load.amount > 0:
            self._expect(self._turn, first=True)

    def drop(self) -> None:
        """All that waits gives up."""
        process = self._process
        if process is not None:
            process.parts[self._limit].waiting -= COST * len(self._waiting)
        self._waiting.clear()

    # Inside.

    @property
    def _process(self) -> Process | None:
        return self._crew.processes[0] if self._crew.processes else None

    def _expect(self, turn: int, *, first: bool = False) -> None:
        gap = self._random.expovariate(self.load.amount) if self.load.kind == "poisson" else 1 / self.load.amount
        self._world.at(self._world.now + gap * (self._random.random() if first else 1.0), lambda: self._on_arrival(turn))

    def _on_arrival(self, turn: int) -> None:
        if turn == self._turn:
            self._ask()
            self._expect(turn)

    def _ask(self) -> None:
        process = self._process
        assert process is not None, "a load begins when processes run"
        if not process.running or len(self._waiting) >= WAITING_MAX:
            return
        self._enter(process)
        process.look()

    def _enter(self, process: Process) -> None:
        part = process.parts[self._limit]
        self._waiting.append(self._world.now)
        part.arrived += COST
        part.waiting += COST

    def _on_admitted(self) -> None:
        now = self._world.now
        self.went.append(Went(now, now - self._waiting.popleft()))
        process = self._process
        if self.load.kind == "tasks" and process is not None:
            self._enter(process)

    def _on_look(self, process: Process) -> None:
        """When the first one that waits may go."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting or not process.running:
            return
        ready_in = process.parts[self._limit].bucket.ready_in(nanos(self._crew.now), cost_micros(COST))
        if ready_in < NEVER:
            after = (ready_in + 1) / SECOND / self._crew.agent.rate
            self._timer = self._world.at(self._world.now + after, lambda: self._look_again(process))

    def _look_again(self, process: Process) -> None:
        self._timer = None
        if process.running:
            process.look()


def per_second(went: Sequence[Went], begin: float, end: float) -> list[int]:
    """Requests that went in each second."""
    counts = Counter(int(each.at - begin) for each in went if begin <= each.at < end)
    return [counts[second] for second in range(int(end - begin))]


def rate(went: Sequence[Went], begin: float, end: float) -> float:
    return sum(begin <= each.at < end for each in went) / (end - begin)


def wait_p99(went: Sequence[Went], begin: float, end: float) -> float:
    """Of the requests that went in this time, seconds."""
    waits = sorted(each.waited for each in went if begin <= each.at < end)
    return waits[min(len(waits) - 1, int(0.99 * len(waits)))] if waits else inf


def most_in_a_second(went: Sequence[Went]) -> int:
    """In any second, wherever it begins."""
    times = sorted(each.at for each in went)
    most, first = 0, 0
    for last, at in enumerate(times):
        while times[first] <= at - 1.0:
            first += 1
        most = max(most, last - first + 1)
    return most


def callers_of(world: World, crews: Sequence[Crew], limit: str) -> list[Caller]:
    return [Caller(world, crew, limit, str(world.seed)) for crew in crews]


def everywhere(callers: Sequence[Caller], load: Callable[[int], Load]) -> None:
    """Each begins its load, by its number."""
    for number, caller in enumerate(callers):
        caller.begin(load(number))
