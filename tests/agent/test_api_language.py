"""The language of the local socket: greeting, serials, answers, streams.  docs/local-api.md."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
import pytest

from holdfast.errors import Unavailable
from holdfast.events import Paused, Updated
from holdfast.features.mail import calls as mail_calls
from holdfast.features.mail.calls import MessageItem
from holdfast.features.ring.protocol.facts import Overslept
from holdfast.features.tickets import calls as ticket_calls
from holdfast.local import calls, frame
from holdfast.local.calls import Closed, Done, EventItem, Pushed, Refused
from holdfast.local.frame import CALL_BYTES_MAX, framed
from holdfast.local.news import event_of
from tests.agent.live import Live
from tests.agent.raw_client import RawClient, Sent, now
from tests.support.agents import until


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One agent, alone in its group."""
    with Live(tmp_path_factory.mktemp("live"), name="solo") as it:
        it.until_member()
        yield it


@pytest.fixture
def client(live: Live) -> Iterator[RawClient]:
    with RawClient(live.path) as it:
        yield it


@pytest.mark.parametrize("serial", [1, 127, 128, 70_000, 1 << 40])
def test_frames_are_what_msgspec_writes(serial: int) -> None:
    """Frames are put together by hand, for speed: they are the same bytes."""
    value = msgspec.msgpack.encode({"a": [1, 2.5, b"x"]})
    assert frame.done(serial, value) == framed(msgspec.msgpack.encode(Done(serial, msgspec.Raw(value))))
    assert frame.pushed(serial, value) == framed(msgspec.msgpack.encode(Pushed(serial, msgspec.Raw(value))))
    refused = Refused(serial, "Unavailable", "x", {"needed": 2})
    assert frame.refused(serial, Unavailable("x", needed=2)) == framed(msgspec.msgpack.encode(refused))
    assert frame.closed(serial, "HoldLost", "x") == framed(msgspec.msgpack.encode(Closed(serial, "HoldLost", "x")))


def test_greeting(live: Live, client: RawClient) -> None:
    """F14: the agent's clock lies between send and receipt; the answer names life, process, group and session."""
    before = now()
    with RawClient(live.path) as other:
        assert other.welcome is not None
        assert before <= other.welcome.now <= now()
        assert (other.welcome.version, other.welcome.pid, other.welcome.group) == (calls.VERSION, os.getpid(), "live")
        assert other.welcome.agent == live.agent.me
        assert client.welcome is not None
        assert other.welcome.session != client.welcome.session


@pytest.mark.parametrize("version", [0, calls.VERSION + 1])
def test_another_version_is_sent_away(live: Live, version: int) -> None:
    """Versioned: both numbers are named, and the connection ends."""
    with RawClient(live.path, greet=False) as client:
        with pytest.raises(Sent, match=f"speaks {version}, this agent {calls.VERSION}"):
            client.ask(calls.Hello, version, "x", now())
        ending = client.ending()
        assert ending is not None
        assert ending.error == "ConfigError"


@pytest.mark.parametrize("offset", [3600.0, -3600.0, 1.0, float("nan"), float("inf")])
def test_another_clock_is_sent_away(live: Live, offset: float) -> None:
    """F14: deadlines mean nothing to a client that reads another clock."""
    with RawClient(live.path, greet=False) as client, pytest.raises(Sent, match="same clock"):
        client.ask(calls.Hello, calls.VERSION, "x", now() + offset)


def test_nothing_before_hello(live: Live) -> None:
    """Hello comes first, and once."""
    with RawClient(live.path, greet=False) as client:
        client.say(calls.Look)
        assert "Hello" in closing(client).text
    with RawClient(live.path) as client:
        client.say(calls.Hello, calls.VERSION, "again", now())
        assert "Hello" in closing(client).text


@pytest.mark.parametrize("serial", [0, 1, -5, 1 << 53, (1 << 64) - 1])
def test_serials_grow(live: Live, serial: int) -> None:
    """Every call has a serial larger than all before: whoever breaks it is not understood any more."""
    with RawClient(live.path) as client:
        client.sock.sendall(framed(msgspec.msgpack.encode(calls.Look(serial))))
        assert "serial" in closing(client).text


UNREADABLE = [b"\xc1", b"", b"\x92\x02", msgspec.msgpack.encode([99, 2]), msgspec.msgpack.encode([3, 2, "yes"]), b"\x91" * 5000 + b"\x90"]


@pytest.mark.parametrize("data, greet", [
    *((framed(body), False) for body in UNREADABLE), ((CALL_BYTES_MAX + 1).to_bytes(4, "big"), True), (b"GET / HTTP/1.1\r\n\r\n", True),
])  # fmt: skip
def test_another_language_ends_the_connection(live: Live, data: bytes, greet: bool) -> None:
    """A frame that is too long, or anything but Hello at first: Closed with a clear text and a counter, and the agent goes on."""
    before = sum(live.server.counts[name] for name in ("malformed", "too_long"))
    with RawClient(live.path, greet=greet) as client:
        client.sock.sendall(data)
        assert "not the language" in closing(client).text
    assert sum(live.server.counts[name] for name in ("malformed", "too_long")) == before + 1
    with RawClient(live.path) as client:
        assert client.ask(calls.Look).state == "member"


@pytest.mark.parametrize("body, serial, text", [
    (b"\xc1", 0, "call: "), (b"", 0, "call: "), (b"\x92\x02", 0, "call: "), (b"\x91" * 5000 + b"\x90", 0, "call: "),
    (msgspec.msgpack.encode("hello"), 0, "call: "), (msgspec.msgpack.encode([99, 7]), 7, "call: 99; accepted are the calls 1 to"),
    (msgspec.msgpack.encode([3, 7, "yes"]), 7, "Watch: internal: Expected `bool`, got `str`"),
    (msgspec.msgpack.encode([5, 7, {"ready": True}]), 7, "SetTags: tags: Expected `str | null`, got `bool`"),
    (msgspec.msgpack.encode([5, 7, {"ready": b"\xff"}]), 7, "SetTags: tags: "),
    (msgspec.msgpack.encode([4, 7, ["a", 1]]), 7, "Owns: key: Expected `bytes`, got `array`"),
    (msgspec.msgpack.encode([4, 7]), 7, "Owns: call: "), (b"\x93\x05\x07\x81\xa1a\xa1\xff", 7, "SetTags: "),
])  # fmt: skip
def test_one_unreadable_call_is_refused(live: Live, body: bytes, serial: int, text: str) -> None:
    """H171: one call that cannot be read is answered by name and field, and everything else on the connection goes on; serial 0 where it
    has none that can be read."""
    before = live.server.counts["malformed"]
    with RawClient(live.path) as client:
        watching = client.say(calls.Watch)
        client.answer(calls.Watch, watching)
        client.serial = 7
        client.sock.sendall(framed(body))
        refused = client.next()
        assert isinstance(refused, calls.Refused)
        assert (refused.serial, refused.error) == (serial, "ConfigError")
        assert text in refused.text
        assert client.ask(calls.Look).state == "member"
        for heard in ("yes", None):
            client.ask(calls.SetTags, {"heard": heard})
            assert client.item(watching, calls.EventItem).name == "Updated"
    assert live.server.counts["malformed"] == before + 1


def test_who_is_never_understood_is_sent_away(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """H171: a connection that sends nothing but what cannot be read speaks another language."""
    monkeypatch.setattr("holdfast.agent.socket.connection.UNREADABLE_MAX", 3)
    with RawClient(live.path) as client:
        client.sock.sendall(4 * framed(b"\xc1"))
        assert "not the language" in closing(client).text


def closing(client: RawClient) -> Closed:
    ending = client.ending()
    assert ending is not None
    return ending


def test_calls_of_a_later_release_are_read(live: Live) -> None:
    """Calls grow at the end: what is appended is passed over."""
    with RawClient(live.path) as client:
        client.serial = 2
        client.sock.sendall(framed(msgspec.msgpack.encode([2, 2, 0, "appended", {"by": "a later release"}])))
        assert client.answer(calls.Look, 2).state == "member"


def test_look_is_encoded_once_per_version(live: Live, client: RawClient) -> None:
    """Look: the same bytes as long as nothing changed, and new ones when it did."""
    first = client.ask(calls.Look)
    kept = live.server.handlers._view_bytes
    assert client.ask(calls.Look) == first
    assert live.server.handlers._view_bytes is kept
    client.ask(calls.SetTags, {"zone": "eu"})
    second = client.ask(calls.Look)
    assert second.version > first.version
    assert second.me.tags == {"zone": "eu"}
    client.ask(calls.SetTags, {"zone": None})


def test_pipelined_calls_are_all_answered(client: RawClient) -> None:
    """Calls are answered once each, in any order: what reads at once, what enters a protocol in its turn."""
    kinds = [(calls.Look, ()), (calls.Owns, (b"key",)), (calls.Info, ())] * 50
    serials = {}
    frames = b""
    for kind, fields in kinds:
        client.serial += 1
        serials[client.serial] = kind
        frames += framed(msgspec.msgpack.encode(kind(client.serial, *fields)))
    client.sock.sendall(frames)
    answered = [message.serial for message in (client.next() for _ in serials) if isinstance(message, Done)]
    assert sorted(answered) == sorted(serials)


def test_watch(live: Live, client: RawClient) -> None:
    """A stream of events, beginning after the view in the answer, with the version of the list after each; closed when asked."""
    serial = client.say(calls.Watch)
    view = client.answer(calls.Watch, serial)
    assert view.state == "member"
    client.ask(calls.SetTags, {"zone": "eu"})
    item = client.item(serial, EventItem)
    event = event_of(item)
    assert isinstance(event, Updated)
    assert event.member.tags == {"zone": "eu"}
    assert item.version > view.version
    client.ask(calls.Close, serial)
    live.turn(lambda: live.agent.host.emit(Paused(1.0)))
    client.ask(calls.SetTags, {"zone": None})
    assert not client.pushed.get(serial)


def test_watch_inside(live: Live, client: RawClient) -> None:
    """With ``internal`` also the facts inside the protocols, under their protocol's name."""
    users, both = client.say(calls.Watch), client.say(calls.Watch, True)
    client.answer(calls.Watch, both)
    live.turn(lambda: live.agent.host.emit(Overslept(1.0)))
    live.turn(lambda: live.agent.host.emit(Paused(2.0)))
    assert [client.item(both, EventItem).name for _ in range(2)] == ["ring.Overslept", "Paused"]
    assert client.item(users, EventItem).name == "Paused"


def test_messages(live: Live) -> None:
    """Messages: letters to this agent for everybody here who listens; a topic for all but the one that cast."""
    with RawClient(live.path) as a, RawClient(live.path) as b:
        with pytest.raises(Sent, match="no client of 'solo' listens"):
            a.ask(mail_calls.Send, "solo", b"too early", 5.0)
        letters = b.say(mail_calls.Messages)
        b.answer(mail_calls.Messages, letters)
        a.ask(mail_calls.Send, "solo", b"hello", 5.0)
        assert b.item(letters, MessageItem) == MessageItem(live.agent.me, "", b"hello")
        streams = {each: each.say(mail_calls.Messages, "news") for each in (a, b)}
        for each, serial in streams.items():
            each.answer(mail_calls.Messages, serial)
        a.ask(mail_calls.Cast, "news", b"1")
        b.ask(mail_calls.Cast, "news", b"2")
        assert b.item(streams[b], MessageItem).payload == b"1"
        assert a.item(streams[a], MessageItem).payload == b"2"
        assert "topic:u:news" in a.ask(calls.Look).me.rows
    until(lambda: "topic:u:news" not in live.call(live.agent.view).me.rows, "the topic ends with its last listener")


@pytest.mark.parametrize(
    "kind, fields, error, text",
    [
        (mail_calls.Send, ("nobody", b"", 1.0), "NotAMember", "name"),
        (mail_calls.Send, ("solo", b"", 0.0), "ConfigError", "timeout"),
        (mail_calls.Send, ("solo", b"", float("nan")), "ConfigError", "timeout"),
        (mail_calls.Send, ("solo", b"x" * 40_000, 1.0), "ConfigError", "payload"),
        (mail_calls.Cast, ("", b"x"), "ConfigError", "topic"),
        (mail_calls.Cast, ("t" * 63, b"x"), "ConfigError", "topic"),
        (mail_calls.Cast, ("t", b"x" * 20_000), "ConfigError", "payload"),
        (mail_calls.Messages, ("a\nb",), "ConfigError", "topic"),
        (calls.SetTags, ({"a b": "x"},), "ConfigError", "tag"),
        (calls.Owns, (b"x" * 5000,), "ConfigError", "key"),
        (calls.Join, ((), 1.0), "ConfigError", "seeds"),
        (calls.Join, (("127.0.0.1:1",), -1.0), "ConfigError", "timeout"),
        (calls.Acquire, ("moon", "x", {}), "Unavailable", "kind"),
        (calls.Body, (7, 1), "HoldLost", "grant"),
        (ticket_calls.Publish, (7, b"x"), "TicketLost", "grant"),
        (ticket_calls.Touch, (7,), "TicketLost", "grant"),
        (ticket_calls.WatchTickets, ("a\nb",), "ConfigError", "pool|seats|state_dir"),
    ],
)
def test_what_makes_no_sense_is_refused(
    client: RawClient, kind: type[calls.Call], fields: tuple[object, ...], error: str, text: str
) -> None:
    """Bad input: one error that names the field; it changes nothing and ends nothing."""
    with pytest.raises(Sent, match=text) as refused:
        client.ask(kind, *fields)
    assert refused.value.error == error
    assert client.ask(calls.Look).state == "member"


def test_info_names_the_clients(client: RawClient) -> None:
    """Info: what attached, by program and process; counters of the local socket."""
    info = client.ask(calls.Info)
    assert f"raw client {os.getpid()}" in {each["program"] for each in info["clients"]}
    assert info["local"]["counts"]["connected"] >= 1
    assert info["name"] == "solo"


def test_owns(client: RawClient) -> None:
    """Owns: a token and a deadline on this machine's clock; a member alone owns every key."""
    owned = client.ask(calls.Owns, b"cart:42")
    assert owned.token < 1 << 53
    assert owned.until > now() - 10
    client.ask(calls.Stopped, 0)


def test_seats(live: Live, client: RawClient) -> None:
    """Seats: the slots and who sits there, or which setting is missing (F12)."""
    if live.agent.seats is None:
        with pytest.raises(Sent, match=r"state_dir|seats"):
            client.ask(calls.Seats)
    else:
        (seat,) = client.ask(calls.Seats)
        assert seat.own
