"""``holdfast run``: a command ends before its hold can be somebody else's (F9, F14).

The agent is a script, so that grants are extended, lost and forgotten when a test says so. An outside recorder, the command's own
file, holds readings of CLOCK_BOOTTIME; deadlines are on the same clock.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep

import msgspec
import pytest

from holdfast.local import calls
from holdfast.net import clock
from tests.cli.command import Run
from tests.cli.fake_agent import Client, FakeAgent
from tests.cli.recorder import WORKER, Record, alive
from tests.support.agents import until
from tests.support.realtime import repeated

LENGTH = 2.4  # seconds of a hold: SIGTERM 0.72 s and SIGKILL 0.12 s before its end
MARGIN = 0.06  # seconds: run, or its guardian, and the command that it ends may both be late by half of the time from SIGKILL to the end
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[FakeAgent]:
    with FakeAgent(tmp_path / "agent.sock") as agent:
        agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=LENGTH)
        yield agent


@pytest.fixture
def record(tmp_path: Path) -> Record:
    return Record(tmp_path / "record")


@pytest.fixture
def start(agent: FakeAgent, record: Record) -> Iterator[Start]:
    started: list[subprocess.Popen[str]] = []

    def run(*worker: object, flags: tuple[str, ...] = ("--hold", "fake:x"), command: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        words = command or (sys.executable, "-S", "-E", str(WORKER), str(record.path), *map(str, worker))
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "run", "--agent", agent.path, *flags, "--", *words], stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    err = process.communicate(timeout=60)[1]
    return process.returncode, err


def keep_extending(agent: FakeAgent, client: Client, serial: int, holds: Callable[[], object]) -> None:
    until(lambda: client.extend(serial, LENGTH) or sleep(0.1) or holds(), "what the extensions are for")  # type: ignore[func-returns-value]


def test_the_command_is_known_before_it_runs(agent: FakeAgent, start: Start, record: Record) -> None:
    """F14: guardian and command are registered as bodies before the command begins; it is told its token; Stopped is said at the end."""
    answered: list[float] = []

    def on_body(client: Client, call: calls.Body) -> None:
        sleep(0.3)
        answered.append(clock.now())
        client.done(call.serial)

    agent.on[calls.Body] = on_body
    process = start("for", 0.1, "exit", 3)
    assert ended(process)[0] == 3
    assert len(answered) == 2
    assert agent.asked(calls.Body)[1].pid in record.pids()
    assert answered[1] <= record.times("start")[0]
    assert {"HOLDFAST_TOKEN=7", "HOLDFAST_HOLD=fake:x", f"HOLDFAST_AGENT={agent.path}"} <= set(" ".join(record.lines()[1]).split())
    assert agent.wait_for(calls.Stopped)[0] >= record.times("end")[0]


def test_nothing_runs_before_it_is_granted(agent: FakeAgent, start: Start, record: Record) -> None:
    """The command waits for its hold."""
    agent.on[calls.Acquire] = lambda client, call: client.done(call.serial)
    start("for", 0.1)
    _, call = agent.wait_for(calls.Acquire)
    sleep(0.3)
    assert record.lines() == []
    granted_at = clock.now()
    agent.clients[0].grant(call, seconds=LENGTH)
    until(lambda: record.times("end"), "it ran")
    assert record.times("start")[0] >= granted_at


def test_extensions_keep_it_going(agent: FakeAgent, start: Start, record: Record) -> None:
    """A hold that is extended in time is no reason to stop: it outlives its first deadline."""
    process = start("for", LENGTH + 0.5)
    _, call = agent.wait_for(calls.Body, 2)
    first = agent.clients[0].deadline
    keep_extending(agent, agent.clients[0], call.grant, lambda: process.poll() is not None)
    assert process.returncode == 0
    assert record.times("term") == []
    assert record.times("end")[0] > first


def in_time(agent: FakeAgent, record: Record, attempt: Callable[[], object]) -> None:
    """Nothing worked after the deadline."""

    def missed(number: int) -> str:
        agent.heard.clear()
        agent.clients.clear()
        record.path.unlink(missing_ok=True)
        attempt()
        beyond = record.times("work")[-1] - agent.clients[0].deadline
        return "" if beyond < 0 else f"it worked until {beyond:.3f} s after its deadline"

    repeated(missed, margin=MARGIN)


def test_a_deaf_command_is_killed_before_the_deadline(agent: FakeAgent, start: Start, record: Record) -> None:
    """F14: SIGTERM at deadline minus grace, SIGKILL before the deadline, exit code 124."""

    def attempt() -> None:
        code, err = ended(start("deaf", "wrap"))
        assert code == 124
        assert "its hold ended" in err

    in_time(agent, record, attempt)
    assert agent.clients[0].deadline - LENGTH / 2 < record.times("term")[0] < record.times("work")[-1]
    assert agent.wait_for(calls.Stopped)[0] >= record.times("work")[-1]


def test_a_polite_command_is_asked_first(agent: FakeAgent, start: Start, record: Record) -> None:
    """A command that ends at SIGTERM does so well before the deadline; the code is still 124."""
    assert ended(start())[0] == 124
    assert len(record.times("term")) == 1
    assert record.times("work")[-1] <= record.times("term")[0]


@pytest.mark.parametrize("what", ["stop", "lost"])
def test_the_agents_word_stops_it_at_once(agent: FakeAgent, start: Start, record: Record, what: str) -> None:
    """The words "stop" and "lost" do not wait for the deadline."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=50.0)
    process = start()
    _, call = agent.wait_for(calls.Body, 2)
    until(record.working, "it works")
    agent.clients[0].tell(call.grant, what, "because")
    code, err = ended(process)
    assert (code, "because" in err) == (124, True)
    assert record.times("term")[0] < agent.clients[0].deadline - 30


def test_an_agent_that_died_extends_nothing(agent: FakeAgent, start: Start, record: Record) -> None:
    """F14: without its agent the command ends before the deadline, by its own clock."""

    def attempt() -> None:
        process = start("deaf")
        agent.wait_for(calls.Body, 2)
        until(record.working, "it works")
        agent.clients[0].close()  # what a kill -9 of an agent looks like from here
        assert ended(process)[0] == 124

    in_time(agent, record, attempt)


@pytest.mark.parametrize("how", [("wrap",), ("deaf",), ("daemon", 0.1)], ids=["child", "deaf", "daemon"])
def test_kill_9_of_run_kills_all(agent: FakeAgent, start: Start, record: Record, how: tuple[object, ...]) -> None:
    """F14: when `holdfast run` is killed, its command ends, and with it whatever the command started, in its group or not."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=50.0)
    process = start(*how)
    bodies = {agent.wait_for(calls.Body, number)[1].pid for number in (1, 2)}
    until(record.working, "it works")
    process.kill()
    until(lambda: alive(record.pids() | bodies) == set(), "all are dead, the guardian too")


def test_a_stopped_run_lets_nobody_outlive_the_deadline(agent: FakeAgent, start: Start, record: Record) -> None:
    """F9: SIGSTOP of `holdfast run` stops its own clock watching; the guardian has the deadline too."""

    def attempt() -> None:
        process = start("deaf")
        agent.wait_for(calls.Body, 2)
        until(record.working, "it works")
        process.send_signal(signal.SIGSTOP)
        until(lambda: alive(record.pids()) == set(), "it is dead")
        process.send_signal(signal.SIGCONT)
        assert ended(process)[0] == 124

    in_time(agent, record, attempt)


def test_kill_9_of_the_guardian_kills_all(agent: FakeAgent, start: Start, record: Record) -> None:
    """Whoever dies in between, nothing goes on unwatched: the kernel kills the command, `holdfast run` its orphans."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=50.0)
    process = start("wrap")
    _, call = agent.wait_for(calls.Body)
    until(record.working, "it works")
    os.kill(call.pid, signal.SIGKILL)
    ended(process)
    assert alive(record.pids()) == set()


def test_a_stopped_guardian_does_not_keep_the_hold(agent: FakeAgent, start: Start, record: Record) -> None:
    """H153: the command ends by itself while its guardian is stopped; run ends the guardian, has the exit code, and gives the hold back."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=50.0)
    process = start("for", 0.5, "exit", 6)
    _, call = agent.wait_for(calls.Body)
    until(record.working, "it works")
    os.kill(call.pid, signal.SIGSTOP)
    assert ended(process)[0] == 6
    agent.wait_for(calls.Stopped)
    assert alive({call.pid}) == set()


def test_leftovers_are_ended(agent: FakeAgent, start: Start, record: Record) -> None:
    """When the command has ended, what it left behind is ended too, before Stopped is said; its exit code counts."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=50.0)
    process = start("daemon", 0.3, flags=("--hold", "fake:x", "--grace", "0.1"))
    assert ended(process)[0] == 5
    assert alive(record.pids()) == set()
    assert agent.wait_for(calls.Stopped)[0] >= record.times("work")[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on(agent: FakeAgent, start: Start, record: Record, number: signal.Signals) -> None:
    """SIGTERM, SIGINT and SIGHUP are for the command; how it ends is how run ends."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=50.0)
    process = start(command=("sh", "-c", f"echo start >> {record.path}; exec sleep 50"))
    until(record.path.exists, "it runs")
    process.send_signal(number)
    assert ended(process)[0] == 128 + number


def test_a_signal_before_the_grant_ends_it(agent: FakeAgent, start: Start) -> None:
    """While it waits, SIGTERM ends it, and the agent hears that nobody wants it any more."""
    agent.on[calls.Acquire] = lambda client, call: client.done(call.serial)
    process = start("for", 1)
    agent.wait_for(calls.Acquire)
    sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 128 + signal.SIGTERM


def test_restart(agent: FakeAgent, start: Start, record: Record) -> None:
    """--restart: a lost hold is asked for again on a new connection; without it, once is all."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=LENGTH if len(agent.clients) == 1 else 50.0)
    process = start("for", 2.5, "exit", 9, flags=("--hold", "fake:x", "--restart"))
    assert ended(process)[0] == 9
    assert len(agent.asked(calls.Acquire)) == 2
    assert len(record.times("start")) == 2


def test_a_reload_is_no_end(agent: FakeAgent, start: Start, record: Record) -> None:
    """--restart: SIGHUP tells a command to read its settings again; a hold that is lost later is asked for again all the same."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=2.0 if len(agent.clients) == 1 else 50.0)
    deaf = f"trap '' HUP; echo start >> {record.path}; exec sleep 2.5"
    process = start(command=("sh", "-c", deaf), flags=("--hold", "fake:x", "--restart"))
    agent.wait_for(calls.Body, 2)
    until(lambda: record.path.exists() and record.path.read_text().count("start") == 1, "it runs")
    process.send_signal(signal.SIGHUP)
    assert ended(process)[0] == 0
    assert record.path.read_text().count("start") == 2


def test_restart_waits_for_an_agent(agent: FakeAgent, start: Start, record: Record) -> None:
    """--restart: an agent that died is waited for; its successor is asked on a new connection, and grants anew."""
    process = start("for", 3.5, "exit", 9, flags=("--hold", "fake:x", "--restart"))
    until(lambda: record.times("start"), "it began")  # Before, its registration may not be answered yet.
    agent.die()
    until(lambda: record.times("term"), "it was stopped")
    sleep(1.5)  # more than one attempt finds nobody
    Path(agent.path).unlink()
    with FakeAgent(Path(agent.path)) as successor:
        successor.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=50.0)
        assert ended(process)[0] == 9
    assert len(record.times("start")) == 2


def test_timeout_is_the_own_error(agent: FakeAgent, start: Start, record: Record) -> None:
    """Not held in time: 125, and nothing ran."""
    agent.on[calls.Acquire] = lambda client, call: client.done(call.serial)
    code, err = ended(start("for", 1, flags=("--hold", "fake:x", "--timeout", "0.2")))
    assert (code, record.lines()) == (125, [])
    assert "not held within 0.2 s" in err


def test_refused_is_the_own_error(agent: FakeAgent, start: Start, record: Record) -> None:
    """A kind that the agent does not have: 125 with the agent's words."""
    agent.on[calls.Acquire] = lambda client, call: client.refuse(call.serial, "Unavailable", "no such kind of grant")
    code, err = ended(start("for", 1))
    assert (code, record.lines()) == (125, [])
    assert err == "holdfast: no such kind of grant\n"


def test_grace_must_fit(agent: FakeAgent, start: Start, record: Record) -> None:
    """A grace of half the hold would stop commands that are extended in time: refused before anything runs."""
    code, err = ended(start("for", 1, flags=("--hold", "fake:x", "--grace", "5")))
    assert (code, record.lines()) == (125, [])
    assert "--grace 5: the hold lasts" in err


def test_another_clock_is_refused(tmp_path: Path, holdfast: Run) -> None:
    """F14: deadlines of an agent that reads another clock mean nothing here."""
    with FakeAgent(tmp_path / "a.sock", clock_ahead=100.0) as agent:
        holdfast("run", "--agent", agent.path, "--hold", "fake:x", "--", "true").refused(125, "another clock")


def test_what_cannot_be_run(agent: FakeAgent, holdfast: Run, tmp_path: Path) -> None:
    """126 and 127 as in a shell, before the agent is asked for anything."""
    holdfast("run", "--agent", agent.path, "--", "no-such-program").refused(127, "no such program")
    (tmp_path / "file").write_text("")
    holdfast("run", "--agent", agent.path, "--", str(tmp_path / "file")).refused(126, "not executable")
    assert agent.heard == []


def test_what_only_execution_shows(agent: FakeAgent, start: Start, tmp_path: Path) -> None:
    """A file that looks executable and is none: 126, and the hold is given back."""
    (tmp_path / "odd").write_bytes(b"\0\1\2\3")
    (tmp_path / "odd").chmod(0o755)
    code, err = ended(start(command=(str(tmp_path / "odd"),)))
    assert code == 126
    assert "Exec format error" in err
    agent.wait_for(calls.Stopped)


@pytest.mark.parametrize(
    "flags,told",
    [
        (("--hold", "x"), "accepted is KIND:NAME"),
        (("--hold", ""), "--hold: is empty"),
        (("--lead", ""), "--lead: is empty"),
        (("--lead", "\udcff"), "accepted is printable text"),
        (("--ticket", ""), "--ticket: is empty"),
        (("--grace", "-1"), "accepted are seconds from 0"),
        (("--timeout", "0"), "accepted are seconds above 0"),
        (("--option", "x"), "accepted is NAME=VALUE"),
        (("--lead", "x", "--hold", "lead:y"), "--lead: stands for --hold"),
        (("--lead", "x", "--option", "grace=1"), "--lead: stands for --hold and its options"),
        (("--lead", "x", "--ticket", "gpu:8"), "accepted is one of --lead, --ticket and --hold"),
        (("--ticket", "gpu:8", "--option", "of=8"), "--ticket: stands for --hold and its options"),
        (("--ticket", "gpu"), "--ticket 'gpu': accepted is POOL:N"),
        (("--ticket", "gpu:0"), "--ticket 'gpu:0': accepted is POOL:N"),
    ],
)
def test_bad_flags(agent: FakeAgent, holdfast: Run, flags: tuple[str, ...], told: str) -> None:
    """125 with one line; a command's own exit code 2 is not to be taken for it."""
    holdfast("run", "--agent", agent.path, *flags, "--", "true").refused(125, told)


# Terms: the grace is on top of the length that is asked for.


def test_lead_asks_for_the_grace_too(agent: FakeAgent, start: Start, record: Record) -> None:
    """Detection D26: `--lead` asks for a term that is longer by the grace; the command knows its term and its token."""
    assert ended(start("for", 0.1, flags=("--lead", "sched", "--grace", "1.5")))[0] == 0
    assert ended(start("for", 0.1, flags=("--lead", "sched")))[0] == 0
    asked = [(call.kind, call.name, call.options) for call in agent.asked(calls.Acquire)]
    assert asked == [("lead", "sched", {"grace": 1.5}), ("lead", "sched", {"grace": 0.0})]
    assert {"HOLDFAST_TERM=7", "HOLDFAST_TOKEN=7", "HOLDFAST_HOLD=lead:sched"} <= set(" ".join(record.lines()[1]).split())


def test_a_ticket_of_a_pool(agent: FakeAgent, start: Start, record: Record) -> None:
    """`--ticket POOL:N` asks for one of N; the command knows which one, and its token."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, number=3)
    assert ended(start("for", 0.1, flags=("--ticket", "a:gpu:8")))[0] == 0
    assert [(call.kind, call.name, call.options) for call in agent.asked(calls.Acquire)] == [("ticket", "a:gpu", {"of": 8})]
    assert {"HOLDFAST_TICKET=3", "HOLDFAST_TOKEN=7", "HOLDFAST_HOLD=ticket:a:gpu"} <= set(" ".join(record.lines()[1]).split())


def test_a_deaf_command_of_a_term(agent: FakeAgent, start: Start, record: Record) -> None:
    """Detection D26, F14: SIGTERM at deadline minus grace, SIGKILL before it, also if the grace is most of the term; exit code 124."""
    grace = 0.75 * LENGTH

    def attempt() -> None:
        assert ended(start("deaf", "wrap", flags=("--lead", "sched", "--grace", str(grace))))[0] == 124

    in_time(agent, record, attempt)
    deadline = agent.clients[0].deadline
    assert deadline - grace <= record.times("term")[0] < record.times("work")[-1]
    assert agent.wait_for(calls.Stopped)[0] >= record.times("work")[-1]


def test_a_renewal_in_time_costs_no_grace(agent: FakeAgent, start: Start, record: Record) -> None:
    """Detection D26: a term that is renewed a heartbeat late, with all of its grace left, is no reason to stop."""
    agent.on[calls.Acquire] = lambda client, call: client.grant(call, seconds=20 + LENGTH)
    process = start("for", 1.0, flags=("--lead", "sched", "--grace", "20"))
    _, call = agent.wait_for(calls.Body, 2)
    until(lambda: agent.clients[0].extend(call.grant, 20 + LENGTH) or sleep(0.1) or process.poll() is not None, "it ends")  # type: ignore[func-returns-value]
    assert (process.returncode, record.times("term")) == (0, [])


def test_no_agent(holdfast: Run, tmp_path: Path) -> None:
    """Without an agent: 125 and what to do."""
    holdfast("run", "--agent", tmp_path / "none.sock", "--", "true").refused(125, "no agent answers", "holdfast agent")


def test_without_a_hold_it_runs_while_the_agent_is_a_member(agent: FakeAgent, start: Start, record: Record) -> None:
    """No exclusion is promised, and no token given; when the agent is out of its group, the command is stopped."""
    process = start("deaf", flags=("--grace", "0.2"))
    until(record.working, "it works")
    assert "HOLDFAST_TOKEN" not in " ".join(record.lines()[1])
    fields = msgspec.Raw(msgspec.msgpack.encode({"why": "test"}))
    agent.clients[0].push(agent.asked(calls.Watch)[0].serial, calls.EventItem(2, 0.0, "Expelled", fields))
    assert ended(process)[0] == 124
    assert alive(record.pids()) == set()
