"""Agents and clients of `tickets-storm`, and what is done to them: killed, stopped, continued, cut off from each other.

All agents are on one machine, each with a loopback address of its own, so that the kernel's filter can tell them apart: a cut drops what
one address sends to another. That needs a network namespace of our own; without one no agent is cut off, and the report says so.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

from benchmarks.agent_fleet import LOOK_INTERVAL, SEEDS, AgentProcess, until
from benchmarks.harness import ROOT
from benchmarks.leadership_installation import serves
from benchmarks.ring_fleet import now

GROUP, POOL = "storm", "gpu"
CLIENT = "benchmarks.tickets_storm_client"
TABLE = "add table inet storm; add chain inet storm arriving { type filter hook input priority 0; }"
HEAL = "flush chain inet storm arriving"
DOWN = (0.3, 4.0)  # seconds until a killed agent is started again
STOPPED = (0.3, 5.0)  # seconds of SIGSTOP: shorter and longer than a lease
CUT = (1.0, 6.0)  # seconds
CUTTING = ("cut", "split")  # faults that need the kernel's filter
TROUBLED_MAX = 2  # agents at a time; more would leave no majority for most of the run, and nothing to be seen
STEP = 0.05


class Storm(NamedTuple):
    """Who takes part."""

    agents: int = 5
    tickets: int = 8
    clients: int = 20
    preset: str = "local"
    agent_module: str = "holdfast.agent"
    manner: str = ""  # of the clients
    faults: tuple[str, ...] = ("kill", "stop", "cut", "split", "kill_client", "stop_client")
    interval: tuple[float, float] = (0.3, 1.5)  # seconds between two of them


class Crew:
    """All agents, started; addressed by number."""

    def __init__(self, storm: Storm, folder: Path, seed: int) -> None:
        self._storm, self._folder, self._random = storm, folder, Random(f"{seed} crew")
        self.records = folder / "records"
        self.records.mkdir()
        self.addresses = [_address(f"127.0.1.{number + 1}") for number in range(storm.agents)]
        self.agents: dict[int, AgentProcess] = {}
        self.clients: dict[int, subprocess.Popen[bytes]] = {}
        self._lives: Counter[str] = Counter()
        self.can_cut = os.getpid() == 1 and shutil.which("nft") is not None
        if self.can_cut:
            _nft(TABLE)

    def begin(self) -> None:
        for number in range(self._storm.agents):
            self.start_agent(number)
        for number, agent in self.agents.items():
            agent.until_it_answers()
            if number < SEEDS:
                until(lambda: serves(agent), f"seat {number} votes", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
        for number in range(self._storm.clients):
            self.start_client(number)

    def start_agent(self, number: int) -> None:
        self._lives["agents"] += 1
        home = self._folder / f"a{self._lives['agents']}"
        self.agents[number] = AgentProcess(
            home, module=self._storm.agent_module, group=GROUP, name=f"a{number}", preset=self._storm.preset, bind=self.addresses[number],
            seeds=self.addresses[:SEEDS], state_dir=str(self._folder / f"state{number}"), socket=self.socket(number),
        )  # fmt: skip

    def start_client(self, number: int) -> None:
        self._lives["clients"] += 1
        record = self.records / f"{self._lives['clients']:05}"
        words = [self.socket(number % self._storm.agents), GROUP, POOL, str(self._storm.tickets), str(record)]
        command = [sys.executable, "-m", CLIENT, *words, str(self._random.getrandbits(32)), self._storm.manner]
        with (self._folder / "clients.log").open("ab") as log:
            self.clients[number] = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def socket(self, number: int) -> str:
        """The same for all lives of an agent: its clients find it again."""
        return str(self._folder / f"s{number}")

    def cut(self, one: int, other: int) -> None:
        """Both ways."""
        for sender, receiver in ((one, other), (other, one)):
            source, destination = (self.addresses[number].partition(":")[0] for number in (sender, receiver))
            _nft(f"add rule inet storm arriving ip saddr {source} ip daddr {destination} drop")

    def heal(self) -> None:
        if self.can_cut:
            _nft(HEAL)

    def end_clients(self) -> None:
        for client in self.clients.values():
            client.send_signal(signal.SIGCONT)
            client.kill()
        for client in self.clients.values():
            client.wait()
        self.clients.clear()

    def end(self) -> None:
        self.end_clients()
        for agent in self.agents.values():
            with suppress(ProcessLookupError):
                os.kill(agent.pid, signal.SIGCONT)
            agent.end()


class Weather:
    """Draws faults and ends them again, until it is told to clear up."""

    def __init__(self, crew: Crew, storm: Storm, seed: int) -> None:
        self._crew, self._storm, self._random = crew, storm, Random(f"{seed} weather")
        self._ends: list[tuple[float, Callable[[], None]]] = []  # what ends a fault, and when
        self._troubled: set[int] = set()  # agents that are down or stand still
        self._cuts = 0
        self.counts: Counter[str] = Counter()

    def blow(self, seconds: float) -> None:
        """For so long, and until every kind of fault that is possible here has happened: first each of them once, then by chance."""
        end_at, due_at = now() + seconds, now()
        kinds = [kind for kind in self._storm.faults if self._crew.can_cut or kind not in CUTTING]
        owed = self._random.sample(kinds, len(kinds))
        while now() < end_at or owed:
            if kinds and now() >= due_at:
                due_at = now() + self._random.uniform(*self._storm.interval)
                happened = getattr(self, f"_{owed[0] if owed else self._random.choice(kinds)}")()
                owed = owed[1:] if happened else owed  # Too many may be in trouble just now; that ends by itself.
            self._end(now())
            time.sleep(STEP)

    def clear(self) -> None:
        """Everything that was broken is mended."""
        self._end(float("inf"))

    def _end(self, at: float) -> None:
        due = [end for end in self._ends if end[0] <= at]
        self._ends = [end for end in self._ends if end[0] > at]
        for _, mend in sorted(due, key=lambda end: end[0]):
            mend()

    def _later(self, span: tuple[float, float], mend: Callable[[], None]) -> None:
        self._ends.append((now() + self._random.uniform(*span), mend))

    def _healthy(self) -> int | None:
        """An agent to which something may happen."""
        found = [number for number in self._crew.agents if number not in self._troubled]
        return self._random.choice(found) if len(self._troubled) < TROUBLED_MAX else None

    # Each says whether it happened.

    def _kill(self) -> bool:
        number = self._healthy()
        if number is None:
            return False
        self._crew.agents[number].end()
        return self._in_trouble(number, DOWN, lambda: self._crew.start_agent(number), "agents killed")

    def _stop(self) -> bool:
        number = self._healthy()
        if number is None:
            return False
        pid = self._crew.agents[number].pid
        os.kill(pid, signal.SIGSTOP)
        return self._in_trouble(number, STOPPED, lambda: os.kill(pid, signal.SIGCONT), "agents stopped")

    def _in_trouble(self, number: int, span: tuple[float, float], mend: Callable[[], None], what: str) -> bool:
        def end() -> None:
            mend()
            self._troubled.discard(number)

        self._troubled.add(number)
        self.counts[what] += 1
        self._later(span, end)
        return True

    def _cut(self) -> bool:
        one, other = self._random.sample([*self._crew.agents], 2)
        self._crew.cut(one, other)
        return self._cut_off("links cut")

    def _split(self) -> bool:
        numbers = [*self._crew.agents]
        self._random.shuffle(numbers)
        size = self._random.randint(1, len(numbers) // 2)
        for one in numbers[:size]:
            for other in numbers[size:]:
                self._crew.cut(one, other)
        return self._cut_off("partitions")

    def _cut_off(self, what: str) -> bool:
        """Healed when the last cut has ended: the filter forgets all of them at once."""
        self._cuts += 1
        self.counts[what] += 1
        self._later(CUT, self._healed)
        return True

    def _healed(self) -> None:
        self._cuts -= 1
        if self._cuts == 0:
            self._crew.heal()

    def _kill_client(self) -> bool:
        number = self._random.choice([*self._crew.clients])
        client = self._crew.clients[number]
        client.kill()
        client.wait()
        self._crew.start_client(number)
        self.counts["clients killed"] += 1
        return True

    def _stop_client(self) -> bool:
        client = self._random.choice([*self._crew.clients.values()])
        client.send_signal(signal.SIGSTOP)
        self.counts["clients stopped"] += 1
        self._later(STOPPED, lambda: client.send_signal(signal.SIGCONT))
        return True


def _address(host: str) -> str:
    with socket.socket() as each:
        each.bind((host, 0))
        return f"{host}:{each.getsockname()[1]}"


def _nft(rules: str) -> None:
    subprocess.run(["nft", rules], check=True, capture_output=True)
