"""The processes of this agent that use limits: who they are, what they were told, and when that is free again.  Spec: limits 5.1, D22; F14.

A process whose connection ended without a word is *gone*: it counts until its pidfd says that it is dead, or until what it was told has
ended by itself. One that comes back on another connection takes its place again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from math import isfinite
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import Unavailable, shown
from holdfast.features.limits.protocol.workers import WORKERS_MAX, Tell, Workers
from holdfast.features.limits.streams import LimitStream
from holdfast.features.limits.tally import Totals, finite, whole
from holdfast.features.limits.terms import LIMITS_MAX

if TYPE_CHECKING:
    from holdfast.features.limits.calls import LimitItem, Tally
    from holdfast.features.limits.protocol.outlet import Outlet
    from holdfast.host import Timer
    from holdfast.local.process import Process

FIRST_LOOK = 0.005  # seconds after a connection ended: the kernel closes the sockets of a process just before it is dead
TOTALS_MAX = 2 * LIMITS_MAX  # limits of which it is remembered what went: twice as many as a group has
LOOK_MAX = 0.5  # seconds between two looks whether a process that is gone is dead


class Limits(Protocol):
    """The limiter of this agent, as far as it serves processes."""

    def open(self, name: str, outlet: Outlet) -> None: ...
    def close(self, name: str) -> None: ...


class Turns(Protocol):
    """What this needs of the host."""

    @property
    def now(self) -> float: ...
    def post(self, callback: Callable[[], None]) -> None: ...
    def after(self, delay: float, callback: Callable[[], None]) -> Timer: ...


class Source(Protocol):
    """What a process is told."""

    def item(self, used: Used, stream: LimitStream) -> LimitItem: ...
    def state(self, used: Used) -> tuple[str, float, int, float]: ...
    def is_fair(self, used: Used) -> bool:
        """Nothing is promised about what all may use at one instant."""


class User:
    """One worker of one limit."""

    def __init__(self, stream: LimitStream, worker: int) -> None:
        self.stream, self.worker = stream, worker
        self.pid, self.program = stream.client.pid, stream.client.program
        self.waiting = 0.0
        self.waiters = 0
        self.tokens = self.tokens_at = 0.0  # as it said, and when
        self.gone = False
        self.look = FIRST_LOOK  # seconds until the next look whether it is dead


class Used:
    """One limit that processes of this agent use."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.name = name
        self.users: dict[int, User] = {}  # by number
        self.outlet = Workers(clock, self._tell)
        self.state: tuple[str, float, int, float] | None = None  # as the processes were told last

    def _tell(self, number: int, told: Tell) -> None:
        user = self.users[number]
        if not user.gone:
            user.stream.tell(told)


class Users:
    """Those of one agent. All but ``LimitStream.close`` belongs into turns."""

    def __init__(self, host: Turns, limits: Limits, items: Source, period: float) -> None:
        self._host, self._limits, self._items = host, limits, items
        self._numbers = count(1)
        self._period = period
        self._draining = self._beating = False
        self.used: dict[str, Used] = {}
        self.totals: dict[str, Totals] = {}  # by limit, also of those that no process uses any more
        self._streams: dict[tuple[int, int], tuple[Used, User]] = {}  # by the connection and the serial of the stream

    def __iter__(self) -> Iterator[Used]:
        return iter(self.used.values())

    def check_room(self, name: str) -> None:
        used = self.used.get(name)
        if used is not None and used.outlet.full:
            raise Unavailable(f"limit {shown(name)}: {WORKERS_MAX} processes of this agent use it; accepted are no more")

    def attach(self, name: str, stream: LimitStream, worker: int, weight: float) -> None:
        """A process uses this limit until its stream ends. ``worker`` names the use in that process."""
        used = self.used.get(name)
        if used is None:
            used = self.used[name] = Used(name, lambda: self._host.now)
            self._count(name)
            if not self._draining:
                self._limits.open(name, used.outlet)
            if not self._beating:
                self._beating = True
                self._host.after(self._period, self._on_beat)
        used.outlet.forgets = self._items.is_fair(used)
        user = self._returned(used, stream, worker)
        if user is None:
            stream.number = next(self._numbers)
            user = used.users[stream.number] = User(stream, worker)
            stream.item, stream.on_close = partial(self._items.item, used), self._on_close
            used.outlet.attach(stream.number, weight)
        self._streams[id(stream.client), stream.serial] = used, user

    def report(
        self, client: object, serial: int, confirmed: int, arrived: float, waiting: float, user: float | None, tally: Tally | None = None
    ) -> None:
        found = self._streams.get((id(client), serial))
        if found is None:
            raise Unavailable("limit: this stream is not open; attach again")
        used, who = found
        who.waiting = waiting
        if tally is not None:
            who.waiters, who.tokens, who.tokens_at = whole(tally.waiters), finite(tally.tokens), self._host.now
            self.totals[used.name].add(tally)
        used.outlet.report(who.stream.number, confirmed, arrived, waiting, user)

    def look(self) -> None:
        """Tell the processes how their limits stand, where that has changed."""
        for used in self.used.values():
            used.outlet.forgets = self._items.is_fair(used)
            state = self._items.state(used)
            if state != used.state:
                used.state = state
                for user in used.users.values():
                    if not user.gone:
                        user.stream.wake()

    def drain(self, *, draining: bool) -> None:
        """The agent leaves, and no process is given a share any more; or it joins again."""
        if draining == self._draining:
            return
        self._draining = draining
        for used in self.used.values():
            if draining:
                self._limits.close(used.name)
            else:
                self._limits.open(used.name, used.outlet)

    @property
    def told(self) -> float:
        """What all of them may use now, of all limits."""
        return sum(used.outlet.told for used in self.used.values())

    def _count(self, name: str) -> None:
        """Counters do not fall when the last process stops; those of limits that were used longest ago are forgotten first."""
        self.totals[name] = self.totals.pop(name) if name in self.totals else Totals()
        while len(self.totals) > TOTALS_MAX:
            del self.totals[next(each for each in self.totals if each not in self.used)]

    def _on_beat(self) -> None:
        """As long as processes use limits."""
        self._beating = bool(self.used)
        if self._beating:
            self._host.after(self._period, self._on_beat)
            self.look()

    def _returned(self, used: Used, stream: LimitStream, worker: int) -> User | None:
        """The same use of the same process, on another connection: it goes on by what it was told."""
        for number, user in used.users.items():
            if user.gone and user.pid == stream.client.pid > 0 and user.worker == worker:
                _close(user.stream.process)
                stream.number, stream.told, stream.returned = number, user.stream.told, True
                stream.item, stream.on_close = partial(self._items.item, used), self._on_close
                user.stream, user.gone = stream, False
                used.outlet.lose(number, alone=False)
                stream.wake()
                return user
        return None

    def _on_close(self, stream: LimitStream, stopped: bool) -> None:
        """From anywhere."""
        self._host.post(partial(self._closed, stream, stopped))

    def _closed(self, stream: LimitStream, stopped: bool) -> None:
        found = self._streams.pop((id(stream.client), stream.serial), None)
        if found is None:
            return
        used, user = found
        if stopped:
            self._end(used, user)
        else:
            user.gone, user.waiting, user.waiters, user.tokens, user.look = True, 0.0, 0, 0.0, FIRST_LOOK
            used.outlet.lose(user.stream.number)
            self._look(used, user)

    def _look(self, used: Used, user: User) -> None:
        """Until it is dead, is back, or what it was told has ended."""
        if not user.gone or used.users.get(user.stream.number) is not user:
            return
        process, worker = user.stream.process, used.outlet.workers[user.stream.number]
        ended = worker.held(self._host.now) <= 0 if process is not None else self._host.now >= _until(worker.told)
        if ended or (process is not None and process.dead):
            self._end(used, user)
            return
        user.look = min(LOOK_MAX, 2 * user.look)
        self._host.after(user.look, partial(self._look, used, user))

    def _end(self, used: Used, user: User) -> None:
        _close(user.stream.process)
        del used.users[user.stream.number]
        used.outlet.detach(user.stream.number)
        if not used.users and self.used.get(used.name) is used:
            del self.used[used.name]
            if not self._draining:
                self._limits.close(used.name)


def _until(told: list[Tell]) -> float:
    """Where the kernel confirms no death, what a process was told is held until the last of its times that is one."""
    ends = [tell.ends_at if isfinite(tell.ends_at) else tell.until for tell in told]
    return max(ends, default=0.0)


def _close(process: Process | None) -> None:
    if process is not None:
        process.close()
