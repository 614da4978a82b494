"""One setting of `election-zookeeper` in a process and in namespaces of its own: ``python -m benchmarks.election_zookeeper_side SETTING
NODES``.

``SETTING`` is "holdfast", or "zookeeper" with the number of its servers. Every node has a program that asks to lead; with Holdfast it has
an agent too, with ZooKeeper the first so many nodes have a server. Orders come as lines of JSON and are answered by one line each:

    {"do": "usage", "since": 100, "until": 600}   what all nodes used in each second, and each node between these two
    {"do": "kill", "delay": 0.3}                  as in ``leadership_side``: the program that leads, with its agent if it has one
    {"do": "kill_server", "seconds": 20}          the server of ZooKeeper that leads: how long does no program act?
    {"do": "kill_most", "seconds": 60}            a majority of the servers, or of the agents with their programs: the same
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks import leadership_stock as stock
from benchmarks.agent_fleet import LOOK_INTERVAL, AgentProcess, formed, until
from benchmarks.election_zookeeper_nodes import Node, connected
from benchmarks.election_zookeeper_samples import Sampler, per_node, series
from benchmarks.leadership_installation import GROUP, Candidate, Worker
from benchmarks.leadership_record import Recorder
from benchmarks.leadership_side import LOOPBACK_UP, Side
from benchmarks.ring_fleet import PATIENCE, NeverHappened, now
from holdfast.local import calls

OURS, STOCK = "holdfast", "zookeeper"
PORT = 7946
CLIENTS, PEERS, ELECTIONS = 2181, 2888, 3888  # ports of ZooKeeper's documentation
ZOOKEEPER = {"tickTime": 2000, "initLimit": 5, "syncLimit": 2}  # the paper's, section VII.B
SESSION = 10.0  # seconds; kazoo's own timeout
PACE = 0.25  # seconds between two deeds of a leader: how exactly a silence is measured
SETTINGS: dict[str, Any] = {"membership": "gossip"}  # preset lan: a probe every second
SERVES_WITHIN = 180.0  # seconds, from its start
DOORS = 3  # members that one which comes back asks
SILENCE_LOOK = 0.02
ACTS_WITHIN = 4 * PACE  # seconds since its last deed


class Plainly:
    """What ``Side`` may ask of an installation and is not asked here."""

    def counters(self, number: int) -> Mapping[str, float]:
        return {}

    def round_trips(self, number: int, count: int) -> list[float]:
        return []


class Electing(Plainly):
    """Ours: an agent and a program on each node. They have no seat: the first agent begins the group, the others join it by call."""

    pids: Sequence[int] = ()  # no server

    def __init__(self, nodes: Sequence[Node], recorder: str, folder: Path) -> None:
        self._nodes, self._recorder, self._folder = nodes, recorder, folder
        self._agents: dict[int, AgentProcess] = {}
        self._lives = 0

    def start(self, number: int) -> Candidate:
        self._lives += 1
        node, home = self._nodes[number], self._folder / f"a{self._lives}"
        doors = [f"{self._nodes[other].address}:{PORT}" for other in self._agents if other != number]
        settings = {"group": GROUP, "name": f"n{number:02}", "bind": f"{node.address}:{PORT}", **SETTINGS}
        agent = self._agents[number] = AgentProcess(home, before=node.words, **settings)
        agent.until_it_answers()
        if doors:
            until(lambda: formed(agent, 1), f"{agent.socket} is alone", LOOK_INTERVAL, agent.check)
            agent.ask(calls.Join, tuple(doors[:DOORS]), PATIENCE)
        options = {"group": GROUP, "agent": agent.socket, "grace": 0.0, "by": "election", "pace": PACE}
        return Candidate(agent, Worker(OURS, self._recorder, options, self._folder / "candidates.log", node.words))

    def restart(self, number: int, *, alone: bool) -> Candidate:
        assert not alone, "the program ends with its agent"
        return self.start(number)

    def until_whole(self) -> None:
        for agent in self._agents.values():
            until(lambda: formed(agent, len(self._agents)), f"{agent.socket} knows all", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here

    def kill_most(self, candidates: Mapping[int, Candidate], leader: int) -> None:
        """The leader is one of them."""
        others = [number for number in candidates if number != leader]
        for number in [leader, *others][: len(candidates) // 2 + 1]:
            candidates[number].kill()


class Served(Plainly):
    """ZooKeeper: a server on each of the first nodes, and a program on every node, which prefers the server of its own node."""

    def __init__(self, nodes: Sequence[Node], count: int, recorder: str, folder: Path) -> None:
        self._nodes, self._recorder, self._folder = nodes, recorder, folder
        self._addresses = [f"{node.address}:{CLIENTS}" for node in nodes[:count]]
        self._servers = [self._server(node) for node in nodes[:count]]

    @property
    def pids(self) -> list[int]:
        return [server.pid for server in self._servers]

    def start(self, number: int) -> Candidate:
        first = number % len(self._addresses)
        hosts = [*self._addresses[first:], *self._addresses[:first]]
        options = {"hosts": ",".join(hosts), "timeout": SESSION, "in_order": True, "pace": PACE}
        log = self._folder / "candidates.log"
        return Candidate(Worker(STOCK, self._recorder, options, log, self._nodes[number].words))

    def restart(self, number: int, *, alone: bool) -> Candidate:
        return self.start(number)

    def until_whole(self) -> None:
        """On a busy machine a server misses its ten seconds to follow (initLimit), and tries again."""
        end_at = now() + SERVES_WITHIN
        for server, address in zip(self._servers, self._addresses, strict=True):
            while not stock.zookeeper_mode(address):
                server.check()
                if now() >= end_at:
                    raise NeverHappened(f"never happened: {server.name} serves")
                time.sleep(LOOK_INTERVAL)

    def leader(self) -> stock.Server:
        """Asked from outside: that are two small packets of each server."""
        modes = zip(self._servers, map(stock.zookeeper_mode, self._addresses), strict=True)
        return next(server for server, mode in modes if mode == "leader")

    def kill_most(self, candidates: Mapping[int, Candidate], leader: int) -> None:
        """Servers alone, the one that leads among them. All programs live."""
        first = self.leader()
        for server in [first, *(each for each in self._servers if each is not first)][: len(self._servers) // 2 + 1]:
            server.end()

    def end(self) -> None:
        for server in self._servers:
            server.end()

    def _server(self, node: Node) -> stock.Server:
        name = f"zookeeper{node.number + 1}"
        home = self._folder / name
        home.mkdir()
        (home / "myid").write_text(f"{node.number + 1}\n")
        hosts = [address.partition(":")[0] for address in self._addresses]
        peers, elections = ([f"{host}:{port}" for host in hosts] for port in (PEERS, ELECTIONS))
        text = stock.zookeeper_cfg(home, self._addresses[node.number], peers, elections, ZOOKEEPER)
        (self._folder / f"{name}.cfg").write_text(text)
        command = [*node.words, "java", *stock.JVM, "-cp", str(stock.ZOOKEEPER_JAR), stock.MAIN, f"{name}.cfg"]
        return stock.Server(name, command, self._folder)


class Setting(Side):
    """The programs at work, with what all nodes use."""

    def __init__(self, installation: Electing | Served, recorder: Recorder, sampler: Sampler, count: int) -> None:
        super().__init__(installation, recorder, count)
        self._installation, self._sampler = installation, sampler

    def usage(self, since: float, until: float) -> dict[str, Any]:
        looks = list(self._sampler.looks)
        return {"series": series(looks), "nodes": per_node(looks, since, until)}

    def kill_server(self, seconds: float) -> dict[str, Any]:
        """It comes back when so much time has passed."""
        assert isinstance(self._installation, Served)
        self._installation.until_whole()
        server = self._installation.leader()
        found = self._silence(seconds, server.end)
        server.start()
        self._installation.until_whole()
        return found

    def kill_most(self, seconds: float) -> dict[str, Any]:
        """None of them comes back."""
        self._installation.until_whole()
        leader, _ = self._holder()
        return self._silence(seconds, lambda: self._installation.kill_most(self.candidates, leader))

    def _silence(self, seconds: float, kill: Callable[[], None]) -> dict[str, Any]:
        """The longest time between two deeds, of whatever programs, from the last one before a kill on; and whether another one acts."""
        _, former = self._holder()
        killed_at = now()
        kill()
        last, longest = former.last_at, 0.0
        while now() < killed_at + seconds:
            time.sleep(SILENCE_LOOK)
            latest = max(reign.last_at for reign in self._recorder.record.reigns)
            longest, last = max(longest, latest - last), latest
        silent = now() - last
        latter = self._recorder.record.reigns[-1]
        return {"silence": max(longest, silent), "acts": silent < ACTS_WITHIN, "changed": latter.pid != former.pid}


def serve(setting: str, count: int) -> None:
    with TemporaryDirectory(prefix="hf-") as name, ExitStack() as stack:
        folder = Path(name)
        recorder = stack.enter_context(Recorder(folder / "r"))
        nodes = stack.enter_context(connected(count))
        servers = servers_of(setting)
        sampler = stack.enter_context(Sampler(nodes, tcp_alone=servers > 0))
        installation: Electing | Served
        if servers:
            installation = Served(nodes, servers, recorder.path, folder)
            stack.callback(installation.end)
            installation.until_whole()
        else:
            installation = Electing(nodes, recorder.path, folder)
        side = Setting(installation, recorder, sampler, count)
        stack.callback(side.end)
        side.begin()
        _say({"began_at": sampler.began_at, "stands_s": now() - sampler.began_at})
        for line in sys.stdin:
            order = json.loads(line)
            acts: dict[str, Callable[..., dict[str, Any]]] = {
                "usage": side.usage, "kill": side.kill, "kill_server": side.kill_server, "kill_most": side.kill_most, "sums": side.sums,
            }  # fmt: skip
            _say(acts[order.pop("do")](**order))


def servers_of(setting: str) -> int:
    """Of ZooKeeper; none with Holdfast."""
    return 0 if setting == OURS else int(setting.removeprefix(STOCK))


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def main() -> None:
    _, setting, count = sys.argv
    subprocess.run(LOOPBACK_UP, check=True)
    try:
        serve(setting, int(count))
    except NeverHappened as error:
        _say({"broken": str(error)})


if __name__ == "__main__":
    main()
