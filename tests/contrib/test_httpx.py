"""``holdfast.contrib.httpx``: requests wait for a limit, a 429 makes the group slower, and what is repeated is bounded."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import httpx
import pytest

from holdfast import AgentLost, ConfigError, Timeout
from holdfast.contrib.httpx import AsyncLimitTransport, LimitTransport, retry_after
from tests.contrib.fakes import FakeAsyncLimiter, FakeLimiter, in_loop

URL = "http://api.example/"
HTTP_DATE = "Wed, 21 Oct 2015 07:28:00 GMT"
Answers = list[httpx.Response | Exception]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Both spellings sleep no time, and it is written down."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr("holdfast.contrib.httpx.asyncio.sleep", sleep)
    monkeypatch.setattr("holdfast.contrib.httpx.time.sleep", found.append)
    return found


def refusal(status: int = 429, **headers: str) -> httpx.Response:
    return httpx.Response(status, headers={name.replace("_", "-"): value for name, value in headers.items()})


class Talk:
    """A client on a fake limiter and a server of a list of answers, in one of the two spellings; the answer of the last one stays."""

    def __init__(self, spelling: str, answers: Answers, **options: Any) -> None:
        self._answers = answers
        self.seen: list[httpx.Request] = []
        self._asynchronous = spelling == "async"
        self.limiter: Any
        self._client: Any
        inner = httpx.MockTransport(self._answer)
        if self._asynchronous:
            self.limiter = FakeAsyncLimiter(100)
            self._client = httpx.AsyncClient(transport=AsyncLimitTransport(self.limiter, inner, **options))
        else:
            self.limiter = FakeLimiter(100)
            self._client = httpx.Client(transport=LimitTransport(self.limiter, inner, **options))

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def ask(self, method: str = "GET", **options: Any) -> httpx.Response:
        asked: Any = self._client.request(method, URL, **options)
        response: httpx.Response = asyncio.run(asked) if self._asynchronous else asked
        return response


@pytest.fixture(params=["async", "sync"])
def talk(request: pytest.FixtureRequest, slept: list[float]) -> Callable[..., Talk]:
    return lambda *answers, **options: Talk(request.param, [*answers], **options)


def test_each_request_is_acquired(talk: Callable[..., Talk]) -> None:
    """Limits 10: a request costs one, or what the program says, and each hop of a redirect is a request."""
    it = talk(
        httpx.Response(302, headers={"location": URL}), httpx.Response(200), cost=lambda request: 2.0 if request.method == "GET" else 1.0
    )
    assert it.ask(follow_redirects=True).status_code == 200
    assert it.ask("DELETE").status_code == 200
    assert it.limiter.costs == [2.0, 2.0, 1.0]
    assert it.limiter.penalties == []


def test_a_request_that_may_not_go_is_not_sent(talk: Callable[..., Talk]) -> None:
    """``max_wait``: the error of the limiter, and the server has heard nothing."""
    it = talk(httpx.Response(200), max_wait=0.01)
    it.limiter.tokens = 0
    with pytest.raises(Timeout):
        it.ask()
    assert it.seen == []


def test_a_429_makes_the_group_slower_and_is_repeated(talk: Callable[..., Talk], slept: list[float]) -> None:
    """Limits 9: ``penalize`` for as long as the server says, then the same request again, which is acquired again."""
    it = talk(refusal(retry_after="7"), httpx.Response(200), factor=0.25)
    assert it.ask("POST", content=b"body").status_code == 200
    assert slept == [7.0]
    assert it.limiter.penalties == [(7.0, 0.25)]
    assert it.limiter.costs == [1.0, 1.0]
    assert [request.read() for request in it.seen] == [b"body", b"body"]


def test_repetitions_end(talk: Callable[..., Talk], slept: list[float]) -> None:
    """After ``retries`` the program gets the 429; a server that names no time is asked more and more seldom."""
    it = talk(refusal(), retries=3)
    assert it.ask().status_code == 429
    assert slept == [1.0, 2.0, 4.0]
    assert len(it.seen) == 4


def test_a_long_wait_is_the_programs(talk: Callable[..., Talk], slept: list[float]) -> None:
    """A server that wants an hour: the group is slower for ``wait_max``, and the program decides."""
    it = talk(refusal(retry_after="3600"), wait_max=30.0)
    assert it.ask().status_code == 429
    assert (slept, len(it.seen), it.limiter.penalties) == ([], 1, [(30.0, 0.5)])


def test_only_the_statuses_count(talk: Callable[..., Talk], slept: list[float]) -> None:
    """A 503 means what its server means; a program that knows says so."""
    assert talk(refusal(503, retry_after="1")).ask().status_code == 503
    assert slept == []
    assert talk(refusal(503, retry_after="1"), httpx.Response(200), statuses={429, 503}).ask().status_code == 200
    assert slept == [1.0]


def test_one_of_many_refusals_tells_the_group(talk: Callable[..., Talk]) -> None:
    """Each penalty is a new version of the limit that travels to every member: those of one burst of refusals are one."""
    it = talk(refusal(retry_after="5"), retries=0)
    for _ in range(10):
        it.ask()
    assert it.limiter.penalties == [(5.0, 0.5)]
    it._answers[:] = [refusal(retry_after="50")]
    it.ask()
    assert it.limiter.penalties == [(5.0, 0.5), (50.0, 0.5)]


def test_a_penalty_that_is_over_is_told_again(talk: Callable[..., Talk], monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is how long the group is slower, not how long the server wants no requests."""
    at = [100.0]
    monkeypatch.setattr("holdfast.contrib.httpx.time.monotonic", lambda: at[0])
    it = talk(refusal(retry_after="3600"), wait_max=30.0)
    it.ask()
    it._answers[:] = [refusal(retry_after="5")]
    at[0] += 20.0
    it.ask()
    assert it.limiter.penalties == [(30.0, 0.5)]
    at[0] += 20.0
    it.ask()
    assert it.limiter.penalties == [(30.0, 0.5), (5.0, 0.5)]


def test_a_refusal_is_closed(talk: Callable[..., Talk], slept: list[float]) -> None:
    """Its connection goes back to the pool before the wait; the response that the program gets is open as ever."""

    class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
        closed = 0

        def __iter__(self) -> Iterator[bytes]:
            yield b""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b""

        def close(self) -> None:
            self.closed += 1

        async def aclose(self) -> None:
            self.closed += 1

    body = Body()
    it = talk(httpx.Response(429, headers={"retry-after": "1"}, stream=body), httpx.Response(200))
    assert it.ask().status_code == 200
    assert body.closed == 1


def test_a_group_that_cannot_be_told(talk: Callable[..., Talk], slept: list[float], caplog: pytest.LogCaptureFixture) -> None:
    """The agent is gone: the request is repeated all the same, and the log says it."""
    it = talk(refusal(retry_after="1"), httpx.Response(200))
    error = AgentLost("the agent ended")

    def penalize(seconds: float, *, factor: float) -> Any:
        raise error

    it.limiter.penalize = penalize
    assert it.ask().status_code == 200
    assert "the group was not told to be slower: the agent ended" in caplog.text


def test_what_the_transport_raises_is_passed_on(talk: Callable[..., Talk], slept: list[float]) -> None:
    """A connection that fails is no 429."""
    it = talk(httpx.ConnectError("refused"))
    with pytest.raises(httpx.ConnectError):
        it.ask()
    assert (slept, it.limiter.costs) == ([], [1.0])


class Streamed(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Reads a body as it is made, as real transports do, and refuses every request."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        self.bodies.append(b"".join(request.stream))
        return refusal(retry_after="1")

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        self.bodies.append(b"".join([part async for part in request.stream]))
        return refusal(retry_after="1")


def test_a_body_that_is_made_while_it_is_sent(slept: list[float]) -> None:
    """It cannot be sent twice: the program gets the 429, and the group is slower."""
    inner, limiter = Streamed(), FakeLimiter(tokens=9)
    with httpx.Client(transport=LimitTransport(limiter, inner)) as client:
        assert client.post(URL, content=iter([b"on", b"ce"])).status_code == 429
    assert (slept, inner.bodies, limiter.penalties) == ([], [b"once"], [(1.0, 0.5)])


@in_loop
async def test_the_same_with_asyncio(slept: list[float]) -> None:
    """As above, of a body that an asynchronous iterator makes."""

    async def parts() -> AsyncIterator[bytes]:
        yield b"once"

    inner, limiter = Streamed(), FakeAsyncLimiter(tokens=9)
    async with httpx.AsyncClient(transport=AsyncLimitTransport(limiter, inner)) as client:
        assert (await client.post(URL, content=parts())).status_code == 429
    assert (slept, inner.bodies, limiter.penalties) == ([], [b"once"], [(1.0, 0.5)])


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({}, None),
        ({"retry_after": ""}, None),
        ({"retry_after": "120"}, 120.0),
        ({"retry_after": " 0 "}, 0.0),
        ({"retry_after": "-5"}, None),
        ({"retry_after": "1.5"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "²"}, None),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": HTTP_DATE}, 30.0),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:30 -0000", "date": HTTP_DATE}, 30.0),
        ({"retry_after": "Wed, 21 Oct 2015 07:27:00 GMT", "date": HTTP_DATE}, 0.0),
        ({"retry_after": HTTP_DATE}, 0.0),
        ({"retry_after": HTTP_DATE, "date": "gone"}, 0.0),
    ],
)
def test_retry_after_is_read(headers: dict[str, str], seconds: float | None) -> None:
    """RFC 9110 10.2.3: seconds or an HTTP date; a date counts from the server's own, and one of the past is now."""
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    assert retry_after(httpx.Response(429, headers=named)) == seconds


@pytest.mark.parametrize(
    "given, field",
    [({"retries": 11}, "retries"), ({"retries": -1}, "retries"), ({"factor": 0.0}, "factor"), ({"factor": 1.1}, "factor"),
     ({"cost": -1.0}, "cost"), ({"max_wait": float("nan")}, "max_wait"), ({"wait_max": -1.0}, "wait_max")],
)  # fmt: skip
def test_wrong_options_are_refused(given: dict[str, Any], field: str) -> None:
    """The field is named when the transport is made."""
    with pytest.raises(ConfigError, match=f"^{field}: "):
        LimitTransport(FakeLimiter(), **given)
    with pytest.raises(ConfigError, match=f"^{field}: "):
        AsyncLimitTransport(FakeAsyncLimiter(), **given)


class Metered(BaseHTTPRequestHandler):
    """Every third request is refused; a request that comes back with its body is let through."""

    protocol_version = "HTTP/1.1"
    bodies: ClassVar[list[bytes]] = []
    lock = threading.Lock()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.lock:
            self.bodies.append(body)
            refused = len(self.bodies) % 3 == 0
        self.send_response(429 if refused else 200)
        if refused:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Written down nowhere."""


@contextmanager
def metered() -> Iterator[str]:
    Metered.bodies = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Metered) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()


def test_real_requests_of_threads() -> None:
    """Over real sockets, from eight threads: each gets its 200, the refused ones were sent twice, each sending was acquired."""
    limiter = FakeLimiter(tokens=1000)
    with metered() as url, httpx.Client(transport=LimitTransport(limiter, retries=10)) as client:
        codes: list[int] = []

        def ask(number: int) -> None:
            codes.append(client.post(url, content=f"{number}".encode()).status_code)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert codes == [200] * 8
    assert len(Metered.bodies) == len(limiter.costs) > 8
    assert {*Metered.bodies} == {f"{n}".encode() for n in range(8)}


@in_loop
async def test_real_requests_of_tasks() -> None:
    """The same with asyncio, and the limiter holds requests back: none reaches the server before it was let go."""
    limiter = FakeAsyncLimiter()
    with metered() as url:
        async with httpx.AsyncClient(transport=AsyncLimitTransport(limiter, retries=10)) as client:
            asked = asyncio.create_task(client.post(url, content=b"a"))
            end_at = time.monotonic() + 10
            while not limiter.waiters and time.monotonic() < end_at:
                await asyncio.sleep(0)
            assert Metered.bodies == []
            limiter.give()
            assert (await asked).status_code == 200
            limiter.tokens = 100
            responses = await asyncio.gather(*(client.post(url, content=b"b") for _ in range(8)))
    assert [response.status_code for response in responses] == [200] * 8
    assert len(Metered.bodies) == len(limiter.costs) > 9
