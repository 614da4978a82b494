"""Who may ask, and how much: hosts, tokens, headers, limits."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from holdfast.agent.observe import http_app, http_server
from holdfast.agent.observe.http import HttpServer, listen
from holdfast.agent.observe.http_guard import Guard, accepted_hosts, host_name
from holdfast.agent.observe.page_files import PageFiles
from holdfast.errors import AddressUnusable, ConfigError
from tests.http.conftest import TOKEN
from tests.http.wire import ask, connect
from tests.page.stub_agent import StubGroup
from tests.support.agents import until

BEARER = {"Authorization": f"Bearer {TOKEN}"}
TAGS = b'{"tags": {"colour": "teal"}}'
PAGE = PageFiles(())


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
    return Guard(
        fine,
        hosts=accepted_hosts("127.0.0.1") if loopback else None,
        token=token,
        is_data=lambda path: path not in PAGE,
        free=http_server.PROBES,
    )


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


FOREIGN: list[dict[str, str]] = [
    {"origin": "https://evil.example"}, {"origin": "http://localhost:3000"}, {"origin": "null"}, {"origin": ""}, {"origin": "http://"},
    {"origin": "http://localhost"}, {"origin": "file://localhost:7980"}, {"origin": "http://localhost:7980.evil.example"},
    {"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"sec-fetch-site": "Cross-Site"}, {"sec-fetch-site": "unheard-of"},
    {"sec-fetch-site": "cross-site", "origin": "http://localhost:7980"}, {"sec-fetch-site": "same-origin", "origin": "http://evil.example"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "document"},
]  # fmt: skip
OWN: list[dict[str, str]] = [
    {}, {"origin": "http://localhost:7980"}, {"origin": "https://LOCALHOST:7980"}, {"sec-fetch-site": "none"},
    {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "same-origin", "origin": "http://localhost:7980"},
]  # fmt: skip


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
@pytest.mark.parametrize("loopback", [True, False])
def test_a_page_of_another_site_is_refused(headers: dict[str, str], *, loopback: bool) -> None:
    """H179: whatever a browser sends for a page of another site gets 403: data, files, streams, probes, and with the token too."""
    watched = guard(loopback=loopback, token=TOKEN.encode())
    for path in ("/", "/main.js", "/v1/members", "/metrics", "/events", "/healthz", "/readyz"):
        assert through(watched, path, host="localhost:7980", **headers, **BEARER) == 403
    assert through(watched, "/v1/tags", "POST", host="localhost:7980", **headers, **BEARER) == 403


@pytest.mark.parametrize("headers", OWN, ids=str)
def test_the_own_page_and_programs_are_served(headers: dict[str, str]) -> None:
    """H179: programs send neither header; the page's own requests name the host they are sent to."""
    watched = guard(loopback=True, token=TOKEN.encode())
    for path in ("/", "/v1/members", "/events"):
        assert through(watched, path, host="localhost:7980", **headers) == 200
    assert through(watched, "/v1/tags", "POST", host="localhost:7980", **headers, **BEARER) == 200


def test_a_link_to_the_page_may_be_anywhere() -> None:
    """H179: a person who follows a link from a runbook opens the page, and not the data."""
    click = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert through(guard(loopback=True, token=None), "/", host="localhost:7980", **click) == 200
    assert through(guard(loopback=True, token=None), "/v1/members", host="localhost:7980", **click) == 403
    assert through(guard(loopback=True, token=TOKEN.encode()), "/v1/tags", "POST", host="localhost:7980", **click, **BEARER) == 403


def test_an_origin_without_its_port() -> None:
    """A browser leaves out the usual port, of Host and of Origin."""
    watched = guard(loopback=True, token=None)
    assert through(watched, "/v1/members", host="localhost", origin="http://localhost") == 200
    assert through(watched, "/v1/members", host="localhost:443", origin="https://localhost") == 200
    assert through(watched, "/v1/members", host="[::1]:7980", origin="http://[::1]:7980") == 200
    assert through(watched, "/v1/members", host="[::1]", origin="http://[::1]:7980") == 403


def test_probes_need_no_token() -> None:
    """H181: /healthz and /readyz beyond loopback, for a kubelet that has no token. They are read only."""
    beyond = guard(loopback=False, token=TOKEN.encode())
    for path in http_server.PROBES:
        assert through(beyond, path) == 200
        assert through(beyond, path, "POST") == 401


def test_host_names_lose_their_port() -> None:
    """Host headers of both families, with and without a port."""
    assert [host_name(each) for each in (b"a:1", b"a", b"[::1]:80", b"[::1]", b"::1")] == ["a", "a", "[::1]", "[::1]", "::1"]


def test_reading_beyond_loopback_needs_the_token() -> None:
    """Member lists and addresses are for members' keepers: beyond loopback data needs the token, the page's files do not."""
    beyond = guard(loopback=False, token=TOKEN.encode())
    for path in PAGE:
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
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * (2 * http_server.HEADER_BYTES_MAX))
        assert client.recv(64).startswith(b"HTTP/1.1 4")


def test_a_missing_extra_is_named(group: StubGroup, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starlette and uvicorn are optional: an agent that is told to serve HTTP without them says what to install."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "holdfast.agent.observe.http_app")
    monkeypatch.delitem(sys.modules, "holdfast.agent.observe.http_server")
    with pytest.raises(ConfigError, match=r"pip install '\.\[http\]' in a clone"):
        group.run(HttpServer.start(group.agents["a"]))  # type: ignore[arg-type]


def test_a_taken_port_is_named(group: StubGroup) -> None:
    """The error names the setting and the address."""
    assert group.http is not None
    with pytest.raises(AddressUnusable, match=rf"http: cannot listen on {group.http.address}: the port is in use"):
        listen(group.http.address)
