"""``holdfast.contrib.asgi`` on a fake limit: which limit counts for a request, and what becomes of one that may not go at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from holdfast import ConfigError, Unavailable
from holdfast.contrib.asgi import KEPT_BYTES_MAX, LimitMiddleware, Message, Receive, Rule, Scope, Send, client_host, header, state_group
from tests.contrib.fakes import FakeAsyncLimiter, FakeGroup, in_loop

SOON = 10.0  # seconds; only what is broken takes longer


def rule(**given: Any) -> Rule:
    return Rule(**{"name": "search", "rate": 100.0, "burst": 10.0, **given})


def scope(path: str = "/", method: str = "GET", kind: str = "http", **headers: str) -> dict[str, Any]:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": kind, "path": path, "method": method, "headers": named, "client": ("10.0.0.9", 1)}


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with what it was sent."""
    body, more = b"", True
    while more and scope["method"] == "POST":
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


class Caller:
    """One request, and what came back. It hangs up when ``hang_up`` is set."""

    def __init__(self, middleware: LimitMiddleware, scope: Scope, body: Sequence[bytes] = (b"",)) -> None:
        self._parts = [*body]
        self.hang_up = asyncio.Event()
        self.sent: list[Message] = []
        self.task = asyncio.create_task(middleware(scope, self._receive, self._send))

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._parts:
            return {"type": "http.request", "body": self._parts.pop(0), "more_body": bool(self._parts)}
        await self.hang_up.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.sent.append(message)

    @property
    def unread(self) -> int:
        return len(self._parts)

    async def status(self) -> int | None:
        """None: nothing was sent to it."""
        await asyncio.wait_for(self.task, SOON)
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])


async def until(holds: Any) -> None:
    async with asyncio.timeout(SOON):
        while not holds():
            await asyncio.sleep(0)


def made(*rules: Rule, **of_each: float) -> tuple[LimitMiddleware, FakeGroup]:
    group = FakeGroup(FakeAsyncLimiter, **of_each)
    return LimitMiddleware(app, rules=rules, group=group), group


@in_loop
async def test_the_first_rule_that_fits_counts() -> None:
    """Limits 10: a route has its limit; what no rule fits, and what is no HTTP request, has none."""
    middleware, group = made(
        rule(name="one", path="/a", methods={"GET"}), rule(name="many", path="/a/*"), rule(name="rest", path="/b*"), tokens=9
    )
    for path, method in (("/a", "GET"), ("/a", "PUT"), ("/a/b/c", "PUT"), ("/bcd", "GET"), ("/c", "GET")):
        assert await Caller(middleware, scope(path, method)).status() == 200
    assert {name: limiter.costs for name, limiter in group.made.items()} == {"one": [1.0], "many": [1.0], "rest": [1.0]}
    assert await Caller(middleware, scope("/a", kind="websocket")).status() == 200
    assert group.made["one"].costs == [1.0]


@in_loop
async def test_options_reach_the_group() -> None:
    """Limits 10: rate and burst, and policy and fleet where they are given."""
    middleware, group = made(rule(options={"policy": "exact", "fleet": 6}), tokens=1)
    assert await Caller(middleware, scope()).status() == 200
    assert group.asked == {"search": {"rate": 100.0, "burst": 10.0, "policy": "exact", "fleet": 6}}


@in_loop
async def test_keys_are_bounded() -> None:
    """A client that invents keys makes no further limits; a key has the same one in every process, and each limit its own tokens."""
    middleware, group = made(rule(key=header("X-Api-Key"), keys=4), tokens=1000)
    for number in range(200):
        assert await Caller(middleware, scope(x_api_key=f"k{number}")).status() == 200
    assert group.made.keys() == {f"search/{slot}" for slot in range(4)}
    counts = [len(limiter.costs) for limiter in group.made.values()]
    assert sum(counts) == 200
    assert min(counts) > 20, "a hash spreads keys"
    again = rule(key=header("x-api-key"), keys=4)
    assert again.limit_of(scope(x_api_key="k7")) == again.limit_of(scope(x_api_key="k7"))
    assert again.limit_of(scope(x_api_key="alice")) == "search/1", "the hash is part of what hosts agree on"
    assert again.limit_of(scope()) == again.limit_of(scope(x_api_key="")), "requests without a key share one"


@in_loop
async def test_costs_are_asked_for() -> None:
    """Limits 10: a request may cost more than one."""
    middleware, group = made(rule(cost=lambda scope: 2.5), tokens=3)
    assert await Caller(middleware, scope()).status() == 200
    assert await Caller(middleware, scope()).status() == 429
    assert group.made["search"].costs == [2.5]


@in_loop
async def test_429_says_when_to_come_again() -> None:
    """Without ``max_wait`` a request that may not go is refused at once, with whole seconds of its cost at this process' share."""
    middleware, _ = made(rule(cost=25.0), share=10.0)
    caller = Caller(middleware, scope())
    assert await caller.status() == 429
    assert caller.headers[b"retry-after"] == b"3"
    assert caller.body == b"Too Many Requests"
    assert int(caller.headers[b"content-length"]) == len(caller.body)


@pytest.mark.parametrize("share, said", [(0.0, b"1"), (1000.0, b"1"), (0.001, b"60")])
@in_loop
async def test_retry_after_is_bounded(share: float, said: bytes) -> None:
    """A second at least, a minute at most; a share of nothing promises nothing."""
    middleware, _ = made(rule(), share=share)
    caller = Caller(middleware, scope())
    assert await caller.status() == 429
    assert caller.headers[b"retry-after"] == said


@in_loop
async def test_a_request_waits_and_goes() -> None:
    """With ``max_wait`` it waits in its order; a body that came meanwhile reaches the app whole."""
    middleware, group = made(rule(max_wait=SOON))
    first = Caller(middleware, scope(method="POST"), body=(b"he", b"llo", b""))
    await until(lambda: not first.unread)
    second = Caller(middleware, scope())
    await until(lambda: len(group.made["search"].waiters) == 2)
    group.made["search"].give()
    assert await first.status() == 200
    assert first.body == b"hello"
    assert not second.task.done()
    group.made["search"].give()
    assert await second.status() == 200


@in_loop
async def test_no_request_overtakes_one_that_waits() -> None:
    """All that may wait are given to ``acquire`` in their order. ``try_acquire`` first would count what is refused twice as wanted."""
    middleware, group = made(rule(max_wait=SOON), tokens=1)
    limiter: Any = group.limit("search")
    group.limit = lambda name, **options: limiter  # type: ignore[method-assign]
    costs: list[float] = []
    limiter.try_acquire = lambda cost: pytest.fail("not asked")

    async def acquire(cost: float, **options: float) -> None:
        costs.append(cost)

    limiter.acquire = acquire
    assert [await Caller(middleware, scope()).status() for _ in range(2)] == [200, 200]
    assert costs == [1.0, 1.0]
    assert middleware._lines["search"].waiting_cost == 0.0


@in_loop
async def test_what_goes_at_once_is_not_read() -> None:
    """Limits 10: a free limit costs a request nothing. Its body is read by the app alone, not ahead of it."""
    middleware, _ = made(rule(max_wait=SOON), tokens=1)
    caller = Caller(middleware, scope(), body=(b"a", b"b"))
    assert await caller.status() == 200
    assert caller.unread == 2


@in_loop
async def test_a_wait_ends() -> None:
    """After ``max_wait`` it is a 429, which counts what waits before it; and the queue is empty."""
    middleware, group = made(rule(max_wait=0.05, cost=30.0), share=10.0)
    caller = Caller(middleware, scope())
    assert await caller.status() == 429
    assert caller.headers[b"retry-after"] == b"3"
    assert not group.made["search"].waiters


@in_loop
async def test_a_full_queue_is_a_429() -> None:
    """Limits 10: the limiter refuses its 10,001st waiter."""
    middleware, group = made(rule(max_wait=SOON), tokens=1)
    assert await Caller(middleware, scope()).status() == 200
    group.made["search"].fails_with = Unavailable("10000 wait")
    assert await Caller(middleware, scope()).status() == 429


@in_loop
async def test_what_waits_counts_in_retry_after() -> None:
    """A client that is refused comes behind those which wait: 60 units at 10 a second."""
    middleware, group = made(rule(max_wait=SOON, cost=30.0), share=10.0)
    first = Caller(middleware, scope())
    await until(lambda: "search" in group.made and group.made["search"].waiters)
    group.made["search"].fails_with = Unavailable("10000 wait")
    second = Caller(middleware, scope())
    assert await second.status() == 429
    assert second.headers[b"retry-after"] == b"6"
    group.made["search"].give()
    assert await first.status() == 200


@in_loop
async def test_a_server_that_fails_is_not_a_hang_up() -> None:
    """An error of ``receive`` is the server's to hear of."""

    async def receive() -> Message:
        raise OSError("broken")

    async def send(message: Message) -> None:
        raise AssertionError("nothing is sent")

    middleware, group = made(rule(max_wait=SOON))
    with pytest.raises(OSError, match="broken"):
        await asyncio.wait_for(middleware(scope(), receive, send), SOON)
    assert not group.made["search"].waiters


@in_loop
async def test_other_errors_are_not_hidden() -> None:
    """What is neither a lack of time nor of room is an error of the program."""
    middleware, group = made(rule(max_wait=SOON), tokens=1)
    assert await Caller(middleware, scope()).status() == 200
    group.made["search"].fails_with = RuntimeError("forked")
    with pytest.raises(RuntimeError, match="forked"):
        await Caller(middleware, scope()).status()


@in_loop
async def test_a_client_that_hangs_up_leaves_the_queue() -> None:
    """It costs nothing, the next one moves up, and nothing is sent to it."""
    middleware, group = made(rule(max_wait=SOON))
    first, second = Caller(middleware, scope()), Caller(middleware, scope())
    await until(lambda: "search" in group.made and len(group.made["search"].waiters) == 2)
    first.hang_up.set()
    assert await first.status() is None
    assert len(group.made["search"].waiters) == 1
    group.made["search"].give()
    assert await second.status() == 200
    assert group.made["search"].costs == [1.0]


@in_loop
async def test_a_body_is_kept_up_to_a_bound() -> None:
    """A client that sends and sends while it waits fills no memory: the server is not read any further, and nothing is lost."""
    part = bytes(KEPT_BYTES_MAX // 4)
    middleware, group = made(rule(max_wait=SOON))
    caller = Caller(middleware, scope(method="POST"), body=[part] * 10)
    await until(lambda: caller.unread == 6)
    for _ in range(100):
        await asyncio.sleep(0)
    assert caller.unread == 6
    group.made["search"].give()
    assert await caller.status() == 200
    assert len(caller.body) == 10 * len(part)


@in_loop
async def test_a_read_that_the_app_gives_up_is_not_lost() -> None:
    """Starlette's ``is_disconnected`` reads and cancels the read; what comes then is for the next read."""
    seen: list[Message] = []

    async def polling(scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(receive(), 0.01)
        ready.set()
        seen.append(await receive())

    ready, group = asyncio.Event(), FakeGroup(FakeAsyncLimiter)
    caller = Caller(LimitMiddleware(polling, rules=[rule(max_wait=SOON)], group=group), scope(), body=())
    await until(lambda: "search" in group.made and group.made["search"].waiters)
    group.made["search"].give()
    await asyncio.wait_for(ready.wait(), SOON)
    caller.hang_up.set()
    await caller.status()
    assert [message["type"] for message in seen] == ["http.disconnect"]


@in_loop
async def test_another_lifespan_has_another_group() -> None:
    """A limiter of a group that was left is not used again."""
    groups = [FakeGroup(FakeAsyncLimiter, tokens=1), FakeGroup(FakeAsyncLimiter, tokens=1)]
    middleware = LimitMiddleware(app, rules=[rule()], group=lambda scope: groups[0])
    assert await Caller(middleware, scope()).status() == 200
    assert await Caller(middleware, scope()).status() == 429
    groups.pop(0)
    assert await Caller(middleware, scope()).status() == 200


def test_keys_of_a_request() -> None:
    """What a key is taken from: a header whatever its case, or the address that the server saw."""
    assert header("X-Api-Key")(scope(x_api_key="a")) == "a"
    assert header("x-api-key")(scope()) is None
    assert client_host(scope()) == "10.0.0.9"
    assert client_host({"client": None}) is None


def test_a_group_that_is_not_there_is_named() -> None:
    """An app whose lifespan forgot it is told what to write."""
    group = FakeGroup(FakeAsyncLimiter)
    assert state_group({"state": {"group": group}}) is group
    with pytest.raises(ConfigError, match=r"yield \{'group': group\}"):
        state_group({"state": {}})


@pytest.mark.parametrize(
    "given, field",
    [
        ({"name": ""}, "name"),
        ({"name": "n" * 121}, "name"),
        ({"path": "search"}, "path"),
        ({"path": "/a/*/b"}, "path"),
        ({"rate": 0.0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"burst": -1.0}, "burst"),
        ({"cost": 0.0}, "cost"),
        ({"max_wait": -1.0}, "max_wait"),
        ({"max_wait": float("inf")}, "max_wait"),
        ({"key": client_host, "keys": 0}, "keys"),
        ({"key": client_host, "keys": 257}, "keys"),
    ],
)
def test_wrong_rules_are_refused(given: dict[str, Any], field: str) -> None:
    """The field is named when the app is made, not when a request comes."""
    with pytest.raises(ConfigError, match=f"^{field}: "):
        rule(**given)


def test_more_limits_than_a_group_has_are_refused() -> None:
    """Limits 10: 256 limits per group, keys counted; and a name is one rule's."""
    with pytest.raises(ConfigError, match="320 limits"):
        made(*(rule(name=f"r{number}", key=client_host) for number in range(5)))
    with pytest.raises(ConfigError, match="one name"):
        made(rule(), rule(path="/a"))


@asynccontextmanager
async def served(starlette: Starlette) -> AsyncIterator[tuple[str, int]]:
    """A real server, in this loop."""
    server = uvicorn.Server(uvicorn.Config(starlette, port=0, log_level="warning"))
    running = asyncio.create_task(server.serve())
    await until(lambda: server.started or running.done())
    try:
        yield server.servers[0].sockets[0].getsockname()
    finally:
        server.should_exit = True
        await asyncio.wait_for(running, SOON)


async def hello(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"hello {(await request.body()).decode()}")


@in_loop
async def test_real_starlette_on_uvicorn() -> None:
    """Over real sockets, with the group of the lifespan: one hangs up and leaves the queue, one waits with its body, one is refused."""
    group = FakeGroup(FakeAsyncLimiter)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        yield {"group": group}

    rules = [rule(path="/wait", max_wait=SOON), rule(name="now", path="/now")]
    routes = [Route(path, hello, methods=["GET", "POST"]) for path in ("/wait", "/now", "/free")]
    starlette = Starlette(routes=routes, middleware=[Middleware(LimitMiddleware, rules=rules)], lifespan=lifespan)
    async with served(starlette) as (host, port), httpx.AsyncClient(base_url=f"http://{host}:{port}", timeout=SOON) as client:
        assert (await client.get("/free")).status_code == 200
        assert not group.made
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n")
        await until(lambda: "search" in group.made and group.made["search"].waiters)
        waiting = asyncio.create_task(client.post("/wait", content=b"you"))
        await until(lambda: len(group.made["search"].waiters) == 2)
        writer.close()
        await until(lambda: len(group.made["search"].waiters) == 1)
        group.made["search"].give()
        assert (await waiting).text == "hello you"
        refused = await client.get("/now")
        assert (refused.status_code, refused.headers["retry-after"], refused.text) == (429, "1", "Too Many Requests")
        await reader.read()
