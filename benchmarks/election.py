"""`election`: how soon the next leader acts where no majority is asked, and what an election costs; beside ZooKeeper and etcd.

    failover_over_detection   kill -9 of the leader's agent, until the next leader's first deed / until an agent lists it as dead; median
    failover_s, failover_p95_s   until that deed
    detection_s               until the first of the other agents lists the killed one as dead; median
    detection_next_s          the same of the agent that leads next
    resign_s                  from the end of a resigned one's work to the next one's first deed; median
    first_leader_s            from the start of the last agent, all started at once, to the first deed; each client asks at once
    first_leader_asked_s      from the first ask of a client to the first deed, in a group that is there
    ask_s                     from the ask for a name that no other client wants until it leads; median
    idle_packets_added        IP packets per second that one led name adds to those of a member
    messages_base             unicasts of a failure-free election by Base / 2(c+f)+1; in the lab, the worst of all counted
    elect_1000_timeouts       1000 members in the lab, loss 1 %: from the start of an election until all know, in TIMEOUT; the worst of all
    elect_1000_s, elect_1000_almost_s   seconds of that, and until 95 % know
    optimistic_saves, hybrid_saves      of a record of `election-grid` (--grid FILE)
    zookeeper_min_s, etcd_min_s         kill -9 until the next holder's first deed, at the smallest session (4 s) and lease (2 s) they grant
    zookeeper_tuned_s, etcd_tuned_s     the same, tuned (sessions of 0.5 s, leases of 1 s)

16 agents that gossip at T = 0.1 s, a client each; agent and client of the leader are killed together, at any instant of a period, and both
come back before the next kill. The deed and the death are stamped by clients, on one clock (``election_side``). ZooKeeper and etcd are
installed, killed and stamped as `leadership` does it, with as many candidates, after ours and not beside it: three JVMs on two cores would
be measured with it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median
from typing import Any, Literal, NamedTuple, get_args

from benchmarks import leadership
from benchmarks import leadership_stock as stock
from benchmarks.agent_fleet import compile_package
from benchmarks.election_idle import Idle
from benchmarks.election_lab import Lab
from benchmarks.harness import Report, at_least, at_most, show_progress
from benchmarks.leadership import OURS, STOCK, Lateness, rounded
from benchmarks.leadership_installation import HOLDFAST
from benchmarks.leadership_side import namespaces, sides
from benchmarks.ring_fleet import NeverHappened
from benchmarks.views_side import apart
from holdfast.lab.samples import quantile

GOALS = {
    "failover_over_detection": at_most(1.3),
    "failover_s": at_most(0.7),
    "resign_s": at_most(0.15),
    "idle_packets_added": at_most(0.5),
    "messages_base": at_most(1.0),
    "elect_1000_timeouts": at_most(4),
    "optimistic_saves": at_least(0.25),
    "hybrid_saves": at_least(0.25),
}
ROUNDS = 50  # kills
LEVEL = "elected"  # of our installation
LEVELS = {"min": "smallest", "tuned": "tuned"}  # of ZooKeeper and etcd, by the ends of the names
PHASE = 1.0  # seconds; a kill or a resignation comes at any instant of so much time
SIDE, PARTS_SIDE = "benchmarks.election_side", "benchmarks.election_parts"
SAVES = ("optimistic_saves", "hybrid_saves")
ASKED = 1000  # members of elect_1000
COUNTED = ("started", "finished", "yielded", "failed", "restarts", "queries", "nominations", "elected", "expired", "lapsed", "unsure")

Part = Literal["failover", "idle", "lab", "stock"]
PARTS: tuple[Part, ...] = get_args(Part)
Found = Mapping[str, Any]


class Size(NamedTuple):
    """How much of it."""

    members: int = 16
    reign: float = 2.0  # seconds of a leader before it is killed: those that came back are settled then
    resigns: int = 20
    asks: int = 20
    idle: Idle = Idle()
    lab: Lab = Lab()
    stock_kills: int = 10  # of each system at each level
    seed: int = 5


SIZE = Size()
QUICK = Size(
    members=4,
    reign=0.5,
    resigns=3,
    asks=3,
    idle=Idle(members=4, turns=1, seconds=5.0),
    lab=Lab(members=100, elections=2),
    stock_kills=1,
)


def run(rounds: int = ROUNDS, size: Size = SIZE, part: Part | None = None, grid: str | None = None) -> Report:
    compile_package()
    problems: list[str] = []
    found: dict[str, Found] = {}
    lateness: dict[str, Any] = {}
    measures = {
        "failover": lambda: failover(rounds, size),
        "idle": lambda: apart("idle", size.idle, module=PARTS_SIDE),
        "lab": lambda: apart("lab", size.lab, module=PARTS_SIDE),
        "stock": lambda: of_stock(size, problems),
    }
    for name in PARTS if part is None else (part,):
        load = os.getloadavg()[0]
        with Lateness() as late:
            try:
                found[name] = measures[name]()
            except NeverHappened as error:
                problems.append(str(error))
        lateness[name] = {**late.found(), "load_average": load}
    saves = of_grid(grid, problems)
    if size.lab.members != ASKED:
        problems.append(f"elect_1000: measured at {size.lab.members} members")
    raw = {
        "size": size._asdict(),
        "rounds": rounds,
        "settings": HOLDFAST[LEVEL],
        "cores": os.cpu_count(),
        "alone_in_its_network": bool(namespaces()),
        "lateness_ms": lateness,
        **found,
        "packages": stock.versions(),
    }
    return Report("election", GOALS, {**ratios(found), **saves}, raw, [*problems, *doubts(found)])


# What is measured.


def failover(rounds: int, size: Size) -> dict[str, Any]:
    """Kills, resignations and asks of one group."""
    random = Random(f"{size.seed} election")
    found: dict[str, Any] = {"kills": [], "resigns": []}
    show_progress(f"{size.members} agents start")
    with sides([OURS], LEVEL, size.members, module=SIDE) as remotes:
        remote = remotes[OURS]
        found["first"] = rounded(remote.ask(do="first"))
        for number in range(rounds):
            show_progress(f"kill {number + 1} of {rounds}")
            found["kills"].append(rounded(remote.ask(do="kill", delay=random.uniform(0, PHASE), reign=size.reign)))
        for number in range(size.resigns):
            show_progress(f"resignation {number + 1} of {size.resigns}")
            found["resigns"].append(rounded(remote.ask(do="hand_over", delay=random.uniform(0, PHASE))))
        show_progress(f"{size.asks} names")
        found["asks"] = remote.ask(do="asks", count=size.asks, seed=size.seed)["took"]
        sums = remote.ask(do="sums")
    counted = sums.pop("counted")
    return {**found, "sums": sums, "counted": {name: counted.get(f"election_{name}", 0) for name in COUNTED}}


def of_stock(size: Size, problems: list[str]) -> dict[str, Any]:
    """As `leadership` measures them, without ours and with no core kept busy. By level, then by system."""
    absent = stock.missing()
    problems += absent
    of = leadership.Size(candidates=size.members, reign_seconds=0.0, calm_seconds=0.0, busy_seconds=0.0, seed=size.seed)
    return {} if absent else {level: leadership.at_level(level, STOCK, size.stock_kills, of) for level in LEVELS.values()}


def of_grid(path: str | None, problems: list[str]) -> dict[str, float | None]:
    """What `election-grid --json` printed; its problems are those of what is taken from it."""
    if path is None:
        problems.append(f"{', '.join(SAVES)}: not measured without a record of `election-grid --json` (--grid FILE)")
        return dict.fromkeys(SAVES)
    record = json.loads(Path(path).read_text())
    problems += [f"election-grid: {problem}" for problem in record["problems"]]
    return {name: record["ratios"][name] for name in SAVES}


# What is said about it.


def ratios(found: Mapping[str, Found]) -> dict[str, float | None]:
    """Without what a record has."""
    return {
        **_of_failover(found.get("failover", {})),
        "first_leader_asked_s": middle(found.get("idle", {}).get("asked", [])),
        "idle_packets_added": found.get("idle", {}).get("added"),
        **_of_lab(found.get("lab", {})),
        **{f"{system}_{end}_s": _of_stock(found, level, system) for end, level in LEVELS.items() for system in STOCK},
    }


def middle(values: Sequence[float]) -> float | None:
    return median(values) if values else None


def _of_failover(found: Found) -> dict[str, float | None]:
    kills = found.get("kills", [])
    took = [kill["failover"] for kill in kills]
    return {
        "failover_over_detection": middle([kill["failover"] / kill["dead"] for kill in kills]),
        "failover_s": middle(took),
        "failover_p95_s": quantile(took, 0.95) if took else None,
        "detection_s": middle([kill["dead"] for kill in kills]),
        "detection_next_s": middle([kill["dead_next"] for kill in kills if kill["dead_next"] is not None]),
        "resign_s": middle([each["took"] for each in found.get("resigns", [])]),
        "first_leader_s": found.get("first", {}).get("started"),
        "ask_s": middle(found.get("asks", [])),
        "false_takeovers": found.get("sums", {}).get("false_takeovers"),
    }


def _of_lab(found: Found) -> dict[str, float | None]:
    elections = found.get("elect", {}).get("elections", [])
    times = {what: [each[what] for each in elections] for what in ("almost", "all")}
    worst = {what: max(values) if values and None not in values else None for what, values in times.items()}
    return {
        "messages_base": found.get("counts", {}).get("most"),
        "elect_1000_timeouts": None if worst["all"] is None else worst["all"] / found["elect"]["timeout"],
        "elect_1000_s": worst["all"],
        "elect_1000_almost_s": worst["almost"],
    }


def _of_stock(found: Mapping[str, Found], level: str, system: str) -> float | None:
    return middle([kill["failover"] for kill in found.get("stock", {}).get(level, {}).get(system, {}).get("kills", [])])


def doubts(found: Mapping[str, Found]) -> list[str]:
    """Reasons for which the numbers mean less than they should."""
    told = [f"{level}: {each['broken']}" for level, of in found.get("stock", {}).items() for each in of.values() if each["broken"]]
    unheard = sum(kill["dead_next"] is None for kill in found.get("failover", {}).get("kills", []))
    if unheard:
        told.append(f"detection_next_s: {unheard} times the next leader's agent did not list the dead one as dead")
    counts = found.get("lab", {}).get("counts", {"least": 1.0, "multicasts": 1.0})
    if counts["least"] < 1 or counts["multicasts"] != 1:
        told.append(
            f"messages_base: {counts['least']:g} of the unicasts, {counts['multicasts']:g} multicasts: not the election that is counted"
        )
    return told
