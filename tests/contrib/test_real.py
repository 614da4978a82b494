"""Each module on a real limit of a real agent: the glue fits what ``group.limit`` returns, in types and in deed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from celery import Celery

import holdfast
import holdfast.sync
from holdfast.contrib.asgi import LimitMiddleware, Receive, Rule, Scope, Send
from holdfast.contrib.celery import TaskLimits
from holdfast.contrib.httpx import AsyncLimitTransport, LimitTransport
from tests.client.conftest import runtime
from tests.contrib.fakes import in_loop
from tests.support.agents import AgentProcess, Fleet

__all__ = ["runtime"]

RATE, BURST = 50.0, 10.0


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentProcess]:
    with Fleet(tmp_path) as fleet:
        yield fleet.start(name="a")


def answer(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200)


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})


def same(number: int) -> int:
    return number


def most(seconds: float) -> float:
    """Limits 1: of one process in so long, with a permit for the instant in which the clock was read."""
    return RATE * seconds + BURST + 1


@in_loop
async def test_requests_of_an_event_loop(agent: AgentProcess) -> None:
    """Limits 10: an app refuses and lets wait, a client waits, by the limits of one group, and neither is above its rate."""
    async with holdfast.join("test", agent=agent.socket) as group:
        limit = group.limit("calls", rate=RATE, burst=BURST)
        rules = [Rule(name="now", path="/now", rate=RATE, burst=BURST), Rule(name="later", rate=RATE, burst=BURST, max_wait=30.0)]
        inside = httpx.ASGITransport(app=LimitMiddleware(app, rules=rules, group=group))
        async with (
            httpx.AsyncClient(transport=AsyncLimitTransport(limit, httpx.MockTransport(answer))) as client,
            httpx.AsyncClient(transport=inside, base_url="http://inside") as served,
        ):
            await asyncio.gather(client.get("http://api/"), served.get("/later"))  # The first share takes a moment.
            for asked, url in ((client, "http://api/"), (served, "/later")):
                began = time.monotonic()
                assert {response.status_code for response in await asyncio.gather(*(asked.get(url) for _ in range(40)))} == {200}
                assert most(time.monotonic() - began) >= 40
            began = time.monotonic()
            codes = [(await served.get("/now")).status_code for _ in range(200)]
            assert {*codes} >= {429}
            assert codes.count(200) <= most(time.monotonic() - began)


def test_requests_of_threads(agent: AgentProcess) -> None:
    """Limits 9, 10: blocking requests wait; a 429 makes the whole limit slower for as long as the server says."""
    answers = iter([httpx.Response(429, headers={"retry-after": "2"})])
    with holdfast.sync.join("test", agent=agent.socket) as group, group.limit("calls", rate=RATE, burst=BURST) as limit:
        inner = httpx.MockTransport(lambda request: next(answers, httpx.Response(200)))
        with httpx.Client(transport=LimitTransport(limit, inner, retries=0)) as client, ThreadPoolExecutor(8) as pool:
            assert client.get("http://api/").status_code == 429
            end_at = time.monotonic() + 20.0
            while limit.share > RATE / 2:
                assert time.monotonic() < end_at, "never slower"
                time.sleep(0.02)
            began = time.monotonic()
            codes = [*pool.map(lambda number: client.get("http://api/").status_code, range(40))]
            assert {*codes} == {200}
            assert most(time.monotonic() - began) >= 40


def test_tasks(agent: AgentProcess) -> None:
    """Limits 10: tasks that are called directly wait for the limit of the group, which is joined once and left at the end."""
    limits = TaskLimits(lambda: holdfast.sync.join("test", agent=agent.socket), {"tasks": {"rate": RATE, "burst": BURST}})
    celery = Celery("test", task_cls=limits.Task, broker="memory://")
    task = celery.task(limit="tasks", name="task", shared=False)(same)
    task(0)
    began = time.monotonic()
    assert [task(number) for number in range(40)] == [*range(40)]
    assert most(time.monotonic() - began) >= 40
    limits.close()
    celery.close()
