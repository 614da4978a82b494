"""`tickets`: locks and numbered tickets of Holdfast, Redis, ZooKeeper and etcd side by side in one run, every one of them syncing to disk.

    acquire_release_p50_ms     a lock that no other client wants is taken and given back; Holdfast, with a pool of one ticket
    acquire_p50_ms             the taking alone: a release of Holdfast returns before its write has ended, those of the others after it
    turns_acquire_release_p50_ms   the same lock, taken by two clients of two machines in turn: neither finds it as it left it
    handover_ms                from the holder's giving back until the waiter holds it; median
    client_death_to_next_s     from kill -9 of the holding process until the waiter holds it; median
    voter_death_to_next_s      a seat or server is killed, the holder gives back, until the waiter holds it; mean, each voter in its turn
    redis_..., zookeeper_..., etcd_...   the same of the others, as they come
    redis_tuned_..., ...       of a death, and of Redis' poll: as an operator may set them
    pool_...                   a pool of eight tickets, and kazoo's Semaphore of eight
    host_death_to_next_s       Holdfast: the holder dies together with its agent. The others cannot tell the two deaths apart
    syncs_per_cycle            of the voter that synced least, while strace looked: at least one for taking and one for giving back

Systems take turns, so that no system is timed while another one works; deaths, which are mostly waited for, come at once for all. At level
``smallest`` servers run as Debian ships them, with the shortest lease they grant (Redis: 1 s, and redis-py's poll); at ``tuned`` as an
operator may set them (``leadership_stock``; Redis: 0.5 s, a poll of 10 ms). All are judged at ``smallest``, as it comes; but for the
death of a process Holdfast must also be ten times faster than the others at their tuned best.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean, median
from typing import Any, NamedTuple

from benchmarks import leadership_stock as stock
from benchmarks.harness import Report, at_least, show_progress
from benchmarks.leadership import of_all
from benchmarks.leadership_side import Remote, namespaces
from benchmarks.ring_fleet import NeverHappened
from benchmarks.tickets_installation import missing
from benchmarks.tickets_side import sides

OURS, FLOOR = "holdfast", "flock"
OTHERS = ("redis", "zookeeper", "etcd")
SYNCED = ("zookeeper", "etcd")  # whose majority syncs, as ours does; Redis is one server
GOALS = {
    "death_times_faster": at_least(10),
    "handover_times_faster": at_least(1),
    "voter_death_times_faster": at_least(1),
    "acquire_times_faster_than_zookeeper": at_least(1),
    "acquire_times_faster_than_etcd": at_least(1),
    "syncs_per_cycle": at_least(2),
}
ROUNDS = 12  # a multiple of three: each voter dies as often as the others
POOL = 8
WITH_POOLS = (OURS, "zookeeper")
PHASE = 1.0  # seconds; what happens to a holder happens at any instant of so much time
WARM_UP = 10  # cycles that are not counted: connections, caches, paths
JUDGED = "smallest"
ROUNDING = 4
TUNED = ("client_death_to_next_s", "handover_ms")
MEASURED = ("cycles", "acquires", "turns", "pool", "handovers", "deaths", "voter_deaths", "host_deaths")  # seconds, one by one
MEASURES = ("acquire_release_p50_ms", "handover_ms", "client_death_to_next_s", "voter_death_to_next_s")

OURS_TOO = ("acquire_p50_ms", "turns_acquire_release_p50_ms", "host_death_to_next_s", "pool_acquire_release_p50_ms")


class Size(NamedTuple):
    """How much of it."""

    systems: tuple[str, ...] = (OURS, *OTHERS, FLOOR)
    levels: tuple[str, ...] = ("smallest", "tuned")
    cycles: int = 25  # per round
    handovers: int = 3  # per round: the closest race of all
    host_deaths: int = 4
    clients: int = 6  # at once, for throughput
    seconds: float = 5.0  # of throughput
    synced_cycles: int = 20
    seed: int = 6


SIZE = Size()
QUICK = Size(levels=("smallest",), cycles=10, handovers=1, host_deaths=1, clients=3, seconds=1.0, synced_cycles=5)

Found = dict[str, Any]  # of one system at one level


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    problems = missing() if set(OTHERS) & {*size.systems} else []
    systems = [system for system in size.systems if system not in OTHERS or not problems]
    found: dict[str, dict[str, Found]] = {}
    try:
        for level in size.levels:
            found[level] = {}
            at_level(level, systems, rounds, size, found[level])
    except NeverHappened as error:
        problems.append(str(error))
    return Report("tickets", GOALS, ratios(found), raw(found, rounds, size), [*problems, *doubts(found)])


def at_level(level: str, systems: Sequence[str], rounds: int, size: Size, found: dict[str, Found]) -> None:
    """All systems at once, each set to this level. What was found before something broke is kept."""
    random = Random(f"{size.seed} {level}")
    show_progress(f"{level}: {', '.join(systems)} start")
    with sides([*systems], level) as remotes:
        for system, remote in remotes.items():
            found[system] = {measured: [] for measured in MEASURED}
            _ask(remote, do="cycles", count=WARM_UP)
        for number in range(rounds):
            show_progress(f"{level}: round {number + 1} of {rounds}")
            one_round(remotes, number, random, size, found)
        for number in range(size.host_deaths if OURS in remotes else 0):
            show_progress(f"{level}: a whole host dies, {number + 1} of {size.host_deaths}")
            died = _ask(remotes[OURS], do="death", delay=random.uniform(0, PHASE), host=True)
            found[OURS]["host_deaths"].append(died["seconds"])
        for system, remote in remotes.items():
            show_progress(f"{level}: throughput and syncs of {system}")
            found[system] |= at_full_speed(system, remote, size)


def one_round(remotes: Mapping[str, Remote], number: int, random: Random, size: Size, found: Mapping[str, Found]) -> None:
    for system, remote in remotes.items():
        cycles = _ask(remote, do="cycles", count=size.cycles)
        found[system]["cycles"] += _sums(cycles)
        found[system]["acquires"] += cycles["acquires"]
        found[system]["turns"] += _sums(_ask(remote, do="turns", count=size.cycles))
        if system in WITH_POOLS:
            found[system]["pool"] += _sums(_ask(remote, do="cycles", count=size.cycles, of=POOL))
    for _ in range(size.handovers):
        for system, remote in remotes.items():
            handed = _ask(remote, do="handover", delay=random.uniform(0, PHASE))
            found[system]["handovers"].append(handed["seconds"])
    for system, died in of_all(remotes, do="death", delay=random.uniform(0, PHASE)).items():
        found[system]["deaths"].append(died["seconds"])
    voting = {system: remote for system, remote in remotes.items() if system != FLOOR}
    for system, died in of_all(voting, do="voter_death", number=number, delay=random.uniform(0, PHASE)).items():
        found[system]["voter_deaths"].append(died["seconds"])


def at_full_speed(system: str, remote: Remote, size: Size) -> Found:
    of_all_clients = {"do": "throughput", "clients": size.clients, "seconds": size.seconds}
    own = _ask(remote, **of_all_clients)
    shared = _ask(remote, **of_all_clients, shared=True)
    syncs = _ask(remote, do="syncs", count=size.synced_cycles)["per_cycle"]
    return {"own": own, "shared": shared, "syncs": syncs}


def _ask(remote: Remote, **order: Any) -> Any:
    remote.order(**order)
    return remote.answer()


def _sums(cycles: Mapping[str, Sequence[float]]) -> list[float]:
    return [acquire + release for acquire, release in zip(cycles["acquires"], cycles["releases"], strict=True)]


# What is said about it.


def ratios(found: Mapping[str, Mapping[str, Found]]) -> dict[str, float]:
    """0 where nothing was measured: no goal is met by that."""
    summed = {level: {system: summary(each) for system, each in systems.items()} for level, systems in found.items()}
    came = summed.get(JUDGED, {})
    ours, others = came.get(OURS, {}), {system: came.get(system, {}) for system in OTHERS}
    at_best = {system: best([systems[system] for systems in summed.values() if system in systems]) for system in OTHERS}
    return {
        **{measure: ours.get(measure, 0.0) for measure in MEASURES},
        "death_times_faster": _times(ours, at_best, "client_death_to_next_s", OTHERS),
        "handover_times_faster": _times(ours, others, "handover_ms", OTHERS),
        "voter_death_times_faster": _times(ours, others, "voter_death_to_next_s", OTHERS),
        **{f"acquire_times_faster_than_{each}": _times(ours, others, "acquire_release_p50_ms", [each]) for each in SYNCED},
        "syncs_per_cycle": ours.get("syncs_per_cycle", 0.0),
        **{name: ours[name] for name in OURS_TOO if name in ours},
        **{f"{system}_{measure}": value for system, each in others.items() for measure, value in each.items()},
        **{f"{system}_tuned_{measure}": each[measure] for system, each in at_best.items() for measure in TUNED if each.get(measure)},
    }


def summary(found: Found) -> dict[str, float]:
    """Of one system at one level."""
    cycles, own, shared = found["cycles"], found.get("own", {}), found.get("shared", {})
    said = {
        "acquire_release_p50_ms": 1000 * percentile(cycles, 0.5),
        "handover_ms": 1000 * _median(found["handovers"]),
        "client_death_to_next_s": _median(found["deaths"]),
        "voter_death_to_next_s": fmean(found["voter_deaths"]) if found["voter_deaths"] else 0.0,
        "acquire_p50_ms": 1000 * percentile(found["acquires"], 0.5),
        "turns_acquire_release_p50_ms": 1000 * percentile(found["turns"], 0.5),
        "acquire_release_p99_ms": 1000 * percentile(cycles, 0.99),
        "pool_acquire_release_p50_ms": 1000 * percentile(found["pool"], 0.5),
        "host_death_to_next_s": _median(found["host_deaths"]),
        "own_per_s": own.get("per_second", 0.0),
        "own_p99_ms": 1000 * percentile(own.get("took", []), 0.99),
        "shared_per_s": shared.get("per_second", 0.0),
        "syncs_per_cycle": min(found.get("syncs", []), default=0.0),
    }
    return {name: value for name, value in said.items() if value or name in MEASURES}


def best(levels: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The better number of each kind; what is a rate is better when it is larger. Nothing measured is not a good number."""
    found: dict[str, float] = {}
    for each in levels:
        for name, value in each.items():
            larger = name.endswith("_per_s") or name.startswith("syncs")
            if value and (name not in found or (value > found[name]) is larger):
                found[name] = value
    return found


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


def _times(ours: Mapping[str, float], others: Mapping[str, Mapping[str, float]], measure: str, systems: Sequence[str]) -> float:
    """The best of them over ours; 0 if one of them, or ours, was not measured."""
    theirs = [others[system].get(measure, 0.0) for system in systems]
    return min(theirs) / ours[measure] if ours.get(measure) else 0.0


def _median(values: Sequence[float]) -> float:
    return median(values) if values else 0.0


def doubts(found: Mapping[str, Mapping[str, Found]]) -> list[str]:
    """Reasons for which the numbers mean nothing."""
    told = []
    for level, systems in found.items():
        for system in SYNCED:
            syncs = systems.get(system, {}).get("syncs", [])
            if syncs and min(syncs) < 1:
                told.append(f"{level}: a server of {system} synced {min(syncs):g} times per lock; it is not compared on equal terms")
    return told


def raw(found: Mapping[str, Mapping[str, Found]], rounds: int, size: Size) -> dict[str, Any]:
    smallest = found.get(JUDGED, {})
    return {
        **size._asdict(),
        "rounds": rounds,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[1], 2),
        "alone_in_its_network": bool(namespaces()),
        **{system: _rounded(summary(each)) for system, each in smallest.items()},
        **{level: {system: _told(each) for system, each in systems.items()} for level, systems in found.items()},
        "leases": {system: {level: stock.GRANTED[system][level] for level in size.levels} for system in SYNCED},
        "packages": stock.versions(("zookeeper", "etcd-server", "redis-server")),
    }


def _told(found: Found) -> dict[str, Any]:
    singles = {name: [round(value, ROUNDING) for value in found[name]] for name in ("handovers", "deaths", "voter_deaths", "host_deaths")}
    return {**_rounded(summary(found)), **singles, "syncs": found.get("syncs", [])}


def _rounded(found: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, ROUNDING) for name, value in found.items()}
