"""What strangers can do to an agent over HTTP: how much of its time they get, how long they may take, how many they may be.  H179, H180."""

from __future__ import annotations

import socket
from collections.abc import Callable
from threading import Event
from time import monotonic
from typing import Any

import pytest

from holdfast.agent.observe import http_server
from holdfast.agent.observe.page_files import PageFiles
from holdfast.agent.socket import budget
from holdfast.agent.socket.budget import Bucket
from tests.http.conftest import TOKEN
from tests.http.wire import ask, connect
from tests.page.stub_agent import PATIENCE, StubGroup
from tests.support.agents import until

GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Turns:
    """The most requests that were answered in one turn of the loop, while something happened."""

    def __init__(self, group: StubGroup) -> None:
        self._group, self._over = group, False
        self._served = served(group)
        self.most = 0

    def __enter__(self) -> Turns:
        self._group.call(self._on_turn)
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True

    def _on_turn(self) -> None:
        before, self._served = self._served, served(self._group)
        self.most = max(self.most, self._served - before)
        if not self._over:
            self._group._loop.call_soon(self._on_turn)


def served(group: StubGroup) -> int:
    """Requests that reached the application."""
    service: Any = group.http._service  # type: ignore[union-attr]
    return int(service.load.admission.counts["served"])


def server_of(group: StubGroup) -> http_server.Server:
    assert group.http is not None
    return group.http._service._server


@pytest.fixture(autouse=True)
def _rested(group: StubGroup) -> None:
    """Every test finds the buckets full."""
    assert group.http is not None
    admission = group.http._service.load.admission
    assert admission is not None
    for bucket in (admission._all, admission._probes, group.http._service.load.line._share):
        bucket._left = bucket.burst


def read_answers(client: socket.socket, count: int) -> list[int]:
    """The statuses of so many answers on one connection."""
    data = b""
    found: list[int] = []
    while len(found) < count:
        head, end, rest = data.partition(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        if end and len(rest) >= length:
            found.append(int(head[9:12]))
            data = rest[length:]
            continue
        more = client.recv(1 << 16)
        assert more, f"closed after {found}"
        data += more
    return found


def is_closed(client: socket.socket) -> bool:
    try:
        return not client.recv(1)
    except ConnectionError:
        return True


# Time.


def test_a_bucket_fills_with_time() -> None:
    """H179: so many a second, and no more at once than its burst; a debt is waited for."""
    bucket = Bucket(10.0, 5.0, 100.0)
    assert bucket.left(100.0) == 5.0
    bucket.take(7.0, 100.0)
    assert bucket.left(100.0) == -2.0
    assert bucket.wait(100.0) == pytest.approx(0.2)
    assert bucket.wait(100.0, 1.0) == pytest.approx(0.3)
    assert bucket.left(100.3) == pytest.approx(1.0)
    assert bucket.left(99.0) == pytest.approx(1.0)  # A clock that stands still gives nothing.
    assert bucket.left(1000.0) == 5.0
    assert bucket.wait(1000.0) == 0.0


def test_requests_that_come_together_have_a_turn_each(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: thirty connections that are ready in one turn of the loop are answered in thirty; so are thirty requests in one segment, and
    each of them waits in line."""
    clients = [connect(group.url) for _ in range(30)]
    for each in clients:
        each.sendall(GET % b"/v1/members")
        assert read_answers(each, 1) == [200]
    with Turns(group) as turns:
        sent = Event()
        group._loop.call_soon_threadsafe(sent.wait, PATIENCE)  # The loop stands still until all of them have sent.
        for each in clients:
            each.sendall(GET % b"/v1/members")
        sent.set()
        for each in clients:
            assert read_answers(each, 1) == [200]
            each.close()
    assert turns.most == 1
    line: Any = group.http._service.load.line  # type: ignore[union-attr]
    added: list[object] = []
    add = line.add

    def counted(piece: Callable[[], None]) -> None:
        added.append(piece)
        add(piece)

    monkeypatch.setattr(line, "add", counted)
    with Turns(group) as turns, connect(group.url) as client:
        client.sendall(GET % b"/v1/members" * 30)
        assert read_answers(client, 30) == [200] * 30
    assert turns.most == 1
    assert len(added) >= 30


def test_http_gets_a_share_of_the_time(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: when its share is used up, HTTP waits; nobody is refused for it before the time limit of the queue."""
    service: Any = group.http._service  # type: ignore[union-attr]
    line = service.load.line
    group.call(lambda: line._share.take(line._share.left(monotonic()) + 0.5 * budget.SHARE, monotonic()))  # a debt of 0.5 s
    began_at = monotonic()
    assert ask(group.url, "/v1/members").status == 200
    assert monotonic() - began_at >= 0.4
    monkeypatch.setattr(http_server, "QUEUE_TIMEOUT", 0.1)
    group.call(lambda: line._share.take(line._share.left(monotonic()) + 0.5 * budget.SHARE, monotonic()))
    assert ask(group.url, "/v1/members").status == 503


def test_what_is_asked_often_is_made_once(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: an answer is given again for a moment, whatever is asked; a change over HTTP is seen at once."""
    made: list[int] = []
    feed: Any = group.http._service.feed  # type: ignore[union-attr]
    recent = feed.recent

    def counted(limit: int, *, internal: bool) -> Any:
        made.append(limit)
        return recent(limit, internal=internal)

    monkeypatch.setattr(feed, "recent", counted)
    monkeypatch.setattr("holdfast.agent.observe.http_app.KEPT_SECONDS", 10 * PATIENCE)
    assert len({ask(group.url, "/v1/events?limit=37").body for _ in range(20)}) == 1
    assert made == [37]
    assert ask(group.url, "/v1/tags", "POST", b'{"tags": {"kept": "1"}}', {"Authorization": f"Bearer {TOKEN}"}).status == 200
    assert ask(group.url, "/v1/events?limit=37").status == 200
    assert made == [37, 37]


# How many.


def test_requests_beyond_the_rate_get_503(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: of one connection: 503 with Retry-After, the API's own form of error; then it is served again on the same connection."""
    monkeypatch.setattr(http_server, "RETRY_AFTER", 0)
    with connect(group.url) as client:
        client.sendall(GET % b"/v1/members" * 60)
        statuses = read_answers(client, 60)
        assert statuses[:40] == [200] * 40
        assert statuses.count(503) >= 10

        def again() -> bool:
            client.sendall(GET % b"/v1/members")
            return read_answers(client, 1) == [200]

        until(again, "it is served again")
    service: Any = group.http._service  # type: ignore[union-attr]
    assert service.load.admission.counts["refused"] >= 10


def test_who_was_refused_is_not_read(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: a connection that was told to wait waits, whether it wants to or not; others are served meanwhile."""
    monkeypatch.setattr(http_server, "RETRY_AFTER", 5.0)
    monkeypatch.setattr(http_server, "OWN_BURST", 1.0)
    monkeypatch.setattr(http_server, "OWN_PER_SECOND", 0.001)
    with connect(group.url) as client:
        service: Any = group.http._service  # type: ignore[union-attr]
        counts = service.load.admission.counts
        before = counts["refused"]
        client.sendall(GET % b"/v1/members" * 9)
        assert read_answers(client, 2) == [200, 503]
        for _ in range(20):
            assert ask(group.url, "/v1/members").status == 200
        assert counts["refused"] == before + 1


def test_the_refusal_says_what_to_do(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H179: all connections together, too."""
    service: Any = group.http._service  # type: ignore[union-attr]
    admission = service.load.admission
    group.call(lambda: admission._all.take(http_server.REQUESTS_BURST, group._loop.time()))
    answer = ask(group.url, "/v1/members")
    assert (answer.status, answer.headers["retry-after"], answer.json["error"]) == (503, "1", "Unavailable")
    assert "try again in 1 s" in answer.json["text"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_probes_and_quiet_clients_are_served_beside_a_crowd(group: StubGroup) -> None:
    """H179, H181: a crowd uses up its rate and not that of probes, nor what is kept for who has not asked lately."""
    service: Any = group.http._service  # type: ignore[union-attr]
    admission = service.load.admission
    scraper = connect(group.url)
    busy = connect(group.url)
    busy.sendall(GET % b"/v1/members")
    assert read_answers(busy, 1) == [200]
    group.call(lambda: admission._all.take(admission._all.left(group._loop.time()) - http_server.REQUESTS_KEPT, group._loop.time()))
    busy.sendall(GET % b"/v1/members")
    scraper.sendall(GET % b"/metrics")
    assert read_answers(busy, 1) == [503]
    assert read_answers(scraper, 1) == [200]
    group.call(lambda: admission._all.take(1000, group._loop.time()))
    assert [ask(group.url, path).status for path in ("/healthz", "/readyz", "/v1/members")] == [200, 200, 503]
    group.call(lambda: admission._probes.take(1000, group._loop.time()))
    assert ask(group.url, "/healthz").status == 503
    busy.close()
    scraper.close()


def test_idle_connections_go_first(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H180: when there are too many, the one that has been idle for longest is closed, and a client that asks is always served."""
    until(lambda: group.call(lambda: server_of(group).connections) == 0, "those of other tests are gone")
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", 10 * PATIENCE)  # so that nothing else closes them
    reader = connect(group.url)
    reader.sendall(GET % b"/events")
    assert reader.recv(12) == b"HTTP/1.1 200"
    server, silent = server_of(group), list[socket.socket]()
    for _ in range(6):  # One after the other has come: of two that come at once either may be the older one.
        known = group.call(lambda: server.connections + server.evicted)
        silent.append(connect(group.url))
        until(lambda known=known: group.call(lambda: server.connections + server.evicted) > known, "the next one has come")  # type: ignore[misc]
    for each in silent[3:]:
        each.sendall(b"GET / HT")  # Bytes of a request that does not come are no reason to stay.
    assert all(is_closed(each) for each in silent[:4])
    for _ in range(5):
        assert ask(group.url, "/v1/info").status == 200
    reader.settimeout(PATIENCE)
    group.call(lambda: group.agents["b"].set_tags({"idle": "1"}))
    seen = b""
    while b"Updated" not in seen:
        seen += reader.recv(1 << 16)  # Who is being answered was never closed.
    for each in (reader, *silent):
        each.close()
    assert server_of(group).evicted >= 4


def test_all_of_them_busy(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H180: when every connection is being answered, one more is closed at once: strangers must not take the descriptors of peers."""
    until(lambda: group.call(lambda: server_of(group).connections) == 0, "those of other tests are gone")
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 2)
    readers = [connect(group.url) for _ in range(2)]
    for each in readers:
        each.sendall(GET % b"/events")
        assert each.recv(12) == b"HTTP/1.1 200"
    with connect(group.url) as client:
        assert is_closed(client)
    for each in readers:
        each.close()

    def answers() -> bool:
        try:
            return ask(group.url, "/v1/info").status == 200
        except OSError:
            return False

    until(answers, "there is room again")


# How long.


def nothing(client: socket.socket) -> None:
    """It connects, and that is all."""


def a_request_first(client: socket.socket) -> None:
    client.sendall(GET % b"/v1/info")
    assert read_answers(client, 1) == [200]


@pytest.mark.parametrize("first", [nothing, a_request_first])
@pytest.mark.parametrize(
    "drip", [b"G" * 200, b"\r\n" * 100, b"POST /v1/info HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n" + b" " * 900], ids=len
)
def test_a_request_has_a_time_limit(
    group: StubGroup, monkeypatch: pytest.MonkeyPatch, first: Callable[[socket.socket], None], drip: bytes
) -> None:
    """H180: from its first byte to its last, header and body, the first one and every other: a byte now and then does not extend it."""
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", 0.3)
    with connect(group.url) as client:
        first(client)
        head, body = drip[:-150], drip[-150:]
        client.settimeout(0.01)
        ended = False
        for number in range(1500):
            try:
                client.sendall(head if number == 0 else body[number % len(body) :][:1])
                ended = not client.recv(1 << 16)
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
            if ended:
                break
        assert ended


def test_a_silent_connection_is_closed(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H180: a client that connects and sends no request keeps its connection for a limited time."""
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", 0.05)
    with connect(group.url) as client:
        assert is_closed(client)


def test_an_answer_may_take_longer_than_its_request(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H180: the limit is on what the client sends; a stream of events, and an idle connection, outlive it."""
    monkeypatch.setattr(http_server, "REQUEST_TIMEOUT", 0.05)
    with connect(group.url) as reader, connect(group.url) as idle:
        reader.sendall(GET % b"/events?pulse=true")
        idle.sendall(GET % b"/v1/info")
        assert read_answers(idle, 1) == [200]
        seen = b""
        while seen.count(b"event: pulse") < 3:
            seen += reader.recv(1 << 16)
        idle.sendall(GET % b"/v1/info")
        assert read_answers(idle, 1) == [200]


def test_a_client_that_does_not_read_is_closed(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """H180: an answer that is not taken keeps its connection for a limited time, also on a connection that closes after it, and one with
    another request behind it; and it is idle, so it makes room before that."""
    monkeypatch.setattr(PageFiles, "content", lambda page, path: (b"x" * (32 << 20), "text/html"))
    monkeypatch.setattr(http_server, "KEEP_ALIVE", 0.1)
    server = server_of(group)
    monkeypatch.setattr(server.config, "timeout_keep_alive", 0.1)
    closing = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    for request in (GET % b"/", closing, GET % b"/" * 3, GET % b"/" + GET % b"/events"):
        with connect(group.url) as client:
            client.sendall(request)
            assert client.recv(12) == b"HTTP/1.1 200"
            until(lambda: group.call(lambda: server.connections) == 0, "its connection was ended")
    monkeypatch.setattr(http_server, "KEEP_ALIVE", 10 * PATIENCE)
    monkeypatch.setattr(server.config, "timeout_keep_alive", 10 * PATIENCE)
    monkeypatch.setattr(http_server, "CONNECTIONS_MAX", 2)
    clients = [connect(group.url) for _ in range(2)]
    before = served(group)
    for each in clients:
        each.sendall(GET % b"/" * 3)
        assert each.recv(12) == b"HTTP/1.1 200"
    until(lambda: group.call(lambda: served(group)) == before + 4, "the second answer of each waits for its client")
    assert ask(group.url, "/v1/info").status == 200
    for each in clients:
        each.close()
