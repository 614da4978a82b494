"""``holdfast run`` that waits, with real agents: a standby that does not get to read its grant, and one whose agent is restarted.

Spec: foundation F9, F14; H146, H147; docs/run.md. Commands write the time into files; ``tests.cli.recorder`` reads them.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.local.calls import Info
from holdfast.net import clock
from tests.agent.raw_client import RawClient
from tests.cli.recorder import WORKER, Record, alive
from tests.features.tickets.process.fleet import LEASE, TicketFleet
from tests.support.agents import AgentProcess, until

STOPPED = LEASE + 0.5  # seconds; more than the first deadline of a ticket, and of a term
PROMPT = LEASE + 1.0  # seconds until a hold that no client took up is held by one that runs
SLACK = 8.0  # seconds, for a machine that is busy with other tests
Start = Callable[..., tuple[subprocess.Popen[bytes], Record]]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TicketFleet]:
    with TicketFleet(tmp_path_factory.mktemp("standby")) as fleet:
        yield fleet


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """A command under a hold that is named after the test; each records into a file of its own, `ticket acquire` what it prints."""
    started: list[subprocess.Popen[bytes]] = []
    name = "".join(each for each in request.node.name if each.isalnum())
    held = {"lead": ("--lead", name), "ticket": ("--ticket", f"{name}:1")}

    def run(agent: AgentProcess, kind: str, *flags: str) -> tuple[subprocess.Popen[bytes], Record]:
        record = Record(tmp_path / f"record{len(started)}")
        words = ["ticket", "acquire", "--agent", agent.socket, f"{name}:1"]
        if kind != "acquire":
            command = ["--", sys.executable, "-S", "-E", str(WORKER), str(record.path)]
            words = ["run", "--agent", agent.socket, *held[kind], *flags, *command]
        with record.path.open("ab") as out:
            command = [sys.executable, "-m", "holdfast", *words]
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL))
        return started[-1], record

    yield run
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()


def until_asked(agent: AgentProcess, process: subprocess.Popen[bytes]) -> None:
    """Its agent knows it, and a moment later what it wants."""

    def known() -> bool:
        with RawClient(agent.socket) as client:
            return process.pid in [each["pid"] for each in client.ask(Info)["clients"]]

    until(known, "it is connected")
    pass_time(0.3)


def pass_time(seconds: float) -> None:
    end_at = clock.now() + seconds
    until(lambda: clock.now() > end_at, "time passes")


def runs(record: Record) -> bool:
    return record.path.stat().st_size > 0


@pytest.mark.parametrize(
    "kind,flags", [("lead", ()), ("lead", ("--restart",)), ("ticket", ()), ("ticket", ("--restart",)), ("acquire", ())],
    ids=["lead", "lead restart", "ticket", "ticket restart", "acquire"],
)  # fmt: skip
def test_a_stopped_standby(fleet: TicketFleet, start: Start, kind: str, flags: tuple[str, ...]) -> None:
    """H146: the holder ends while the standby is stopped; it is continued after its first deadline, and runs at once."""
    holder, first = start(fleet.seats[0], "ticket" if kind == "acquire" else kind)
    until(lambda: runs(first), "the holder works")
    standby, second = start(fleet.seats[1], kind, *flags)
    until_asked(fleet.seats[1], standby)
    standby.send_signal(signal.SIGSTOP)
    holder.terminate()
    assert holder.wait(60) == 0
    pass_time(STOPPED)
    assert not runs(second)
    standby.send_signal(signal.SIGCONT)
    until(lambda: runs(second), "the standby runs", PROMPT + SLACK)


@pytest.mark.parametrize("kind", ["lead", "ticket"])
def test_a_standby_that_stays_stopped(fleet: TicketFleet, start: Start, kind: str) -> None:
    """H146: the agent notices by itself: what the stopped client did not confirm goes to the next one, who runs while it is still stopped.
    Continued, the stopped one waits on."""
    agent = fleet.seats[1]
    holder, first = start(fleet.seats[0], kind)
    until(lambda: runs(first), "the holder works")
    standby, second = start(agent, kind)
    until_asked(agent, standby)
    standby.send_signal(signal.SIGSTOP)
    _, third = start(agent, kind)
    until_asked(agent, _)
    holder.terminate()
    assert holder.wait(60) == 0
    until(lambda: runs(third), "the third runs", PROMPT + SLACK)
    assert not runs(second)
    standby.send_signal(signal.SIGCONT)
    pass_time(1.0)
    assert (standby.poll(), runs(second)) == (None, False)


@pytest.mark.parametrize("kind", ["lead", "ticket"])
def test_a_holder_that_is_stopped(fleet: TicketFleet, start: Start, kind: str) -> None:
    """H148: a `run` that is stopped cannot move its deadline, and its guardian ends the command. Its agent does not renew for it what no
    command runs under: the standby runs. Continued, the stopped one ends with 124."""
    holder, first = start(fleet.seats[0], kind)
    until(lambda: runs(first), "the holder works")
    _, second = start(fleet.seats[1], kind)
    pass_time(1.0)  # It is extended.
    holder.send_signal(signal.SIGSTOP)
    until(lambda: runs(second), "the standby runs", 2 * LEASE + SLACK)  # What was read last, and one more that was sent.
    assert alive(first.pids()) == set()
    assert max(first.times("work")) < second.times("start")[0]
    holder.send_signal(signal.SIGCONT)
    assert holder.wait(60) == 124


def test_a_rolling_restart_of_the_agents(fleet: TicketFleet, start: Start) -> None:
    """H147: three agents are restarted one after the other under three `run --restart`, each of which is there afterwards. Then the one
    that runs its command is killed, and another one runs its own."""
    standbys = [start(agent, "lead", "--restart") for agent in fleet.seats]
    until(lambda: any(runs(record) for _, record in standbys), "one of them works")
    for number, end in enumerate((AgentProcess.stop, AgentProcess.kill, AgentProcess.stop)):
        end(fleet.seats[number])
        fleet.seats[number] = fleet.seat(number)
        until(fleet.formed, "it is a member again")
    assert [process.poll() for process, _ in standbys] == [None, None, None]
    until(lambda: working(standbys), "one of them works after it")
    ((process, record),) = working(standbys)
    others = [each for each in standbys if each[0] is not process]
    before = {each.path: len(each.times("start")) for _, each in others}
    process.kill()
    until(lambda: any(len(each.times("start")) > before[each.path] for _, each in others), "another one works")
    assert alive(record.pids()) == set()


def working(standbys: list[tuple[subprocess.Popen[bytes], Record]]) -> list[tuple[subprocess.Popen[bytes], Record]]:
    return [(process, record) for process, record in standbys if alive(record.pids())]
