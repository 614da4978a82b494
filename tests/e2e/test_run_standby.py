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
from tests.e2e.ticket_fleet import LEASE, TicketFleet
from tests.support.agents import AgentProcess, until

STOPPED = LEASE + 0.5  # seconds; more than the first deadline of a ticket, and of a term
PROMPT = LEASE + 1.0  # seconds until a hold that nobody took up is held by somebody who runs
SLACK = 10.0  # seconds, for a machine that is busy with other tests
Start = Callable[..., tuple[subprocess.Popen[bytes], Record]]
HOLDS = {"lead": ("--lead", "{}"), "ticket": ("--ticket", "{}:1")}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TicketFleet]:
    with TicketFleet(tmp_path_factory.mktemp("standby")) as fleet:
        yield fleet


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """A command under a hold that is named after the test; each records into a file of its own."""
    started: list[subprocess.Popen[bytes]] = []
    name = "".join(each for each in request.node.name if each.isalnum())

    def run(agent: AgentProcess, kind: str, *flags: str) -> tuple[subprocess.Popen[bytes], Record]:
        record = Record(tmp_path / f"record{len(started)}")
        words = ["run", *(word.format(name) for word in HOLDS[kind]), *flags, "--", sys.executable, "-S", "-E", str(WORKER), str(record.path)]
        if kind == "acquire":
            words = ["ticket", "acquire", f"{name}:1"]
        with (tmp_path / f"record{len(started)}").open("wb") as out:
            command = [sys.executable, "-m", "holdfast", *words, "--agent", agent.socket]
            if "--" in words:
                at = command.index("--")
                command = [*command[:at], "--agent", agent.socket, *command[at:-2]]
            started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=subprocess.DEVNULL))
        return started[-1], record

    yield run
    for process in started:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.communicate()
