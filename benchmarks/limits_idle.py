"""What an agent needs for limits that are not used, for `limits`: CPU by the kernel's clocks, packets by the agents' own counters.

One half of the agents has a client with one limit, the other half has a client without, both in the same window of time;
then the halves change places (H240). Views come with the limit, and are part of what it adds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.agent_fleet import AgentProcess, cpu_seconds
from benchmarks.harness import show_progress
from benchmarks.limits_fleet import GROUP, Agents
from benchmarks.ring_fleet import now
from holdfast import sync
from holdfast.local import calls

MORE = 64  # limits, for what each of them needs


class Idle(NamedTuple):
    """How much of it."""

    preset: str = "lan"
    members: int = 8
    turns: int = 2  # in which each half has a limit once
    settle_seconds: float = 15.0  # after the start and after each change: views, and gossip comes to rest (limits D26)
    seconds: float = 30.0  # of each window


def measure(size: Idle, folder: Path) -> dict[str, Any]:
    agents = Agents(folder, size.members, preset=size.preset)
    try:
        agents.begin()
        groups = [sync.join(GROUP, agent=agent.socket) for agent in agents.agents.values()]
        try:
            return Watch(agents, groups, size).found()
        finally:
            for group in groups:
                group.leave()
    finally:
        agents.end()


class Watch:
    """One group, with and without limits."""

    def __init__(self, agents: Agents, groups: list[sync.Group], size: Idle) -> None:
        self._agents, self._groups, self._size = agents.agents, groups, size
        self._with: list[tuple[float, float]] = []  # core share and packets per second, of each agent and window
        self._without: list[tuple[float, float]] = []

    def found(self) -> dict[str, Any]:
        for turn in range(self._size.turns):
            for half in (0, 1):
                self._half(half, f"turn {turn + 1} of {self._size.turns}, half {half + 1}")
        cores, packets = (mean(each[column] for each in self._with) for column in (0, 1))
        bare_cores, bare_packets = (mean(each[column] for each in self._without) for column in (0, 1))
        return {
            "core_share": cores,
            "added_core_share": cores - bare_cores,
            "packets_s": packets - bare_packets,
            "all_packets_s": packets,
            "with": self._with,
            "without": self._without,
            **self._memory(),
        }

    def _half(self, half: int, what: str) -> None:
        limits = [group.limit("idle", rate=100.0, burst=10.0) for group in self._groups[half::2]]
        for limit in limits:
            limit.ready(60.0)
        for number, used in self._window(what).items():
            (self._with if number % 2 == half else self._without).append(used)
        for limit in limits:
            limit.close()

    def _window(self, what: str) -> Mapping[int, tuple[float, float]]:
        show_progress(f"idle: {what}")
        time.sleep(self._size.settle_seconds)
        packets = {number: packets_of(agent) for number, agent in self._agents.items()}  # around what is counted: asking costs, too
        cpu, began_at = {number: cpu_seconds(agent.pid) for number, agent in self._agents.items()}, now()
        time.sleep(self._size.seconds)
        cpu = {number: cpu_seconds(agent.pid) - cpu[number] for number, agent in self._agents.items()}
        seconds = now() - began_at
        return {number: (cpu[number] / seconds, (packets_of(agent) - packets[number]) / seconds) for number, agent in self._agents.items()}

    def _memory(self) -> dict[str, float]:
        """Of one agent: the first limit, which brings what limits import, and each of many more."""
        show_progress("idle: memory")
        agent, group = self._agents[len(self._agents) - 1], self._groups[-1]
        first = group.limit("idle", rate=100.0, burst=10.0)
        first.ready(60.0)
        time.sleep(self._size.settle_seconds)
        before = agent.rss_mib
        more = [group.limit(f"idle-{number}", rate=100.0, burst=10.0) for number in range(MORE)]
        for limit in more:
            limit.ready(60.0)
        time.sleep(self._size.settle_seconds)
        return {"rss_kib_per_limit": (agent.rss_mib - before) * 1024 / MORE, "rss_mib_with_one": before}


def packets_of(agent: AgentProcess) -> float:
    """Sent and received, by UDP."""
    metrics: Mapping[str, float] = agent.ask(calls.Info)["metrics"]
    return metrics["datagrams_sent"] + metrics["datagrams_received"]
