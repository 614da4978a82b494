"""`leadership`: kill -9 of the holder, and how long until the next one acts: Holdfast, ZooKeeper and etcd side by side in one run.

    failover_s        Holdfast at a heartbeat of 0.2 s: the agent and its client are killed together; median
    zookeeper_min_s   three servers as Debian ships them, at the smallest session they grant (4 s); median
    etcd_min_s        three servers as Debian ships them, at the smallest lease they grant (2 s); median
    times_faster      the better of the two over ours
    false_takeovers   of Holdfast, while no client was killed and every core was busy
    client_alone_s    Holdfast, the client alone is killed and its agent lives; median

In every round the holders of all systems are killed at the same random phase, and a recorder outside notes the first deed of the next
holder. Each system has as many candidates, all of them processes of their own. Beside it stand the defaults of each system and what
an operator may tune (``leadership_stock``), and what each installation costs while nothing happens: CPU, bytes through the loopback device
and memory of everything, servers, agents and clients. ``flock`` is a lock of the kernel: what is measured where nothing has to be detected.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from statistics import mean, median
from typing import Any, NamedTuple

from benchmarks import leadership_stock as stock
from benchmarks.harness import Report, at_least, at_most, show_progress
from benchmarks.leadership_side import Remote, namespaces, sides
from benchmarks.ring_fleet import NeverHappened, now

GOALS = {"times_faster": at_least(5), "false_takeovers": at_most(0)}
ROUNDS = 10
OURS, FLOOR = "holdfast", "flock"
STOCK = ("zookeeper", "etcd")
PHASE = 2.0  # seconds; a kill comes at any instant of so much time, more than any of them has between two heartbeats but at its default
BUSY_ASKED = 600.0  # seconds in which no client may take over: the goal
PROBE_INTERVAL = 0.005  # seconds that the probe sleeps
STOLEN_FIELD = 8  # of the first line of /proc/stat, behind "cpu"
ROUNDING = 4
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


class Size(NamedTuple):
    """How much of it."""

    systems: tuple[str, ...] = (OURS, *STOCK, FLOOR)
    levels: tuple[str, ...] = ("smallest", "tuned", "default")
    candidates: int = 7
    default_kills: int = 3  # one takes ten seconds
    reign_seconds: float = 10.0  # of a holder before it is killed: until then our monitors have not measured its links
    calm_seconds: float = 20.0
    busy_seconds: float = BUSY_ASKED
    seed: int = 5


SIZE = Size()
QUICK = Size(levels=("smallest",), candidates=3, reign_seconds=0.0, calm_seconds=2.0, busy_seconds=5.0)


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    problems = stock.missing() if set(STOCK) & {*size.systems} else []
    systems = [system for system in size.systems if system not in STOCK or not problems]
    found: dict[str, dict[str, Any]] = {}
    try:
        for level in size.levels:
            found[level] = at_level(level, systems, rounds, size)
    except NeverHappened as error:
        problems.append(str(error))
    return Report("leadership", GOALS, ratios(found), raw(found, rounds, size), [*problems, *doubts(found)])


def at_level(level: str, systems: Sequence[str], rounds: int, size: Size) -> dict[str, Any]:
    """All systems at once, each set to this level."""
    random = Random(f"{size.seed} {level}")
    show_progress(f"{level}: {', '.join(systems)} start")
    with sides([system for system in systems if system != FLOOR or level == "smallest"], level, size.candidates) as remotes:
        found: dict[str, Any] = {system: {"kills": [], "calm": {}, "broken": ""} for system in remotes}
        show_progress(f"{level}: left alone for {size.calm_seconds:g} s")
        for system, calm in of_all(remotes, do="calm", seconds=size.calm_seconds).items():
            found[system]["calm"] = calm
        for number in range(size.default_kills if level == "default" else rounds):
            show_progress(f"{level}: kill {number + 1}")
            for system, kill in of_those_left(remotes, do="kill", delay=random.uniform(0, PHASE), reign=size.reign_seconds).items():
                if "broken" in kill:
                    found[system]["broken"] = kill["broken"]
                else:
                    found[system]["kills"].append(kill)
        if level == "smallest" and size.busy_seconds:
            found |= only_here(remotes, rounds, random, size)
    return found


def only_here(remotes: Mapping[str, Remote], rounds: int, random: Random, size: Size) -> dict[str, Any]:
    """Clients that die alone, and all under load: at one level, because it takes minutes."""
    alone: list[dict[str, Any]] = []
    for number in range(rounds if OURS in remotes else 0):
        show_progress(f"a client is killed alone: {number + 1}")
        alone += of_all({OURS: remotes[OURS]}, do="kill", delay=random.uniform(0, PHASE), alone=True).values()
    show_progress(f"all cores are busy for {size.busy_seconds:g} s")
    before = stolen_seconds()
    with busy_cores(), Lateness() as lateness:
        busy = of_all(remotes, do="calm", seconds=size.busy_seconds)
    return {"alone": alone, "busy": busy, "lateness": lateness.found(), "stolen": stolen_seconds() - before}


def of_all(remotes: Mapping[str, Remote], **order: Any) -> dict[str, Any]:
    """The same order to all, at once."""
    for remote in remotes.values():
        remote.order(**order)
    return {system: remote.answer() for system, remote in remotes.items()}


def of_those_left(remotes: dict[str, Remote], **order: Any) -> dict[str, Any]:
    """The same. A system that breaks down takes part no more, and says why."""
    for remote in remotes.values():
        remote.order(**order)
    found: dict[str, Any] = {}
    for system, remote in [*remotes.items()]:
        try:
            found[system] = remote.answer()
        except NeverHappened as error:
            if system == OURS:
                raise
            del remotes[system]
            found[system] = {"broken": str(error)}
    return found


@contextmanager
def busy_cores() -> Iterator[None]:
    """One process per core that never rests."""
    with ExitStack() as stack:
        for _ in range(os.cpu_count() or 1):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield


class Lateness:
    """How late this machine wakes up a process that sleeps for some milliseconds: whatever a lease counts has to live with that. One probe
    for each core, because a core that a hypervisor takes away is late alone."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._over = False
        self._threads = [threading.Thread(target=self._probe, args=(core,), daemon=True) for core in os.sched_getaffinity(0)]

    def __enter__(self) -> Lateness:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        for thread in self._threads:
            thread.join()

    def found(self) -> dict[str, float]:
        """Milliseconds."""
        samples = sorted(self.samples) or [0.0]
        shares = {name: samples[min(int(share * len(samples)), len(samples) - 1)] for name, share in SHARES.items()}
        return {name: round(seconds * 1000, 2) for name, seconds in {**shares, "max": samples[-1]}.items()}

    def _probe(self, core: int) -> None:
        os.sched_setaffinity(0, {core})  # of this thread alone
        while not self._over:
            due_at = now() + PROBE_INTERVAL
            time.sleep(PROBE_INTERVAL)
            self.samples.append(now() - due_at)


def stolen_seconds() -> float:
    """Of all cores since boot: what a hypervisor gave to others while a process here wanted to run."""
    fields = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(fields[STOLEN_FIELD]) / os.sysconf("SC_CLK_TCK")


# What is said about it.


def ratios(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """0 where nothing was measured: no goal is met by that, but the one that a problem spoils anyway."""
    smallest = found.get("smallest", {})
    medians = {system: _median(smallest.get(system, {}).get("kills", [])) for system in (OURS, *STOCK)}
    best = min((medians[system] for system in STOCK), default=0.0)
    busy = smallest.get("busy", {}).get(OURS, {})
    return {
        "failover_s": medians[OURS],
        "zookeeper_min_s": medians["zookeeper"],
        "etcd_min_s": medians["etcd"],
        "times_faster": best / medians[OURS] if medians[OURS] else 0.0,
        "false_takeovers": busy.get("false_takeovers", 0),
        "interruptions": busy.get("interruptions", 0),
        "client_alone_s": _median(smallest.get("alone", [])),
        **_costs(smallest),
    }


def _costs(smallest: Mapping[str, Any]) -> dict[str, float]:
    """Of the whole installation, while nothing happens."""
    calms = {system: smallest[system]["calm"] for system in (OURS, *STOCK) if system in smallest}
    shown = {"bytes_per_s": "bytes_per_second", "cpu": "cpu_per_second", "mib": "memory_mib"}
    return {f"{system}_{short}": calm[name] for short, name in shown.items() for system, calm in calms.items()}


def doubts(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Reasons for which the numbers mean nothing."""
    told = []
    for level, sides_found in found.items():
        told += [each["broken"] for system, each in sides_found.items() if level == "smallest" and system in STOCK and each["broken"]]
        of_ours = [*sides_found[OURS]["kills"], *sides_found.get("alone", [])] if OURS in sides_found else []
        if any(kill["overlaps"] for kill in of_ours):
            told.append(f"{level}: two candidates of Holdfast worked at the same time")
        if any(kill["gap"] is not None and kill["gap"] < 0 for kill in sides_found.get(OURS, {}).get("kills", [])):
            told.append(f"{level}: a candidate of Holdfast began before the deadline of the former one")
    return told


def raw(found: Mapping[str, Mapping[str, Any]], rounds: int, size: Size) -> dict[str, Any]:
    smallest = found.get("smallest", {})
    return {
        **size._asdict(),
        "rounds": rounds,
        "cores": os.cpu_count(),
        "alone_in_its_network": bool(namespaces()),
        "asked_busy_seconds": BUSY_ASKED,
        "lateness_ms": smallest.get("lateness", {}),
        "stolen_s": round(smallest.get("stolen", 0.0), ROUNDING),
        "busy": {system: rounded(each) for system, each in smallest.get("busy", {}).items()},
        "client_alone": _spread(smallest.get("alone", [])),
        **{level: _level(level, each) for level, each in found.items()},
        "packages": stock.versions(),
    }


def _level(level: str, found: Mapping[str, Any]) -> dict[str, Any]:
    return {system: _system(level, system, each) for system, each in found.items() if system in SIZE.systems}


def _system(level: str, system: str, each: Mapping[str, Any]) -> dict[str, Any]:
    granted = stock.GRANTED.get(system, {}).get(level)
    lease = {} if granted is None else {"lease": granted}
    calm = {f"calm {name}": value for name, value in rounded(each["calm"]).items()}
    broken = {"broken": each["broken"]} if each["broken"] else {}
    return {**lease, **_spread(each["kills"]), **calm, **broken, "kills": [rounded(kill) for kill in each["kills"]]}


def _spread(kills: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    times = [kill["failover"] for kill in kills]
    return rounded({"median": median(times), "mean": mean(times), "min": min(times), "max": max(times)}) if times else {}


def rounded(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: round(value, ROUNDING) if isinstance(value, float) else value for name, value in found.items()}


def _median(kills: Sequence[Mapping[str, Any]]) -> float:
    return median(kill["failover"] for kill in kills) if kills else 0.0
