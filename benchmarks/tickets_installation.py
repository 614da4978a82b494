"""What takes part in `tickets`: servers or agents that agree, and clients that can be killed and started again."""

from __future__ import annotations

import json
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from benchmarks import leadership_stock as stock
from benchmarks.agent_fleet import LOOK_INTERVAL, SEEDS, AgentProcess, formed, until
from benchmarks.harness import ROOT
from benchmarks.leadership_installation import GROUP, serves
from benchmarks.ring_fleet import LOOPBACK, NeverHappened, free_addresses, now

ANSWERED_WITHIN = 120.0  # seconds; only what is broken takes longer
HOSTS = 2  # of ours: machines with clients, beside those of the seats, as ZooKeeper's clients are beside its servers


class RedisLevel(NamedTuple):
    """What a client asks for, in seconds: redis-py has no shortest lease, and polls."""

    timeout: float
    sleep: float


REDIS = {
    "smallest": RedisLevel(timeout=1.0, sleep=0.1),  # the poll is redis-py's own
    "tuned": RedisLevel(timeout=0.5, sleep=0.01),  # as short as the tuned session of ZooKeeper
}
HOLDFAST: dict[str, dict[str, Any]] = {
    "smallest": {},  # preset lan, as it comes
    "tuned": {"preset": "local"},
}


def missing() -> list[str]:
    """What has to be installed before all can be compared; empty if it is there."""
    found = stock.missing()
    if shutil.which("redis-server") is None:
        found.append("Redis is not here: apt-get install redis-server")
    if find_spec("redis") is None:
        found.append("redis-py is not here: pip install redis")
    if shutil.which("strace") is None:
        found.append("strace is not here, and without it the syncs are not seen: apt-get install strace")
    return found


class Client:
    """One process with one locker. What it is told and what it answers are lines of JSON."""

    def __init__(self, system: str, options: Mapping[str, Any], log: Path) -> None:
        command = [sys.executable, "-m", "benchmarks.tickets_client", system, json.dumps(options)]
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, bufsize=1
            )
        self._log = log
        self.pid = self._process.pid

    def order(self, **fields: Any) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # What it died of is in the answer.
            self._process.stdin.write(json.dumps(fields) + "\n")

    def answer(self, within: float = ANSWERED_WITHIN) -> Any:
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], within)[0]:
            raise NeverHappened(f"never happened: a client answers; it said: {self._said()}")
        line = self._process.stdout.readline()
        if not line:
            raise NeverHappened(f"a client ended ({self._process.wait()}): {self._said()}")
        return json.loads(line)

    def ask(self, **fields: Any) -> Any:
        self.order(**fields)
        return self.answer()

    def kill(self) -> float:
        """SIGKILL; the instant before it."""
        at = now()
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        return at

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-stock.SHOWN :]


class Installation(Protocol):
    """Who has to agree (``voters``), and clients of it. Voters are killed and come back by their number."""

    @property
    def voters(self) -> Sequence[int]:
        """Process ids."""

    def client(self, number: int) -> Client: ...
    def kill_voter(self, number: int) -> float: ...
    def revive_voter(self, number: int) -> None: ...
    def kill_host(self, number: int) -> None:
        """What stands beside the client of this number on its machine, if anything."""

    def revive_host(self, number: int) -> None: ...


class Served:
    """Clients of servers; a client is one process."""

    def __init__(self, system: str, ensemble: stock.Ensemble | None, options: Sequence[Mapping[str, Any]], folder: Path) -> None:
        self._system, self._it, self._options, self._log = system, ensemble, options, folder / "clients.log"

    @property
    def voters(self) -> list[int]:
        return [] if self._it is None else self._it.pids

    def client(self, number: int) -> Client:
        return Client(self._system, self._options[number % len(self._options)], self._log)

    def kill_voter(self, number: int) -> float:
        assert self._it is not None
        at = now()
        self._it.servers[number].end()
        return at

    def revive_voter(self, number: int) -> None:
        assert self._it is not None
        self._it.servers[number].start()
        self._it.until_serving()

    def kill_host(self, number: int) -> None:
        """Nothing stands beside a client."""

    def revive_host(self, number: int) -> None:
        """As above."""


class Agents:
    """Ours: three agents are the seats; the others have clients."""

    def __init__(self, settings: Mapping[str, Any], folder: Path) -> None:
        self._settings, self._folder = settings, folder
        self._addresses = free_addresses(SEEDS + HOSTS)
        self._agents: dict[int, AgentProcess] = {}
        self._lives = 0

    def begin(self) -> None:
        for number in range(len(self._addresses)):
            self._start(number)
        self._until_whole()

    def end(self) -> None:
        for agent in self._agents.values():
            agent.end()

    @property
    def voters(self) -> list[int]:
        return [self._agents[number].pid for number in range(SEEDS)]

    def client(self, number: int) -> Client:
        agent = self._agents[self._host(number)]
        return Client("holdfast", {"group": GROUP, "agent": agent.socket}, self._folder / "clients.log")

    def kill_voter(self, number: int) -> float:
        at = now()
        self._agents[number].end()
        return at

    def revive_voter(self, number: int) -> None:
        self._start(number)
        self._until_whole()

    def kill_host(self, number: int) -> None:
        self._agents[self._host(number)].end()

    def revive_host(self, number: int) -> None:
        self._start(self._host(number))
        self._until_whole()

    def _host(self, number: int) -> int:
        return SEEDS + number % HOSTS

    def _start(self, number: int) -> None:
        self._lives += 1
        home, state = self._folder / f"a{self._lives}", self._folder / f"state{number}"
        settings = {"group": GROUP, "bind": self._addresses[number], "seeds": self._addresses[:SEEDS], "state_dir": str(state)}
        self._agents[number] = AgentProcess(home, name=f"a{number}", **settings, **self._settings)

    def _until_whole(self) -> None:
        """Each lists all as members, and all seats vote: one that was killed waits as long as it may have promised."""
        for number, agent in self._agents.items():
            agent.until_it_answers()
            until(lambda: formed(agent, len(self._agents)), f"{agent.socket} knows all", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
            if number < SEEDS:
                until(lambda: serves(agent), f"the seat at {agent.socket} votes", LOOK_INTERVAL, agent.check)  # noqa: B023 - as above


@contextmanager
def installed(system: str, level: str, folder: Path) -> Iterator[Installation]:
    """It begins with the block and ends with it, but for the clients."""
    if system == "holdfast":
        agents = Agents(HOLDFAST[level], folder)
        try:
            agents.begin()
            yield agents
        finally:
            agents.end()
    elif system == "flock":
        yield Served(system, None, [{"folder": str(folder)}], folder)
    elif system == "redis":
        with redis(folder) as it:
            host, _, port = it.addresses[0].rpartition(":")
            yield Served(system, it, [{"host": host, "port": int(port), **REDIS[level]._asdict()}], folder)
    elif system == "zookeeper":
        asked = stock.ZOOKEEPER[level]
        with stock.zookeeper(folder, asked.servers) as it:
            yield Served(system, it, [{"hosts": ",".join(it.addresses), "timeout": asked.lease}], folder)
    else:
        asked = stock.ETCD[level]
        with stock.etcd(folder, asked.servers) as it:
            turned = [it.addresses[number:] + it.addresses[:number] for number in range(stock.SERVERS)]
            yield Served(system, it, [{"endpoints": each, "ttl": asked.lease} for each in turned], folder)


@contextmanager
def redis(folder: Path) -> Iterator[stock.Ensemble]:
    """One server that syncs every write before it answers, and writes nothing else. Redis knows no majority: when it dies it must come
    back, with its file."""
    (address,) = free_addresses(1)
    given = {"bind": LOOPBACK, "port": address.rpartition(":")[2], "appendonly": "yes", "appendfsync": "always", "save": ""}
    command = ["redis-server", *(word for name, value in given.items() for word in (f"--{name}", value))]
    with stock.running({"redis": command}, folder) as servers:
        it = stock.Ensemble(servers, [address], _serves_redis)
        it.until_serving()
        yield it


def _serves_redis(address: str) -> bool:
    import redis as client

    host, _, port = address.rpartition(":")
    try:
        with client.Redis(host=host, port=int(port)) as line:
            return bool(line.ping())
    except client.RedisError:
        return False
