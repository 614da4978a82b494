"""Real agents for `agent`: a group of them in processes, seen through /proc, the CPU clocks of the kernel and their own counters."""

from __future__ import annotations

import compileall
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import holdfast
from benchmarks.harness import ROOT
from benchmarks.ring_fleet import LOOPBACK, PATIENCE, NeverHappened, free_addresses
from holdfast.client.line import Line
from holdfast.errors import AgentLost
from holdfast.local import calls
from holdfast.wire.keys import generate

KEY = generate()
POLL_INTERVAL = 0.001  # seconds; how exactly a start is seen
SEEDS = 3  # and therefore seats
LOOK_INTERVAL = 0.2  # seconds between two looks at whether a group has formed
PACKAGE = Path(holdfast.__file__).parent
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Traffic(NamedTuple):
    """What an agent has sent since it started, by UDP."""

    packets: float
    payload_bytes: float


class AgentProcess:
    """One agent. It is started and not waited for. ``module`` is another program than the agent as it is, ``before`` are words that stand
    before its command: they give it a network of its own."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        folder.mkdir(mode=0o700)
        module, before = settings.pop("module", "holdfast.agent"), settings.pop("before", ())
        self.socket = settings.get("socket", str(folder / "s"))
        self.http = f"http://{settings.get('http')}"
        settings = {"group": "bench", "key": KEY, "log_level": "warning", "socket": self.socket, **settings}
        read, write = os.pipe()
        os.write(write, json.dumps(settings).encode())  # It fits into the pipe.
        os.close(write)
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*before, sys.executable, "-m", module, "--settings-fd", str(read)], cwd=ROOT,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, env=_environ(folder), pass_fds=(read,),
            )  # fmt: skip
        os.close(read)
        self.pid = self._process.pid

    def until_it_answers(self) -> calls.Welcome:
        """Poll until Hello is answered."""
        until(lambda: Path(self.socket).exists(), f"{self.socket} is there", POLL_INTERVAL, self.check)
        while True:
            with suppress(AgentLost):  # It is bound, and does not listen yet.
                return self.ask_welcome()
            self.check()

    def ask_welcome(self) -> calls.Welcome:
        with Line(self.socket) as line:
            return line.welcome

    def ask(self, kind: type[calls.Call], *fields: Any) -> Any:
        with Line(self.socket) as line:
            return line.call(kind, *fields)

    @property
    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    @property
    def rss_mib(self) -> float:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_MIB

    @property
    def private_mib(self) -> float:
        """What ends with this process: all that is not shared with others of its kind."""
        rollup = Path(f"/proc/{self.pid}/smaps_rollup").read_text()
        return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_")) / 1024

    def traffic(self) -> Traffic:
        metrics = self.ask(calls.Info)["metrics"]
        return Traffic(metrics["datagrams_sent"], metrics["datagram_bytes_sent"])

    def kill(self) -> None:
        self._process.kill()

    def leave(self) -> None:
        """It says goodbye, and ends."""
        self._process.terminate()
        self.wait()

    def wait(self) -> None:
        self._process.wait()

    def end(self) -> None:
        self.kill()
        self.wait()

    def check(self) -> None:
        """Raises if it ended."""
        if self._process.poll() is not None:
            raise NeverHappened(f"an agent ended ({self._process.returncode}): {self._log.read_text()[-2000:]}")


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads of another process, as /proc/PID/stat has it, in nanoseconds instead of ticks."""
    return time.clock_gettime((~pid << 3) | 2)  # clock_getcpuclockid(3), which Python does not have


def until(holds: Callable[[], object], what: str, interval: float, check: Callable[[], None]) -> None:
    end_at = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() >= end_at:
            raise NeverHappened(f"never happened: {what}")
        check()
        time.sleep(interval)


@contextmanager
def lone_agent(folder: Path) -> Iterator[AgentProcess]:
    """One that begins a group of its own and keeps nothing."""
    agent = AgentProcess(folder, bind=f"{LOOPBACK}:0")
    try:
        yield agent
    finally:
        agent.end()


@contextmanager
def group_without_seats(count: int, folder: Path, lease: float) -> Iterator[list[AgentProcess]]:
    """So many agents whose settings name no seat, so that they run the ring and nothing that is exclusive; the first is joined by call."""
    addresses = free_addresses(count)
    agents: list[AgentProcess] = []
    try:
        for number, address in enumerate(addresses):
            home = folder / f"r{number}"
            agents.append(AgentProcess(home, name=f"r{number}", bind=address, lease=lease, state_dir=str(home / "state")))
        for agent in agents:
            agent.until_it_answers()
        for agent in agents[1:]:
            until(lambda: formed(agent, 1), f"{agent.socket} is alone", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
            agent.ask(calls.Join, (addresses[0],), PATIENCE)
        for agent in agents:
            until(lambda: formed(agent, count), f"{agent.socket} knows {count} members", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
        yield agents
    finally:
        for agent in agents:
            agent.end()


@contextmanager
def group_of(count: int, folder: Path, lease: float) -> Iterator[list[AgentProcess]]:
    """So many agents with state directories, the last one with HTTP; each lists all as members."""
    *addresses, http = free_addresses(count + 1)
    agents: list[AgentProcess] = []
    try:
        for number, address in enumerate(addresses):
            home = folder / f"a{number}"
            settings = {"bind": address, "seeds": addresses[:SEEDS], "lease": lease, "state_dir": str(home / "state")}
            agents.append(AgentProcess(home, name=f"a{number}", http=http if number == count - 1 else "", **settings))
        for agent in agents:
            agent.until_it_answers()
        for agent in agents:
            until(lambda: formed(agent, count), f"{agent.socket} knows {count} members", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
        yield agents
    finally:
        for agent in agents:
            agent.end()


def formed(agent: AgentProcess, count: int) -> bool:
    view: calls.GroupView = agent.ask(calls.Look)
    return view.state == "member" and len(view.members) == count


def compile_package(folder: Path = PACKAGE) -> None:
    """Write its byte code, as pip does. An agent that has to compile what it imports keeps up to 1 MiB more."""
    compiled = compileall.compile_dir(folder, quiet=1)
    assert compiled, f"{folder} does not compile"


def _environ(folder: Path) -> dict[str, str]:
    """Without what would make an agent other than an installed one: pip compiles what it installs."""
    other = ("NOTIFY_SOCKET", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_") and name not in other}
    return {**kept, "HOLDFAST_RUNTIME_DIR": str(folder)}
