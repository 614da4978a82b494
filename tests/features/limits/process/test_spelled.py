"""``group.limit()`` in both spellings, against an agent by script.  Spec: limits 5.1, 10, D22; issue 16 (what bad input gets)."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf, nan
from typing import Any

import msgspec
import pytest

from holdfast.errors import AgentLost, ConfigError, Forked, HoldfastError, LimitTimeout, Timeout, Unavailable
from holdfast.features.limits import calls as limit_calls
from holdfast.features.limits.calls import LimitItem
from holdfast.features.limits.terms import Change, Terms
from holdfast.local import calls
from holdfast.net.clock import now, now_ns
from tests.client.fake_agent import SILENCE, FakeAgent
from tests.client.spelling import Aio, Blocking, Spelling
from tests.support.agents import until

WAIT = 30.0
SOON = 5.0  # seconds; what takes a few milliseconds on a quiet machine
MANY = 10_000.0  # per second: so much that no test waits for it


def item(
    serial: int, rate: float, *, depth: float = 10.0, lasts: float = inf, after: float = inf, ends_in: float = inf, state: str = "stable"
) -> LimitItem:
    start = now()
    return LimitItem(
        serial, rate, depth, start + lasts, after, start + ends_in, state, rate, 2 * rate, 3 * rate, 500.0, 50.0, 4, 3, 1, "fair", 0.1
    )


@pytest.fixture
def group(client: Spelling, agent: FakeAgent) -> Iterator[Any]:
    group = client.join("orders", agent=agent.path)
    yield group
    client.run(group.leave)


@pytest.fixture
def limit(client: Spelling, agent: FakeAgent, group: Any) -> Any:
    made = client.run(group.limit, "api", rate=500, burst=50)
    agent.wait_for(limit_calls.AttachLimit)
    return made


def tell(agent: FakeAgent, told: LimitItem, limit: Any) -> None:
    """On the newest stream; and it has arrived."""
    agent.push(agent.wait_for(limit_calls.AttachLimit), told)
    until(lambda: limit._meter.item is not None and limit._meter.item.serial == told.serial, "the item has arrived")


def reports(agent: FakeAgent) -> list[limit_calls.ReportLimit]:
    return agent.all(limit_calls.ReportLimit)


def test_a_limit_attaches_and_counts_by_itself(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 10: it returns at once; before the first share nothing goes; then `try_acquire` is local: no call for a cost."""
    asked = agent.wait_for(limit_calls.AttachLimit)
    assert (asked.name, asked.terms, asked.weight) == ("api", Terms(500.0, 50.0), 1.0)
    assert (limit.state, client.run(limit.try_acquire)) == ("starting", False)
    tell(agent, item(1, MANY), limit)
    client.run(limit.ready, timeout=WAIT)
    until(lambda: client.run(limit.try_acquire, cost=5), "tokens have come in")
    assert (limit.state, limit.share, limit.demand, limit.aggregate) == ("stable", MANY, 2 * MANY, 3 * MANY)
    assert limit.bound(10) == 500 * 10 + 50 + 4 * 5
    assert repr(limit) == "<GroupLimit 'api': stable>"


def test_what_was_told_is_confirmed_and_what_arrived_is_reported(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 5.1, D22: the agent hears at once which serial this process goes by; then every half epoch what arrived."""
    tell(agent, item(7, MANY), limit)
    assert agent.wait_for(limit_calls.ReportLimit).confirmed == 7
    until(lambda: client.run(limit.try_acquire, cost=4), "tokens have come in")
    until(lambda: sum(each.arrived for each in reports(agent)) >= 4, "it was reported")
    told = len(reports(agent))
    time.sleep(0.5)
    assert len(reports(agent)) == told  # An idle process says nothing.
    assert {each.stream for each in reports(agent)} == {agent.wait_for(limit_calls.AttachLimit).serial}


def test_callers_wait_in_line(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 5.1: first in, first out; one that asks for little does not overtake one that waits for much, nor does `try_acquire`."""
    tell(agent, item(1, 20.0, depth=1.0), limit)
    order: list[int] = []

    def go(number: int, cost: float) -> None:
        client.run(limit.acquire, cost, timeout=WAIT)
        order.append(number)

    with ThreadPoolExecutor(4) as pool:
        for number, cost in enumerate((8.0, 1.0, 1.0, 1.0)):
            pool.submit(go, number, cost)
            until(lambda number=number: len(limit._line) >= number or number in order, "it waits")  # type: ignore[misc]
            time.sleep(0.02)
        assert not client.run(limit.try_acquire) or not len(limit._line)
    assert order == [0, 1, 2, 3]


def test_a_cost_that_does_not_go_in_time_costs_nothing(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 5.1: cancel or timeout removes the waiter, and costs nothing; what waited in vain is demand all the same."""
    tell(agent, item(1, 1.0), limit)
    limit._bucket.refill(limit._bucket.filled_at)
    with pytest.raises(LimitTimeout, match=r"limit 'api': no room for a cost of 9 within 0\.05 s"):
        client.run(limit.acquire, 9, timeout=0.05)
    assert issubclass(LimitTimeout, Timeout)
    assert limit._bucket.admitted == 0
    assert len(limit._line) == 0
    until(lambda: sum(each.arrived for each in reports(agent)) == 9, "it was reported")
    until(lambda: reports(agent)[-1].waiting == 0, "nothing waits")


def test_without_patience_it_raises_at_once(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """H350: `acquire(timeout=0)` is what a web handler needs that must not wait: it goes, or raises and costs nothing."""
    tell(agent, item(1, 1.0, depth=1.0), limit)
    until(lambda: client.run(limit.try_acquire), "a token has come in, and is taken")
    before, begun_at = limit._bucket.admitted, now()
    with pytest.raises(LimitTimeout, match="within 0 s"):
        client.run(limit.acquire, timeout=0)
    assert now() - begun_at < SOON
    assert (limit._bucket.admitted, len(limit._line)) == (before, 0)
    tell(agent, item(2, MANY), limit)
    until(lambda: limit._bucket.seen(now_ns()) >= 2_000_000, "tokens have come in")
    client.run(limit.acquire, timeout=0)
    assert limit._bucket.admitted == before + 1_000_000


def test_what_is_counted_for_people_goes_with_the_reports(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 9, H351: what went, what of it had waited, for how long and how many wait; nothing is said for it alone."""
    tell(agent, item(1, MANY), limit)
    until(lambda: client.run(limit.try_acquire, cost=5), "tokens have come in")
    tell(agent, item(2, 2.0, depth=1.0), limit)
    until(lambda: not client.run(limit.try_acquire), "nothing is left")
    client.run(limit.acquire, 3, timeout=WAIT)
    with pytest.raises(LimitTimeout):
        client.run(limit.acquire, 50, timeout=0.3)

    def tallies() -> list[limit_calls.Tally]:
        return [each.tally for each in reports(agent) if each.tally is not None]

    went = limit._bucket.admitted / 1_000_000
    until(lambda: sum(each.admitted for each in tallies()) >= went >= 8 and tallies()[-1].waiters == 0, "it was reported")
    assert sum(each.waited for each in tallies()) == 3.0
    assert sum(sum(each.waits) for each in tallies()) == 1
    assert 0.0 < sum(each.seconds for each in tallies()) < SOON
    assert max(each.waiters for each in tallies()) == 1
    told = len(reports(agent))
    time.sleep(0.5)
    assert len(reports(agent)) == told


def test_a_task_that_is_cancelled_leaves_the_line(agent: FakeAgent) -> None:
    """Limits 5.1: cancel costs nothing, and the next in line goes."""
    client = Aio()
    group = client.join("orders", agent=agent.path)
    limit = client.run(group.limit, "api", rate=500)
    tell(agent, item(1, 0.001), limit)
    first, second = client.start(limit.acquire, 1), client.start(limit.acquire, 1)
    until(lambda: len(limit._line) == 2, "both wait")
    first.cancel()
    until(lambda: len(limit._line) == 1, "one left")
    tell(agent, item(2, MANY), limit)
    second.result(SOON)
    assert limit._bucket.admitted == 1_000_000
    client.run(group.leave)
    client.close()


def test_more_is_told_and_waiters_go_at_once(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 5.1: a new rate counts when it comes; callers that wait see it then, and the agent heard at once that they wait."""
    tell(agent, item(1, 0.001), limit)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.run, limit.acquire, 2, timeout=WAIT)
        until(lambda: any(each.waiting == 2 for each in reports(agent)), "the agent knows")
        tell(agent, item(2, MANY), limit)
        waiting.result(SOON)


def test_an_attempt_of_an_idle_process_is_heard_at_once(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 5.1: an idle process holds nothing after a while, and a program that only polls must be given its share again."""
    tell(agent, item(1, 0.001), limit)
    until(lambda: limit._stream._reporting._idle > 8, "its beats are rare")
    told = len(reports(agent))
    assert not client.run(limit.try_acquire)
    began = time.monotonic()
    until(lambda: len(reports(agent)) > told, "it is heard")
    assert time.monotonic() - began < 0.5
    assert reports(agent)[-1].arrived == 1


def test_a_share_ends_by_the_clock(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 5.1, F9: past ``until`` the process goes on with ``after``, past ``ends_at`` with nothing, whatever the agent says or not."""
    tell(agent, item(1, MANY, lasts=0.2, after=50.0, ends_in=0.5), limit)
    assert limit.share == MANY
    until(lambda: limit.share == 50.0, "until has passed")
    until(lambda: limit.share == 0.0, "ends_at has passed")
    assert not client.run(limit.try_acquire, cost=10)
    limit._bucket.refill(time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 10**12)
    assert limit._bucket.tokens <= 10_000_000


def test_the_share_survives_the_agent(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Issue 16: the worker goes on with its share when its agent is killed (`state == "alone"`); past ``ends_at`` it says so."""
    tell(agent, item(1, MANY, ends_in=1.0), limit)
    agent.close()
    until(lambda: limit.state == "alone", "the agent is gone")
    client.run(limit.acquire, 3, timeout=WAIT)
    until(lambda: limit.share == 0.0, "ends_at has passed")
    with pytest.raises(AgentLost):
        client.run(limit.acquire, 10, timeout=WAIT)


def test_an_agent_that_is_stopped_leaves_the_process_alone(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Issue 16: killed or stopped; a report that is not answered for two seconds says so. One report is under way at a time."""
    agent.answers[limit_calls.ReportLimit] = SILENCE
    tell(agent, item(1, MANY), limit)
    until(lambda: limit.state == "alone", "the agent does not answer")
    client.run(limit.acquire, 3, timeout=WAIT)
    assert len(reports(agent)) == 1


def test_a_client_that_reconnects_attaches_again(client: Spelling, agent: FakeAgent) -> None:
    """Limits 10: with `reconnect` it is back when the agent is; meanwhile its share goes on; the same number names it in this process."""
    group = client.join("orders", agent=agent.path, reconnect=True)
    limit = client.run(group.limit, "api", rate=500)
    tell(agent, item(9, MANY), limit)
    before = agent.wait_for(limit_calls.AttachLimit)
    for session in list(agent.sessions):
        session.close()
    again = agent.wait_for(limit_calls.AttachLimit, 2)
    assert (again.name, again.worker) == (before.name, before.worker)
    client.run(limit.acquire, 3, timeout=WAIT)
    count = len(reports(agent))
    tell(agent, item(2, MANY), limit)
    until(lambda: any(each.confirmed == 2 and each.stream == again.serial for each in reports(agent)[count:]), "it is confirmed anew")
    assert limit.state == "stable"
    client.run(group.leave)


@pytest.mark.parametrize("little, claims_in, kept", [(False, None, 1.0), (False, 2.0, 2.0), (True, 2.0, 2.0)])
def test_a_share_goes_on_until_the_next_life_claims_it(
    client: Spelling, agent: FakeAgent, little: bool, claims_in: float | None, kept: float
) -> None:
    """Limits 5.1, H310: another life of the agent has told nothing yet, or little that others gave it. What the former one told goes on to
    its end, and until the instant from which on this life may claim it. What has ended does not begin again."""
    group = client.join("orders", agent=agent.path, reconnect=True)
    limit = client.run(group.limit, "api", rate=500)
    began_at = now()
    tell(agent, item(9, MANY, lasts=0.1, after=50.0, ends_in=1.0), limit)
    for session in list(agent.sessions):
        session.close()
    again = agent.wait_for(limit_calls.AttachLimit, 2)
    claims_at = 0.0 if claims_in is None else began_at + claims_in
    first = msgspec.structs.replace(item(3, 7.0) if little else item(0, 0.0, lasts=0.0, after=0.0, ends_in=0.0), claims_at=claims_at)
    tell(agent, first, limit)
    assert limit.share >= 50.0
    assert little or limit.state == "alone"
    until(lambda: limit.share == 0.0, "it ends")
    assert kept <= now() - began_at <= kept + SOON
    client.run(limit.try_acquire)
    until(lambda: any(each.stream == again.serial for each in reports(agent)), "it was reported")
    assert {each.confirmed for each in reports(agent) if each.stream == again.serial} == {first.serial}
    tell(agent, msgspec.structs.replace(first, serial=0, rate=0.0, claims_at=now() + SOON), limit)
    assert limit.share == 0.0
    tell(agent, item(4, 70.0), limit)
    assert (limit.state, limit.share) == ("stable", 70.0)
    client.run(group.leave)


def test_another_connection_of_the_same_life_is_obeyed(client: Spelling, agent: FakeAgent) -> None:
    """Limits D22, H310: less is less at once where the life that told more tells it: it names no instant."""
    group = client.join("orders", agent=agent.path, reconnect=True)
    limit = client.run(group.limit, "api", rate=500)
    tell(agent, item(9, MANY), limit)
    for session in list(agent.sessions):
        session.close()
    agent.wait_for(limit_calls.AttachLimit, 2)
    tell(agent, item(10, 7.0), limit)
    assert limit.share == 7.0
    client.run(group.leave)


def test_leaving_the_group_gives_the_share_up(client: Spelling, agent: FakeAgent, group: Any, limit: Any) -> None:
    """H311: without a word the agent would hold what it told until this process is dead."""
    tell(agent, item(1, MANY), limit)
    client.run(group.leave)
    assert agent.wait_for(calls.Close).stream == agent.wait_for(limit_calls.AttachLimit).serial
    with pytest.raises(Unavailable, match="the group was left"):
        client.run(limit.try_acquire)


def test_numbers_change_by_calls(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 5.10, 9: set_rate, set_burst, set_fleet and penalize; nothing else of the limit is named."""
    client.run(limit.set_rate, 300)
    client.run(limit.set_burst, 30)
    client.run(limit.set_fleet, 60)
    changes = [(each.name, each.terms, each.change) for each in agent.all(limit_calls.SetLimit)]
    assert changes == [("api", None, Change(rate=300)), ("api", None, Change(burst=30)), ("api", None, Change(fleet=60))]
    client.run(limit.penalize, 30, factor=0.5)
    asked = agent.wait_for(limit_calls.PenalizeLimit)
    assert (asked.name, asked.seconds, asked.factor) == ("api", 30, 0.5)
    agent.answers[limit_calls.SetLimit] = ("ConfigError", "limit 'api': there is none of that name")
    with pytest.raises(ConfigError, match="none of that name"):
        client.run(limit.set_rate, 300)


def test_a_demand_of_the_program_is_reported(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Limits 5.2: `demand=` is asked before each report. One that raises or returns NaN is counted, and its last answer stands."""
    answers: list[Any] = [70.0, nan, "many", -1.0, 80.0]

    def demand() -> float:
        return answers.pop(0) if len(answers) > 1 else float(answers[0])

    limit = client.run(group.limit, "api", rate=500, demand=demand)
    tell(agent, item(1, MANY), limit)
    for _ in range(40):
        client.run(limit.try_acquire)
        time.sleep(0.05)
        if any(each.user == 80.0 for each in reports(agent)):
            break
    assert {each.user for each in reports(agent)} <= {None, 70.0, 80.0}
    assert limit._meter.faults == 3


def test_closing_gives_the_share_up(client: Spelling, agent: FakeAgent, limit: Any) -> None:
    """Limits 10: the stream ends, callers that wait raise, and nothing goes any more."""
    tell(agent, item(1, 0.001), limit)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(client.run, limit.acquire, 5, timeout=WAIT)
        until(lambda: len(limit._line) == 1, "it waits")
        client.run(limit.close)
        with pytest.raises(Unavailable, match="it was closed"):
            waiting.result(SOON)
    assert agent.wait_for(calls.Close).stream == agent.wait_for(limit_calls.AttachLimit).serial
    for use in (limit.acquire, limit.try_acquire, limit.ready):
        with pytest.raises(Unavailable):
            client.run(use)
    client.run(limit.close)
    assert repr(limit) == "<GroupLimit 'api': closed>"


def test_a_block_and_a_slot(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Limits 10: `slot` takes the cost before the block; a limit that is left as a block is closed."""
    limit = client.run(group.limit, "api", rate=500)
    tell(agent, item(1, MANY), limit)
    client.enter(limit)
    slot = client.run(limit.slot, 3)
    client.enter(slot)
    assert limit._bucket.admitted == 3_000_000
    client.exit(slot)
    client.exit(limit)
    agent.wait_for(calls.Close)


def test_a_refusal_reaches_the_caller(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """F12: the agent says which setting is missing; in a loop the next call that needs the limit does, among threads the first."""
    agent.answers[limit_calls.AttachLimit] = ("ConfigError", "policy: 'exact' needs agreed views")

    def use() -> None:
        limit = client.run(group.limit, "api", rate=500, policy="exact", fleet=4)
        client.run(limit.acquire, timeout=WAIT)

    with pytest.raises(ConfigError, match="needs agreed views"):
        use()


def test_a_limit_that_nothing_refers_to_is_given_up(agent: FakeAgent) -> None:
    """Limits 10: a program that forgets its limit must not keep a share for ever."""
    group = Blocking().join("orders", agent=agent.path)
    limit = group.limit("api", rate=500)
    tell(agent, item(1, MANY), limit)
    opened = agent.wait_for(limit_calls.AttachLimit)
    del limit
    gc.collect()

    def given_up() -> bool:
        """A thread may be inside of it at first."""
        agent.push(opened, item(2, MANY))
        return bool(agent.all(calls.Close))

    until(given_up, "it is given up")
    group.leave()


def test_a_child_of_the_process_is_told_so(agent: FakeAgent) -> None:
    """Limits 10: after a fork `Forked`; the parent's share is not used twice, and no lock of the parent's threads stops the child."""
    group = Blocking().join("orders", agent=agent.path)
    limit = group.limit("api", rate=500)
    tell(agent, item(1, MANY), limit)
    limit.acquire(1, timeout=WAIT)
    with limit._line.lock:  # A thread of the parent is inside.
        pid = os.fork()
        if pid == 0:
            with suppress(BaseException):
                for use in (limit.try_acquire, limit.acquire, limit.close):
                    try:
                        use()
                    except Forked:
                        continue
                    os._exit(1)
                os._exit(0)
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert limit.try_acquire() or limit._bucket.tokens < 1_000_000
    group.leave()


@pytest.mark.parametrize(
    "given, named",
    [
        ({"rate": 0}, "rate"),
        ({"rate": -1}, "rate"),
        ({"rate": nan}, "rate"),
        ({"rate": 10**10}, "rate"),
        ({"rate": "many"}, "rate"),
        ({"rate": 5, "burst": 0.5}, "burst"),
        ({"rate": 5, "policy": "exact"}, "fleet"),
        ({"rate": 5, "policy": "strict", "fleet": "auto"}, "fleet"),
        ({"rate": 5, "fleet": 0}, "fleet"),
        ({"rate": 5, "policy": "kind"}, "policy"),
        ({"rate": 5, "share": "all"}, "share"),
        ({"rate": 5, "weight": 2}, "weight"),
        ({"rate": 5, "per": 0}, "per"),
        ({"rate": 5, "reserve": 2}, "reserve"),
        ({"rate": 5, "headroom": 1}, "headroom"),
        ({"rate": 5, "aggregate": "none"}, "aggregate"),
        ({"rate": 5, "demand": 7}, "demand"),
        ({"rate": 5, "name": "x" * 200}, "name"),
        ({"rate": 5, "name": ""}, "name"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_field(
    client: Spelling, agent: FakeAgent, group: Any, given: dict[str, Any], named: str
) -> None:
    """Issue 16, what bad input gets: a clear message that names the field and what is accepted; nothing is sent."""
    with pytest.raises(ConfigError, match=rf"^{named}: .*; accepted "):
        client.run(group.limit, **{"name": "api", **given})
    assert agent.all(limit_calls.AttachLimit) == []


@pytest.mark.parametrize("cost", [0, -1, 2**31 + 1, nan, inf, 10**400])
def test_a_cost_that_makes_no_sense_is_refused(client: Spelling, agent: FakeAgent, limit: Any, cost: float) -> None:
    """Issue 16: cost of 0, negative or above 2^31."""
    tell(agent, item(1, MANY), limit)
    for use in (limit.try_acquire, limit.acquire):
        with pytest.raises(ConfigError, match=r"^cost: .*; accepted is a number above 0, up to 2147483648"):
            client.run(use, cost)
    assert limit._bucket.admitted == 0


def test_threads_share_one_bucket(agent: FakeAgent) -> None:
    """Limits 10: `holdfast.sync` is thread-safe: what many threads take at once is what the bucket gave."""
    group = Blocking().join("orders", agent=agent.path)
    limit = group.limit("api", rate=500)
    tell(agent, item(1, 1e6, depth=2000.0), limit)
    taken = [0] * 8

    def poll(number: int) -> None:
        end_at = time.monotonic() + 0.3
        while time.monotonic() < end_at:
            taken[number] += limit.try_acquire()
            with suppress(LimitTimeout):
                limit.acquire(1, timeout=0.01)
                taken[number] += 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(poll, range(8)))
    assert limit._bucket.admitted == sum(taken) * 1_000_000
    assert sum(taken) > 1000
    group.leave()


def test_ten_thousand_callers_wait_and_no_more(agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits 10: 10,000 waiters per worker, then `Unavailable`; here 20."""
    monkeypatch.setattr("holdfast.features.limits.client_base.WAITERS_MAX", 20)
    client = Aio()
    group = client.join("orders", agent=agent.path)
    limit = client.run(group.limit, "api", rate=500)
    waiting = [client.start(limit.acquire, 1) for _ in range(20)]
    until(lambda: len(limit._line) == 20, "they wait")
    with pytest.raises(Unavailable, match="20 callers of this process wait"):
        client.run(limit.acquire, 1)
    tell(agent, item(1, MANY, depth=20), limit)
    for each in waiting:
        each.result(SOON)
    client.run(group.leave)
    client.close()


def test_the_line_is_one_of_ours_in_both_spellings() -> None:
    """H213: both spellings wait by modules of the same name and shape."""
    from holdfast.client.loop.fifo import Fifo as Loop
    from holdfast.client.threads.fifo import Fifo as Threads

    async def make() -> Loop:
        return Loop()

    assert {name for name in vars(Threads) if not name.startswith("_")} == {
        name for name in vars(type(asyncio.run(make()))) if not name.startswith("_")
    }
    assert issubclass(HoldfastError, Exception)
