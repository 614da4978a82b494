"""`http-load`: does an agent keep what it holds while strangers ask it as fast as they can?

Three agents at the preset `lan` with a key, state directories and three seats; a client of one of them leads a name and holds a ticket.
That agent is hammered, one kind after the other, for a minute each: 100 connections that ask for `/metrics`, `/` and `/v1/events` without
a pause, 100 that connect anew for each request, 20 with 64 requests sent at once, 60 readers of `/events` with the pulse of the page,
and 1, 8 and 64 clients of the local socket that send calls as fast as the kernel takes them. The agent keeps all the events it can.

    held_share       kinds of load under which the term and the ticket were never lost, and the membership neither / all kinds
    lateness_p99_ms  of the agent's event loop under the worst kind, as a client sees it that asks for a key every 20 ms: its answer's time
    pauses           times that the agent noticed that it stood still (F10: 0.1 s), under all kinds together
    probe_worst_s    longest time until `/healthz` was answered, asked once a second on a new connection
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.agent_fleet import SEEDS, AgentProcess, formed, until
from benchmarks.harness import ROOT, Report, at_least, at_most, show_progress
from benchmarks.ring_fleet import free_addresses
from holdfast import sync
from holdfast.client.line import Line
from holdfast.local import calls

GOALS = {"held_share": at_least(1.0), "lateness_p99_ms": at_most(50), "pauses": at_most(0), "probe_worst_s": at_most(3)}
LOOK_INTERVAL = 0.02  # seconds between two questions about the lateness
PROBE_INTERVAL = 1.0
PROBE_TIMEOUT = 10.0
HOLD_TIMEOUT = 60.0
EVENTS = 600  # more than `/v1/events` gives at once


class Load(NamedTuple):
    """One kind."""

    kind: str
    connections: int
    path: str = ""


LOADS = {
    "idle": Load("", 0),
    "metrics": Load("http", 100, "/metrics"),
    "page": Load("http", 100, "/"),
    "events": Load("http", 100, "/v1/events?limit=512&internal=true"),
    "fresh": Load("fresh", 100, "/metrics"),
    "piped": Load("piped", 20, "/metrics"),
    "streams": Load("stream", 60, "/events?pulse=true&internal=true"),
    "local": Load("local", 1),
    "local-8": Load("local", 8),
    "local-64": Load("local", 64),
}


class Size(NamedTuple):
    """How long of each."""

    seconds: float = 60.0


SIZE = Size()
QUICK = Size(5.0)


def run(rounds: int = 1, size: Size = SIZE) -> Report:
    del rounds
    with TemporaryDirectory() as folder, group(Path(folder)) as agents, sync.join("bench", agent=agents[0].socket) as client:
        with client.lead("job", timeout=HOLD_TIMEOUT) as term, client.ticket("gpus", of=8, timeout=HOLD_TIMEOUT) as ticket:
            fill(client)
            found = {name: under(load, agents, (term, ticket), size.seconds) for name, load in LOADS.items()}
    loaded = {name: each for name, each in found.items() if name != "idle"}
    ratios = {
        "held_share": sum(each["held"] for each in loaded.values()) / len(loaded),
        "lateness_p99_ms": max(each["answer_p99_ms"] for each in loaded.values()),
        "pauses": float(sum(each["pauses"] for each in loaded.values())),
        "probe_worst_s": max(each["probe_worst_s"] for each in loaded.values()),
    }
    return Report("http-load", GOALS, ratios, {**size._asdict(), **found})


def fill(client: Any) -> None:
    """So many events that `/v1/events` is as long as it can be."""
    for number in range(EVENTS):
        client.set_tags(load=str(number))


@contextmanager
def group(folder: Path) -> Iterator[list[AgentProcess]]:
    *addresses, http = free_addresses(SEEDS + 1)
    agents: list[AgentProcess] = []
    try:
        for number, address in enumerate(addresses):
            home = folder / f"a{number}"
            settings = {"preset": "lan", "longest_grant": 5.0, "bind": address, "seeds": addresses, "state_dir": str(home / "state")}
            agents.append(AgentProcess(home, name=f"a{number}", http=http if number == 0 else "", **settings))
        for agent in agents:
            agent.until_it_answers()
        for agent in agents:
            until(lambda: formed(agent, SEEDS), f"{agent.socket} knows {SEEDS} members", 0.2, agent.check)  # noqa: B023 - called here
        yield agents
    finally:
        for agent in agents:
            agent.end()


def under(load: Load, agents: list[AgentProcess], held: tuple[Any, ...], seconds: float) -> dict[str, Any]:
    """What became of what was held, and how late the loop was."""
    agent = agents[0]
    before, cpu = _metrics(agent), agent.cpu_seconds
    show_progress(f"{load.kind or 'idle'} {load.path}")
    hammer = _hammer(load, agent, seconds) if load.kind else None
    looker, prober = Looker(agent.socket, seconds), Prober(f"{agent.http}/healthz", seconds)
    for each in (looker, prober):
        each.start()
    for each in (looker, prober):
        each.join()
    said = json.loads(hammer.communicate()[0]) if hammer is not None else {}
    took = agent.cpu_seconds - cpu
    after = _metrics(agent)
    left = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in after}
    departed = sum(value for name, value in left.items() if name.startswith("holdfast_ring_departures_total"))
    kept = all(each.valid for each in held) and departed == 0 and all(formed(each, SEEDS) for each in agents)
    return {
        "held": int(kept),
        "answer_p50_ms": round(_percentile(looker.took, 50) * 1000, 2),
        "answer_p99_ms": round(_percentile(looker.took, 99) * 1000, 2),
        "answer_worst_ms": round(max(looker.took) * 1000, 2),
        "pauses": int(left["holdfast_pauses_total"]),
        "late_100ms": int(left["holdfast_loop_lateness_seconds_count"] - left['holdfast_loop_lateness_seconds_bucket{le="0.1"}']),
        "late_20ms": int(left["holdfast_loop_lateness_seconds_count"] - left['holdfast_loop_lateness_seconds_bucket{le="0.02"}']),
        "term_margin_least_s": round(after.get("holdfast_lead_margin_seconds_least", -1.0), 3),
        "probe_worst_s": round(max(prober.took), 3),
        "core_share": round(took / seconds, 3),
        "http_share": round(left.get("holdfast_http_seconds_total", 0.0) / seconds, 4),
        "http_piece_worst_ms": round(after.get("holdfast_http_piece_seconds_max", 0.0) * 1000, 2),
        **said,
    }


class Looker(Thread):
    """A client of the local socket that asks, waits a little, and asks again."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__(daemon=True)
        self._path, self._seconds = path, seconds
        self.took: list[float] = []

    def run(self) -> None:
        end_at = time.monotonic() + self._seconds
        with Line(self._path) as line:
            while time.monotonic() < end_at:
                began_at = time.monotonic()
                line.call(calls.Owns, b"key")
                self.took.append(time.monotonic() - began_at)
                time.sleep(LOOK_INTERVAL)


class Prober(Thread):
    """As Kubernetes does it: a new connection each time."""

    def __init__(self, url: str, seconds: float) -> None:
        super().__init__(daemon=True)
        self._url, self._seconds = url, seconds
        self.took = [0.0]

    def run(self) -> None:
        end_at = time.monotonic() + self._seconds
        while time.monotonic() < end_at:
            began_at = time.monotonic()
            try:
                with urlopen(self._url, timeout=PROBE_TIMEOUT) as answer:
                    answer.read()
            except (URLError, OSError):
                self.took.append(PROBE_TIMEOUT)
            self.took.append(time.monotonic() - began_at)
            time.sleep(PROBE_INTERVAL)


def _hammer(load: Load, agent: AgentProcess, seconds: float) -> subprocess.Popen[str]:
    where = agent.socket if load.kind == "local" else agent.http.removeprefix("http://")
    command = [sys.executable, "-m", "benchmarks.http_load_hammer", load.kind, where, str(seconds), str(load.connections), load.path]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _metrics(agent: AgentProcess) -> Mapping[str, float]:
    """What the agent says of itself; asked until it answers, because strangers may still be ahead in the queue."""
    for _ in range(30):
        try:
            with urlopen(f"{agent.http}/metrics", timeout=PROBE_TIMEOUT) as answer:
                lines = answer.read().decode().splitlines()
            return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
        except (URLError, OSError):
            time.sleep(1.0)
    raise AssertionError("the agent does not answer over HTTP any more")


def _percentile(values: list[float], percent: int) -> float:
    return quantiles(values, n=100)[percent - 1] if len(values) > 1 else max(values)
