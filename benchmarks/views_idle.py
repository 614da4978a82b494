"""What views add to idle agents, for `views`: CPU by the kernel's clocks, packets by the agents' own counters.

One half of the members has a client that asks for views, the other half does not, both in the same window of time; then
the halves change places. What a member needs with views, less what the same member needs without, is what views add.
Packets are those sent and those received. Of the seats there is a window before the first client asked for views, one for
each half, and one with a crowd at one of them (H240).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.agent_fleet import KEY, LOOK_INTERVAL, AgentProcess, cpu_seconds, formed, until
from benchmarks.harness import ROOT, show_progress
from benchmarks.ring_fleet import NeverHappened, now
from benchmarks.views_fleet import HEARTBEATS, ViewFleet, names_at
from holdfast.local import calls

ROUNDING = 5
GROUP = "bench"


class Idle(NamedTuple):
    """How much of it."""

    preset: str = "lan"
    seats: int = 3
    members: int = 12
    crowd: int = 64
    turns: int = 2  # in which each half has views once
    settle_seconds: float = 12.0  # after the group was formed, and after each change
    seconds: float = 30.0  # of each window


class Used(NamedTuple):
    """By one agent, per second of a window."""

    core_share: float
    packets: float


def measure(size: Idle, folder: Path) -> dict[str, Any]:
    fleet = ViewFleet(folder, size.seats, size.members, preset=size.preset, group=GROUP)
    try:
        fleet.begin()
        return Watch(fleet, size).found()
    finally:
        fleet.end()


class Watch:
    """One group, with and without views."""

    def __init__(self, fleet: ViewFleet, size: Idle) -> None:
        self._fleet, self._size = fleet, size
        self._with: dict[str, list[Used]] = {name: [] for name in fleet.members}
        self._without: dict[str, list[Used]] = {name: [] for name in fleet.members}

    def found(self) -> dict[str, Any]:
        fleet = self._fleet
        for agent in fleet.agents.values():
            until(lambda: formed(agent, len(fleet.agents)), f"{agent.socket} knows all", LOOK_INTERVAL, agent.check)  # noqa: B023 - called here
        before = self._window("nobody asks for views")
        seats = [self._half(half, turn) for turn in range(self._size.turns) for half in (0, 1)]
        crowded = self._crowded()
        added = {name: _less(_mean(self._with[name]), _mean(self._without[name])) for name in fleet.members}
        first = fleet.seats[0]
        return {
            "core_share": mean(each.core_share for each in added.values()),
            "packets_s": mean(each.packets for each in added.values()),
            "core_share_worst": max(each.core_share for each in added.values()),
            "with": _mean([each for found in self._with.values() for each in found])._asdict(),
            "without": _mean([each for found in self._without.values() for each in found])._asdict(),
            "seat": _less(
                _mean([each[name] for each in seats for name in fleet.seats]), _mean([before[name] for name in fleet.seats])
            )._asdict(),
            "seat_clients": self._size.members / 2 / self._size.seats,
            "crowded_seat": _less(crowded[first], before[first])._asdict(),
            "core_shares": {name: round(each.core_share, ROUNDING) for name, each in added.items()},
        }

    def _half(self, half: int, turn: int) -> Mapping[str, Used]:
        """Members of an even or of an odd number have views; what the seats used."""
        fleet = self._fleet
        for name in fleet.members[half::2]:
            fleet.ask(name)
        fleet.until_whole()
        found = self._window(f"turn {turn + 1} of {self._size.turns}, half {half + 1}")
        for number, name in enumerate(fleet.members):
            (self._with if number % 2 == half else self._without)[name].append(found[name])
        for name in [*fleet.clients]:
            fleet.withdraw(name)
        return found

    def _crowded(self) -> Mapping[str, Used]:
        """All of the crowd have the first seat as their server."""
        names = [*islice(names_at(self._fleet.slots, 0, "c"), self._size.crowd)]
        with crowd(self._fleet, names, HEARTBEATS[self._size.preset]):
            return self._window(f"a crowd of {len(names)}")

    def _window(self, what: str) -> dict[str, Used]:
        show_progress(f"idle: {what}")
        self._fleet.pass_time(self._size.settle_seconds)
        agents = self._fleet.agents
        packets = {name: packets_of(agent) for name, agent in agents.items()}  # before and after what is counted: asking costs, too
        cpu, began_at = {name: cpu_seconds(agent.pid) for name, agent in agents.items()}, now()
        self._fleet.pass_time(self._size.seconds)
        cpu = {name: cpu_seconds(agent.pid) - cpu[name] for name, agent in agents.items()}
        seconds = now() - began_at
        return {name: Used(cpu[name] / seconds, (packets_of(agent) - packets[name]) / seconds) for name, agent in agents.items()}


def packets_of(agent: AgentProcess) -> float:
    """Sent and received, by UDP."""
    metrics: Mapping[str, float] = agent.ask(calls.Info)["metrics"]
    return metrics["datagrams_sent"] + metrics["datagrams_received"]


@contextmanager
def crowd(fleet: ViewFleet, names: Sequence[str], heartbeat: float) -> Iterator[None]:
    """Its clients are in one view."""
    words = [GROUP, KEY, str(heartbeat), ",".join(fleet.seeds), ",".join(names)]
    command = [sys.executable, "-m", "benchmarks.views_crowd", *words]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise NeverHappened(f"the crowd ended with {process.wait()}; what it said is above")
        yield
    finally:
        process.kill()
        process.communicate()


def _mean(found: Sequence[Used]) -> Used:
    return Used(mean(each.core_share for each in found), mean(each.packets for each in found))


def _less(one: Used, other: Used) -> Used:
    return Used(one.core_share - other.core_share, one.packets - other.packets)
