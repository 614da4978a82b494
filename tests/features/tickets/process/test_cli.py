"""``holdfast ticket``, against an agent by script: what it asks, what it prints, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Timer

import pytest

from holdfast.features.tickets import calls as ticket_calls
from holdfast.features.tickets.calls import PoolView, TicketHolder
from holdfast.host import NodeId
from holdfast.local import calls
from tests.cli.command import Run
from tests.cli.fake_agent import Client, FakeAgent

POOL = PoolView("gpu", 3, (TicketHolder(1, NodeId("web-3", 17), 9, {"host": "n7"}),), True)
LOCK = PoolView("lock", 1, (), True)
WAIT = 60.0


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path / "agent.sock") as agent:
        agent.answers[ticket_calls.Tickets] = (POOL, LOCK)
        monkeypatch.setenv("HOLDFAST_AGENT", agent.path)
        yield agent


def test_ls(holdfast: Run, agent: FakeAgent) -> None:
    """One line per ticket that is held; the verb may be left out."""
    ended = holdfast("ticket")
    assert (ended.code, [line.split() for line in ended.out.splitlines()][1:]) == (0, [["gpu", "1", "of", "3", "web-3#17", "9", "host=n7"]])
    assert holdfast("ticket", "ls", "gpu").out == ended.out
    assert [call.pool for call in agent.asked(ticket_calls.Tickets)] == ["", "gpu"]
    agent.answers[ticket_calls.Tickets] = (LOCK,)
    assert (holdfast("ticket", "ls").code, holdfast("ticket", "ls").out) == (1, "")


def test_ls_as_json(holdfast: Run, agent: FakeAgent) -> None:
    """The shape in docs/cli.md; every ticket has its line. `--read` asks for what a majority says."""
    agent.answers[ticket_calls.ReadTickets] = PoolView("gpu", 2, POOL.holders, False)
    free: dict[str, object] = {"number": 0, "holder": None, "token": None, "metadata": {}}
    held = {"number": 1, "holder": {"name": "web-3", "boot": 17}, "token": 9, "metadata": {"host": "n7"}}
    assert holdfast("ticket", "ls", "gpu", "--read", "--json").json == {
        "pools": [{"pool": "gpu", "of": 2, "is_hint": False, "tickets": [free, held]}]
    }


def test_acquire_holds_until_stdin_is_closed(agent: FakeAgent) -> None:
    """9: a ticket belongs to a process; it says which one it is, and gives it back when stdin ends."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, number=2, seconds=WAIT)
    command = [sys.executable, "-m", "holdfast", "ticket", "acquire", "gpu:8", "--json"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == {"pool": "gpu", "number": 2, "token": 7}
        assert agent.asked(calls.Stopped) == []
        process.stdin.close()
        assert process.wait(WAIT) == 0
    (call,) = agent.asked(calls.Acquire)
    assert (call.kind, call.name, call.options) == ("ticket", "gpu", {"of": 8})
    assert [each.grant for each in agent.asked(calls.Stopped)] == [call.serial]


def test_acquire_says_when_it_is_lost(agent: FakeAgent) -> None:
    """Exit code 124, as run has it."""

    def grant_and_take(client: Client, call: calls.Acquire) -> None:
        client.grant(call, seconds=WAIT)
        Timer(0.1, client.tell, (call.serial, "lost", "because")).start()

    agent.on[calls.Acquire] = grant_and_take
    command = [sys.executable, "-m", "holdfast", "ticket", "acquire", "gpu:8"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(WAIT) == 124
        assert process.stdout is not None
        assert process.stdout.read() == b"0 7\n"


def test_acquire_around_a_command(holdfast: Run, agent: FakeAgent) -> None:
    """With a command it is `run --ticket`, with its exit codes."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=WAIT)
    assert holdfast("ticket", "acquire", "gpu:8", "--", "sh", "-c", "exit 3").code == 3
    assert agent.asked(calls.Acquire)[0].options == {"of": 8}


def test_acquire_in_vain(holdfast: Run, agent: FakeAgent) -> None:
    """4: nothing was free in time, with the position in the queue (run: 125)."""
    holdfast("ticket", "acquire", "gpu:8", "--timeout", "0.1").refused(4, "none was free in time", "holdfast ticket ls gpu")
    agent.on[calls.Acquire] = lambda client, call: client.queue(call, 3)
    holdfast("ticket", "acquire", "gpu:8", "--timeout", "0.3").refused(4, "none was free in time, after waiting at position 3;")
    holdfast("run", "--ticket", "gpu:8", "--timeout", "0.3", "--", "true").refused(125, "not held within 0.3 s; it waited at position 3")


@pytest.mark.parametrize(
    "error, code",
    [("TicketCountMismatch", 2), ("Unavailable", 3), ("HoldfastError", 3), ("OfAnotherVersion", 3), ("TicketLost", 1), ("", 1)],
)
def test_acquire_is_refused(holdfast: Run, agent: FakeAgent, error: str, code: int) -> None:
    """The agent's error decides the exit code, as the table in docs/cli.md has it; nothing is asked for again."""
    agent.on[calls.Acquire] = lambda client, call: client.tell(call.serial, "lost", "because", error)
    holdfast("ticket", "acquire", "gpu:8").refused(code, "ticket 'gpu': because")
    assert len(agent.asked(calls.Acquire)) == 1


def test_release_and_abandon(holdfast: Run, agent: FakeAgent) -> None:
    """Both ask the agent; nobody gives up a ticket without having said that its holder is dead."""
    assert holdfast("ticket", "release", "gpu", "1").code == 0
    holdfast("ticket", "abandon", "gpu", "1").refused(2, "--holder-is-dead: is not given", "two will")
    assert agent.asked(ticket_calls.AbandonTicket) == []
    assert holdfast("ticket", "abandon", "gpu", "1", "--holder-is-dead").code == 0
    asked = [agent.asked(ticket_calls.StopTicket)[0], agent.asked(ticket_calls.AbandonTicket)[0]]
    assert [(call.pool, call.number) for call in asked] == [("gpu", 1), ("gpu", 1)]


@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize(
    "words, told",
    [
        (("ls", "--read"), "--read: needs a POOL"),
        (("acquire", "gpu"), "'gpu': accepted is POOL:N"),
        (("acquire", "gpu:8", "--timeout", "0"), "--timeout 0"),
    ],
)
def test_bad_words(holdfast: Run, words: tuple[str, ...], told: str) -> None:
    """Exit code 2 and what is accepted."""
    holdfast("ticket", *words).refused(2, told)
