"""Many clients, slow clients, silent clients: none of them costs another one anything.  docs/local-api.md (limits)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import msgspec
import pytest

from holdfast.agent.socket import connection as module
from holdfast.events import Event, EventsLost, Paused, StorageFailed
from holdfast.features.mail import calls as mail_calls
from holdfast.local import calls
from holdfast.local.calls import EventItem
from holdfast.local.frame import CALL_BYTES_MAX, Frames, encoded, framed
from holdfast.local.news import event_of
from tests.agent.live import Live
from tests.agent.raw_client import RawClient, Sent
from tests.support.agents import until

CLIENTS = 200


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with Live(tmp_path_factory.mktemp("live"), name="solo") as it:
        it.until_member()
        yield it


def emit(live: Live, *events: Event) -> None:
    """All of them in one turn."""

    def step() -> None:
        for event in events:
            live.agent.host.emit(event)

    live.turn(step)


def told(client: RawClient, watch: int) -> Event | None:
    """The next event but for pauses: a busy machine stops this agent, too, and it says so."""
    event = event_of(client.item(watch, EventItem))
    while isinstance(event, Paused):
        event = event_of(client.item(watch, EventItem))
    return event


def test_200_clients(live: Live) -> None:
    """200 clients on one agent: all are greeted, all look, all hear every event, and all are forgotten when they go."""
    until(lambda: live.call(lambda: live.server.clients) == 0, "those of the test before are gone")
    before = len(live.agent.events)
    with ExitStack() as stack:
        clients = [stack.enter_context(RawClient(live.path)) for _ in range(CLIENTS)]
        watches = [client.say(calls.Watch) for client in clients]
        for client, watch in zip(clients, watches, strict=True):
            assert client.answer(calls.Watch, watch).me.name == "solo"
        events = [StorageFailed(str(number)) for number in range(20)]
        emit(live, *events)
        for client, watch in zip(clients, watches, strict=True):
            assert [told(client, watch) for _ in events] == events
        assert live.call(lambda: live.server.clients) == CLIENTS
    until(lambda: live.call(lambda: live.server.clients) == 0, "all are gone")
    assert len(live.agent.events) == before


def test_an_event_that_no_client_watches_is_counted(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """H222: it ends there; the hub does not hear of it."""
    until(lambda: live.call(lambda: len(live.agent.events)) == 0, "those of the test before are gone")
    published: list[Event] = []
    monkeypatch.setattr(live.agent.events, "publish", published.append)
    before = live.agent.emitted
    emit(live, StorageFailed("a"), StorageFailed("b"))
    assert live.agent.emitted >= before + 2
    assert published == []


def long_event(number: int) -> Event:
    return StorageFailed(f"{number} {'x' * 400}")


def test_a_subscriber_that_never_reads(live: Live) -> None:
    """It reads EventsLost(n) once and then the newest; one that reads misses nothing; the agent waits for nobody."""
    turns, batch = 60, 100  # Several times what buffers and sockets hold.
    with RawClient(live.path) as slow, RawClient(live.path) as quick:
        streams = {each: each.say(calls.Watch) for each in (slow, quick)}
        for each, serial in streams.items():
            each.answer(calls.Watch, serial)
        for turn in range(turns):
            events = [long_event(turn * batch + number) for number in range(batch)]
            emit(live, *events)
            assert [event_of(quick.item(streams[quick], EventItem)) for _ in events] == events
        received: list[Event | None] = []
        while not received or received[-1] != events[-1]:
            received.append(event_of(slow.item(streams[slow], EventItem)))
        lost = [event.count for event in received if isinstance(event, EventsLost)]
        assert len(lost) == 1
        assert len(received) - 1 + lost[0] == turns * batch
        after = received.index(EventsLost(lost[0])) + 1
        newest = len(received) - after
        assert received[after:] == [long_event(number) for number in range(turns * batch - newest, turns * batch)]


def test_a_client_that_asks_and_never_reads_is_paused(live: Live) -> None:
    """Limits: its calls are not read any more and little is kept for it; others are served; it has every answer when it reads."""
    asked = 300_000
    with RawClient(live.path) as greedy, RawClient(live.path) as other:
        assert greedy.welcome is not None
        session = greedy.welcome.session
        frames = b"".join(framed(msgspec.msgpack.encode(calls.Look(serial))) for serial in range(2, asked + 2))
        sent = _send_all_it_takes(live, session, greedy.sock, frames)
        assert sent < len(frames)
        kept = live.call(lambda: buffered(live, session))
        assert kept < 3 * module.HIGH_BYTES
        assert other.ask(calls.Look).state == "member"
        greedy.sock.settimeout(30)
        expected, answered = whole_frames(frames[:sent]), 0
        while answered < expected:
            answered += isinstance(greedy.next(), calls.Done)


def buffered(live: Live, session: int) -> int:
    connection = live.server.connections[session]
    assert connection._transport is not None
    return connection._transport.get_write_buffer_size() + connection._out_bytes


def _send_all_it_takes(live: Live, session: int, sock: socket.socket, frames: bytes) -> int:
    """Until the agent has paused this client and the socket is full."""
    sock.setblocking(False)
    sent = 0

    def full() -> bool:
        nonlocal sent
        try:
            sent += sock.send(frames[sent:])
        except BlockingIOError:
            return live.call(lambda: not live.server.connections[session].reads)
        return sent == len(frames)

    until(full, "the client is paused")
    return sent


def whole_frames(data: bytes) -> int:
    return len(Frames(CALL_BYTES_MAX).feed(data))


def test_answers_that_nobody_reads_end_the_connection(live: Live) -> None:
    """Limits: answers to calls that were under way may wait, up to a limit; then the client is told and sent away."""
    before = live.server.counts["too_slow"]
    with RawClient(live.path) as client:
        assert client.welcome is not None
        connection = live.server.connections[client.welcome.session]
        answer = encoded(b"x" * (1 << 20))
        for serial in range(2, 40):
            live.call(partial(connection.done, serial, answer))
        assert live.server.counts["too_slow"] == before + 1
        ending = client.ending()
        assert ending is not None
        assert (ending.error, "does not read" in ending.text) == ("Unavailable", True)


def test_too_many_calls_under_way(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits: calls that wait for a protocol are counted per client; what is beyond is refused, and the rest is answered."""
    monkeypatch.setattr(module, "CALLS_MAX", 4)
    with RawClient(live.path) as client:
        frames = b"".join(framed(msgspec.msgpack.encode(calls.Owns(serial, b"k"))) for serial in range(2, 12))
        client.sock.sendall(frames)
        answers = [client.next() for _ in range(10)]
        assert sum(isinstance(each, calls.Refused) for each in answers) == 6
        assert {each.error for each in answers if isinstance(each, calls.Refused)} == {"Unavailable"}


def test_too_many_streams(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits: streams are counted per client."""
    monkeypatch.setattr(module, "STREAMS_MAX", 2)
    with RawClient(live.path) as client:
        first = client.say(calls.Watch)
        client.answer(calls.Watch, first)
        client.ask(mail_calls.Messages, "t")
        for kind, fields in ((calls.Watch, ()), (mail_calls.Messages, ("u",)), (calls.Acquire, ("lock", "x", {}))):
            with pytest.raises(Sent, match="too many streams"):
                client.ask(kind, *fields)
        client.ask(calls.Close, first)
        client.ask(calls.Watch)


def test_too_many_clients(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits: one client too many is told so; when one goes the next may come."""
    monkeypatch.setattr("holdfast.agent.socket.api.CLIENTS_MAX", 2)
    with RawClient(live.path) as first, RawClient(live.path):
        with RawClient(live.path, greet=False) as third:
            ending = third.ending()
        assert ending is not None
        assert (ending.error, "too many clients" in ending.text) == ("Unavailable", True)
        first.sock.close()
        until(lambda: live.call(lambda: live.server.clients) == 1, "one has gone")
        with RawClient(live.path) as fourth:
            assert fourth.ask(calls.Look).state == "member"


def test_whoever_says_nothing_is_sent_away(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits: half-open connections do not stay."""
    monkeypatch.setattr(module, "GREETING_TIMEOUT", 0.05)
    with RawClient(live.path, greet=False) as client:
        ending = client.ending()
    assert ending is not None
    assert "no Hello" in ending.text


def test_forked_children_hear_that_it_is_over(live: Live) -> None:
    """A fork is not the body: when the process that made the connection has ended, the connection ends with it."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:  # It connects, hands the socket to its own child's parent, us, and ends.
        client = RawClient(live.path)
        client.ask(calls.Owns, b"key")
        socket.send_fds(theirs, [b"x"], [client.sock.fileno()])
        os._exit(0)
    os.waitpid(child, 0)
    _, (descriptor,), _, _ = socket.recv_fds(ours, 1, 1)
    ours.close()
    theirs.close()
    with socket.socket(fileno=descriptor) as inherited:
        inherited.settimeout(30)
        data = b""
        while more := inherited.recv(4096):
            data += more
    assert b"Forked" in data


def test_the_agent_ends(tmp_path: Path) -> None:
    """Clients hear why, and the socket file goes with the agent."""
    with Live(tmp_path) as live:
        client = RawClient(live.path)
        watch = client.say(calls.Watch)
        client.answer(calls.Watch, watch)
    with client:
        ending = client.ending()
    assert ending is not None
    assert (ending.error, ending.text) == ("AgentLost", "the agent has ended")
    assert not Path(live.path).exists()
