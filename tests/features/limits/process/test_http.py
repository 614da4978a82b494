"""Limits over HTTP of a real agent: who may ask, what is refused, and the line of those that wait.  docs/http.md; spec: limits 10, H279."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast.agent.observe.http_app import KEPT_SECONDS
from holdfast.features.limits.calls import SetLimit
from holdfast.features.limits.terms import Terms
from tests.agent.raw_client import RawClient
from tests.http.conftest import TOKEN
from tests.http.wire import Answer, ask
from tests.support.agents import AgentProcess, Fleet, until

BEARER = {"Authorization": f"Bearer {TOKEN}"}
PATIENCE = 60.0  # seconds that a test waits for an answer; as long as a request may wait
SLOW, FAST = 0.001, 1.0  # per second: nothing goes while a test forms a line; then one after the other
ANSWERS_KEPT = 2 * KEPT_SECONDS
PATH = "/v1/limits/api/acquire"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """One agent, which is its own group."""
    folder = tmp_path_factory.mktemp("http")
    (folder / "token").write_text(TOKEN)
    with Fleet(folder, http="127.0.0.1:0", http_token_file=str(folder / "token")) as fleet:
        yield fleet.start(name="a")


@pytest.fixture
def url(agent: AgentProcess) -> str:
    return str(agent.ready["http"])


def put(agent: AgentProcess, name: str, rate: float) -> None:
    """As ``holdfast limit set`` does."""
    with RawClient(agent.socket) as client:
        client.ask(SetLimit, name, Terms(rate, 1.0), None)


def limits(url: str) -> list[dict[str, Any]]:
    answer = ask(url, "/v1/limits", headers=BEARER)
    assert answer.status == 200, answer
    return list(answer.json["limits"])


def limit(url: str, name: str) -> dict[str, Any]:
    (found,) = [each for each in limits(url) if each["name"] == name]
    return found


def names(url: str) -> list[str]:
    return [each["name"] for each in limits(url)]


def waiting(url: str, name: str) -> float:
    """Cost."""
    return sum(float(each["waiting"]) for each in limits(url) if each["name"] == name)


def acquire(url: str, body: Any, path: str = PATH) -> Answer:
    return ask(url, path, "POST", body if isinstance(body, bytes) else json.dumps(body).encode(), BEARER)


class Caller:
    """One that waits for its answer, and may hang up."""

    def __init__(self, url: str, path: str, **body: float) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
        self._connection.request("POST", path, body=json.dumps(body).encode(), headers=BEARER)
        self._answer: tuple[Any, float] | None = None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def answer(self) -> tuple[Any, float]:
        """And when it came."""
        self._reader.join(PATIENCE)
        assert self._answer is not None
        return self._answer

    def hang_up(self) -> None:
        sock = self._connection.sock
        if sock is not None and self._reader.is_alive():
            sock.shutdown(socket.SHUT_RDWR)
        self._reader.join(PATIENCE)
        self._connection.close()

    def _read(self) -> None:
        with suppress(OSError, HTTPException), self._connection.getresponse() as response:
            self._answer = json.loads(response.read()), time.monotonic()


Call = Callable[..., Caller]


@pytest.fixture
def call(url: str) -> Iterator[Call]:
    """Begins calls, and ends what is left of them."""
    callers: list[Caller] = []

    def begin(path: str, **body: float) -> Caller:
        callers.append(Caller(url, path, **body))
        return callers[-1]

    yield begin
    for caller in callers:
        caller.hang_up()


def test_who_may_ask(agent: AgentProcess, url: str) -> None:
    """Issue 16, 5: ``GET /v1/limits`` shows the limits, and does not take part; a cost goes with the token alone, and without it nothing is
    taken. The bucket is a process of the agent."""
    put(agent, "may", 50.0)
    until(lambda: "may" in names(url), "an answer is given again for a moment")
    before = limit(url, "may")
    assert (before["set_rate"], before["used"], before["workers"]) == (50.0, False, [])
    path = "/v1/limits/may/acquire"
    for headers in ({}, {"Authorization": "Bearer another"}):
        refused = ask(url, path, "POST", b'{"wait": 30}', headers)
        assert (refused.status, refused.json["error"]) == (401, "Unauthorised"), refused
    time.sleep(ANSWERS_KEPT)
    assert limit(url, "may")["used"] is False
    went = acquire(url, {"wait": 30}, path)
    assert (went.status, went.json) == (200, {"went": True, "retry_after": None})
    until(lambda: limit(url, "may")["workers"], "the agent has a bucket")
    after = limit(url, "may")
    assert (after["over"], after["members"], after["workers"][0]["program"]) == ("members", 1, "agent")


BAD: list[tuple[bytes, str]] = [
    (b"{", "body"),
    (b'{"cost": "x"}', "body"),
    (b'{"more": 1}', "body"),
    (b'{"cost": 0}', "cost"),
    (b'{"cost": -1}', "cost"),
    (b'{"cost": 1e10}', "cost"),
    (b'{"wait": -1}', "wait"),
    (b'{"wait": 61}', "wait"),
]


def test_what_makes_no_sense_is_refused(agent: AgentProcess, url: str) -> None:
    """Issue 16, what bad input gets: 400, the field and what is accepted; a body that is too large is 413. No limit comes of it."""
    put(agent, "sense", 50.0)
    until(lambda: "sense" in names(url), "it is there")
    before = names(url)
    for body, field in BAD:
        refused = acquire(url, body, "/v1/limits/sense/acquire")
        assert (refused.status, refused.json["error"]) == (400, "ConfigError"), (body, refused)
        assert refused.json["text"].startswith(f"{field}: "), (body, refused)
        assert "accepted" in refused.json["text"]
    unknown = acquire(url, {}, "/v1/limits/none/acquire")
    assert (unknown.status, "there is none of that name" in unknown.json["text"]) == (400, True)
    assert acquire(url, b" " * 100_000, "/v1/limits/sense/acquire").status == 413
    put(agent, "later", 50.0)
    until(lambda: names(url) != before, "the next answer")
    assert names(url) == sorted([*before, "later"])
    assert waiting(url, "sense") == 0


def test_callers_are_served_in_the_order_of_their_requests(agent: AgentProcess, url: str, call: Call) -> None:
    """H279: three wait; one whose time is up is told so, and when to ask again; one that hangs up leaves the line, and takes nothing. The
    other two are served in their order, and then nothing waits any more."""
    put(agent, "api", SLOW)
    first = call(PATH, cost=1, wait=PATIENCE)
    until(lambda: waiting(url, "api") == 1, "the first one waits")
    goes = call(PATH, cost=3, wait=PATIENCE)
    until(lambda: waiting(url, "api") == 4, "the second one waits")
    last = call(PATH, cost=1, wait=PATIENCE)
    until(lambda: waiting(url, "api") == 5, "the third one waits")
    began_at = time.monotonic()
    late = acquire(url, {"cost": 1, "wait": 0.3})
    assert time.monotonic() - began_at >= 0.3
    assert (late.status, late.json["went"]) == (200, False)
    assert late.json["retry_after"] > 5 / SLOW  # The others come first, and take 5.
    assert acquire(url, {"cost": 1}).json["went"] is False
    goes.hang_up()
    until(lambda: waiting(url, "api") == 2, "the second one is gone")
    put(agent, "api", FAST)
    (one, one_at), (two, two_at) = first.answer(), last.answer()
    assert one == two == {"went": True, "retry_after": None}
    assert two_at > one_at
    until(lambda: waiting(url, "api") == 0, "nothing waits")
    until(lambda: acquire(url, {"cost": 1}).json["went"], "others go")


def test_the_order_holds_where_the_later_one_could_go(agent: AgentProcess, url: str, call: Call) -> None:
    """H279: a small cost stays behind a large one, which needs more than there is."""
    put(agent, "order", SLOW)
    path = "/v1/limits/order/acquire"
    large = call(path, cost=4, wait=PATIENCE)
    until(lambda: waiting(url, "order") == 4, "the large one waits")
    small = call(path, cost=0.001, wait=PATIENCE)
    until(lambda: waiting(url, "order") == pytest.approx(4.001), "the small one waits")
    put(agent, "order", FAST)
    (_, large_at), (_, small_at) = large.answer(), small.answer()
    assert small_at - large_at > 0.5 * 3 / FAST  # What the large one took above the depth, 3, comes in first; a half is for a busy machine.
