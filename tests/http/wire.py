"""What the tests of HTTP share: one request at a time, as raw as a test wants it, and events as they arrive."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.page.stub_agent import PATIENCE


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(url: str, path: str, method: str = "GET", body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    try:
        connection.request(method, path, body=body, headers=dict(headers or {}))
        response = connection.getresponse()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
    finally:
        connection.close()


def connect(url: str) -> socket.socket:
    where = urlsplit(url)
    assert where.hostname is not None
    assert where.port is not None
    return socket.create_connection((where.hostname, where.port), timeout=PATIENCE)


class Stream:
    """One reader of /events."""

    def __init__(self, url: str, query: str = "", headers: Mapping[str, str] | None = None) -> None:
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
        self._connection.request("GET", f"/events{query}", headers=dict(headers or {}))
        self.response = self._connection.getresponse()
        self.blocks: list[dict[str, str]] = []

    def next(self) -> dict[str, str]:
        """One block: its fields, with comments under ""; {} at the end of the stream."""
        found: dict[str, str] = {}
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(":")
            found[name] = value.removeprefix(" ")
        if found:
            self.blocks.append(found)
        return found

    def until(self, holds: Callable[[dict[str, str]], bool]) -> dict[str, str]:
        while True:
            block = self.next()
            assert block, f"the stream ended after {self.blocks}"
            if holds(block):
                return block

    def close(self) -> None:
        self.response.close()
        self._connection.close()
