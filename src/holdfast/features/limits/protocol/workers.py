"""The worker processes of one agent: what each may use of a limit, and was told.  Spec: limits 5.1, D22; F9, F14.

The agent's part is split by the rule of 5.2, and each worker keeps its own bucket. What a worker was told is held:
until it confirms less, is known to be dead, or its time has passed, the old rate counts as used, and another worker is
not raised into it (D22). A worker that hangs reports nothing, so it is told nothing new and its time runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Final, NamedTuple

from holdfast.features.limits.protocol.demand import RequestDemand
from holdfast.features.limits.protocol.outlet import NOTHING, Allotment, Outlet, Wants
from holdfast.features.limits.protocol.shares import WEIGHT_MAX, WEIGHT_MIN

WORKERS_MAX: Final = 64  # per agent and limit: the processes of one host, and a split among them costs microseconds
UNCONFIRMED_MAX: Final = 8  # that a worker may owe: one that confirms none of so many is not reading, and is told no more until it does
HEADROOM, RESERVE = 0.02, 0.05  # of the split among workers, as among members
SLACK: Final = 0.02  # a worker is not told of a change smaller than this part of its rate unless it has to be told anyway
SILENT_AFTER: Final = 2.0  # seconds without a report, eight at the default epoch: what it said to be waiting counts no more
RENEW_AFTER: Final = 1 / 3  # of the time that an active worker was given: then it is given more, and may miss two epochs
ROUNDING: Final = 1e-9  # sums of shares differ from the whole by no more than this part of it
DEPTH_MIN: Final = 1.0  # d_min, in cost


class Tell(NamedTuple):
    """What one worker may use, cost per second. ``until``, ``after`` and ``ends_at`` are as in ``Allotment``, but of this worker."""

    serial: int
    rate: float
    depth: float
    until: float
    after: float
    ends_at: float

    def usable(self, now: float) -> float:
        if now < self.until:
            return self.rate
        return self.left if now < self.ends_at else 0.0

    @property
    def left(self) -> float:
        """What remains of it past ``until``."""
        return min(self.rate, self.after)


class Worker:
    """One of them: what it said, and what it was told and may still go by."""

    __slots__ = ("active", "alone", "arrived", "demand", "heard_at", "short", "told", "told_at", "user", "waiting", "want", "weight")

    def __init__(self, weight: float, now: float) -> None:
        self.weight = weight
        self.demand = RequestDemand()
        self.arrived = 0.0  # since the last look
        self.waiting = 0.0
        self.user: float | None = None
        self.want = 0.0
        self.alone = False  # it lost its connection, and goes on by itself
        self.active = True  # it used or wanted something since it was told last
        self.short = False  # it was told less than its part, because others still held the rest
        self.heard_at = self.told_at = now
        self.told: list[Tell] = []  # the last one that it confirmed, and those that it did not; it may go by any of them

    @property
    def last(self) -> Tell | None:
        return self.told[-1] if self.told else None

    def held(self, now: float) -> float:
        """The most that it may use now."""
        return max((tell.usable(now) for tell in self.told if self._counts(tell, now)), default=0.0)

    def left(self, now: float) -> float:
        """The most that it may use once all the times in ``until`` have passed."""
        return max((tell.left for tell in self.told if now < tell.ends_at and self._counts(tell, now)), default=0.0)

    def _counts(self, tell: Tell, now: float) -> bool:
        """What has no end counts as long as the worker is heard of, or cannot be: one that is silent past its time uses nothing (H280)."""
        return now < tell.until or isfinite(tell.ends_at) or self.alone or now - self.heard_at <= SILENT_AFTER

    def confirm(self, serial: int) -> None:
        """What was told before counts no more."""
        while len(self.told) > 1 and self.told[1].serial <= serial:
            del self.told[0]


class Workers(Outlet):
    """The outlet of a limiter in an agent."""

    def __init__(self, clock: Callable[[], float], tell: Callable[[int, Tell], None]) -> None:
        self.on_less: Callable[[], None] = _nothing
        self._clock = clock
        self._tell = tell
        self._workers: dict[int, Worker] = {}
        self._allotment: Allotment = NOTHING
        self._serial = 0
        self._looked_at = clock()
        self._told = 0.0  # when it was last counted

    @property
    def told(self) -> float:
        """The most that all workers together may use now by what they were told."""
        now = self._clock()
        return sum(worker.held(now) for worker in self._workers.values())

    @property
    def full(self) -> bool:
        return len(self._workers) >= WORKERS_MAX

    @property
    def workers(self) -> Mapping[int, Worker]:
        """For those who show them."""
        return self._workers

    def wants(self) -> Wants:
        """What all of them want. Weights: the member counts once, with the largest of them (H276)."""
        now = self._clock()
        elapsed, self._looked_at = now - self._looked_at, now
        arrived = waiting = 0.0
        users = [worker.user for worker in self._workers.values() if worker.user is not None]
        for worker in self._workers.values():
            if now - worker.heard_at > SILENT_AFTER:
                worker.waiting = 0.0
            worker.want = worker.demand.look(Wants(worker.arrived, worker.waiting), elapsed, worker.held(now))
            arrived, waiting = arrived + worker.arrived, waiting + worker.waiting
            worker.arrived = 0.0
        weight = max((worker.weight for worker in self._workers.values()), default=WEIGHT_MAX)
        self._fell()
        return Wants(arrived, waiting, sum(users) if users else None, weight)

    def allot(self, allotment: Allotment) -> None:
        self._allotment = allotment
        self._split()
        self._fell()

    def attach(self, worker: int, weight: float = WEIGHT_MAX) -> None:
        """A worker process takes part. It gets its part of what the agent may use, once the others use less."""
        assert worker not in self._workers
        assert not self.full
        assert WEIGHT_MIN <= weight <= WEIGHT_MAX
        self._workers[worker] = Worker(weight, self._clock())
        self._split()

    def report(self, worker: int, confirmed: int, arrived: float, waiting: float, user: float | None = None) -> None:
        """Word of a worker: which serial it goes by, what arrived since its last word, what waits, what its callable wants."""
        known = self._workers.get(worker)
        if known is None:
            return  # Its death was known first.
        known.heard_at = self._clock()
        known.confirm(min(confirmed, self._serial))
        known.arrived += max(0.0, arrived)
        known.waiting = max(0.0, waiting)
        if user is not None and isfinite(user) and user >= 0:
            known.user = user
        if arrived > 0 or waiting > 0:
            known.active = True
            known.want = max(known.want, known.demand.look(Wants(0.0, known.waiting), 0.0, 0.0))  # not only from the next epoch on
        self._split()
        self._fell()

    def lose(self, worker: int, *, alone: bool = True) -> None:
        """Its connection has ended without its word, or it is back on another one."""
        known = self._workers[worker]
        known.alone, known.heard_at = alone, self._clock()

    def detach(self, worker: int) -> None:
        """It stopped, or the kernel confirmed its death: what it was told counts no more, and is told to others."""
        if self._workers.pop(worker, None) is not None:
            self._split()
            self._fell()

    def _split(self) -> None:
        """Tell less at once; then raise others into what is known to be unused."""
        if not self._workers:
            return
        now = self._clock()
        targets = split(self._allotment.rate, {number: (one.want, one.weight) for number, one in self._workers.items()})
        slack = SLACK if self.told <= self._allotment.usable(now) * (1 + ROUNDING) else 0.0
        for number, target in targets.items():
            self._lower(number, target, now, slack)
        # Those that lack most come first, so that a new worker does not wait behind small corrections.
        for number in sorted(targets, key=lambda one: self._workers[one].held(now) - targets[one]):
            self._raise(number, targets[number], now)

    def _lower(self, number: int, target: float, now: float, slack: float) -> None:
        """Less of anything: the rate, the time, or what remains after it. An idle worker gets no more time by it."""
        worker, allotment = self._workers[number], self._allotment
        last = worker.last
        if last is None:
            return
        part = allotment.after / len(self._workers)
        shorter = (last.until > allotment.until and last.rate > 0) or (last.ends_at > allotment.ends_at and last.left > 0)
        if shorter or last.rate > target * (1 + slack + ROUNDING) or last.left > part * (1 + SLACK):
            if worker.active:
                self._say(number, min(last.usable(now), target), min(last.left, part), allotment.until, allotment.ends_at)
            else:
                until, ends_at = min(last.until, allotment.until), min(last.ends_at, allotment.ends_at)
                self._say(number, min(last.rate, target), min(last.after, part), until, ends_at)

    def _raise(self, number: int, target: float, now: float) -> None:
        """As far as the others leave room, by what they may use now and by what they may go on with; not below what it has."""
        worker, allotment = self._workers[number], self._allotment
        last = worker.last
        others = [other for key, other in self._workers.items() if key != number]
        has, keeps = (last.usable(now), last.left if now < last.ends_at else 0.0) if last is not None else (0.0, 0.0)
        rate = min(target, max(has, allotment.rate - sum(other.held(now) for other in others)))
        part = allotment.after / len(self._workers)
        if isfinite(part):
            part = min(part, max(keeps, allotment.after - sum(other.left(now) for other in others)))
        if last is None:
            if rate > 0:
                self._say(number, rate, part, allotment.until, allotment.ends_at)
        elif worker.active or len(worker.told) == 1:
            over = now - worker.told_at >= RENEW_AFTER * (last.until - worker.told_at)
            renewed = worker.active and over and last.until < allotment.until
            # A worker that wants no more than it has is not told of more, unless it has less than its part only because there was no room.
            more = rate > last.rate * (1 + SLACK) or min(rate, part) > last.left * (1 + SLACK)
            if renewed or (more and (worker.active or worker.short or worker.want > last.rate)):
                self._say(number, rate, part, allotment.until, allotment.ends_at)
        worker.short = rate < target

    def _say(self, number: int, rate: float, part: float, until: float, ends_at: float) -> None:
        worker, allotment = self._workers[number], self._allotment
        if len(worker.told) > UNCONFIRMED_MAX:
            return
        depth = max(DEPTH_MIN, allotment.burst * rate / allotment.limit) if allotment.limit > 0 else DEPTH_MIN
        tell = Tell(self._serial + 1, rate, depth, until, part, ends_at)
        if worker.last is not None and tell[1:] == worker.last[1:]:
            return
        self._serial += 1
        worker.told.append(tell)
        worker.active, worker.told_at = False, self._clock()
        self._tell(number, tell)

    def _fell(self) -> None:
        """What waited for less may go on."""
        before, self._told = self._told, self.told
        if self._told < before:
            self.on_less()


def split(rate: float, workers: Mapping[int, tuple[float, float]]) -> dict[int, float]:
    """By max-min, from (want, weight): each gets what it wants and a little, or its part by weight; what is free is spread."""
    floor = RESERVE * rate / len(workers)
    wanted = {number: max(want * (1 + HEADROOM), floor) for number, (want, _) in workers.items()}
    free = rate - sum(wanted.values())
    if free >= 0:
        return {number: want + free / len(workers) for number, want in wanted.items()}
    shares: dict[int, float] = {}
    weights = sum(weight for _, weight in workers.values())
    left = rate
    for number in sorted(workers, key=lambda one: (wanted[one] / workers[one][1], one)):
        weight = workers[number][1]
        shares[number] = min(wanted[number], max(0.0, left) * weight / max(weights, weight))
        left, weights = left - shares[number], weights - weight
    return shares


def _nothing() -> None:
    """Until a limiter listens."""
