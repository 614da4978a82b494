"""Metrics of an agent: its clients, its seats, its event loop, its process.  docs/http.md (metrics)."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.agent.observe.metrics import Metric, Sample, counter, gauge, histogram, labelled
from holdfast.events import Event, Paused
from holdfast.kit.histogram import Histogram

if TYPE_CHECKING:
    from holdfast.agent.life.agent import Agent
    from holdfast.agent.observe.sse import Feed

PROBE_INTERVAL = 0.5  # seconds between two looks at how late the loop is
LATENESS_BUCKETS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0)  # seconds; 0.1 counts as a pause
STATES = ("joining", "member", "leaving", "left")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Lateness:
    """How late the event loop serves: everything else that this process does waits as long."""

    def __init__(self) -> None:
        self.last = 0.0
        self.worst = 0.0
        self.pauses = 0  # as the host noticed them (F10)
        self.paused = 0.0  # seconds, of all of them
        self.paused_longest = 0.0
        self._all = Histogram(*LATENESS_BUCKETS)
        self._due = 0.0
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._arm()

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()

    def note(self, event: Event) -> None:
        if isinstance(event, Paused):
            self.pauses += 1
            self.paused += event.seconds
            self.paused_longest = max(self.paused_longest, event.seconds)

    def take(self, seconds: float) -> None:
        self.last = seconds
        self.worst = max(self.worst, seconds)
        self._all.add(seconds)

    def metrics(self) -> Iterable[Metric]:
        yield histogram("loop_lateness_seconds", "How late the event loop woke, looked at twice a second.", self._all)
        yield counter("pauses_total", "Times this process was stopped or too late to judge others.", self.pauses)
        yield counter("paused_seconds_total", "Seconds of these pauses.", self.paused)

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._due = loop.time() + PROBE_INTERVAL
        self._handle = loop.call_at(self._due, self._on_due)

    def _on_due(self) -> None:
        self.take(max(0.0, asyncio.get_running_loop().time() - self._due))
        self._arm()


def of_process() -> Iterable[Metric]:
    yield gauge("process_resident_memory_bytes", "Memory in use.", resident_bytes())
    yield counter("process_cpu_seconds_total", "CPU time, user and system.", time.process_time())
    yield gauge("process_open_fds", "Open file descriptors.", open_descriptors())


def resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0  # A system without /proc.


def open_descriptors() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - no path is wanted, only their number
    except OSError:
        return 0


def of_clients(agent: Agent) -> Iterable[Metric]:
    """What the agent counts of its clients."""
    numbers = agent.metrics()
    yield gauge("grants", "What clients of this agent hold or ask for.", len(agent.grants))
    yield labelled("grants_total", "counter", "What became of grants.", "what", _with_prefix(numbers, "grants_"))
    yield counter("log_lines_lost_total", "Log lines that were not read in time.", numbers.get("log_lines_lost", 0.0))
    yield gauge("up_seconds", "Seconds since this agent was started.", numbers.get("up_seconds", 0.0))


def of_seats(agent: Agent) -> Iterable[Metric]:
    """H189. Nothing where no seats are known."""
    if agent.seats is not None:
        yield gauge("seats", "Seats of the group.", len(agent.seats.slots))
        yield gauge("seats_voting", "Seats that vote, as far as this agent knows; below a majority nothing is granted.", agent.seats.voting)
        if agent.seats.own is not None:
            yield gauge("seat_voting", "1 while the seat of this agent votes.", float(agent.seats.state.name == "SERVING"))


def of_agent(agent: Agent, membership: Iterable[Metric], feed: Feed, lateness: Lateness, version: str) -> list[Metric]:
    """Everything, in the order in which it is shown. ``membership``: the metrics of its kind."""
    info = (("name", agent.me.name), ("group", agent.config.group), ("version", version))
    drops = {why.value: float(count) for why, count in agent.host.drops.items()}
    return [
        Metric("agent_info", "gauge", "Who this agent is.", (Sample(1.0, info),)),
        labelled(
            "agent_state", "gauge", "1 for the state this agent is in.", "state", {each: float(each == agent.state) for each in STATES}
        ),
        *membership,
        *of_clients(agent),
        *of_seats(agent),
        labelled("drops_total", "counter", "Messages that went no further, by reason.", "reason", drops),
        counter("events_published_total", "Events of this agent.", agent.emitted),
        gauge("event_subscribers", "Subscribers, this server included.", len(agent.events)),
        counter("events_lost_total", "Events that subscribers did not read in time.", agent.events.lost + feed.lost),
        gauge("http_streams", "Readers of /events.", feed.readers),
        *lateness.metrics(),
        *of_process(),
    ]


def _with_prefix(numbers: Mapping[str, float], prefix: str) -> dict[str, float]:
    return {name.removeprefix(prefix): value for name, value in numbers.items() if name.startswith(prefix)}
