"""Server-sent events: ids, coming back, falling behind, going away."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from holdfast.agent.observe import sse
from holdfast.agent.observe.sse import EventStream, Feed, Lists, Pulse
from tests.http.wire import Stream, ask
from tests.page.stub_agent import StubGroup
from tests.support.agents import until

LIFE = "7"


class Reader:
    """An ASGI client that takes what it is given, or does not."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.status = 0
        self.ended = False
        self.may_take = asyncio.Event()
        self.may_take.set()
        self.gone = asyncio.Event()

    async def send(self, message: Any) -> None:
        await self.may_take.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.chunks.append(message["body"])
            self.ended = not message.get("more_body", False)

    async def receive(self) -> Any:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def blocks(self) -> list[dict[str, str]]:
        return [dict(line.split(": ", 1) for line in block.split("\n")) for block in b"".join(self.chunks).decode().split("\n\n")[:-1]]

    def data(self, event: str = "") -> list[Any]:
        return [json.loads(block["data"]) for block in self.blocks if "data" in block and block.get("event", "") == event]


def filled(count: int, kept_max: int = 100) -> Feed:
    feed = Feed(LIFE, kept_max=kept_max)
    for number in range(1, count + 1):
        feed.put(0.0, f"E{number}", number, {}, internal=number % 2 == 0)
    return feed


async def reading(feed: Feed, reader: Reader, since: str | None = None, *, internal: bool = True) -> asyncio.Task[None]:
    stream = EventStream(feed, since=since, internal=internal)
    return asyncio.ensure_future(stream({}, reader.receive, reader.send))


async def soon(holds: Any) -> None:
    async with asyncio.timeout(30):
        while not holds():
            await asyncio.sleep(0.001)


def names(reader: Reader) -> list[str]:
    return [each["name"] for each in reader.data()]


def test_a_new_reader_hears_what_comes() -> None:
    """No Last-Event-ID: nothing of before, everything from now on, each with an id; a retry time and a greeting come first."""

    async def run() -> Reader:
        feed, reader = filled(5), Reader()
        task = await reading(feed, reader)
        await soon(lambda: reader.blocks)
        feed.put(0.0, "E6", 6, {"text": "line\nbreak"}, internal=False)
        await soon(reader.data)
        feed.close()
        await task
        return reader

    reader = asyncio.run(run())
    assert reader.blocks[0] == {"retry": "1000"}
    assert reader.data("hello") == [{"life": LIFE, "last": f"{LIFE}:5"}]
    assert names(reader) == ["E6"]
    assert reader.blocks[-1]["id"] == f"{LIFE}:6"
    assert reader.data()[0]["fields"] == {"text": "line\nbreak"}
    assert reader.ended


@pytest.mark.parametrize("internal, expected", [(True, ["E3", "E4", "E5"]), (False, ["E3", "E5"])])
def test_a_reader_comes_back(internal: bool, expected: list[str]) -> None:
    """Last-Event-ID: everything after it, in order, once; facts inside protocols only for those who asked."""

    async def run() -> Reader:
        feed, reader = filled(5), Reader()
        task = await reading(feed, reader, f"{LIFE}:2", internal=internal)
        await soon(lambda: len(reader.data()) == len(expected))
        feed.close()
        await task
        return reader

    reader = asyncio.run(run())
    assert names(reader) == expected
    assert reader.data("lost") == []


def test_what_is_kept_no_more_is_counted() -> None:
    """Who comes back too late is told how many it missed, then gets what is left."""

    async def run() -> tuple[Reader, Feed]:
        feed, reader = filled(20, kept_max=5), Reader()
        task = await reading(feed, reader, f"{LIFE}:3")
        await soon(lambda: len(reader.data()) == 5)
        feed.close()
        await task
        return reader, feed

    reader, feed = asyncio.run(run())
    assert reader.data("lost") == [{"count": 12}]
    assert names(reader) == ["E16", "E17", "E18", "E19", "E20"]
    assert feed.lost == 12


@pytest.mark.parametrize("since", ["6:3", "nonsense", "7:", "7:-1", "7:999999", "7:²", "7:" + "9" * 40])
def test_an_id_of_another_life_is_not_trusted(since: str) -> None:
    """An id of a former life, or none at all: "lost" without a count, and the reader looks at the lists again."""

    async def run() -> Reader:
        feed, reader = filled(5), Reader()
        task = await reading(feed, reader, since)
        await soon(lambda: reader.data("lost"))
        feed.close()
        await task
        return reader

    reader = asyncio.run(run())
    assert reader.data("lost") == [{"count": None}]
    assert names(reader) == []


def test_a_slow_reader_loses_and_is_told() -> None:
    """Bounded buffers: while a reader takes nothing the feed goes on; then it reads "lost" with the count and the newest."""

    async def run() -> Reader:
        feed, reader = filled(0, kept_max=10), Reader()
        task = await reading(feed, reader)
        await soon(lambda: reader.blocks)
        reader.may_take.clear()
        for number in range(1, 101):
            feed.put(0.0, f"E{number}", number, {}, internal=False)
            await asyncio.sleep(0)
        reader.may_take.set()
        await soon(lambda: "E100" in names(reader))
        feed.close()
        await task
        return reader

    reader = asyncio.run(run())
    lost = sum(each["count"] for each in reader.data("lost"))
    assert lost >= 80
    assert lost + len(names(reader)) == 100
    assert names(reader)[-10:] == [f"E{number}" for number in range(91, 101)]


def test_a_stalled_reader_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who takes nothing at all for too long loses its connection: it would keep a place for ever."""
    monkeypatch.setattr(sse, "STALLED_TIMEOUT", 0.05)

    async def run() -> Feed:
        feed, reader = filled(0), Reader()
        task = await reading(feed, reader)
        await soon(lambda: reader.blocks)
        reader.may_take.clear()
        feed.put(0.0, "E", 1, {}, internal=False)
        async with asyncio.timeout(30):
            await task
        return feed

    assert asyncio.run(run()).readers == 0


def test_silence_is_broken_by_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeat comments keep proxies from closing a stream on which nothing happens."""
    monkeypatch.setattr(sse, "HEARTBEAT_INTERVAL", 0.01)

    async def run() -> Reader:
        feed, reader = filled(0), Reader()
        task = await reading(feed, reader)
        await soon(lambda: b"".join(reader.chunks).count(b": here\n\n") >= 3)
        reader.gone.set()
        async with asyncio.timeout(30):
            await task
        return reader

    assert not asyncio.run(run()).ended  # Nobody is there to be told.


def test_readers_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """One reader too many is refused with 503, and a place is free again when somebody goes."""
    monkeypatch.setattr(sse, "READERS_MAX", 1)

    async def run() -> tuple[Reader, Reader, Reader]:
        feed, first, second, third = filled(0), Reader(), Reader(), Reader()
        one = await reading(feed, first)
        await soon(lambda: first.blocks)
        await (await reading(feed, second))
        first.gone.set()
        await one
        three = await reading(feed, third)
        await soon(lambda: third.blocks)
        feed.close()
        await three
        return first, second, third

    first, second, third = asyncio.run(run())
    assert [each.status for each in (first, second, third)] == [200, 503, 200]


def test_long_lists_are_sent_less_often() -> None:
    """A large group that changes all the time: its list is encoded once for all readers, and sent as often as its length allows."""
    now, version, encoded = 0.0, 0, []

    def answer() -> list[int]:
        encoded.append(version)
        return [version]

    lists = Lists(lambda: version, lambda: range(5000), answer)
    readers = [Pulse([lists], dict, lambda: now) for _ in range(3)]
    sent = []
    for _ in range(40):
        now, version = now + 0.25, version + 1
        sent += [(now, each) for reader in readers for each in reader.frames() if each.startswith(b"event: members")]
    assert [at for at, _ in sent] == [0.25] * 3 + [5.25] * 3
    assert encoded == [1, 21]


def test_events_of_a_real_agent(group: StubGroup) -> None:
    """/events over a real socket: a change of tags arrives as Updated with its id, and /v1/events has the same event."""
    stream = Stream(group.url)
    assert stream.response.getheader("content-type") == "text/event-stream; charset=utf-8"
    stream.until(lambda block: block.get("event") == "hello")
    group.call(lambda: group.agents["b"].set_tags({"turn": "1"}))
    block = stream.until(lambda block: '"Updated"' in block.get("data", ""))
    stream.close()
    event = json.loads(block["data"])
    assert event["id"] == block["id"]
    assert event["fields"]["member"]["tags"]["turn"] == "1"
    recent = ask(group.url, "/v1/events").json["events"]
    assert event in recent
    until(lambda: group.call(lambda: group.http._service.feed.readers) == 0, "the server saw the reader go")  # type: ignore[union-attr]


def test_the_page_gets_lists_and_pulses(group: StubGroup) -> None:
    """?pulse=true: the member list at once, leases and health several times a second, sessions that grow."""
    stream = Stream(group.url, "?pulse=true&internal=true")
    members = json.loads(stream.until(lambda block: block.get("event") == "members")["data"])
    assert len(members["members"]) == 3
    first = json.loads(stream.until(lambda block: block.get("event") == "pulse")["data"])
    assert first["health"]["safe_for_most"] == pytest.approx(2.5 * 0.4)

    def grown(block: dict[str, str]) -> bool:
        if block.get("event") != "pulse":
            return False
        return bool(json.loads(block["data"])["ring"]["pairs"][0]["session"] > first["ring"]["pairs"][0]["session"])

    stream.until(grown)
    assert len([block for block in stream.blocks if block.get("event") == "members"]) == 1
    stream.close()
