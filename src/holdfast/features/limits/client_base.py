"""What both spellings of a limits client share: the bucket of this process, and what it was told.  Spec: limits 5.1, 10, D22.

Instants are compared with the clock whenever they matter (F9): what this process was told ends at its time also while its agent is silent,
stopped or dead. No I/O here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from math import inf, isfinite
from typing import Any, Final, Protocol
from weakref import WeakSet

from msgspec.structs import replace

from holdfast.client.wire import forked
from holdfast.errors import AgentLost, HoldfastError, LimitTimeout, Unavailable, shown
from holdfast.features.limits.bucket import DEPTH_MIN, MICRO, TimedBucket, cost_micros, nanos
from holdfast.features.limits.calls import STARTING, LimitItem, Tally
from holdfast.features.limits.tally import Counting
from holdfast.features.limits.terms import COST_MAX, WAITERS_MAX, checked_cost
from holdfast.net.clock import now, now_ns

ALONE_AFTER: Final = 2.0  # seconds without an answer to a report, after which the agent counts as stopped
IDLE_BEATS: Final = 8  # beats without news, after which they become rare
IDLE_PAUSE: Final = 1.0  # seconds between two beats of an idle process

Report = tuple[int, float, float, float | None, Tally]  # confirmed, arrived, waiting, user, tally


class Line(Protocol):
    """Those who wait, of either spelling."""

    @property
    def lock(self) -> AbstractContextManager[Any]: ...
    def __len__(self) -> int: ...


class Meter:
    """The bucket of one limit in one process."""

    def __init__(self, name: str, line: Line, demand: Callable[[], float] | None) -> None:
        self.name, self.line, self.demand = name, line, demand
        self.bucket = TimedBucket(now_ns())
        self.lock: AbstractContextManager[Any] = line.lock
        self.quick_until = 0  # until then a cost up to ``bucket.tokens`` goes without another look; 0: one look is always needed
        self.item: LimitItem | None = None
        self._former: LimitItem | None = None  # of the agent, or the life of it, that this process was attached to before
        self.error: HoldfastError | None = None  # what ended it
        self.closed = False
        self.pid = os.getpid()
        self.reported_at: float | None = None  # a report is under way since then
        self.connected = False
        self.wanted: Callable[[], None] = _nothing  # a cost did not go: the agent may want to hear of it
        self.faults = 0  # answers of ``demand`` that were no demand, and errors that it raised
        self.largest = 0  # cost that this process asked for, micro-units
        self.counting = Counting()
        self._waiting = 0  # cost, micro-units
        self._others = 0  # cost that arrived and was not admitted: it waited in vain, or was refused
        self._told: tuple[int, int, int] | None = None  # admitted, others, waiting, as they were reported
        self._confirmed = 0
        self._user: float | None = None
        _meters.add(self)

    # What the agent says.

    def follow(self, item: LimitItem) -> None:
        """From now on."""
        with self.lock:
            now = now_ns()
            if self._goes_on(item, now):
                self.bucket.prolong(now, item.claims_at)
                former = self._former
                assert former is not None
                ends_at = max(former.ends_at, item.claims_at)
                item = replace(item, rate=former.rate, depth=former.depth, until=former.until, after=former.after, ends_at=ends_at)
                self._former = item
            else:
                self._former = None
                self.bucket.tell(now, item.rate, item.depth, item.until, item.after, item.ends_at)
            self.item, self.connected = item, True
            self._look_ahead()

    def _goes_on(self, item: LimitItem, now: int) -> bool:
        """What a former life of the agent told goes on while this one tells nothing, or less before it may claim that part (H310)."""
        if self._former is None or not self._former.rate or not self.lasts:
            return False
        self.bucket.move(now)
        return not item.serial or (item.claims_at > 0 and item.rate * MICRO < self.bucket.rate)

    def lose(self, error: HoldfastError | None) -> None:
        """The agent is gone, or refuses. What it told goes on to count until its time; None: this process gave it up."""
        with self.lock:
            self.connected, self.reported_at = False, None
            if error is not None:
                self.error = error

    def missed(self) -> None:
        """Another connection carries it from now on. Nothing is confirmed before its first item: it may be of an agent that counts anew."""
        with self.lock:
            self.connected, self.reported_at, self._confirmed = False, None, 0
            self._former = self.item

    # What goes.

    def take(self, units: int) -> bool:
        """Under the lock: let this cost go, if it may now, and no other waits."""
        now = now_ns()
        self.bucket.move(now)
        taken = self.bucket.take(now, units)
        self._look_ahead()
        return taken

    def turn(self, units: int) -> float:
        """Under the lock, for the first in the line: 0 when it went, or the seconds after which to try again."""
        self.check()
        return self.bucket.take_at(now_ns(), units)

    def try_slowly(self, cost: float) -> bool:
        """Under the lock: all that ``try_acquire`` does when one look at the clock was not enough."""
        units = cost_micros(cost if 0 < cost <= COST_MAX else checked_cost(cost))
        self.check()
        self.largest = max(self.largest, units)
        if not len(self.line) and self.take(units):
            return True
        self._others += units
        self.wanted()
        return False

    def queue(self, units: int) -> int:
        """A caller waits from now on: when that is, for ``unqueue``."""
        with self.lock:
            if len(self.line) >= WAITERS_MAX:
                raise Unavailable(f"limit {shown(self.name)}: {WAITERS_MAX} callers of this process wait already; accepted are no more")
            self._waiting += units
            self.counting.begin()
            self.largest = max(self.largest, units)
            self.quick_until = 0  # Those that come later stay behind.
            return now_ns()

    def unqueue(self, units: int, since: int, *, went: bool) -> None:
        with self.lock:
            self._waiting -= units
            self.counting.end(units, now_ns() - since, went=went)
            if not went:
                self._others += units
            self._look_ahead()

    def check(self) -> None:
        """Raises what stands in the way for good."""
        if self.pid != os.getpid():
            raise forked()
        if self.closed:
            raise Unavailable(f"limit {shown(self.name)}: it was closed, or the group was left; call `group.limit(...)` again")
        if self.error is not None and not (isinstance(self.error, AgentLost) and self.lasts):
            raise type(self.error)(*self.error.args)

    # What the agent is told.

    def report(self) -> Report | None:
        """What is new since the last report; None: nothing."""
        with self.lock:
            item = self.item
            serial = 0 if item is None else item.serial
            now = self.bucket.admitted, self._others, self._waiting
            before = self._told or (0, 0, 0)
            if now == before and serial == self._confirmed and not self._waiting:
                return None
            self._told, self._confirmed = now, serial
            arrived = sum(now) - sum(before)
            tally = self.counting.told(self.bucket, now_ns())
            return serial, max(0, arrived) / MICRO, self._waiting / MICRO, self._user, tally

    def ask(self) -> None:
        """What the program says that it wants. What is no demand is counted, and the last answer stands."""
        if self.demand is None:
            return
        try:
            answer = float(self.demand())
        except Exception:  # It is the program's own, and must not stop the reports.
            self.faults += 1
            return
        if isfinite(answer) and answer >= 0:
            self._user = answer
        else:
            self.faults += 1

    # How it stands.

    @property
    def lasts(self) -> bool:
        """Something can be used without another word of the agent."""
        item = self.item
        return item is not None and now_ns() < nanos(item.ends_at)

    @property
    def rate(self) -> float:
        """What this process may use now, cost per second."""
        with self.lock:
            self.bucket.move(now_ns())
            return self.bucket.rate / MICRO

    def bound(self, seconds: float, processes: int | None) -> float:
        """Limits 1: R * T + B + m * max(d_min, largest cost)."""
        item = self.item
        if item is None:
            return inf
        users = max(item.fleet, item.members) if processes is None else processes
        return item.limit * seconds + item.burst + users * max(DEPTH_MIN, self.largest) / MICRO

    def close(self) -> None:
        """Nothing goes any more."""
        with self.lock:
            self.closed, self.quick_until = True, 0
            self.bucket.end(now_ns())

    def timed_out(self, cost: float, limit: float) -> LimitTimeout:
        return LimitTimeout(f"limit {shown(self.name)}: no room for a cost of {cost:g} within {limit:g} s; {self._why()}")

    def _why(self) -> str:
        if self.item is None or not self.item.serial:
            return "this process was not given a share yet; `holdfast limit show` says what the limit stands on"
        return f"this process may use {self.rate:g} per second of {self.item.limit:g}"

    def _look_ahead(self) -> None:
        if self.closed or self.error is not None or self._waiting or not self.bucket.rate:
            self.quick_until = 0
        else:
            self.quick_until = min(self.bucket.settled_until, self.bucket.changes_at)


class Reporting:
    """When the agent is told what arrived and what waits: one report under way at a time. It waits for the answers."""

    def __init__(self, meter: Meter, send: Callable[..., None]) -> None:
        self._meter, self._send = meter, send
        self._idle = IDLE_BEATS  # beats without news

    @property
    def idle(self) -> bool:
        """The agent heard nothing in the last beat."""
        return self._idle > 0

    def beat(self) -> float:
        """Seconds until the next one."""
        meter = self._meter
        meter.ask()
        if meter.connected and meter.reported_at is None:
            report = meter.report()
            self._idle = 0 if report is not None else self._idle + 1
            if report is not None:
                meter.reported_at = now()
                try:
                    self._send(*report)
                except HoldfastError:  # The connection is gone: the stream is told so.
                    meter.reported_at = None
        period = IDLE_PAUSE if meter.item is None else meter.item.epoch / 2
        return max(period, IDLE_PAUSE) if self._idle > IDLE_BEATS else period

    def set_result(self, value: Any, /) -> None:
        del value
        self._meter.reported_at = None

    def set_exception(self, error: HoldfastError, /) -> None:
        """A report that failed is not repeated: the agent has lost count of this process, or is gone."""
        del error
        self._meter.reported_at = None

    def done(self) -> bool:
        return False


def next_worker() -> int:
    """Names one more user of a limit in this process."""
    return next(_workers)


def state_of(meter: Meter, clock: float) -> str:
    """How a limit stands in this process: "starting", "stable", "changing", "panic", or "alone": the agent is gone, does not answer, or
    begins anew and has told nothing yet."""
    item = meter.item
    overdue = meter.reported_at is not None and clock - meter.reported_at > ALONE_AFTER
    if item is None or not (item.serial or (item.rate and meter.lasts)):
        return STARTING
    return item.state if item.serial and meter.connected and not overdue else "alone"


_meters: WeakSet[Meter] = WeakSet()
_workers = count(1)


def _nothing() -> None:
    """No stream listens yet."""


class NoLock:
    """In a forked child: a thread of the parent may have held the lock, and is not here."""

    def __enter__(self) -> None: ...
    def __exit__(self, *what: object) -> None: ...


def _on_fork() -> None:
    for meter in list(_meters):
        meter.quick_until = 0
        meter.lock = NoLock()


os.register_at_fork(after_in_child=_on_fork)
