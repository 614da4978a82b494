"""Calls that reach other agents: messages, keys, farewells, joins.  docs/local-api.md."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.features.farewell import calls as farewell_calls
from holdfast.features.keys import calls as key_calls
from holdfast.features.mail import calls as mail_calls
from holdfast.features.mail.calls import MessageItem
from holdfast.local import calls
from holdfast.local.calls import EventItem
from holdfast.local.news import event_of
from tests.agent.live import Live
from tests.agent.raw_client import RawClient, Sent
from tests.support.agents import AgentProcess, Fleet, until

WAITS_FOR = "(it is joining now|no seed answers; it asks again within [0-9]+ s)$"  # by how far it has come


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """Two agents in one group."""
    with Fleet(tmp_path_factory.mktemp("group")) as it:
        it.group(2)
        yield it


@pytest.fixture
def pair(fleet: Fleet) -> tuple[AgentProcess, AgentProcess]:
    return fleet.agents[0], fleet.agents[1]


def test_letters(pair: tuple[AgentProcess, AgentProcess]) -> None:
    """Send: answered when the other agent has queued it for its client; each letter once, in order."""
    with RawClient(pair[0].socket) as a, RawClient(pair[1].socket) as b:
        stream = b.say(mail_calls.Messages)
        b.answer(mail_calls.Messages, stream)
        for number in range(20):
            a.ask(mail_calls.Send, "a1", f"{number}".encode() * 1500, 20.0)
        items = [b.item(stream, MessageItem) for _ in range(20)]
        assert [item.payload for item in items] == [f"{number}".encode() * 1500 for number in range(20)]
        assert {(item.sender.name, item.topic, item.lost) for item in items} == {("a0", "", 0)}
        b.ask(calls.Close, stream)
        with pytest.raises(Sent, match="listens"):
            a.ask(mail_calls.Send, "a1", b"nobody hears it", 20.0)


def test_rumours(pair: tuple[AgentProcess, AgentProcess]) -> None:
    """Cast: everybody who listens to the topic hears it; machines' own topics cannot be reached."""
    with RawClient(pair[0].socket) as a, RawClient(pair[1].socket) as b:
        stream = b.say(mail_calls.Messages, "ring")
        b.answer(mail_calls.Messages, stream)
        until(lambda: any("topic:u:ring" in member.rows for member in a.ask(calls.Look).members), "the other one knows who listens")
        a.ask(mail_calls.Cast, "ring", b"news")
        assert b.item(stream, MessageItem).payload == b"news"


def test_keys(pair: tuple[AgentProcess, AgentProcess]) -> None:
    """Keys: one report per member; bad input names the field."""
    with RawClient(pair[0].socket) as client:
        reports = client.ask(key_calls.Keys, "list", "", 20.0)
        assert [(report.member, report.done, len(report.keys)) for report in reports] == [("a0", True, 1), ("a1", True, 1)]
        for action, key, field in (("melt", "", "action"), ("use", "nonsense", "key"), ("list", "", "timeout")):
            with pytest.raises(Sent, match=field) as refused:
                client.ask(key_calls.Keys, action, key, float("inf") if field == "timeout" else 5.0)
            assert refused.value.error == "ConfigError"


def test_join_and_leave(fleet: Fleet, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """Join is answered when it is a member, or with JoinTimeout, which says what is waited for (H164); Leave when it is out; the agent
    stays if it is not told to end."""
    third = fleet.start(name="third")
    with RawClient(third.socket) as client:
        watch = client.say(calls.Watch)
        client.answer(calls.Watch, watch)
        with pytest.raises(Sent) as refused:
            client.ask(calls.Join, ("127.0.0.1:9",), 0.2)
        assert refused.value.error == "JoinTimeout"
        assert re.search(rf"the agent goes on knocking at '127.0.0.1:9'; {WAITS_FOR}", refused.value.text), refused.value.text
        assert re.match(WAITS_FOR, client.ask(calls.Look).waits_for)
        client.ask(calls.Join, (pair[0].address,), 60.0)
        assert {member.name for member in client.ask(calls.Look).members} >= {"third"}
        with pytest.raises(Sent, match="already"):
            client.ask(calls.Join, (pair[0].address,), 5.0)
        until(lambda: len(client.ask(calls.Look).members) == 3, "it knows both others")
        assert event_of(client.item(watch, EventItem)) is not None
        client.ask(calls.Leave, False)
        assert client.ask(calls.Look).state == "left"
        client.ask(calls.Leave, True)
        assert client.ending() is not None
    assert third.wait() == 0


def test_force_leave(fleet: Fleet, pair: tuple[AgentProcess, AgentProcess]) -> None:
    """ForceLeave: answered when the other one agreed; it drains, leaves and ends by itself."""
    fleet.start(name="guest", seeds=[pair[0].address])
    with RawClient(pair[0].socket) as client:
        with pytest.raises(Sent, match="no member") as refused:
            client.ask(farewell_calls.ForceLeave, "nobody", 5.0)
        assert refused.value.error == "NotAMember"
        until(lambda: "guest" in {member.name for member in client.ask(calls.Look).members}, "it is here")
        client.ask(farewell_calls.ForceLeave, "guest", 30.0)
        until(lambda: "guest" not in {member.name for member in client.ask(calls.Look).members}, "it is gone")


def test_doctor(pair: tuple[AgentProcess, AgentProcess]) -> None:
    """Doctor: findings within the time that was given."""
    with RawClient(pair[0].socket) as client:
        findings = client.ask(calls.Doctor, 1.0)
        assert all(finding.code and finding.text for finding in findings)


def test_a_join_is_answered_once_and_forgotten(tmp_path: Path) -> None:
    """Refused at once is not refused again when its time is over, and who waited in vain is not kept."""
    with Live(tmp_path) as live, RawClient(live.path) as client:
        serials = [client.say(calls.Join, (seed,), 0.05) for seed in ("no address", "127.0.0.1:9")]
        answers = [client.next() for _ in serials]
        time.sleep(0.2)
        answers.append((client.say(calls.Look), client.next())[1])
        assert [type(answer) for answer in answers] == [calls.Refused, calls.Refused, calls.Done]
        assert [answer.serial for answer in answers] == [*serials, serials[-1] + 1]
        assert not live.call(lambda: live.agent._joining)
