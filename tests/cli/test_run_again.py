"""``holdfast run`` that waits: a hold that nobody took up, and agents that are not there, or not any more (F9, F14, H146, H147).

The agent is a script, so that it grants, dies and refuses when a test says so.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.cli.run.attempts import AGAIN_INTERVAL
from holdfast.local import calls
from holdfast.net import clock
from tests.cli.command import Run
from tests.cli.fake_agent import Client, FakeAgent
from tests.cli.recorder import alive
from tests.support.agents import until

LENGTH = 50.0  # seconds of a hold that is to outlive the test
BRIEF = 0.4  # of one that is over before a stopped process reads of it
ONE_LINE = 1  # said once, however often it was tried
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.sock"


@pytest.fixture
def agent(path: Path) -> Iterator[FakeAgent]:
    with FakeAgent(path) as agent:
        agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=LENGTH)
        yield agent


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*flags: str, command: tuple[str, ...] = ("sh", "-c", "exit 9"), hold: bool = True) -> subprocess.Popen[str]:
        held = ("--hold", "fake:x") if hold else ()
        words = [sys.executable, "-m", "holdfast", "run", "--agent", str(path), *held, *flags, "--", *command]
        started.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield run
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    err = process.communicate(timeout=60)[1]
    return process.returncode, err


def until_runs(pid: int, name: str) -> None:
    """It is the command; before, it is a copy of `holdfast run`, whose words name the command too."""
    until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] == name.encode(), "it runs")


def successor(path: Path) -> FakeAgent:
    """The next agent on the same socket, which grants at once."""
    path.unlink()
    agent = FakeAgent(path)
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=LENGTH)
    return agent


@pytest.mark.parametrize("flags", [(), ("--restart",)], ids=["once", "restart"])
def test_a_first_deadline_that_passed_unread_is_asked_for_again(agent: FakeAgent, start: Start, flags: tuple[str, ...]) -> None:
    """H146: granted while it was stopped, read too late. It is given back, closed, and asked for again on the same connection; extensions
    that came meanwhile revive nothing (F9). It is said why."""
    agent.on[calls.Acquire] = lambda client, call: client.done(call.serial)
    process = start(*flags)
    _, first = agent.wait_for(calls.Acquire)
    process.send_signal(signal.SIGSTOP)
    agent.clients[0].grant(first, seconds=BRIEF)
    until(lambda: clock.now() > agent.clients[0].deadline, "the deadline has passed")
    agent.clients[0].extend(first.serial, LENGTH)
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=LENGTH, token=8)
    process.send_signal(signal.SIGCONT)
    code, err = ended(process)
    assert (code, len(agent.clients)) == (9, 1)
    assert "its hold ended before sh began, and is asked for again: its first deadline passed before its client took it up" in err
    assert agent.asked(calls.Stopped)[0].grant == first.serial
    assert [call.stream for call in agent.asked(calls.Close)] == [first.serial]
    assert [(call.grant, call.token) for call in agent.asked(calls.Confirm)] == [(agent.asked(calls.Acquire)[1].serial, 8)]


def test_what_is_granted_is_confirmed_before_the_command_begins(agent: FakeAgent, start: Start) -> None:
    """H146: the agent hears that the hold was taken up, with its token."""
    assert ended(start())[0] == 9
    kinds = [type(call) for _, call in agent.heard]
    assert kinds.index(calls.Confirm) < kinds.index(calls.Body)
    assert agent.asked(calls.Confirm) == [calls.Confirm(agent.asked(calls.Confirm)[0].serial, agent.asked(calls.Acquire)[0].serial, 7)]


@pytest.mark.parametrize("flags", [(), ("--restart",)], ids=["once", "restart"])
def test_a_hold_that_is_lost_before_the_command_begins(agent: FakeAgent, start: Start, flags: tuple[str, ...]) -> None:
    """H147: between the grant and the start nothing was done under it. Nothing runs, and it is asked for again."""

    def lose_the_first(client: Client, call: calls.Body) -> None:
        if len(agent.asked(calls.Acquire)) == 1:
            client.tell(call.grant, "lost", "because")
        client.done(call.serial)

    agent.on[calls.Body] = lose_the_first
    code, err = ended(start(*flags))
    assert (code, len(agent.asked(calls.Acquire)), len(agent.clients)) == (9, 2, 1)
    assert "its hold ended before sh began, and is asked for again: because" in err


def test_a_refused_body_is_no_input_error(agent: FakeAgent, start: Start) -> None:
    """H147: the agent refuses the command's process, as one that has just died: nothing was executed, so it is asked for again."""

    def refuse_the_first(client: Client, call: calls.Body) -> None:
        if len(agent.asked(calls.Body)) == 1:
            client.refuse(call.serial, "ConfigError", "pid: is no process")
        else:
            client.done(call.serial)

    agent.on[calls.Body] = refuse_the_first
    code, err = ended(start())
    assert (code, len(agent.asked(calls.Acquire))) == (9, 2)
    assert "pid: is no process" in err


def test_a_late_reader_waits_for_the_extension(agent: FakeAgent, start: Start) -> None:
    """H146: who reads late that it holds something has little left of it. That is no short hold: the grace is measured by its length, and
    the command begins when the extension is there."""

    def grant_late(client: Client, call: calls.Acquire) -> None:
        client.done(call.serial)
        client.deadline = clock.now() + 3.0
        client.push(call.serial, calls.GrantItem("granted", 7, client.deadline, 0, length=20.0))

    agent.on[calls.Acquire] = grant_late
    agent.on[calls.Confirm] = lambda client, call: client.done(call.serial) or client.extend(call.grant, 20.0)  # type: ignore[func-returns-value]
    assert ended(start("--grace", "4"))[0] == 9


def test_restart_waits_for_an_agent_that_is_not_there_yet(path: Path, start: Start) -> None:
    """H147: from the first attempt on; it is said once what it waits for, however often it tries."""
    process = start("--restart")
    assert process.stderr is not None
    said, said_at = process.stderr.readline(), clock.now()
    assert said.startswith(f"holdfast: run: it goes on trying: no agent answers at {path}")
    path.touch()  # As a socket that is left of a dead one: several attempts meet it.
    until(lambda: clock.now() > said_at + 2.2 * AGAIN_INTERVAL, "it tried again, twice")
    with successor(path):
        assert ended(process) == (9, "")


def died(agent: FakeAgent) -> None:
    agent.die()


def drained(agent: FakeAgent) -> None:
    agent.clients[0].end(agent.asked(calls.Acquire)[0].serial, "Unavailable", "this agent is leaving its group")
    agent.die()


def sent_away(agent: FakeAgent) -> None:
    agent.clients[0].end(0, "Unavailable", "this client does not read")
    agent.die()


@pytest.mark.parametrize("end", [died, drained, sent_away])
def test_restart_outlives_the_agent_it_waits_at(agent: FakeAgent, path: Path, start: Start, end: Callable[[FakeAgent], None]) -> None:
    """H147: a standby is there when it is needed: an agent that was killed, drained or hung up is waited for, and asked again."""
    agent.on[calls.Acquire] = lambda client, call: client.done(call.serial)
    process = start("--restart")
    agent.wait_for(calls.Acquire)
    end(agent)
    assert process.stderr is not None
    assert "it goes on trying" in process.stderr.readline()
    with successor(path):
        assert ended(process)[0] == 9


@pytest.mark.parametrize("end", [died, drained])
def test_without_restart_it_ends_with_its_agent(agent: FakeAgent, start: Start, end: Callable[[FakeAgent], None]) -> None:
    """H147: 125, and whoever started it decides."""
    agent.on[calls.Acquire] = lambda client, call: client.done(call.serial)
    process = start()
    agent.wait_for(calls.Acquire)
    end(agent)
    assert ended(process)[0] == 125


@pytest.mark.parametrize("when", [calls.Acquire, calls.Confirm, calls.Body])
def test_restart_outlives_an_agent_that_dies_while_it_grants(agent: FakeAgent, path: Path, start: Start, when: type[calls.Call]) -> None:
    """H147: at every word on the way from the question to the start."""
    agent.on[when] = lambda client, call: agent.die()
    process = start("--restart")
    agent.wait_for(when)
    with successor(path) as next_one:
        assert ended(process)[0] == 9
        assert len(next_one.asked(calls.Acquire)) == 1


def test_restart_outlives_an_agent_that_does_not_answer(path: Path, start: Start) -> None:
    """H147: an agent that is stopped, or too busy, does not answer Hello in time."""
    with FakeAgent(path, silent=True):
        process = start("--restart")
        assert process.stderr is not None
        assert "Hello: no answer of the agent" in process.stderr.readline()
    with successor(path):
        assert ended(process)[0] == 9


def test_restart_outlives_an_agent_of_another_clock_or_version(path: Path, start: Start) -> None:
    """H147: what an agent refuses in its greeting is about this agent, not about the command line."""
    with FakeAgent(path) as odd:
        odd.on[calls.Hello] = lambda client, call: client.refuse(call.serial, "ConfigError", f"clock: the client reads {call.clock}")
        process = start("--restart")
        odd.wait_for(calls.Hello, 3)
    with successor(path):
        code, err = ended(process)
    assert code == 9
    assert err.count("clock: the client reads") == ONE_LINE  # with another reading each time


@pytest.mark.parametrize(
    "error,text", [("ConfigError", "of: 0; accepted is another number"), ("TicketCountMismatch", "mismatch")], ids=["refused", "mismatch"]
)
def test_restart_ends_with_an_input_error(agent: FakeAgent, start: Start, error: str, text: str) -> None:
    """H147: what no agent will accept is not tried for ever."""

    def refuse(client: Client, call: calls.Acquire) -> None:
        if error == "ConfigError":
            client.refuse(call.serial, error, text)
        else:
            client.done(call.serial)
            client.tell(call.serial, "lost", "mismatch: has 4", error)

    agent.on[calls.Acquire] = refuse
    code, err = ended(start("--restart"))
    assert code == 125
    assert text in err


def test_restart_goes_on_when_it_is_refused_for_now(agent: FakeAgent, start: Start) -> None:
    """H147: too many clients, a kind that the agent does not have, no ticket without waiting: another time it may be otherwise."""

    def refuse_the_first(client: Client, call: calls.Acquire) -> None:
        if len(agent.clients) == 1:
            client.refuse(call.serial, "Unavailable", "too many grants")
        elif len(agent.clients) == 2:
            client.done(call.serial)
            client.tell(call.serial, "lost", "full: every ticket is held")
        else:
            client.grant(call, seconds=LENGTH)

    agent.on[calls.Acquire] = refuse_the_first
    code, err = ended(start("--restart"))
    assert (code, "too many grants" in err, "full: every ticket is held" in err) == (9, True, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_wait_for_an_agent(start: Start, number: signal.Signals) -> None:
    """H147: the exit code is that of a signal while it waits for its hold."""
    process = start("--restart")
    assert process.stderr is not None
    assert "no agent answers" in process.stderr.readline()
    process.send_signal(number)
    assert ended(process)[0] == 128 + number


def test_a_time_limit_ends_the_wait_for_an_agent(start: Start) -> None:
    """H147: --timeout is the user's word, with --restart too; it counts over all attempts."""
    code, err = ended(start("--restart", "--timeout", "1.2"))
    assert code == 125
    assert "run: not held within 1.2 s; no agent answers" in err


def test_what_cannot_be_an_agents_socket(holdfast: Run) -> None:
    """H147: a path that is too long for a socket is an input error, also with --restart."""
    holdfast("run", "--restart", "--agent", "/" + "x" * 200, "--", "true").refused(125, "accepted is the path of an agent's socket")


@pytest.mark.parametrize(
    "flags", [("--nosuch",), ("--grace", "x"), ("--grace",), ()], ids=["unknown", "no number", "no value", "no command"]
)
def test_bad_flags(holdfast: Run, flags: tuple[str, ...]) -> None:
    """docs/cli.md: 125; 1 to 4 may be the command's own."""
    holdfast("run", *flags).refused(125)


def test_it_says_that_its_command_was_killed(agent: FakeAgent, start: Start) -> None:
    """docs/run.md: a command that was killed, and not by Holdfast; the hold was good."""
    code, err = ended(start(command=("sh", "-c", "kill -9 $$")))
    assert (code, err) == (137, "holdfast: run: sh was ended by SIGKILL, which did not come from Holdfast: its hold was good\n")


def test_it_says_that_it_killed_its_command(agent: FakeAgent, start: Start) -> None:
    """docs/run.md: killed, not only stopped, and why: here the agent is gone and the command does not hear SIGTERM."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=2.4)
    process = start(command=("sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"))
    until_runs(agent.wait_for(calls.Body, 2)[1].pid, "sh")
    agent.die()
    code, err = ended(process)
    assert code == 124
    assert err == "holdfast: run: sh was killed, because its hold ended: its agent is gone, and nothing is extended any more\n"


def test_it_says_that_its_guardian_was_killed(agent: FakeAgent, start: Start) -> None:
    """docs/run.md: then the kernel kills the command, and the hold has nothing to do with it."""
    process = start(command=("sleep", "50"))
    bodies = [agent.wait_for(calls.Body, number)[1].pid for number in (1, 2)]
    until_runs(bodies[1], "sleep")
    os.kill(bodies[0], signal.SIGKILL)
    code, err = ended(process)
    assert (code, err) == (124, "holdfast: run: sleep was killed, because its guardian was killed\n")
    assert alive(set(bodies)) == set()


def test_it_says_that_it_was_stopped_itself(agent: FakeAgent, start: Start) -> None:
    """docs/run.md: extended in time, and not read in time: the guardian killed the command."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=2.4)
    process = start(command=("sleep", "50"))
    _, call = agent.wait_for(calls.Body, 2)
    until_runs(call.pid, "sleep")
    process.send_signal(signal.SIGSTOP)
    until(lambda: alive({call.pid}) == set(), "the guardian killed it")
    until(lambda: clock.now() > agent.clients[0].deadline, "its deadline has passed")
    agent.clients[0].extend(call.grant, LENGTH)
    process.send_signal(signal.SIGCONT)
    code, err = ended(process)
    assert code == 124
    assert "was killed, because its hold ended: its deadline passed before its client read that it was renewed" in err
