"""``holdfast run --lead`` on two agents: whatever happens to the first command, it is dead before the second one starts.

Spec: foundation F14; docs/run.md. The commands write the time into files; ``tests.cli.recorder`` reads them and looks who is alive.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.recorder import WORKER, Record, alive
from tests.features.leadership.process.fleet import Leads
from tests.support.agents import AgentProcess, until

GRACE = 1.0  # seconds
LOST = 124  # exit code of a command that was stopped because its term ended
Start = Callable[..., tuple[subprocess.Popen[bytes], Record]]


@pytest.fixture(scope="module")
def leads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Leads]:
    with Leads(tmp_path_factory.mktemp("leads")) as it:
        yield it


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """A command under the leadership that is named after the test; each records into a file of its own."""
    started: list[subprocess.Popen[bytes]] = []

    def run(agent: AgentProcess, *worker: object) -> tuple[subprocess.Popen[bytes], Record]:
        record = Record(tmp_path / f"record{len(started)}")
        flags = ["--agent", agent.socket, "--lead", request.node.name, "--grace", str(GRACE)]
        command = [sys.executable, "-S", "-E", *map(str, (WORKER, record.path, *worker))]
        started.append(subprocess.Popen([sys.executable, "-m", "holdfast", "run", *flags, "--", *command], stderr=subprocess.DEVNULL))
        return started[-1], record

    yield run
    for process in started:
        process.kill()
        process.wait()


def check(first: Record, second: Record) -> None:
    """The second one works, began after the last trace of the first, and has a larger token."""
    until(second.working, "the second one works")
    assert alive(first.pids()) == set()
    assert max(first.times("work") + first.times("term")) < second.times("start")[0]
    assert environ(first)["HOLDFAST_TOKEN"] < environ(second)["HOLDFAST_TOKEN"]


def environ(record: Record) -> dict[str, str]:
    """What the command found in its environment."""
    words = next(line for line in record.lines() if line[0] == "env")
    return dict(word.split("=", 1) for word in words if "=" in word)


@pytest.mark.parametrize("how", ["wrap", "daemon"])
def test_run_killed(leads: Leads, start: Start, how: str) -> None:
    """Kill -9 of `holdfast run`: the guardian ends everything, the agent waits for that, and only then another agent leads."""
    run, first = start(leads.seats[1], how, 0.2, "deaf")
    until(first.working, "the first one works")
    assert environ(first)["HOLDFAST_TERM"] == environ(first)["HOLDFAST_TOKEN"]
    second = start(leads.seats[0])[1]
    run.kill()
    check(first, second)


def test_agent_killed_and_command_ignores_sigterm(leads: Leads, start: Start) -> None:
    """Kill -9 of the agent: SIGTERM at the deadline minus the grace, SIGKILL before the deadline; exit code 124; then another one leads."""
    doomed = leads.agent("doomed")
    run, first = start(doomed, "deaf")
    until(first.working, "the first one works")
    second = start(leads.seats[0])[1]
    doomed.kill()
    assert run.wait(60) == LOST
    assert first.times("term") != []
    check(first, second)
