"""``holdfast run`` with real agents: two commands want one lock, whatever happens to the first no two work at the same time (F14)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.net import clock
from tests.agent.lock_fleet import Locks
from tests.cli.recorder import WORKER, Record, alive
from tests.support.agents import AgentProcess, until

SHORT, LONG = 1.6, 50.0  # seconds of a lock: for what must wait for the deadline, and for what must not
PROMPT = 20.0  # seconds; far below LONG
Start = Callable[..., tuple[subprocess.Popen[bytes], Record]]


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Locks]:
    with Locks(tmp_path_factory.mktemp("locks")) as locks:
        locks.agent()
        yield locks


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """A command under the lock that is named after the test; each records into a file of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def run(agent: AgentProcess, length: float, *worker: object) -> tuple[subprocess.Popen[bytes], Record]:
        record = Record(tmp_path / f"record{len(started)}")
        flags = ["--agent", agent.socket, "--hold", f"lock:{request.node.name}", "--option", f"length={length}"]
        command = [sys.executable, "-S", "-E", *map(str, (WORKER, record.path, *worker))]
        started.append(subprocess.Popen([sys.executable, "-m", "holdfast", "run", *flags, "--", *command], stderr=subprocess.DEVNULL))
        return started[-1], record

    yield run
    for process in started:
        process.kill()
        process.wait()


def check(first: Record, second: Record) -> None:
    """The second one works, and began after the last trace of the first."""
    until(second.working, "the second one works")
    assert alive(first.pids()) == set()
    assert max(first.times("work") + first.times("term")) < second.times("start")[0]


def test_one_after_the_other(locks: Locks, start: Start) -> None:
    """A command that ends says so: the next one need not wait for the deadline, and has a larger token."""
    agent = locks.agents[0]
    run, first = start(agent, LONG, "for", 0.5, "exit", 4)
    until(first.working, "the first one works")
    second = start(agent, LONG)[1]
    assert run.wait(60) == 4
    ended_at = clock.now()
    check(first, second)
    assert second.times("start")[0] < ended_at + PROMPT
    assert token(first) < token(second)


@pytest.mark.parametrize("how", ["wrap", "daemon"])
def test_run_killed(locks: Locks, start: Start, how: str) -> None:
    """Kill -9 of `holdfast run`: the agent waits until the guardian has ended everything, and not for the deadline."""
    agent = locks.agents[0]
    run, first = start(agent, LONG, how, 0.2, "deaf")
    until(first.working, "the first one works")
    second = start(agent, LONG)[1]
    run.kill()
    killed_at = clock.now()
    check(first, second)
    assert second.times("start")[0] < killed_at + PROMPT


def test_agent_killed(locks: Locks, start: Start) -> None:
    """Kill -9 of the agent: the command ends before its deadline, and only then the lock goes to the other agent's command."""
    doomed = locks.agent()
    run, first = start(doomed, SHORT, "deaf")
    until(first.working, "the first one works")
    second = start(locks.agents[0], SHORT)[1]
    doomed.kill()
    assert run.wait(60) == 124
    check(first, second)


def test_agent_drained(locks: Locks, start: Start) -> None:
    """SIGTERM to the agent: the command is stopped, then the agent leaves and ends with code 0."""
    leaving = locks.agent()
    run, first = start(leaving, LONG)
    until(first.working, "the first one works")
    second = start(locks.agents[0], LONG)[1]
    leaving.signal(signal.SIGTERM)
    assert run.wait(60) == 124
    assert leaving.wait() == 0
    check(first, second)


def token(record: Record) -> int:
    words = " ".join(record.lines()[1]).split()
    return next(int(word.partition("=")[2]) for word in words if word.startswith("HOLDFAST_TOKEN="))
