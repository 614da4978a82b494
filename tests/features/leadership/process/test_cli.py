"""``holdfast leader``, against an agent by script: what it prints for people and for programs, and with which exit code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Raw
from msgspec.structs import replace

from holdfast.host import NodeId
from holdfast.local import calls
from holdfast.local.leaders import LeaderView
from tests.cli.command import Run
from tests.cli.fake_agent import GROUP_VIEW, Client, FakeAgent
from tests.support.calls import leader_lines

LEADERS = (LeaderView("mail", None, 6, 1767605400.0), LeaderView("sched", NodeId("web-3", 17), 9, 1767605401.5))
LED = replace(GROUP_VIEW, lines=leader_lines(*LEADERS))


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path / "agent.sock") as agent:
        agent.answers[calls.Look] = LED
        agent.answers[calls.Info] = {}
        monkeypatch.setenv("HOLDFAST_AGENT", agent.path)
        monkeypatch.setenv("TZ", "UTC")
        yield agent


@pytest.mark.usefixtures("agent")
def test_all_of_them(holdfast: Run) -> None:
    """One line for each name, also where nobody leads any more."""
    ended = holdfast("leader")
    assert ended.code == 0
    lines = [line.split() for line in ended.out.splitlines()]
    assert [line[:3] for line in lines] == [["NAME", "LEADER", "TOKEN"], ["mail", "none", "6"], ["sched", "web-3#17", "9"]]


@pytest.mark.usefixtures("agent")
def test_one_name_as_json(holdfast: Run) -> None:
    """The shape in docs/cli.md; exit code 1 if nobody leads it, or nobody ever did."""
    assert holdfast("leader", "sched", "--json").json == {
        "leaders": [
            {
                "name": "sched",
                "leader": {"name": "web-3", "boot": 17},
                "token": 9,
                "since": 1767605401.5,
                "by": "seats",
                "state": "active",
            }
        ]
    }
    mail = holdfast("leader", "mail", "--json")
    assert (mail.code, mail.json["leaders"][0]["leader"]) == (1, None)
    never = holdfast("leader", "never", "--json")
    assert (never.code, never.json) == (1, {"leaders": []})
    assert (holdfast("leader", "never").out, holdfast("leader", "never").code) == ("", 1)


def test_wait(holdfast: Run, agent: FakeAgent) -> None:
    """It ends when there is a leader. The event says who (H204), and the list is not asked for."""

    def watch(client: Client, call: calls.Watch) -> None:
        client.done(call.serial, GROUP_VIEW)
        client.push(call.serial, calls.EventItem(1, 0.0, "Paused", Raw(b"\x81\xa7seconds\x01")))
        change = calls.ViewChange(1, "member", lines=LED.lines)
        client.push(call.serial, calls.EventItem(2, 0.0, "Paused", Raw(b"\x81\xa7seconds\x01"), change))

    agent.on[calls.Watch] = watch
    assert holdfast("leader", "sched", "--wait").out.splitlines()[1].split()[:3] == ["sched", "web-3#17", "9"]
    assert agent.asked(calls.Look) == []


def test_wait_after_a_gap(holdfast: Run, agent: FakeAgent) -> None:
    """Where events were lost the list is asked for, once."""

    def watch(client: Client, call: calls.Watch) -> None:
        client.done(call.serial, GROUP_VIEW)
        client.push(call.serial, calls.EventItem(3, 0.0, "EventsLost", Raw(b"\x81\xa5count\x01")))

    agent.on[calls.Watch] = watch
    agent.answers[calls.Look] = replace(LED, version=3)
    assert holdfast("leader", "sched", "--wait").out.splitlines()[1].split()[:3] == ["sched", "web-3#17", "9"]
    assert len(agent.asked(calls.Look)) == 1


def test_wait_in_vain(holdfast: Run, agent: FakeAgent) -> None:
    """Exit code 4, and what may be the reason."""
    agent.answers[calls.Look] = GROUP_VIEW
    holdfast("leader", "sched", "--wait", "--timeout", "0.1").refused(4, "'sched' has no leader yet", "holdfast seats")


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    "words, told",
    [
        (("--wait",), "--wait: needs a NAME"),
        (("x", "--timeout", "1"), "--timeout: accepted together with --wait"),
        (("x", "--wait", "--timeout", "0"), "--timeout 0: accepted are seconds above 0"),
    ],
)
def test_bad_words(holdfast: Run, words: tuple[str, ...], told: str) -> None:
    """Exit code 2 and what is accepted."""
    holdfast("leader", *words).refused(2, told)
