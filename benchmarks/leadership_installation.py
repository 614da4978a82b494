"""What takes part in `leadership`: candidates that can be killed and started again, with the servers they need, if any."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from benchmarks import leadership_stock as stock
from benchmarks.agent_fleet import LOOK_INTERVAL, SEEDS, AgentProcess, formed, until
from benchmarks.harness import ROOT
from benchmarks.ring_fleet import NeverHappened, free_addresses, now
from holdfast.client.line import Line
from holdfast.local import calls

GROUP = "bench"
HOLDFAST: dict[str, dict[str, Any]] = {
    "default": {},  # preset lan: a heartbeat of 1 s
    "smallest": {"heartbeat": 0.2},
    "tuned": {"heartbeat": 0.1},
    "elected": {"membership": "gossip", "probe": 0.1, "by": "election", "rest": 1.0},
}
OF_CLIENTS = ("grace", "by", "rest")  # among them, what clients are told; all others are settings of the agents


class Process(Protocol):
    """What can be killed."""

    pid: int

    def check(self) -> None: ...
    def kill(self) -> None: ...
    def wait(self) -> None: ...


class Worker:
    """The process that asks to lead and does the deeds."""

    def __init__(self, system: str, recorder: str, options: Mapping[str, Any], log: Path, before: Sequence[str] = ()) -> None:
        """``before``: words that stand before its command and give it a network of its own."""
        command = [*before, sys.executable, "-m", "benchmarks.leadership_candidate", system, recorder, json.dumps(options)]
        with log.open("ab") as out:
            self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self.pid, self._log = self._process.pid, log

    def check(self) -> None:
        if self._process.poll() is not None:
            raise NeverHappened(f"a candidate ended ({self._process.returncode}): {self._log.read_text()[-stock.SHOWN :]}")

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> None:
        self._process.wait()


class Candidate:
    """Processes that stand for one place in the race; the last of them does the deeds."""

    def __init__(self, *processes: Process) -> None:
        self.processes = processes

    @property
    def worker(self) -> int:
        return self.processes[-1].pid

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    def check(self) -> None:
        """Raises if one of them ended."""
        for process in self.processes:
            process.check()

    def kill(self, *, alone: bool = False) -> float:
        """SIGKILL for all of them, or for the worker alone; the instant before."""
        victims = self.processes[-1:] if alone else self.processes
        at = now()
        for process in victims:
            process.kill()
        for process in victims:
            process.wait()
        return at

    def resign(self) -> None:
        """The holder gives it up by will, and asks again."""
        os.kill(self.worker, signal.SIGUSR1)

    def drain(self) -> None:
        """SIGTERM for what carries the worker: it is asked to stop."""
        os.kill(self.processes[0].pid, signal.SIGTERM)


class Installation(Protocol):
    """What takes part. ``pids`` are those of servers, if it has any."""

    @property
    def pids(self) -> Sequence[int]: ...
    def start(self, number: int) -> Candidate: ...
    def restart(self, number: int, *, alone: bool) -> Candidate: ...
    def until_whole(self) -> None: ...
    def counters(self, number: int) -> Mapping[str, float]: ...
    def round_trips(self, number: int, count: int) -> list[float]: ...


class Plain:
    """Candidates that are one process each."""

    def __init__(self, system: str, recorder: str, folder: Path, options: list[Mapping[str, Any]], pids: list[int]) -> None:
        self.pids = pids
        self._system, self._recorder, self._log, self._options = system, recorder, folder / "candidates.log", options

    def start(self, number: int) -> Candidate:
        return Candidate(Worker(self._system, self._recorder, self._options[number], self._log))

    def restart(self, number: int, *, alone: bool) -> Candidate:
        return self.start(number)

    def until_whole(self) -> None:
        """A candidate that stands again can win again."""

    def counters(self, number: int) -> Mapping[str, float]:
        """Of one candidate: these keep none."""
        return {}

    def round_trips(self, number: int, count: int) -> list[float]:
        """Of calls to a candidate's agent: these have none."""
        return []


class Agents:
    """Ours: a candidate is an agent and a client of it. The first three agents are the seats."""

    pids: Sequence[int] = ()  # no server

    def __init__(self, settings: Mapping[str, Any], count: int, recorder: str, folder: Path) -> None:
        self._addresses = free_addresses(count)
        self._settings = {name: value for name, value in settings.items() if name not in OF_CLIENTS}
        self._asked = {"group": GROUP, **{name: settings[name] for name in OF_CLIENTS if name in settings}}
        self._recorder, self._folder = recorder, folder
        self._agents: dict[int, AgentProcess] = {}
        self._lives = 0

    def start(self, number: int) -> Candidate:
        self.launch(number)
        return self.with_client(number)

    def launch(self, number: int) -> None:
        """The agent alone; it is not waited for."""
        self._lives += 1
        home, state = self._folder / f"a{self._lives}", self._folder / f"state{number}"
        settings = {"group": GROUP, "bind": self._addresses[number], "seeds": self._addresses[:SEEDS], "state_dir": str(state)}
        self._agents[number] = AgentProcess(home, name=f"a{number}", **settings, **self._settings)

    def with_client(self, number: int) -> Candidate:
        agent = self._agents[number]
        agent.until_it_answers()
        return Candidate(agent, Worker("holdfast", self._recorder, {**self._asked, "agent": agent.socket}, self._folder / "candidates.log"))

    def restart(self, number: int, *, alone: bool) -> Candidate:
        return self.with_client(number) if alone else self.start(number)

    def until_whole(self) -> None:
        """Each lists all as members, and all seats vote: one that was killed waits as long as it may have promised."""
        for number, agent in self._agents.items():
            agent.until_it_answers()
            until(lambda: formed(agent, len(self._agents)), f"{agent.socket} knows all", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
            if number < SEEDS:
                until(lambda: serves(agent), f"the seat at {agent.socket} votes", LOOK_INTERVAL, agent.check)  # noqa: B023 - as above

    def end(self) -> None:
        """The agents, where no candidate of theirs is ended."""
        for agent in self._agents.values():
            agent.end()

    def counters(self, number: int) -> Mapping[str, float]:
        """What the agent of a candidate counted in its life."""
        found: Mapping[str, float] = self._agents[number].ask(calls.Info)["metrics"]
        return found

    def round_trips(self, number: int, count: int) -> list[float]:
        """Seconds of so many calls to the agent of a candidate, one after the other on one connection."""
        took = []
        with Line(self._agents[number].socket) as line:
            for _ in range(count):
                began_at = now()
                line.call(calls.Look)
                took.append(now() - began_at)
        return took


def serves(agent: AgentProcess) -> bool:
    """Its own seat may promise."""
    return any(seat.own and seat.state == "serving" for seat in agent.ask(calls.Seats))


@contextmanager
def installed(system: str, level: str, settings: Mapping[str, Any], count: int, recorder: str, folder: Path) -> Iterator[Installation]:
    """It begins with the block and ends with it, but for the candidates. ``settings`` are of our agents, over the level's."""
    if system == "holdfast":
        yield Agents({**HOLDFAST[level], **settings}, count, recorder, folder)
    elif system == "flock":
        (folder / "lock").touch()
        yield Plain(system, recorder, folder, [{"path": str(folder / "lock")}] * count, [])
    elif system == "zookeeper":
        asked = stock.ZOOKEEPER[level]
        with stock.zookeeper(folder, asked.servers) as it:
            yield Plain(system, recorder, folder, [{"hosts": ",".join(it.addresses), "timeout": asked.lease}] * count, it.pids)
    else:
        asked = stock.ETCD[level]
        with stock.etcd(folder, asked.servers) as it:
            turned = [it.addresses[number % stock.SERVERS :] + it.addresses[: number % stock.SERVERS] for number in range(count)]
            yield Plain(system, recorder, folder, [{"endpoints": each, "ttl": asked.lease} for each in turned], it.pids)
