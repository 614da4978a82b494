"""The bucket of the agent itself: for callers that have none, as shell scripts and programs over HTTP.  Spec: limits 5.1, 10, H279.

It is one worker of the limit beside the processes, and each cost is a call. Callers wait in the order of their calls. The
bucket stays for a while after the last one, so that a script that asks now and then finds in it what came in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import Unavailable, shown
from holdfast.features.limits.bucket import MICRO, SECOND, TimedBucket, cost_micros, nanos
from holdfast.features.limits.streams import LimitStream
from holdfast.features.limits.tally import Counting
from holdfast.features.limits.terms import WAITERS_MAX

if TYPE_CHECKING:
    from holdfast.features.limits.users import Turns, Users
    from holdfast.host import Timer

KEPT = 300.0  # seconds without a caller, after which the bucket is given up
SWEEP = 0.1  # seconds between two looks at callers that have gone, or whose time is up
NOT_KNOWN = -1.0


class Caller(NamedTuple):
    """A caller that waits for its cost."""

    cost: int  # micro-units
    since: float
    end_at: float
    there: Callable[[], bool]
    answer: Callable[[bool, float], None]


class Desk:
    """The bucket of one limit and the line before it. It is the ``Client`` of a stream of its own."""

    pid, program, connected = 0, "agent", True

    def __init__(self, host: Turns, users: Users, name: str, period: float, gone: Callable[[], None]) -> None:
        """``gone`` is called when this desk was given up."""
        self._host, self._users, self._name, self._period, self._gone = host, users, name, period, gone
        self._bucket = TimedBucket(nanos(host.now))
        self._line: deque[Caller] = deque()
        self._counting = Counting()
        self._is_shorter = False  # than the agent was told
        self._waiting = self._arrived = 0  # micro-units
        self._confirmed = 0
        self._used_at = host.now
        self._timer: Timer | None = None
        self.served = 0
        self._stream = LimitStream(self, 0, 0, None)
        users.attach(name, self._stream, 0, 1.0)
        host.after(period, self._on_beat)

    def wake(self, serial: int) -> None:
        """The agent told something."""
        del serial
        self._host.post(self._on_told)

    def take(self, cost: float, wait: float, there: Callable[[], bool], answer: Callable[[bool, float], None]) -> None:
        """``answer`` is called once, unless the caller is not there any more: whether it went, and when to ask again."""
        units, now = cost_micros(cost), self._host.now
        self._used_at = now
        self._arrived += units
        left = 1.0 if self._line else self._bucket.take_at(nanos(now), units)
        if left <= 0:
            self.served += 1
            answer(True, 0.0)
        elif wait <= 0:
            answer(False, self._retry_after(units))
        elif len(self._line) >= WAITERS_MAX:
            raise Unavailable(f"limit {shown(self._name)}: {WAITERS_MAX} callers of this agent wait already; accepted are no more")
        else:
            self._line.append(Caller(units, now, now + wait, there, answer))
            self._waiting += units
            self._counting.begin()
            self._report()
            self._serve()

    def _on_told(self) -> None:
        told = self._stream.told
        if told is not None and told.serial != self._confirmed:
            self._bucket.tell(nanos(self._host.now), *told[1:])
            self._confirmed = told.serial
            self._report()
            self._serve()

    def _serve(self) -> None:
        """The first one as soon as it may go. Those whose time is up are told so."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._host.now
        for caller in [each for each in self._line if each.end_at <= now or not each.there()]:
            self._line.remove(caller)
            self._left(caller, went=False)
            if caller.there():
                caller.answer(False, self._retry_after(caller.cost))
        left = 0.0
        while self._line and (left := self._bucket.take_at(nanos(now), self._line[0].cost)) <= 0:
            caller = self._line.popleft()
            self._left(caller, went=True)
            self.served += 1
            caller.answer(True, 0.0)
        if self._line:
            self._used_at = now
            self._timer = self._host.after(min(left, SWEEP, self._line[0].end_at - now), self._serve)

    def _left(self, caller: Caller, *, went: bool) -> None:
        self._waiting -= caller.cost
        self._is_shorter = True
        self._counting.end(caller.cost, nanos(self._host.now - caller.since), went=went)

    def _retry_after(self, cost: int) -> float:
        """Behind all that wait now: what they take comes in first, also where it is more than the bucket holds."""
        bucket = self._bucket
        left = bucket.ready_in(nanos(self._host.now), cost)
        if not bucket.rate:
            return NOT_KNOWN
        return left / SECOND if not self._line else max(0, self._waiting + min(cost, bucket.depth) - bucket.tokens) / bucket.rate

    def _report(self) -> None:
        arrived, self._arrived, self._is_shorter = self._arrived, 0, False
        tally = self._counting.told(self._bucket, nanos(self._host.now))
        self._users.report(self, 0, self._confirmed, arrived / MICRO, self._waiting / MICRO, None, tally)

    def _on_beat(self) -> None:
        """Twice in an epoch, as a process does."""
        if not self._line and self._host.now - self._used_at > KEPT:
            self._stream.close()
            self._gone()
            return
        if self._arrived or self._waiting or self._is_shorter:
            self._report()
        self._host.after(self._period, self._on_beat)
