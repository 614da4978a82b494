# Made by scripts/spell.py from src/holdfast/features/limits/client.py: edit that file and run the script.
"""Rate limits for a program: one limit for all processes of a group, without a call for each cost.  Spec: limits 10; docs/limits.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from types import TracebackType
from typing import Any

from holdfast.client import checks
from holdfast.client.checks import Seconds
from holdfast.client.sync.link import Link
from holdfast.client.sync.streams import Opened
from holdfast.client.threads.beats import Beat
from holdfast.client.threads.connection import Connection
from holdfast.client.threads.fifo import Fifo
from holdfast.client.threads.quick import Quick
from holdfast.client.threads.tasks import News, as_block
from holdfast.client.wire import ITEMS
from holdfast.errors import ConfigError, HoldfastError, Timeout, shown
from holdfast.features.limits import calls, terms
from holdfast.features.limits.bucket import cost_micros
from holdfast.features.limits.calls import LimitItem
from holdfast.features.limits.client_base import Meter, Reporting, next_worker, state_of
from holdfast.features.limits.terms import Change, Fleet, Given
from holdfast.net.clock import now

OPENING_PAUSE = 0.01  # seconds between two looks whether the stream is open: another thread opens it


class LimitStream(Opened[LimitItem]):
    """One ``AttachLimit``: what the agent says of the limit, and what it is told."""

    call = calls.AttachLimit

    def __init__(self, meter: Meter, line: Fifo, asked: tuple[Any, ...]) -> None:
        super().__init__()
        self.about = meter.name
        self.meter, self.news = meter, News()
        self._line, self._asked = line, asked
        self._reporting = Reporting(meter, self._send)
        self._beat = Beat(self._on_beat)
        meter.wanted = self.wanted

    def open(self, connection: Connection) -> None:
        self._connection, self._serial = connection, 0
        self._serial = connection.open_stream(self.call, self._asked, self)

    def push(self, item: Any) -> None:
        if not self.over:
            self.meter.follow(ITEMS[self.call](item))
            self._tell()
            self._beat.hurry()

    def missed(self) -> None:
        """Another agent goes on with it, or this one in another life. What the former one told stands until the first word of this one."""
        self.meter.missed()

    def end(self, error: HoldfastError | None) -> None:
        super().end(error)
        self._on_end()

    def finish(self, error: HoldfastError | None) -> None:
        """With the group. A process that leaves it may live for long, so its share is given up by a word (H311)."""
        super().finish(error)
        self._on_end()
        if error is None and self._connection is not None:
            self._connection.close_stream(self._serial)

    def wanted(self) -> None:
        """A caller begins to wait: the agent hears of it at once, unless it hears of this process all the time."""
        if self._reporting.idle:
            self._beat.hurry()

    def _send(self, *report: Any) -> None:
        assert self._connection is not None
        self._connection.begin(calls.ReportLimit, (self._serial, *report), self._reporting)

    def _on_beat(self) -> float:
        return self._reporting.beat() if self._serial else OPENING_PAUSE

    def _on_end(self) -> None:
        """A share that a dead agent had told goes on. One that this process gave up does not."""
        if self.over and self._error is None:
            self.meter.close()
            self._beat.stop()
        else:
            self.meter.lose(self._error)
        self._tell()

    def _tell(self) -> None:
        self._line.tell()
        self.news.tell()


class GroupLimit(Quick):
    """One limit, as this process uses it. Made by ``group.limit(name, rate=...)``, and any thread may use it.

    All members of the group share the rate by what they want, without a coordinator: the agent tells this process what it may use, and
    this process counts by itself. While the agent is dead or stopped it goes on with its share (``state`` is "alone"). ``close`` gives
    the share up, as does the end of the block if it is entered with ``with``.
    """

    _meter: Meter

    def __init__(self, link: Link, name: str, asked: tuple[Any, ...], demand: Callable[[], float] | None) -> None:
        self._link, self.name = link, name
        self._line = Fifo()
        self._meter = Meter(name, self._line, demand)
        self._bucket = self._meter.bucket
        self._stream = link.open(LimitStream(self._meter, self._line, asked))

    def __enter__(self) -> GroupLimit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if os.getpid() == self._link.pid:  # A child that runs out of its parent's block leaves nothing.
            self.close()

    def ready(self, timeout: Seconds | None = None) -> None:
        """Wait until this process was given a share. ``acquire`` waits for it by itself. Raises ``Timeout`` after ``timeout`` seconds."""
        limit, meter = checks.patience(timeout), self._meter
        self._link.check_pid()
        if not self._stream.news.until(self._decided, inf if limit is None else now() + limit):
            raise Timeout(f"limit {shown(self.name)}: no share within {limit:g} s; `holdfast limit show` says what it waits for")
        meter.check()

    def acquire(self, cost: float = 1, timeout: Seconds | None = None) -> None:
        """Wait until this cost may go: first come, first served among the callers of this process. A cost above the burst goes when the
        bucket is full, and is paid afterwards. Raises ``LimitTimeout`` after ``timeout`` seconds; then, and when it is cancelled, nothing
        was taken. Raises ``AgentLost`` when the agent is lost and the share has ended."""
        units, limit, meter = cost_micros(terms.checked_cost(cost)), checks.patience(timeout), self._meter
        with meter.lock:
            meter.check()
            if not len(self._line) and meter.take(units):
                return
        since = meter.queue(units)
        went = False
        try:
            self._stream.wanted()
            went = self._line.wait(partial(meter.turn, units), inf if limit is None else now() + limit)
        finally:
            meter.unqueue(units, since, went=went)
        if not went:
            raise meter.timed_out(cost, limit or 0.0)

    @as_block
    def slot(self, cost: float = 1, timeout: Seconds | None = None) -> Iterator[None]:
        """``acquire`` as a block. Nothing is given back at its end."""
        self.acquire(cost, timeout)
        yield

    def set_rate(self, rate: float) -> None:
        """From now on, for all members. Raises ``Unavailable`` if the limit was removed."""
        self._change(Change(rate=terms.checked_rate(rate)))

    def set_burst(self, burst: float) -> None:
        """From now on, for all members."""
        self._change(Change(burst=terms.checked_burst(burst)))

    def set_fleet(self, fleet: Fleet) -> None:
        """From now on the limit is divided for so many members."""
        self._change(Change(fleet=terms.checked_fleet(fleet)))

    def penalize(self, seconds: Seconds, factor: float = 0.5) -> None:
        """Lower the rate for all members and for so many seconds, because the other side said that it was too much (HTTP 429)."""
        length = checks.seconds(seconds, "seconds", most=terms.PENALTY_MAX)
        self._link.call(calls.PenalizeLimit, self.name, length, terms.checked_factor(factor))

    @property
    def share(self) -> float:
        """What this process may use now, cost per second. Never waits."""
        return self._meter.rate

    @property
    def demand(self) -> float:
        """What this agent wants of the limit, cost per second, as it said last."""
        return 0.0 if self._meter.item is None else self._meter.item.demand

    @property
    def aggregate(self) -> float:
        """What all members want, cost per second, as this agent estimated last."""
        return 0.0 if self._meter.item is None else self._meter.item.aggregate

    @property
    def state(self) -> str:
        """How it stands: "starting" (no share yet), "stable", "changing" (another view will come), "panic" (this agent has no view: 1/n at
        most) or "alone" (the agent is gone or does not answer; this process goes on with its share). Never waits."""
        return state_of(self._meter, now())

    def bound(self, seconds: Seconds, processes: int | None = None) -> float:
        """The most that all members together may let go in any interval of this length (policy "exact"); with the other policies an
        estimate. ``processes``: how many use the limit; without it, one of each member."""
        return self._meter.bound(checks.seconds(seconds, "seconds"), processes)

    def close(self) -> None:
        """This process takes part no longer, and its share is given up. Callers that wait raise ``Unavailable``. The limit stays:
        ``holdfast limit remove`` removes it. A second call does nothing."""
        self._link.check_pid()
        if not self._stream.over:
            self._stream.close()

    def __repr__(self) -> str:
        """Works in every process and state: it is for logs and debuggers."""
        return f"<GroupLimit {shown(self.name)}: {'closed' if self._meter.closed else state_of(self._meter, now())}>"

    def _change(self, change: Change) -> None:
        self._link.call(calls.SetLimit, self.name, None, change)

    def _decided(self) -> bool:
        meter = self._meter
        return meter.closed or meter.error is not None or (meter.item is not None and meter.item.serial > 0)


def limit(link: Link, name: str, given: Given, *, weight: float, demand: Callable[[], float] | None) -> GroupLimit:
    """``Group.limit``. Every argument is checked before anything is sent."""
    terms.checked_name(name)
    if demand is not None and not callable(demand):
        raise ConfigError(f"demand: {shown(demand)}; accepted is a callable that returns a cost per second")
    asked = (name, terms.checked_terms(*given), terms.checked_weight(weight), next_worker())
    return GroupLimit(link, name, asked, demand)
