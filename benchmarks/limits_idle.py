"""What an agent needs for limits that are not used, for `limits`: CPU by the kernel's clocks, packets by the agents' own counters.

All agents have a client. After a window in which none has a limit, every second agent that is no seat is given one, and the
others have none in the same windows of time. What the first ones need more than before, less what the others need more,
is what a limit adds (H240); views come with it. An agent that has had a limit goes on to take part when the limit is closed, so
the halves cannot change places.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.agent_fleet import SEEDS, AgentProcess, cpu_seconds
from benchmarks.harness import show_progress
from benchmarks.limits_fleet import GROUP, Agents
from benchmarks.ring_fleet import now
from holdfast import sync
from holdfast.local import calls

MORE = 64  # limits, for what each of them needs


class Idle(NamedTuple):
    """How much of it."""

    preset: str = "lan"
    members: int = 8  # beside the seats
    turns: int = 3  # windows with limits
    settle_seconds: float = 15.0  # after the start and before each window: views, and gossip comes to rest (limits D26)
    seconds: float = 30.0  # of each window


class Used(NamedTuple):
    """By one agent, per second of a window."""

    core_share: float
    packets: float


def measure(size: Idle, folder: Path) -> dict[str, Any]:
    agents = Agents(folder, SEEDS + size.members, preset=size.preset)
    try:
        agents.begin()
        groups = {number: sync.join(GROUP, agent=agent.socket) for number, agent in agents.agents.items()}
        try:
            return Watch(agents, groups, size).found()
        finally:
            for group in groups.values():
                group.leave()
    finally:
        agents.end()


class Watch:
    """One group, before limits and with them."""

    def __init__(self, agents: Agents, groups: Mapping[int, sync.Group], size: Idle) -> None:
        self._agents, self._groups, self._size = agents.agents, groups, size
        members = [*groups][SEEDS:]
        self._with, self._without = members[::2], members[1::2]

    def found(self) -> dict[str, Any]:
        before = self._window("no limit")
        for number in self._with:
            self._groups[number].limit("idle", rate=100.0, burst=10.0).ready(60.0)
        windows = [self._window(f"window {turn + 1} of {self._size.turns}") for turn in range(self._size.turns)]
        cores, more_cores = self._judged(before, windows, "core_share")
        packets, more_packets = self._judged(before, windows, "packets")
        return {
            "core_share": cores,
            "added_core_share": more_cores,
            "packets_s": more_packets,
            "all_packets_s": packets,
            "windows": [{number: each._asdict() for number, each in window.items()} for window in (before, *windows)],
            **self._memory(),
        }

    def _judged(self, before: Mapping[int, Used], windows: Sequence[Mapping[int, Used]], what: str) -> tuple[float, float]:
        """What agents with a limit need, and what of that is more than it would be without."""

        def of(numbers: Sequence[int], *among: Mapping[int, Used]) -> float:
            return mean([float(getattr(window[number], what)) for window in among for number in numbers])

        needed = of(self._with, *windows)
        return needed, needed - of(self._with, before) - (of(self._without, *windows) - of(self._without, before))

    def _window(self, what: str) -> Mapping[int, Used]:
        show_progress(f"idle: {what}")
        time.sleep(self._size.settle_seconds)
        packets = {number: packets_of(agent) for number, agent in self._agents.items()}  # around what is counted: asking costs, too
        cpu, began_at = {number: cpu_seconds(agent.pid) for number, agent in self._agents.items()}, now()
        time.sleep(self._size.seconds)
        cpu = {number: cpu_seconds(agent.pid) - cpu[number] for number, agent in self._agents.items()}
        seconds = now() - began_at
        return {
            number: Used(cpu[number] / seconds, (packets_of(agent) - packets[number]) / seconds) for number, agent in self._agents.items()
        }

    def _memory(self) -> dict[str, float]:
        """Of one agent that has a limit: each of many more."""
        show_progress("idle: memory")
        agent, group = self._agents[self._with[0]], self._groups[self._with[0]]
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
