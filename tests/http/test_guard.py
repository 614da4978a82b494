"""Who may ask, and how much: hosts, tokens, headers, limits."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from holdfast.agent import http_app
from holdfast.agent.http import HttpServer, listen
from holdfast.agent.http_guard import Guard, accepted_hosts, host_name
from holdfast.errors import AddressUnusable, ConfigError
from tests.http.conftest import TOKEN
from tests.http.wire import ask, connect
from tests.page.stub_agent import PATIENCE, StubGroup
from tests.support.agents import until

BEARER = {"Authorization": f"Bearer {TOKEN}"}
TAGS = b'{"tags": {"colour": "teal"}}'


def through(guard: Guard, path: str, method: str = "GET", **headers: str) -> int:
    """The status that a request gets from a guard around an application that always says 200."""
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Any:
        return {"type": "http.request"}

    fields = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(guard({"type": "http", "path": path, "method": method, "headers": fields}, receive, send))
    return statuses[0]


async def fine(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def guard(*, loopback: bool, token: bytes | None) -> Guard:
    return Guard(fine, hosts=accepted_hosts("127.0.0.1") if loopback else None, token=token, is_data=http_app.is_data)


@pytest.mark.parametrize(
    "host, status",
    [
        ("127.0.0.1:7980", 200), ("localhost:7980", 200), ("LOCALHOST", 200), ("[::1]:7980", 200),
        ("evil.example:7980", 421), ("127.0.0.1.evil.example", 421), ("localhost.evil.example:7980", 421), ("", 421),
    ],
)  # fmt: skip
def test_a_foreign_host_is_refused_on_loopback(host: str, status: int) -> None:
    """DNS rebinding: a page of another site names its own host, however that resolves, and gets nothing, not even the page."""
    for path in ("/", "/v1/members", "/metrics", "/events"):
        assert through(guard(loopback=True, token=None), path, host=host) == status


def test_a_missing_host_is_refused_on_loopback() -> None:
    """Without a Host nobody knows who is meant."""
    assert through(guard(loopback=True, token=None), "/v1/members") == 421


def test_host_names_lose_their_port() -> None:
    """Host headers of both families, with and without a port."""
    assert [host_name(each) for each in (b"a:1", b"a", b"[::1]:80", b"[::1]", b"::1")] == ["a", "a", "[::1]", "[::1]", "::1"]


def test_reading_beyond_loopback_needs_the_token() -> None:
    """Member lists and addresses are for members' keepers: beyond loopback data needs the token, the page's files do not."""
    beyond = guard(loopback=False, token=TOKEN.encode())
    for path in http_app.FILES:
        assert through(beyond, path) == 200
    for path in ("/v1/members", "/metrics", "/events", "/v1/nothing", "/elsewhere"):
        assert through(beyond, path) == 401
        assert through(beyond, path, **BEARER) == 200
        assert through(beyond, path, authorization="Bearer wrong") == 401


@pytest.mark.parametrize("path", ["/v1/tags", "/v1/leave", "/v1/force-leave/b"])
def test_changes_need_a_token(path: str) -> None:
    """Without a configured token nothing can be changed (403); with one, only by whoever shows it (401)."""
    assert through(guard(loopback=True, token=None), path, "POST", host="localhost", **BEARER) == 403
    with_token = guard(loopback=True, token=TOKEN.encode())
    assert through(with_token, path, "POST", host="localhost") == 401
    assert through(with_token, path, "POST", host="localhost", authorization=f"Basic {TOKEN}") == 401
    assert through(with_token, path, "POST", host="localhost", **BEARER) == 200


def test_tags_are_changed_with_the_token(group: StubGroup) -> None:
    """POST /v1/tags: published by this agent, and null removes."""
    agent = group.agents["b"]

    def colour() -> str | None:
        return group.call(lambda: next(member.tags.get("colour") for member in agent.ring.members() if member.name == "a"))

    assert ask(group.url, "/v1/tags", "POST", TAGS).status == 401
    assert ask(group.url, "/v1/tags", "POST", TAGS, BEARER).json == {"state": "member"}
    until(lambda: colour() == "teal", "b sees the new tag of a")
    assert ask(group.url, "/v1/tags", "POST", b'{"tags": {"colour": null}}', BEARER).status == 200
    until(lambda: colour() is None, "b sees that it is gone")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"tags": 1}', b'{"tags": {"a": 1}}', b'{"tags": {}, "more": 1}', b'{"tags": {"bad name": "x"}}']
)
def test_bad_bodies_change_nothing(group: StubGroup, body: bytes) -> None:
    """A body that is no set of tags gets one error and changes nothing."""
    agent = group.agents["a"]
    before = group.call(lambda: agent.ring.version)
    answer = ask(group.url, "/v1/tags", "POST", body, BEARER)
    assert (answer.status, answer.json["error"]) == (400, "ConfigError")
    assert group.call(lambda: agent.ring.version) == before


def test_leave_drains_the_agent(group: StubGroup) -> None:
    """POST /v1/leave begins to drain and says so at once: the server ends with its agent."""
    answer = ask(group.url, "/v1/leave", "POST", headers=BEARER)
    assert answer.status == 202
    assert group.agents["a"].ended


def test_force_leave_says_why_not(group: StubGroup) -> None:
    """POST /v1/force-leave: an agent that is not there is a 404, and without a key in the group nobody is asked at all."""
    answer = ask(group.url, "/v1/force-leave/b", "POST", headers=BEARER)
    assert (answer.status, answer.json["error"]) == (400, "ConfigError")
    assert "key" in answer.json["text"]


@pytest.mark.parametrize("path", ["/", "/main.js", "/v1/members", "/metrics", "/v1/nothing"])
def test_every_answer_is_locked_down(group: StubGroup, path: str) -> None:
    """Security headers on everything, errors too; what is data is never kept by a browser; no CORS."""
    headers = ask(group.url, path, headers={"Origin": "https://evil.example"}).headers
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert not [name for name in headers if name.startswith("access-control-")]
    assert "server" not in headers
    if path.startswith(("/v1/", "/metrics")):
        assert headers["cache-control"] == "no-store"


def test_long_bodies_and_headers_are_refused(group: StubGroup) -> None:
    """Limits: a body above 64 KiB and headers above 16 KiB are not read."""
    answer = ask(group.url, "/v1/tags", "POST", b" " * (http_app.BODY_BYTES_MAX + 1), BEARER)
    assert (answer.status, answer.json["error"]) == (413, "TooLarge")
    with connect(group.url) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * (2 * http_app.HEADER_BYTES_MAX))
        assert client.recv(64).startswith(b"HTTP/1.1 4")


def test_connections_are_limited(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """One connection too many is closed at once, so that strangers cannot take the descriptors that peers need."""
    monkeypatch.setattr(http_app, "CONNECTIONS_MAX", 3)
    monkeypatch.setattr(http_app, "REQUEST_TIMEOUT", 10 * PATIENCE)  # so that nothing else closes it
    clients = [connect(group.url) for _ in range(6)]
    try:
        refused = sum(_closed(each) for each in clients[3:])
        assert refused == 3
    finally:
        for each in clients:
            each.close()
    until(lambda: _answers(group), "there is room again")


def test_a_silent_connection_is_closed(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who connects and sends no request keeps its connection for a limited time."""
    monkeypatch.setattr(http_app, "REQUEST_TIMEOUT", 0.05)
    with connect(group.url) as client:
        client.sendall(b"GET / HTT")
        assert _closed(client)


def _closed(client: Any) -> bool:
    try:
        return not client.recv(1)
    except ConnectionError:
        return True


def _answers(group: StubGroup) -> bool:
    try:
        return ask(group.url, "/v1/info").status == 200
    except OSError:
        return False


def test_a_missing_extra_is_named(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starlette and uvicorn are optional: an agent that is told to serve HTTP without them says what to install."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "holdfast.agent.http_app")
    with pytest.raises(ConfigError, match=r"pip install 'holdfast\[http\]'"):
        group.run(HttpServer.start(group.agents["a"]))  # type: ignore[arg-type]


def test_a_taken_port_is_named(group: StubGroup) -> None:
    """The error names the setting and the address."""
    assert group.http is not None
    with pytest.raises(AddressUnusable, match=rf"http: cannot listen on {group.http.address}: the port is in use"):
        listen(group.http.address)
