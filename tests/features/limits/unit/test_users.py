"""The processes of an agent that use limits: who counts, and until when.  Spec: limits 5.1, D22; foundation F14; issue 16, 3."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import msgspec
import pytest

from holdfast.errors import Unavailable
from holdfast.features.limits.calls import LimitItem, Tally
from holdfast.features.limits.desk import Desk
from holdfast.features.limits.items import workers_of
from holdfast.features.limits.protocol.outlet import Allotment, Outlet
from holdfast.features.limits.protocol.workers import WORKERS_MAX
from holdfast.features.limits.streams import LimitStream
from holdfast.features.limits.terms import LIMITS_MAX
from holdfast.features.limits.terms import WORKERS_MAX as TERMS_WORKERS_MAX
from holdfast.features.limits.users import LOOK_MAX, TOTALS_MAX, Used, Users
from tests.features.views.fake_views import FakeTurns

LEASE = 3.0


class FakeLimits:
    """A limiter that allots the same to every limit."""

    def __init__(self, host: FakeTurns) -> None:
        self.host, self.rate, self.ends_in = host, 100.0, inf
        self.open_now: dict[str, Outlet] = {}
        self.closed: list[str] = []

    def open(self, name: str, outlet: Outlet) -> None:
        outlet.on_less = lambda: None
        self.open_now[name] = outlet
        self.allot(name)

    def allot(self, name: str) -> None:
        ends_at = self.host.now + self.ends_in
        self.open_now[name].allot(Allotment(self.rate, self.host.now + LEASE, 40.0, ends_at, 500.0, 50.0))

    def close(self, name: str) -> None:
        self.closed.append(name)
        del self.open_now[name]


class FakeClient:
    """A connection of a process."""

    def __init__(self, pid: int) -> None:
        self.pid, self.program, self.connected = pid, f"p{pid}", True
        self.woken: list[int] = []

    def wake(self, serial: int) -> None:
        self.woken.append(serial)


@dataclass
class FakeProcess:
    """By its pidfd."""

    pid: int
    dead: bool = False
    closed: bool = False

    def process(self) -> Any:
        return self

    def close(self) -> None:
        self.closed = True


class Stand:
    """One agent with its processes."""

    def __init__(self) -> None:
        self.host = FakeTurns()
        self.limits = FakeLimits(self.host)
        self.users = Users(self.host, self.limits, self, 0.5)
        self.serial = 0

    def attach(self, pid: int, *, name: str = "api", worker: int = 1, process: Any = None) -> LimitStream:
        self.serial += 1
        stream = LimitStream(FakeClient(pid), self.serial, 0, process)
        self.users.attach(name, stream, worker, 1.0)
        return stream

    def told(self, stream: LimitStream, waiting: float = 0.0) -> float:
        """The process reads, and confirms. It may say that it wants more."""
        serial = 0 if stream.told is None else stream.told.serial
        for _ in range(3):
            for raw in stream.take(64):
                serial = msgspec.msgpack.decode(raw, type=LimitItem).serial
            self.users.report(stream.client, stream.serial, serial, 0.0, waiting, None)
        return 0.0 if stream.told is None else stream.told.rate

    def lose(self, stream: LimitStream) -> None:
        """The connection is gone, without a word."""
        stream.client.connected = False  # type: ignore[misc]
        stream.close()
        self.host.turn()

    def leave(self, stream: LimitStream) -> None:
        stream.close()
        self.host.turn()

    def state(self, used: Used) -> tuple[str, float, int, float]:
        return "stable", self.limits.rate, len(used.name), 0.0

    def is_fair(self, used: Used) -> bool:
        return False

    def item(self, used: Used, stream: LimitStream) -> LimitItem:
        told = stream.told or (0, 0.0, 0.0, 0.0, 0.0, 0.0)
        return LimitItem(*told, "stable", 0.0, 0.0, 0.0, 500.0, 50.0, 4, 3, 1, used.name, 0.5)


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_the_first_process_opens_the_limit_and_the_last_one_closes_it(stand: Stand) -> None:
    """Limits 10: the share is given up when no process of this agent takes part any more."""
    one, other = stand.attach(11), stand.attach(12)
    assert stand.told(one) == 50.0
    assert stand.told(other) == 50.0
    stand.leave(one)
    assert stand.limits.closed == []
    assert stand.told(other, waiting=1000.0) == 100.0
    stand.leave(other)
    assert stand.limits.closed == ["api"]
    assert stand.users.used == {}


def test_a_process_that_said_that_it_stopped_counts_no_more(stand: Stand) -> None:
    """D22: its word is enough; it lets nothing go before it says so."""
    stream = stand.attach(11, process=FakeProcess(11))
    stand.told(stream)
    stand.leave(stream)
    assert stand.users.told == 0
    assert stream.process is None  # Its death means nothing here.


def test_a_killed_process_counts_until_the_kernel_confirms_its_death(stand: Stand) -> None:
    """Issue 16: its part returns when the kernel confirms its death, and not with the end of its connection."""
    process = FakeProcess(11)
    stream, other = stand.attach(11, process=process), stand.attach(12)
    stand.told(stream)
    stand.told(other)
    stand.lose(stream)
    for _ in range(3):
        stand.host.pass_time(0.005)
        assert stand.users.told == 100.0
    process.dead = True
    stand.host.pass_time(LOOK_MAX)
    assert process.closed
    assert [user.pid for user in stand.users.used["api"].users.values()] == [12]
    assert stand.told(other, waiting=1000.0) == 100.0


def test_a_process_that_lost_its_connection_keeps_what_it_was_told(stand: Stand) -> None:
    """Limits 5.1: past ``until`` it goes on with its part of R/n; the agent counts that as long as the process lives."""
    stream = stand.attach(11, process=FakeProcess(11))
    stand.told(stream)
    stand.lose(stream)
    stand.host.pass_time(LEASE / 2)
    assert stand.users.told == 100.0
    stand.host.pass_time(LEASE)
    assert stand.users.told == 40.0
    assert stand.limits.closed == []


def test_what_ends_by_itself_is_held_no_longer(stand: Stand) -> None:
    """Limits 5.1, exact: past ``ends_at`` the process uses nothing, whether it lives or not."""
    stand.limits.ends_in = 5.0
    stream = stand.attach(11, process=FakeProcess(11))
    stand.told(stream)
    stand.lose(stream)
    stand.host.pass_time(4.9)
    assert stand.limits.closed == []
    stand.host.pass_time(0.1 + LOOK_MAX)
    assert stand.limits.closed == ["api"]


def test_without_pidfds_a_lost_process_counts_until_its_time(stand: Stand) -> None:
    """F14: where the kernel confirms no death, what was told is held until ``until``."""
    stream = stand.attach(11, process=None)
    stand.told(stream)
    stand.lose(stream)
    stand.host.pass_time(LEASE - 0.1)
    assert stand.limits.closed == []
    stand.host.pass_time(0.1 + LOOK_MAX)
    assert stand.limits.closed == ["api"]


def test_a_process_that_comes_back_takes_its_place_again(stand: Stand) -> None:
    """Limits 5.1: its former connection and its new one are one worker, and what it goes by meanwhile is counted once."""
    stream = stand.attach(11, worker=7, process=FakeProcess(11))
    stand.told(stream)
    stand.lose(stream)
    again = stand.attach(11, worker=7, process=FakeProcess(11))
    assert len(stand.users.used["api"].users) == 1
    assert again.number == stream.number
    assert again.returned
    assert stand.told(again) == 100.0
    stand.host.pass_time(LEASE / 2)
    assert stand.users.told == 100.0
    other_use = stand.attach(11, worker=8)
    assert other_use.number != again.number


def test_one_item_waits_for_a_process_that_does_not_read(stand: Stand) -> None:
    """F17: the newest replaces those before it."""
    stream = stand.attach(11)
    for rate in range(20):
        stand.limits.rate = 100.0 - rate
        stand.limits.allot("api")
    assert len(stream.take(64)) == 1
    assert stream.take(64) == []


def test_a_report_on_a_stream_that_is_not_open_is_refused(stand: Stand) -> None:
    """F12: the client is told to attach again."""
    stream = stand.attach(11)
    with pytest.raises(Unavailable, match="attach again"):
        stand.users.report(stream.client, stream.serial + 1, 0, 0.0, 0.0, None)


def test_the_sixty_fifth_process_is_refused_by_the_name_of_the_limit(stand: Stand) -> None:
    """Issue 16: 64 workers per agent and limit, each further one refused by name."""
    for pid in range(WORKERS_MAX):
        stand.users.check_room("api")
        stand.attach(pid + 1)
    with pytest.raises(Unavailable, match="limit 'api': 64 processes"):
        stand.users.check_room("api")
    stand.users.check_room("other")


def test_draining_gives_the_share_up_and_joining_takes_it_again(stand: Stand) -> None:
    """Issue 16: drain gives the share up: the outlet is closed while the processes are still there."""
    stream = stand.attach(11)
    stand.users.drain(draining=True)
    assert stand.limits.closed == ["api"]
    stand.users.drain(draining=False)
    assert list(stand.limits.open_now) == ["api"]
    stand.users.drain(draining=True)
    stand.leave(stream)
    assert stand.limits.closed == ["api", "api"]


def test_the_numbers_are_those_of_the_protocol() -> None:
    """Limits 10: what clients are told is what agents keep."""
    from holdfast.features.limits import bucket, terms
    from holdfast.features.limits.protocol import config, shares
    from holdfast.features.limits.protocol import workers as told

    assert (TERMS_WORKERS_MAX, LIMITS_MAX) == (told.WORKERS_MAX, config.LIMITS_MAX)
    assert (terms.NAME_BYTES_MAX, terms.RATE_MAX, terms.FLEET_MAX) == (config.NAME_BYTES_MAX, config.RATE_MAX, config.FLEET_MAX)
    assert (terms.WEIGHT_MIN, terms.WEIGHT_MAX) == (shares.WEIGHT_MIN, shares.WEIGHT_MAX)
    assert terms.BURST_MIN == config.LimitsConfig().d_min == told.DEPTH_MIN == bucket.DEPTH_MIN / bucket.MICRO


def test_what_went_is_remembered_when_the_process_is_gone(stand: Stand) -> None:
    """Limits 9: counters do not fall when the last process stops; those of limits that were used longest ago are forgotten first."""
    stream = stand.attach(11)
    for _ in range(2):
        stand.users.report(stream.client, stream.serial, 0, 3.0, 0.0, None, Tally(3.0, 2.0, 1.0, (), 4, 1.0))
    stand.leave(stream)
    again = stand.attach(12)
    stand.users.report(again.client, again.serial, 0, 1.0, 0.0, None, Tally(1.0))
    assert (stand.users.totals["api"].admitted, stand.users.totals["api"].waited) == (7.0, 4.0)
    stand.leave(stand.attach(13, name="first"))
    for number in range(TOTALS_MAX):
        stand.leave(stand.attach(13, name=f"n{number}"))
    assert len(stand.users.totals) == TOTALS_MAX
    assert "api" in stand.users.totals  # It is in use.
    assert "first" not in stand.users.totals


def test_how_a_process_stands(stand: Stand) -> None:
    """Limits 9: waiters and tokens. One that says nothing lets nothing go, so its bucket fills; one that is gone has none."""
    stream = stand.attach(11, process=FakeProcess(11))
    stand.told(stream)
    stand.users.report(stream.client, stream.serial, 1, 3.0, 2.0, None, Tally(waiters=2, tokens=-30.0))
    used = stand.users.used["api"]

    def line() -> tuple[int, float]:
        (found,) = workers_of(used, stand.host.now)
        return found.waiters, found.tokens

    assert line() == (2, -30.0)
    stand.host.pass_time(0.25)
    assert line() == (2, -5.0)  # 100/s
    stand.host.pass_time(1.0)
    assert line() == (2, 10.0)  # its depth
    stand.lose(stream)
    assert line() == (0, 0.0)


def test_the_agent_hears_of_callers_that_waited_in_vain(stand: Stand) -> None:
    """Limits 5.1, H279: the line of the agent's own bucket is told when it is shorter, though nothing arrives and nothing waits."""
    desk = Desk(stand.host, stand.users, "api", 0.25, lambda: None)
    stand.host.turn()
    stand.host.pass_time(1.0)
    answers: list[bool] = []
    for cost in (500.0, 3.0):
        desk.take(cost, 0.1, lambda: True, lambda went, _: answers.append(went))
    (user,) = stand.users.used["api"].users.values()
    stand.host.turn()
    assert (answers, user.waiting, user.waiters) == ([True], 3.0, 1)
    stand.host.pass_time(1.0)
    assert (answers, user.waiting, user.waiters) == ([True, False], 0.0, 0)
