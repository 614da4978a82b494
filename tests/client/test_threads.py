"""Several who share one group: none keeps the others from hearing, calls leave in order, and one loss is noticed once.  docs/client.md."""

from __future__ import annotations

import asyncio
import errno
import gc
import time
from threading import Event, Thread
from typing import Any, cast

import pytest
from msgspec import Raw

from holdfast.client import start
from holdfast.client.loop import reaching
from holdfast.client.options import Plan
from holdfast.client.sync import group as blocking
from holdfast.client.threads.connection import Connection
from holdfast.errors import AgentLost, HoldfastError, LeadershipLost, Unavailable
from holdfast.features.mail import calls as mail_calls
from holdfast.host import NodeId
from holdfast.local import calls
from holdfast.local.frame import framed
from tests.client.fake_agent import DEADLINE, SILENCE, FakeAgent, encode, view
from tests.client.spelling import Spelling

LARGE = bytes(32 * 1024)
FLOOD = 256  # messages of that size: far more than all buffers on the way hold
SENDERS = 24  # what they write does not fit into the socket either
BUSY = 0.3  # seconds in which the agent reads nothing, and the socket fills up


def test_what_cannot_be_written_yet_keeps_nobody_from_reading(agent: FakeAgent) -> None:
    """An agent reads nothing from a client that does not read. While threads wait to write, what it says is read all the same."""
    with blocking.join(agent=agent.path) as group:
        stream = group.messages()
        opened = agent.wait_for(mail_calls.Messages)
        letter = mail_calls.MessageItem(NodeId("b", 1), "", LARGE)
        failed: list[HoldfastError] = []

        def flood(call: mail_calls.Send) -> None:
            agent.answers[mail_calls.Send] = None
            time.sleep(BUSY)
            for _ in range(FLOOD):
                agent.push(opened, letter)  # In the thread that reads calls: it waits until the client takes it.

        def send() -> None:
            try:
                group.send("b", LARGE, timeout=DEADLINE)
            except HoldfastError as error:
                failed.append(error)

        agent.answers[mail_calls.Send] = flood
        threads = [Thread(target=send) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE)
        assert failed == []
        assert stream.next(DEADLINE).data == LARGE


def test_calls_leave_in_the_order_of_their_serials(agent: FakeAgent, client: Spelling) -> None:
    """One read brings an item of a stream that nobody holds any more, which is closed, and an event that asks for the list: an agent ends
    a connection whose serials do not grow."""
    group = client.join(agent=agent.path)
    client.run(group.messages)
    opened, watch = agent.wait_for(mail_calls.Messages), agent.wait_for(calls.Watch)
    gc.collect()
    letter, event = mail_calls.MessageItem(NodeId("b", 1), "", b""), calls.EventItem(2, 0.0, "Paused", Raw(encode({"seconds": 1.0})))
    agent.view = view(2)
    items = ((opened, letter), (watch, event))
    agent.say_bytes(opened, b"".join(framed(encode(calls.Pushed(call.serial, Raw(encode(item))))) for call, item in items))
    agent.wait_for(calls.Close)
    agent.wait_for(calls.Look, 2)
    serials = [call.serial for call in agent.asked]
    assert serials == sorted(serials)
    client.run(group.leave)


def test_an_agent_that_is_lost_twice_is_looked_for_once(agent: FakeAgent, client: Spelling) -> None:
    """It is found again, and gone before all streams are open again: one search goes on, not two."""
    group = client.join(agent=agent.path, reconnect=True)
    stream = client.run(group.messages)
    agent.wait_for(mail_calls.Messages)

    def hang_up(call: mail_calls.Messages) -> object:
        agent.answers[mail_calls.Messages] = None
        agent.session_of(call).close()
        return SILENCE

    agent.answers[mail_calls.Messages] = hang_up
    agent.session_of(agent.wait_for(calls.Watch)).close()
    opened = agent.wait_for(mail_calls.Messages, 3)
    time.sleep(BUSY)
    assert len(agent.all(calls.Watch)) == 3
    assert len(agent.all(mail_calls.Messages)) == 3
    agent.push(opened, mail_calls.MessageItem(NodeId("b", 1), "", b"x"))
    assert client.next(stream).data == b"x"
    client.run(group.leave)


def test_a_stream_that_is_refused_again_ends_alone(agent: FakeAgent, client: Spelling) -> None:
    """H213: the agent that was found takes no more streams. The one it refuses ends with that error; the search is over all the same."""
    group = client.join(agent=agent.path, reconnect=True)
    streams = client.run(group.messages), client.run(group.messages, "t")
    agent.wait_for(mail_calls.Messages, 2)

    def refuse_own(call: mail_calls.Messages) -> object:
        return None if call.topic else ("Unavailable", "too many streams")

    agent.answers[mail_calls.Messages] = refuse_own
    agent.session_of(agent.wait_for(calls.Watch)).close()
    agent.wait_for(mail_calls.Messages, 4)
    with pytest.raises(Unavailable, match="too many streams"):
        client.next(streams[0])
    topic = next(call for call in reversed(agent.all(mail_calls.Messages)) if call.topic)
    agent.push(topic, mail_calls.MessageItem(NodeId("b", 1), "t", b"x"))
    assert client.next(streams[1]).data == b"x"
    time.sleep(BUSY)
    assert (len(agent.all(calls.Watch)), group.state) == (2, "member")
    client.run(group.leave)


def test_a_loss_is_noticed_or_refused(agent: FakeAgent) -> None:
    """Who asks to be told of a loss that has happened already is told at once, and not twice."""
    told: list[HoldfastError] = []
    connection = Connection(agent.path)
    connection.notice(told.append)
    agent.session_of(agent.wait_for(calls.Hello)).close()
    connection.join()
    assert [type(error) for error in told] == [AgentLost]
    with pytest.raises(AgentLost):
        connection.notice(told.append)
    assert len(told) == 1


def test_a_machine_without_room_is_asked_again(agent: FakeAgent, client: Spelling, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process can be started just now: that passes, and the search goes on."""
    group = client.join(agent=agent.path, reconnect=True)
    refused: list[OSError] = []
    reach = start.reach

    def full_once(*args: Any) -> start.Reached:
        if not refused:
            refused.append(BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"))
            raise refused[0]
        return reach(*args)

    monkeypatch.setattr(start, "reach", full_once)
    agent.session_of(agent.wait_for(calls.Watch)).close()
    agent.wait_for(calls.Watch, 2)
    assert len(refused) == 1
    client.run(group.leave)


def test_cancelled_twice_while_an_agent_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second cancellation does not wait, and yet no process stays behind."""
    may_end, ended = Event(), Event()

    class Started:
        shared = False
        end = staticmethod(ended.set)

    def slow(plan: Any, *args: Any) -> start.Reached:
        assert may_end.wait(DEADLINE)
        return start.Reached(plan, cast(start.Child, Started()))

    async def main() -> None:
        task = asyncio.ensure_future(reaching.reach(Plan("path", "g", ""), DEADLINE, lambda: False))
        for _ in range(2):
            await asyncio.sleep(0.01)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_end.set()

    monkeypatch.setattr(start, "reach", slow)
    asyncio.run(main())
    assert ended.is_set()


def test_who_leaves_while_another_thread_waits_speaks_of_no_keys(agent: FakeAgent) -> None:
    """Leaving gives back what is still asked for; the thread that waits for it hears of that and says nothing more."""
    agent.answers[calls.Acquire] = agent.answers[calls.Stopped] = None
    group = blocking.join(agent=agent.path)
    refused: list[HoldfastError] = []

    def wait() -> None:
        try:
            with group.lead("x"):
                pass
        except HoldfastError as error:
            refused.append(error)

    thread = Thread(target=wait)
    thread.start()
    agent.wait_for(calls.Acquire)
    time.sleep(BUSY)
    group.leave()
    thread.join(DEADLINE)
    assert [type(error) for error in refused] == [LeadershipLost]
    assert 0 not in [call.grant for call in agent.all(calls.Stopped)]
