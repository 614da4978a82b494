"""Limits over HTTP: the answers, the line of callers, and every metric.  docs/http.md; spec: limits 9, 10; issue 16, 5."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.agent.membership import kind_of
from holdfast.agent.observe.http_app import every_route
from holdfast.agent.observe.metrics import render
from holdfast.agent.observe.openapi import document
from holdfast.config import Config
from holdfast.errors import ConfigError
from holdfast.features.limits.calls import LimitLine, LimitsReport, WorkerLine
from holdfast.features.limits.http import BEAT_INTERVAL, BEAT_LIMITS, COUNTERS, GAUGES, NUMBERS, SECONDS, LimitsAnswer, LimitsHttp
from holdfast.features.limits.terms import LIMITS_MAX, WORKERS_MAX, Terms
from tests.features.limits.unit.test_feature import Agent
from tests.features.views.fake_views import view
from tests.http.test_routes import complaints


class Web:
    """As much of the server as the routes use."""

    def again(self, name: str, make: Callable[[], Any]) -> Any:
        return make()

    def json(self, value: Any, status: int = 200) -> Any:
        assert status == 200
        return value

    async def in_turn(self, work: Callable[[], Any]) -> None:
        work()

    async def body(self, request: Any) -> bytes:
        return bytes(request.data)

    async def while_there(self, request: Any, awaited: asyncio.Future[Any]) -> Any:
        return await awaited


def http_of(agent: Agent) -> LimitsHttp:
    return LimitsHttp(Web(), agent.feature)


@pytest.fixture
def agent() -> Agent:
    """With one limit that a process uses."""
    agent = Agent()
    agent.views.stand(view(3, "a"), leased_until=agent.host.now + 3600)
    agent.attach()
    agent.host.pass_time(1.0)
    return agent


def acquire(agent: Agent, name: str = "api", body: bytes = b"", seconds: float = 0.0) -> Any:
    """The answer, when so much time has passed."""

    async def ask() -> Any:
        request: Any = SimpleNamespace(path_params={"name": name}, data=body)
        asked = asyncio.ensure_future(http_of(agent).acquire_limit(request))
        for _ in range(20):
            await asyncio.sleep(0)
            agent.host.turn()
            agent.host.pass_time(seconds / 20)
        return await asyncio.wait_for(asked, 5)

    return asyncio.run(ask())


def test_the_limits_as_this_agent_sees_them(agent: Agent) -> None:
    """Issue 16: `GET /v1/limits`: what the OpenAPI document says."""
    found = http_of(agent).answer()
    described = document("VERSION", every_route(kind_of(Config())))
    assert complaints(json.loads(msgspec.json.encode(found)), {"$ref": "#/components/schemas/LimitsAnswer"}, described) == []
    (limit,) = found.limits
    assert (limit.name, limit.set_rate, limit.over, limit.used, limit.members) == ("api", 500.0, "views", True, 1)
    assert limit.workers[0].pid == 11


def test_looking_does_not_take_part() -> None:
    """H221: a page that is open on an agent that uses no limit loads nothing of limits."""
    agent = Agent()
    assert http_of(agent).answer() == LimitsAnswer(False, (), ())
    assert list(http_of(agent).metrics()) == []
    assert not agent.feature.has_specs


def test_a_cost_goes_when_there_is_room(agent: Agent) -> None:
    """Issue 16: `POST /v1/limits/NAME/acquire`: the first caller finds an empty bucket, and waits; the next ones take what came in."""
    assert acquire(agent, body=b'{"wait": 30}', seconds=8.0).went
    assert acquire(agent, body=b'{"cost": 3}').went
    refused = acquire(agent, body=b'{"cost": 1000}')
    assert acquire(agent).went is not refused.went


def test_one_that_waits_in_vain_is_told_when_to_ask_again(agent: Agent) -> None:
    """H279: `retry_after` counts those that wait before; it is null where this agent has no share."""
    assert acquire(agent, body=b'{"wait": 30}', seconds=8.0).went
    assert acquire(agent, body=b'{"cost": 5000, "wait": 1}', seconds=2.0).went  # Above the depth: it is paid afterwards.
    answer = acquire(agent, body=b'{"cost": 2, "wait": 0.5}', seconds=1.0)
    assert not answer.went
    assert answer.retry_after is not None
    assert answer.retry_after > 1.0


@pytest.mark.parametrize("body", [b"{", b'{"cost": 0}', b'{"cost": -1}', b'{"wait": 100}', b'{"more": 1}', b'{"cost": "x"}'])
def test_what_makes_no_sense_is_refused(agent: Agent, body: bytes) -> None:
    """Issue 16, what bad input gets: 400 and the field."""
    with pytest.raises(ConfigError, match="accepted"):
        acquire(agent, body=body)


def test_a_limit_that_is_not_there_is_refused(agent: Agent) -> None:
    """Issue 16: a clear message; nothing is made."""
    with pytest.raises(ConfigError, match="limit 'none': there is none of that name"):
        acquire(agent, "none")


def test_every_number_has_a_metric(agent: Agent) -> None:
    """Limits 9: per limit and per agent; what a user chose is the value of a label."""
    text = render(http_of(agent).metrics())
    for name, _ in (*NUMBERS.values(), *GAUGES.values(), *COUNTERS.values(), *SECONDS.values()):
        assert f"\nholdfast_{name}" in text or text.startswith(f"# HELP holdfast_{name}")
    assert 'holdfast_limit_rate{limit="api"} 500' in text
    assert "holdfast_limits_epochs_total" in text
    assert "panic_seconds" not in "".join(line for line in text.splitlines() if line.startswith("holdfast_limits_total"))


def test_what_the_page_is_told(agent: Agent) -> None:
    """H352: the busiest sixteen of those that this agent uses, and six processes of each; looked at twice a second, however many read."""
    workers = tuple(WorkerLine(pid, f"p{pid}", 1.0, 0.0) for pid in range(WORKERS_MAX))
    lines = [
        LimitLine(f"l{number:03}", Terms(500.0, 50.0), 1, "a", state="stable", rate=10.0, demand=float(number), workers=workers)
        for number in range(LIMITS_MAX)
    ]
    lines[3] = replace(lines[3], waiters=1)
    lines[255] = replace(lines[255], state="")
    reports: list[LimitsReport] = []

    def report_of() -> LimitsReport:
        reports.append(LimitsReport(True, tuple(lines), ("b",) * 50))
        return reports[-1]

    source: Any = SimpleNamespace(now=5.0, has_specs=True, handlers=SimpleNamespace(report_of=report_of))
    http = LimitsHttp(Web(), source)
    for _ in range(5):
        beat = http.beat()["limits"]
        http.lists[0].frame()
    assert len(reports) == 2  # and one for the list itself
    assert [line.name for line in beat.lines] == ["l003", *(f"l{number}" for number in range(254, 254 - BEAT_LIMITS + 1, -1))]
    assert (beat.count, len(beat.blacklisted), len(beat.lines[0].workers), beat.lines[0].workers_of) == (LIMITS_MAX, BEAT_LIMITS, 6, 64)
    assert len(msgspec.json.encode(beat)) < 16 * 1024
    version = http.lists[0].version()
    lines[3] = replace(lines[3], version=2)
    assert http.lists[0].version() == version
    source.now += BEAT_INTERVAL
    assert http.lists[0].version() == version + 1
    lines.clear()
    source.now += BEAT_INTERVAL
    assert http.beat() == {}


def test_what_went_and_what_waited(agent: Agent) -> None:
    """Limits 9: admitted and waited cost, the histogram of waits, and who waits; also of callers of the agent itself."""
    assert acquire(agent, body=b'{"cost": 2, "wait": 30}', seconds=8.0).went  # it waits: the bucket is empty at the start
    assert acquire(agent, body=b'{"cost": 5000}').went  # The bucket is full: it is paid afterwards.
    assert not acquire(agent, body=b'{"cost": 3, "wait": 0.1}', seconds=1.0).went
    agent.host.pass_time(1.0)
    text = render(http_of(agent).metrics())
    assert 'holdfast_limit_admitted_total{limit="api"} 5002\n' in text
    assert 'holdfast_limit_waited_total{limit="api"} 2\n' in text
    assert 'holdfast_limit_wait_seconds_count{limit="api"} 1\n' in text
    assert 'holdfast_limit_waiters{limit="api"} 0\n' in text
    assert 'holdfast_limit_waiting{limit="api"} 0\n' in text  # One that waited in vain is told of, too.
    (limit,) = http_of(agent).answer().limits
    assert (limit.admitted, limit.waited, limit.waiters, limit.quota) == (5002.0, 2.0, 0, None)


def test_quota_of_an_exact_limit(agent: Agent) -> None:
    """Limits 9: quota held, in parts of one member's 1/n; only of limits that have some."""
    agent.attach("strictly", policy="exact", fleet=4)
    agent.host.pass_time(1.0)
    assert 'holdfast_limit_quota{limit="strictly"} 0\n' in render(http_of(agent).metrics())
    agent.host.pass_time(10.0)
    text = render(http_of(agent).metrics())
    assert 'holdfast_limit_quota{limit="strictly"} 1\n' in text
    assert 'holdfast_limit_quota{limit="api"}' not in text
