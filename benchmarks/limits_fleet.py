"""What takes part in `limits`: agents or a Redis, and worker processes that want permits."""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import sys
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from benchmarks.agent_fleet import LOOK_INTERVAL, SEEDS, AgentProcess, formed, until
from benchmarks.harness import ROOT
from benchmarks.leadership_installation import serves
from benchmarks.limits_ways import ON_REDIS, OURS
from benchmarks.ring_fleet import LOOPBACK, NeverHappened, free_addresses

GROUP = "bench"
ANSWERED_WITHIN = 120.0  # seconds; only what is broken takes longer
SHOWN = 2000  # characters of a log


class Worker:
    """One process of ``limits_worker``."""

    def __init__(self, way: str, options: Mapping[str, Any], log: Path) -> None:
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.limits_worker", way, json.dumps(options)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1,
            )  # fmt: skip
        self._log = log
        self._file = Path()

    def until_ready(self) -> None:
        self._answer()

    def order(self, rate: float, at: float, until: float, file: Path) -> None:
        assert self._process.stdin is not None
        self._file = file
        self._process.stdin.write(json.dumps({"rate": rate, "at": at, "until": until, "file": str(file)}) + "\n")

    def permits(self) -> tuple[array[float], dict[str, Any]]:
        """Their instants, and what else is said of the run."""
        said = self._answer()
        found = array("d")
        found.frombytes(self._file.read_bytes())
        return found, said

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], ANSWERED_WITHIN)
        line = self._process.stdout.readline() if readable else ""
        if not line:
            said = self._log.read_text(errors="replace")[-SHOWN:]
            raise NeverHappened(f"a worker did not answer; it ended with {self._process.poll()} and said: {said}")
        answer: dict[str, Any] = json.loads(line)
        return answer


class Installation(Protocol):
    """What the workers of one way need. ``kill`` is by the names that ``victims`` has."""

    @property
    def victims(self) -> Sequence[str]: ...
    def options(self, number: int) -> Mapping[str, Any]:
        """Of the worker of this number."""

    def kill(self, victim: str) -> int | None:
        """-9; the number of the worker that dies too, None: all live on."""

    def revive(self, victim: str) -> None: ...


class Agents:
    """An agent for each worker; the first three of them are the seats."""

    def __init__(self, folder: Path, count: int, *, preset: str = "lan", rate: float = 0.0, burst: float = 0.0) -> None:
        self._folder, self._settings = folder, {"preset": preset}
        self._asked = {"group": GROUP, "rate": rate, "burst": burst}
        self._addresses = free_addresses(count)
        self._lives = 0
        self.agents: dict[int, AgentProcess] = {}
        last = count - 1
        self._at = {"agent": last, "seat": 1, "peer": last - 1}  # none of them serves the worker that wants most
        self.victims = (*self._at,)

    def begin(self) -> None:
        for number in range(len(self._addresses)):
            self._start(number)
        self._until_whole()

    def end(self) -> None:
        for agent in self.agents.values():
            agent.end()

    def options(self, number: int) -> Mapping[str, Any]:
        return {**self._asked, "agent": self.agents[number].socket}

    def kill(self, victim: str) -> int | None:
        self.agents[self._at[victim]].end()
        return self._at[victim] if victim == "peer" else None

    def revive(self, victim: str) -> None:
        self._start(self._at[victim])
        self._until_whole()

    def _start(self, number: int) -> None:
        self._lives += 1
        home, state, socket = self._folder / f"a{self._lives}", self._folder / f"state{number}", self._folder / f"s{number}"
        self.agents[number] = AgentProcess(
            home, name=f"a{number}", bind=self._addresses[number], seeds=self._addresses[:SEEDS], state_dir=str(state),
            socket=str(socket), group=GROUP, **self._settings,
        )  # fmt: skip

    def _until_whole(self) -> None:
        """Each lists all as members, and all seats vote."""
        for number, agent in self.agents.items():
            agent.until_it_answers()
            until(lambda: formed(agent, len(self.agents)), f"{agent.socket} knows all", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
            if number < SEEDS:
                until(lambda: serves(agent), f"the seat at {agent.socket} votes", LOOK_INTERVAL, agent.check)  # noqa: B023 - as above


class Redis:
    """One server of Debian, as it comes but for the disk: nothing is saved, so no write waits."""

    victims = ("redis",)

    def __init__(self, folder: Path, rate: float = 0.0, burst: float = 0.0) -> None:
        self._folder = folder
        (address,) = free_addresses(1)
        self.port = int(address.rpartition(":")[2])
        self._asked = {"port": self.port, "rate": rate, "burst": burst}
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        given = {"bind": LOOPBACK, "port": str(self.port), "save": "", "appendonly": "no", "dir": str(self._folder)}
        command = ["redis-server", *(word for name, value in given.items() for word in (f"--{name}", value))]
        log = self._folder / "redis.log"
        with log.open("ab") as out:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        until(self._serves, "Redis serves", LOOK_INTERVAL, self._check)

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def options(self, number: int) -> Mapping[str, Any]:
        return self._asked

    def kill(self, victim: str) -> int | None:
        self.end()
        return None

    def revive(self, victim: str) -> None:
        self.begin()

    def _serves(self) -> bool:
        from redis import RedisError

        from benchmarks.limits_ways import blocking_client

        with suppress(RedisError), blocking_client(self.port) as client:
            return bool(client.ping())
        return False

    def _check(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise NeverHappened(f"Redis ended: {(self._folder / 'redis.log').read_text()[-SHOWN:]}")


class Nothing:
    """A way that knows its own process alone: there is nothing to kill."""

    victims = ()

    def __init__(self, rate: float, burst: float, processes: int) -> None:
        self._asked = {"rate": rate, "burst": burst, "processes": processes}

    def options(self, number: int) -> Mapping[str, Any]:
        return self._asked

    def kill(self, victim: str) -> int | None:
        raise AssertionError(victim)

    def revive(self, victim: str) -> None:
        raise AssertionError(victim)


@contextmanager
def installed(way: str, folder: Path, processes: int, rate: float, burst: float, preset: str = "lan") -> Iterator[Installation]:
    if way == OURS:
        agents = Agents(folder, processes, preset=preset, rate=rate, burst=burst)
        try:
            agents.begin()
            yield agents
        finally:
            agents.end()
    elif way in ON_REDIS:
        redis = Redis(folder, rate, burst)
        try:
            redis.begin()
            yield redis
        finally:
            redis.end()
    else:
        yield Nothing(rate, burst, processes)


@contextmanager
def workers(way: str, installation: Installation, count: int, folder: Path) -> Iterator[list[Worker]]:
    """All ready, and gone at the end."""
    found: list[Worker] = []
    try:
        for number in range(count):
            found.append(Worker(way, installation.options(number), folder / "workers.log"))  # noqa: PERF401 - each that began must end
        for worker in found:
            worker.until_ready()
        yield found
    finally:
        for worker in found:
            worker.kill()


def redis_missing() -> str | None:
    return None if shutil.which("redis-server") else "Redis is not here: apt-get install redis-server"
