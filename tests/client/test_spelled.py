"""Both spellings against an agent that follows a script: what is said on the socket, and what users see."""

from __future__ import annotations

import asyncio
import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

import holdfast.sync
from holdfast.agent.socket.handlers import KEY_BYTES_MAX as AGENT_KEY_BYTES_MAX
from holdfast.client.aio import group as aio
from holdfast.client.aio import holds as aio_holds
from holdfast.client.aio import streams
from holdfast.client.checks import KEY_BYTES_MAX
from holdfast.client.line import Line
from holdfast.client.sync import holds as sync_holds
from holdfast.client.wire import CALL_TIMEOUT
from holdfast.errors import (
    AcquireTimeout,
    AgentLost,
    ConfigError,
    Forked,
    JoinTimeout,
    LeadershipLost,
    NotAMember,
    Timeout,
    Tripped,
    Unavailable,
)
from holdfast.events import EventsLost, Joined, LeaderChanged, LeaderSuspected
from holdfast.features.mail import calls as mail_calls
from holdfast.features.mail.client_base import CAST_BYTES_MAX, SEND_BYTES_MAX, TOPIC_BYTES_MAX, Received
from holdfast.features.mail.protocol.inbox import PAYLOAD_BYTES_MAX as MAIL_BYTES_MAX
from holdfast.features.mail.streams import USER_TOPIC_BYTES_MAX
from holdfast.host import Grant, NodeId
from holdfast.kit.broadcast import PAYLOAD_BYTES_MAX as RUMOUR_BYTES_MAX
from holdfast.local import calls, ends
from holdfast.local.frame import framed
from holdfast.local.leaders import LeaderView
from holdfast.net.clock import now
from tests.client.fake_agent import SILENCE, FakeAgent, encode, member, view
from tests.client.spelling import Aio, Spelling
from tests.support.agents import until
from tests.support.calls import leader_lines

POLL_INTERVAL = 0.01
DEADLINE = 30.0


@pytest.fixture
def group(client: Spelling, agent: FakeAgent) -> Any:
    group = client.join("orders", agent=agent.path)
    yield group
    client.run(group.leave)


def acquired(client: Spelling, agent: FakeAgent, group: Any, *, seconds: float = 30.0) -> tuple[Any, calls.Acquire]:
    """Something held until then, and the call that asked for it."""
    agent.answers[calls.Acquire] = lambda call: agent_grants(agent, call, seconds)
    held = client.enter(client.run(group.lead, "scheduler", timeout=DEADLINE))
    return held, agent.wait_for(calls.Acquire)


def agent_grants(agent: FakeAgent, call: calls.Call, seconds: float) -> None:
    """The item goes out before the answer does, which no client minds."""
    agent.push(call, calls.GrantItem("granted", 7, now() + seconds, 3))


# Joining.


def test_attaching_says_hello_and_watches(agent: FakeAgent, group: Any) -> None:
    """What a client does first; reads are local from there on."""
    assert [type(call) for call in agent.asked[:3]] == [calls.Hello, calls.Hello, calls.Watch]
    asked = len(agent.asked)
    assert (group.name, group.me.name, group.members.names, group.state) == ("orders", "a", ("a",), "member")
    assert group.get("a") == group.me
    assert group.owner("key") == group.me
    assert len(agent.asked) == asked


@pytest.mark.parametrize(
    "spoil, options, text",
    [
        (lambda agent: setattr(agent, "skew", 5.0), {}, "deadlines need one clock"),
        (lambda agent: setattr(agent, "skew", -5.0), {}, "deadlines need one clock"),
        (lambda agent: setattr(agent, "version", 99), {}, "speaks version 99"),
        (lambda agent: setattr(agent, "group", "other"), {}, "is of group 'other'"),
        (lambda agent: None, {"name": "b"}, "is 'a' and has other clients"),
        (lambda agent: None, {"timeout": -1.0}, "timeout: -1.0; accepted is a positive number"),
    ],
    ids=["clock ahead", "clock behind", "version", "group", "name", "timeout"],
)
def test_an_agent_that_cannot_be_ours_is_refused(
    client: Spelling, agent: FakeAgent, spoil: Callable[[FakeAgent], None], options: dict[str, Any], text: str
) -> None:
    """F14: another clock, and whatever else was meant differently, is one clear error at the door."""
    spoil(agent)
    with pytest.raises(ConfigError, match=text):
        client.join("orders", agent=agent.path, **options)


def test_no_agent_there(client: Spelling, runtime: Path) -> None:
    """An address where nobody listens is AgentLost, and says what to do."""
    with pytest.raises(AgentLost, match="correct agent= or HOLDFAST_AGENT"):
        client.join("orders", agent=runtime / "nobody.sock")


def test_join_waits_for_membership(client: Spelling, agent: FakeAgent) -> None:
    """Join returns when the agent is a member, and says what it saw when time is up."""
    agent.view = replace(view(1, state="joining"), waits_for="no seed answers; it asks again within 3 s")
    with pytest.raises(JoinTimeout, match=r"the agent is 'joining' \(.*\): no seed answers; it asks again within 3 s\. Do the seeds run"):
        client.join("orders", agent=agent.path, timeout=timedelta(milliseconds=50))
    looks = len(agent.all(calls.Look))
    agent.answers[calls.Look] = lambda call: view(2) if len(agent.all(calls.Look)) > looks + 2 else agent.view
    group = client.join("orders", agent=agent.path, tags={"zone": "eu"})
    assert group.state == "member"
    assert agent.wait_for(calls.SetTags).tags == {"zone": "eu"}
    client.run(group.leave)


def test_an_agent_without_group_knocks(client: Spelling, agent: FakeAgent) -> None:
    """Seeds given to an agent that has left are knocked at."""
    agent.view = view(1, state="left")

    def knock(call: calls.Call) -> None:
        agent.view = view(2)

    agent.answers[calls.Join] = knock
    group = client.join("orders", agent=agent.path, seeds=["10.0.0.5:7946"])
    assert agent.wait_for(calls.Join).seeds == ("10.0.0.5:7946",)
    client.run(group.leave)


# Calls.


def test_calls_and_their_errors(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Foundation 5: what the agent refuses is raised by its class; the call on the socket is what was asked."""
    client.run(group.send, "b", b"hello", timeout=2)
    assert agent.wait_for(mail_calls.Send) == mail_calls.Send(agent.wait_for(mail_calls.Send).serial, "b", b"hello", 2.0)
    client.run(group.cast, b"all", topic="t")
    assert (agent.wait_for(mail_calls.Cast).topic, agent.wait_for(mail_calls.Cast).payload) == ("t", b"all")
    for name, kind in (("NotAMember", NotAMember), ("Timeout", Timeout), ("Unavailable", Unavailable)):
        agent.answers[mail_calls.Send] = (name, "because")
        with pytest.raises(kind, match="because"):
            client.run(group.send, "b", b"hello")
    agent.answers[calls.Info] = {"version": "1"}
    assert client.run(group.info) == {"version": "1"}


def test_tags_are_there_on_return(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """set_tags returns when group.me has them; None removes one, and a name may be no identifier."""
    agent.view = view(2, member("a", zone="eu"))
    client.run(group.set_tags, {"a.b": "1"}, zone="eu", old=None)
    assert agent.wait_for(calls.SetTags).tags == {"a.b": "1", "zone": "eu", "old": None}
    assert group.tags == {"zone": "eu"}
    assert agent.wait_for(calls.Look).since == 1


def test_a_look_names_the_version_that_is_here(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """H340: after a gap the agent is asked for what changed since, and the answer is enough."""
    change = calls.ViewChange(1, "member", None, (calls.Listed(member("b"), 0),))
    agent.answers[calls.Look] = lambda call: calls.GroupView(9, "member", member("a"), (), (), change=change)
    events = client.run(group.watch)
    looks = len(agent.all(calls.Look))
    agent.happened("EventsLost", 9, count=7)
    assert client.next(events) == EventsLost(7)
    assert agent.wait_for(calls.Look, looks + 1).since == 1
    assert group.members.names == ("a", "b")


def test_limits_are_checked_here(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Too large, of another type, without a topic: one clear error, and nothing is sent. The limits are those of the protocols."""
    assert (MAIL_BYTES_MAX, RUMOUR_BYTES_MAX, USER_TOPIC_BYTES_MAX) == (SEND_BYTES_MAX, CAST_BYTES_MAX, TOPIC_BYTES_MAX)
    assert AGENT_KEY_BYTES_MAX == KEY_BYTES_MAX
    asked = len(agent.asked)
    for function, args, options, text in (
        (group.send, ("b", bytes(SEND_BYTES_MAX + 1)), {}, "data: 32769 bytes; accepted are up to 32768"),
        (group.send, ("b", "text"), {}, "data: a str"),
        (group.send, ("b", b""), {"timeout": float("inf")}, "timeout: inf"),
        (group.send, ("b", b""), {"timeout": True}, "timeout: True"),
        (group.cast, (bytes(CAST_BYTES_MAX + 1),), {"topic": "t"}, "accepted are up to 16384"),
        (group.cast, (b"",), {"topic": ""}, "topic: ''"),
        (group.messages, ("x" * 63,), {}, "topic: 'xxx"),
        (group.owns, (bytes(KEY_BYTES_MAX + 1),), {}, "key: 4097 bytes"),
    ):
        with pytest.raises(ConfigError, match=text):
            client.run(function, *args, **options)
    assert len(agent.asked) == asked


def test_a_former_life_is_not_written_to(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """F1: lives are compared by both fields. A name reaches whoever has it."""
    with pytest.raises(NotAMember, match="that life is over; a#1 has its name"):
        client.run(group.send, NodeId("a", 0), b"")
    for peer in (NodeId("a", 1), group.me, "a"):
        client.run(group.send, peer, b"")
    assert [call.boot for call in agent.all(mail_calls.Send)] == [1, 1, 0]


def test_a_member_that_is_not_in_the_list_is_the_agents_to_find(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Views D31: the agent may know it from its view; the life that is meant goes along, because the list cannot be asked for it."""
    client.run(group.send, "elsewhere", b"")
    client.run(group.send, NodeId("elsewhere", 7), b"")
    assert [(call.name, call.boot) for call in agent.all(mail_calls.Send)] == [("elsewhere", 0), ("elsewhere", 7)]
    for boot in (0, -1, 1 << 53, 10**5000):
        with pytest.raises(NotAMember, match="no life has such a number"):
            client.run(group.send, NodeId("elsewhere", boot), b"")
    agent.answers[mail_calls.Send] = ("Tripped", "because")
    with pytest.raises(Tripped, match="because") as caught:
        client.run(group.send, "elsewhere", b"")
    assert isinstance(caught.value, Unavailable)


def test_the_silent_agent(agent: FakeAgent) -> None:
    """Every call has a limit; the late answer is nobody's, also if it is of another type."""
    with Line(agent.path) as line:
        agent.answers[calls.Look] = SILENCE
        with pytest.raises(Timeout, match=r"no answer within 0\.1 s"):
            line.call(calls.Look, timeout=0.1)
        late = agent.wait_for(calls.Look)
        agent.say(late, calls.Done(late.serial, Raw(b"\xc0")))
        agent.answers[calls.Owns] = calls.Owned(4, 9.0)
        assert line.call(calls.Owns, b"k") == calls.Owned(4, 9.0)


def test_an_answer_before_the_end_counts(agent: FakeAgent) -> None:
    """An agent that leaves answers and closes the connection; a client may read both at once. The answer stands, the next call fails."""
    with Line(agent.path) as line:

        def last(call: calls.Leave) -> object:
            closed, done = calls.Closed(0, "AgentLost", "the agent has ended"), calls.Done(call.serial, Raw(b"\xc0"))
            agent.say_bytes(call, framed(encode(done)) + framed(encode(closed)))
            return SILENCE

        agent.answers[calls.Leave] = last
        assert line.call(calls.Leave, True) is None
        with pytest.raises(AgentLost, match="the agent has ended"):
            line.call(calls.Look)


# Events and messages.


def test_watch(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Several watches read the same events, and the list is at least as new as what they read."""
    first, second = client.run(group.watch), client.run(group.watch)
    agent.view = view(2, member("a"), member("b"))
    agent.happened("Joined", 2, member=member("b"))
    for watch in (first, second):
        assert client.next(watch) == Joined(member("b"))
        assert group.members.names == ("a", "b")
    agent.happened("EventsLost", 2, count=9)
    assert client.next(first) == EventsLost(9)


def test_messages(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Own messages and those of a topic are streams of their own; a refusal is raised by the reader or at once."""
    own, topic = client.run(group.messages), client.run(group.messages, "t")
    until(lambda: len(agent.all(mail_calls.Messages)) == 2, "both are open")
    for opened in agent.all(mail_calls.Messages):
        agent.push(opened, mail_calls.MessageItem(NodeId("b", 1), opened.topic, b"x", 2))
    assert client.next(own) == Received(NodeId("b", 1), b"x", "", 2)
    assert client.next(topic) == Received(NodeId("b", 1), b"x", "t", 2)
    agent.answers[mail_calls.Messages] = ("Unavailable", "too many streams")
    with pytest.raises(Unavailable, match="too many streams"):
        client.next(client.run(group.messages))


def test_a_closed_stream_is_closed_at_the_agent(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """close() ends the iteration and tells the agent."""
    own = client.run(group.messages)
    opened = agent.wait_for(mail_calls.Messages)
    client.run(own.close)
    assert agent.wait_for(calls.Close).stream == opened.serial
    with pytest.raises((StopAsyncIteration, StopIteration)):
        client.next(own)


def test_leaving_ends_streams(client: Spelling, agent: FakeAgent) -> None:
    """Leaving is no error for those who read; what is called afterwards says so."""
    group = client.join("orders", agent=agent.path)
    watch, own = client.run(group.watch), client.run(group.messages)
    client.run(group.leave)
    client.run(group.leave)
    for stream in (watch, own):
        with pytest.raises((StopAsyncIteration, StopIteration)):
            client.next(stream)
    assert group.state == "left"
    with pytest.raises(NotAMember, match="has left it; join again"):
        client.run(group.info)
    assert agent.all(calls.Leave) == []  # The agent was there before us, and stays.


# Ownership.


def test_owns_is_cached_until_half_of_its_time(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """One question while more than half is left; then another. A no is asked again."""
    until_at = now() + 3600.0
    agent.answers[calls.Owns] = calls.Owned(9, until_at)
    until(lambda: client.run(group.owns, "key"), "an answer in time")
    asked = len(agent.all(calls.Owns))
    assert client.run(group.owns, b"key") == Grant("owner", "key", 9, until_at)
    assert len(agent.all(calls.Owns)) == asked
    agent.answers[calls.Owns] = calls.Owned(9, now() - 1.0)
    assert client.run(group.owns, "late") is None
    agent.answers[calls.Owns] = None
    assert client.run(group.owns, "other") is None
    assert client.run(group.owns, "other") is None
    until(lambda: len(agent.all(calls.Owns)) == asked + 3, "each was asked")


def test_who_says_nothing_has_not_said_yes(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """A silent agent costs a second, and is no permission."""
    agent.answers[calls.Owns] = SILENCE
    assert client.run(group.owns, "key") is None


def test_owns_is_awaited(agent: FakeAgent) -> None:
    """H170: with asyncio the loop turns while the agent thinks, and a forgotten ``await`` is not taken for a yes."""
    agent.answers[calls.Owns] = SILENCE

    async def ask() -> None:
        async with aio.join("orders", agent=agent.path) as group:
            asking = asyncio.create_task(group.owns("key"))
            turns = 0
            while not agent.all(calls.Owns):
                await asyncio.sleep(0)
                turns += 1
            assert turns > 1
            assert not asking.done()
            opened = agent.wait_for(calls.Owns)
            agent.say(opened, calls.Done(opened.serial, Raw(encode(calls.Owned(9, now() + 60.0)))))
            grant = await asking
            assert grant is not None
            assert (grant.token, grant.name) == (9, "key")
            assert await asyncio.wait_for(group.owns(b"key"), DEADLINE) == grant
            assert list(await asyncio.gather(group.owns("key"), group.owns("key"))) == [grant, grant]
            with pytest.raises(TypeError, match=r"accepted is `await group\.owns"):
                assert group.owns("other")  # a plain coroutine is true
            with pytest.raises(AttributeError):
                group.owns("key").token  # type: ignore[attr-defined]  # noqa: B018

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the last one is never awaited
        asyncio.run(ask())


def test_who_waits_is_told_that_the_agent_is_lost(client: Spelling, agent: FakeAgent) -> None:
    """10: nothing was held, so nothing is lost: a caller that waits for a leadership or a ticket hears ``AgentLost``."""
    group = client.join("orders", agent=agent.path)
    holdings = [client.run(group.lead, "x"), client.run(group.ticket, "gpu", of=1)]
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(client.enter, holding) for holding in holdings]
        agent.wait_for(calls.Acquire, 2)
        agent.push(agent.all(calls.Acquire)[-1], calls.GrantItem("queued", 0, 0.0, 3))
        until(lambda: any(holding.position == 3 for holding in holdings), "one has a place")
        agent.close()
        for each in waiting:
            with pytest.raises(AgentLost, match="it ended; join again"):
                each.result(DEADLINE)
    for holding in holdings:
        with pytest.raises(AgentLost, match="it ended; join again"):
            holding.check()
        assert "never held: agent " in repr(holding)
    client.run(group.leave)


def test_who_waits_is_told_that_the_agent_leaves(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """F14: a drain ends the stream of a client that waits, by name; nothing was lost."""
    agent.answers[calls.Acquire] = lambda call: agent.say(call, calls.Closed(call.serial, "Unavailable", ends.LEAVING))
    for asked in (lambda: group.lead("x"), lambda: group.ticket("gpu", of=1)):
        with pytest.raises(Unavailable, match="the agent is leaving its group"):
            client.enter(client.run(asked))


def test_one_way_to_end_has_one_text(client: Spelling, agent: FakeAgent) -> None:
    """The clock of this process, the agent's word and a lost agent: a deadline that passed reads the same."""
    group = client.join("orders", agent=agent.path)
    by_clock, _ = acquired(client, agent, group, seconds=0.5)
    assert client.lost(by_clock) == ends.LAPSED
    by_word, opened = acquired(client, agent, group)
    agent.push(opened, calls.GrantItem("lost", 7, 0.0, 0, ends.LAPSED))
    assert client.lost(by_word) == ends.LAPSED
    by_loss, _ = acquired(client, agent, group, seconds=0.5)
    agent.close()
    assert client.lost(by_loss) == ends.LAPSED
    for term in (by_clock, by_word, by_loss):
        with pytest.raises(LeadershipLost, match=f"lead 'scheduler': {ends.LAPSED}"):
            term.check()
    client.run(group.leave)


# What is held.


def test_holding(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Granted, extended, given back: leaving the block says Stopped, then closes the stream."""
    held, opened = acquired(client, agent, group)
    assert (held.valid, held.token, held.number, held.at_risk) == (True, 7, 3, False)
    later = now() + 99.0
    agent.push(opened, calls.GrantItem("at_risk", 7, 0.0, 0))
    until(lambda: held.at_risk, "at risk")
    agent.push(opened, calls.GrantItem("extended", 7, later, 0))
    until(lambda: held.deadline == later, "extended")
    assert held.valid
    client.exit(held)
    assert not held.valid
    assert agent.wait_for(calls.Stopped).grant == opened.serial
    assert agent.wait_for(calls.Close).stream == opened.serial
    assert client.lost(held) == "given back"


@pytest.mark.parametrize("what", ["stop", "lost"])
def test_lost_is_awaitable(client: Spelling, agent: FakeAgent, group: Any, what: str) -> None:
    """Told to stop, or lost by the protocol: `lost` completes with the reason, and the work is over."""
    held, opened = acquired(client, agent, group)
    agent.push(opened, calls.GrantItem(what, 7, 0.0, 0, "because"))
    assert client.lost(held) == "because"
    assert not held.valid
    with pytest.raises(LeadershipLost, match="lead 'scheduler': because"):
        held.check()
    client.exit(held)


def test_lost_by_the_own_clock(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Nobody says anything: the deadline is enough."""
    held, _ = acquired(client, agent, group, seconds=2.0)
    assert client.lost(held) == "its deadline passed before it was renewed"
    client.exit(held)


def test_a_grant_that_comes_too_late_is_none(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """A block is not entered under a deadline that has passed."""
    with pytest.raises(LeadershipLost, match="lead 'scheduler': its deadline passed before it was renewed"):
        acquired(client, agent, group, seconds=-1.0)


def test_not_granted_in_time(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """AcquireTimeout; the agent hears that nobody acts under it, should it be granted after all."""
    holding = client.run(group.lead, "scheduler", timeout=0.05, grace=2)
    with pytest.raises(AcquireTimeout, match=r"not granted within 0\.05 s"):
        client.enter(holding)
    opened = agent.wait_for(calls.Acquire)
    assert (opened.kind, opened.name, opened.options) == ("lead", "scheduler", {"grace": 2.0})
    assert agent.wait_for(calls.Stopped).grant == opened.serial
    assert agent.wait_for(calls.Close).stream == opened.serial


def test_the_limit_counts_from_the_call(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """H213: an agent that does not even answer does not lengthen it."""
    agent.answers[calls.Acquire] = SILENCE
    began_at = now()
    with pytest.raises(AcquireTimeout, match=r"not granted within 0\.05 s"):
        client.enter(client.run(group.lead, "scheduler", timeout=0.05))
    assert now() - began_at < CALL_TIMEOUT
    assert agent.wait_for(calls.Stopped).grant == agent.wait_for(calls.Acquire).serial


def test_an_agent_that_does_not_answer_is_not_waited_for(
    client: Spelling, agent: FakeAgent, group: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H213: without a limit of the caller, the agent has that of every call to take the question; then it may take its time."""
    limit = 1.0  # an answer of the agent that does answer takes far less, on a busy machine too
    for module in (aio_holds, sync_holds):
        monkeypatch.setattr(module, "CALL_TIMEOUT", limit)
    agent.answers[calls.Acquire] = SILENCE
    with pytest.raises(Timeout, match=r"no answer within 1 s"):
        client.enter(client.run(group.lead, "scheduler"))
    agent.answers[calls.Acquire] = None
    with pytest.raises(AcquireTimeout, match=r"not granted within 1\.2 s"):
        client.enter(client.run(group.lead, "scheduler", timeout=1.2 * limit))


def test_resign(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """A hand-over by will: the term is over here before the agent is told, and the end of the block has nothing left to say."""
    term, opened = acquired(client, agent, group)
    term.check()
    assert group.leader("scheduler") == (group.me.id, 7, group.me, "seats", "active")  # before any news of it
    assert 0 < term.left <= 30
    client.run(term.resign)
    assert group.leader("scheduler") is None
    assert (term.valid, term.left, client.lost(term)) == (False, 0.0, "given back")
    assert agent.wait_for(calls.Stopped).grant == opened.serial
    client.exit(term)
    assert len(agent.all(calls.Stopped)) == 1


@pytest.mark.parametrize("name, grace", [("", 0.0), (5, 0.0), ("x", -1.0), ("x", float("inf")), ("x", True), ("x", "long")])
def test_what_cannot_be_led(client: Spelling, agent: FakeAgent, group: Any, name: Any, grace: Any) -> None:
    """Bad input is one clear error, and nothing is sent."""
    with pytest.raises(ConfigError, match="accepted"):
        client.run(group.lead, name, grace=grace)
    assert agent.all(calls.Acquire) == []


def test_leader_is_a_local_read(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """PRODUCT: it never waits, and is at least as new as the event that was read."""
    watch = client.run(group.watch)
    assert (group.leader("scheduler"), group.leaders) == (None, {})
    lines = (LeaderView("gone", None, 4, 1.0), LeaderView("scheduler", NodeId("a", 1), 9, 1.0))
    agent.view = replace(view(2), lines=leader_lines(*lines, LeaderView("unlisted", NodeId("z", 3), 5, 1.0)))
    agent.happened("LeaderChanged", 2, name="scheduler", leader=("a", 1), token=9)
    assert client.next(watch) == LeaderChanged("scheduler", NodeId("a", 1), 9)
    leader = group.leader("scheduler")
    assert (leader.name, leader.id, leader.token, leader.member) == ("a", NodeId("a", 1), 9, group.me)
    assert group.leader("unlisted") == (NodeId("z", 3), 5, None, "seats", "active")
    assert (group.leader("gone"), list(group.leaders)) == (None, ["scheduler", "unlisted"])


def test_a_suspicion_of_a_leader_is_news(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """Foundation 5, H138: it is read in both spellings, and changes nothing about who leads."""
    agent.view = replace(view(2), lines=leader_lines(LeaderView("scheduler", NodeId("a", 1), 9, 1.0)))
    watch = client.run(group.watch)
    for cleared in (False, True):
        agent.happened("LeaderSuspected", 2, name="scheduler", leader=("a", 1), token=9, cleared=cleared)
        assert client.next(watch) == LeaderSuspected("scheduler", NodeId("a", 1), 9, cleared=cleared)
        assert group.leader("scheduler").id == NodeId("a", 1)


def test_refused(client: Spelling, agent: FakeAgent, group: Any) -> None:
    """A kind the agent does not have is refused by its class."""
    agent.answers[calls.Acquire] = ("Unavailable", "no such kind")
    with pytest.raises(Unavailable, match="no such kind"):
        client.enter(client.run(group.lead, "x"))


def test_leaving_gives_back_what_is_held(client: Spelling, agent: FakeAgent) -> None:
    """Leave says Stopped for everything that is still held."""
    group = client.join("orders", agent=agent.path)
    held, opened = acquired(client, agent, group)
    client.run(group.leave)
    assert agent.wait_for(calls.Stopped).grant == opened.serial
    assert not held.valid


# The agent goes.


def test_agent_lost(client: Spelling, agent: FakeAgent) -> None:
    """Everything open ends with AgentLost; what was published stands until its deadline."""
    group = client.join("orders", agent=agent.path)
    watch, own = client.run(group.watch), client.run(group.messages)
    held, _ = acquired(client, agent, group)
    until(lambda: agent.all(mail_calls.Messages), "open")
    agent.close()
    for stream in (watch, own):
        with pytest.raises(AgentLost, match="it ended; join again"):
            client.next(stream)
    until(lambda: group.state == "lost", "the state says so")
    for function, args in ((group.info, ()), (group.watch, ()), (group.messages, ()), (group.owns, ("k",)), (group.send, ("b", b""))):
        with pytest.raises(AgentLost):
            client.run(function, *args)
    assert group.members.names == ("a",)
    assert (held.valid, held.at_risk) == (True, True)
    client.exit(held)
    client.run(group.leave)


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\0\0\0\1\xc1", b"\0\0\0\2\x91\x63"], ids=["too long", "no msgpack", "unknown tag"])
def test_another_language_is_agent_lost(client: Spelling, agent: FakeAgent, data: bytes) -> None:
    """Bytes that are no frame of ours end the connection, as AgentLost."""
    group = client.join("orders", agent=agent.path)
    watch = client.run(group.watch)
    agent.say_bytes(agent.wait_for(calls.Watch), data)
    with pytest.raises(AgentLost, match="another language"):
        client.next(watch)
    client.run(group.leave)


def test_reconnect(client: Spelling, runtime: Path) -> None:
    """With reconnect=True the client attaches again: members are the new agent's, watchers read EventsLost(0), messages go on and say that
    some may be missing, and a grant is not revived."""
    with FakeAgent(runtime / "r.sock") as first:
        group = client.join("orders", agent=first.path, reconnect=True)
        watch, own = client.run(group.watch), client.run(group.messages, "t")
        held, _ = acquired(client, first, group, seconds=3.0)
        until(lambda: first.all(mail_calls.Messages), "open")
    until(lambda: group.state == "lost", "lost")
    with pytest.raises(AgentLost):
        client.run(group.info)
    with FakeAgent(runtime / "r.sock", view=view(1, member("a"), member("c"))) as second:
        assert client.next(watch) == EventsLost(0)
        assert group.members.names == ("a", "c")
        again = second.wait_for(mail_calls.Messages)
        second.push(again, mail_calls.MessageItem(NodeId("c", 1), "t", b"on"))
        assert client.next(own) == Received(NodeId("c", 1), b"on", "t", 1)
        second.answers[calls.Owns] = calls.Owned(1, now() + 60.0)
        until(lambda: client.run(group.owns, "k"), "the new agent is asked")
        assert second.all(calls.Acquire) == []
        assert client.lost(held) == "its deadline passed before it was renewed"
        client.exit(held)
        assert second.all(calls.Stopped) == []
        client.run(group.leave)


def test_leaving_while_reconnecting(client: Spelling, runtime: Path) -> None:
    """Leave does not wait for an agent that never comes."""
    with FakeAgent(runtime / "r.sock") as first:
        group = client.join("orders", agent=first.path, reconnect=True)
        watch = client.run(group.watch)
    until(lambda: group.state == "lost", "lost")
    client.run(group.leave)
    with pytest.raises((StopAsyncIteration, StopIteration)):
        client.next(watch)


# Another process.


def test_forked(client: Spelling, group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call under another pid says: join again in this process."""
    watch = client.run(group.watch)
    with monkeypatch.context() as patched:
        patched.setattr("os.getpid", lambda: -1)
        for function, args in (
            (lambda: group.members, ()), (lambda: group.me, ()), (lambda: group.state, ()), (group.get, ("a",)), (group.owner, ("k",)),
            (group.owns, ("k",)), (group.watch, ()), (group.messages, ()), (group.send, ("b", b"")), (group.set_tags, ()), (group.info, ()),
            (group.leave, ()), (group.lead, ("x",)), (lambda: group.leader("x"), ()),
            (watch.__anext__ if isinstance(client, Aio) else watch.next, ()),
        ):  # fmt: skip
            with pytest.raises(Forked, match="join again in this process"):
                client.run(function, *args)


def test_a_forked_child_gives_nothing_back(client: Spelling, agent: FakeAgent, group: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """F14: "stopped" is the word of the process that asked. A child that says it is told to join itself, and its parent goes on."""
    term, _ = acquired(client, agent, group)
    with monkeypatch.context() as patched:
        patched.setattr("os.getpid", lambda: -1)
        for give_back in (term.release, term.resign):
            with pytest.raises(Forked, match="join again in this process"):
                client.run(give_back)
    assert term.valid
    assert agent.all(calls.Stopped) == []
    client.exit(term)


# One API in two spellings.


def public(kind: type) -> dict[str, Any]:
    return {name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")}


def documented(kind: Any) -> Iterator[tuple[str, str]]:
    """Docstrings of ours: of a class or function, and of what a program may call on it."""
    yield kind.__name__, inspect.getdoc(kind) or ""
    if isinstance(kind, type):
        for name, value in public(kind).items():
            if getattr(inspect.unwrap(getattr(value, "fget", value)), "__module__", "").startswith("holdfast"):
                yield f"{kind.__name__}.{name}", inspect.getdoc(value) or ""


def test_both_spellings_are_one() -> None:
    """STYLE 4: the same names and arguments. That the rest is the same follows from the one source (H213)."""
    for name in ("Group", "Holding", "Term", "Ticket", "Pool"):
        one, other = getattr(holdfast, name), getattr(holdfast.sync, name)
        assert public(one).keys() == public(other).keys()
        for method, value in public(one).items():
            if inspect.isfunction(value):
                assert [*inspect.signature(value).parameters] == [*inspect.signature(public(other)[method]).parameters], method
    assert [*inspect.signature(holdfast.join).parameters] == [*inspect.signature(holdfast.sync.join).parameters]
    assert set(public(holdfast.sync.Watch)) - set(public(streams.Watch)) == {"next"}
    assert all(hasattr(holdfast.sync, name) for name in holdfast.sync.__all__)


def test_docstrings_are_of_their_spelling() -> None:
    """STYLE 4: what a thread reads about its client has no word of ``await``; every method of a group has one."""
    told = dict(pair for name in holdfast.sync.__all__ for pair in documented(getattr(holdfast.sync, name)))
    assert [name for name, text in told.items() if re.search(r"\bawait\b|\basync with\b|\basync for\b|holdfast\.join", text)] == []
    assert "``with holdfast.sync.join(" in told["join"]
    assert told["Group"].endswith("Made by ``holdfast.sync.join``; any thread may use it.")
    assert "``term.lost.wait()`` returns when the term is over" in told["Term"]
    assert "``await term.lost`` returns when the term is over" in (holdfast.Term.__doc__ or "")
    assert [name for name, text in documented(holdfast.Group) if not text or not told[name]] == []
