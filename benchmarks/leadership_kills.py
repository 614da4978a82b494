"""`leadership-kills`: the leader is killed with -9, fifty times; when does the next one act, and never before the old deadline?

Spec: fast-detection G2, G5, D26, E9, E17 with real processes. Seven agents with a client each, three of them seats; the agent and its
client are killed together, at any instant of a heartbeat, and come back before the next kill. Then leaders resign, and agents of leaders
are drained: from the end of the work to the next one's first deed there is no timeout, so it takes less than half a heartbeat (H139). Also
as an experiment with other parameters:
``python -m holdfast lab run benchmarks/leadership_kills.py --set kills=20 --set heartbeat=0.1``
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from msgspec import Meta, structs

from benchmarks.harness import ROOT, Report, at_least, at_most, show_progress
from benchmarks.leadership import OURS, Lateness
from benchmarks.leadership_side import Remote, sides
from benchmarks.ring_fleet import NeverHappened
from holdfast.lab import registry
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters, parameters_of
from holdfast.lab.report import perform, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HALF = 0.5  # of a heartbeat: a client that waits for a timeout waits for a whole one at least
GOALS = {
    "smallest_gap_s": at_least(0),
    "two_at_work": at_most(0),
    "resign_heartbeats": at_most(HALF),
    "drain_heartbeats": at_most(HALF),
}
ROUNDS = 50  # kills
SHARES = (0.5, 0.9, 0.99, 1.0)
UNMEASURED = 1e9  # seconds: meets no goal
CALLS = 200  # to an agent, for the length of a round trip
COUNTED = ("lead_", "leadership_")  # which counters of the agents are told
ROUNDING = 4
LEASE = 1.5  # heartbeats, D26
ALLOWED = 0.15  # seconds on top of it: ballot, round trips, and a machine that is not alone


class KillParameters(Parameters, frozen=True, kw_only=True):
    """The setting; ``t_lat`` is a twentieth of the heartbeat: 10 ms."""

    kills: Annotated[int, Meta(ge=1, le=1000)] = ROUNDS
    resigns: Annotated[int, Meta(ge=1, le=1000)] = 20
    drains: Annotated[int, Meta(ge=1, le=1000)] = 10
    members: Annotated[int, Meta(ge=3, le=32)] = 7
    heartbeat: Annotated[float, Meta(ge=0.1, le=10.0)] = 0.2
    reign: Annotated[float, Meta(ge=0.0, le=600.0)] = 10.0  # seconds of a leader before it is killed: until then its links are not measured


class RealKills(Experiment[KillParameters]):
    """Kill, wait for the next one's first deed, bring back."""

    id = "detection/R1"
    name = "detection/real-kills"
    title = "Real processes: kill -9 of the leader"
    source = "fast-detection G2, G5, D26"
    criterion = (
        "no two at work at the same time; no first deed before the deadline that the killed one was told; the median of all takeovers at "
        "most a lease (1.5 heartbeats) + 0.15 s, and of hand-overs by will at most half a heartbeat. "
        "Takeovers from a living leader are told beside the lateness of the machine"
    )
    parameters = KillParameters
    repetitions = "kills"
    quick: ClassVar[Mapping[str, str]] = {"kills": "3", "resigns": "3", "drains": "1", "members": "3", "reign": "0"}

    def cells(self, parameters: KillParameters, seed: int) -> Sequence[Cell]:
        return [{**structs.asdict(parameters), "seed": seed}]

    def measure(self, cell: Cell) -> Measured:
        found: dict[str, Any] = {"kills": [], "resigns": [], "drains": [], "calls": [], "sums": {}, "broken": ""}
        found["load"] = round(os.getloadavg()[0], 2)
        random, lateness = Random(f"{cell['seed']} kills"), Lateness()
        try:
            with sides([OURS], "smallest", cell["members"], heartbeat=cell["heartbeat"]) as remotes, lateness:
                remote = remotes[OURS]
                for number in range(cell["kills"]):
                    show_progress(f"kill {number + 1} of {cell['kills']}")
                    remote.order(do="kill", delay=random.uniform(0, cell["heartbeat"]), reign=cell["reign"])
                    found["kills"].append(remote.answer())
                self._hand_over(cell, remote, random, found)
                remote.order(do="sums")
                found["sums"] = remote.answer()
        except NeverHappened as error:
            found["broken"] = str(error)
        return {**found, "lateness": lateness.found()}

    def _hand_over(self, cell: Cell, remote: Remote, random: Random, found: dict[str, Any]) -> None:
        for what, drain in (("resigns", False), ("drains", True)):
            for number in range(cell[what]):
                show_progress(f"{what} {number + 1} of {cell[what]}")
                remote.order(do="hand_over", delay=random.uniform(0, cell["heartbeat"]), drain=drain)
                found[what].append(remote.answer()["took"])
        remote.order(do="calls", count=CALLS)
        found["calls"] = remote.answer()["took"]

    def judge(self, parameters: KillParameters, results: Sequence[Measured]) -> Finding:
        (result,) = results
        kills, sums = result["kills"], result["sums"]
        took, gaps = [kill["failover"] for kill in kills], [kill["gap"] for kill in kills]
        bound = round(LEASE * parameters.heartbeat + ALLOWED, ROUNDING)
        measured: dict[str, Any] = {
            "kills": len(kills),
            "seconds until the next one acts": _spread(took),
            "seconds between the old deadline and the next one's first deed": _spread(gaps),
            "seconds from the end of a resigned one's work to the next one's first deed": _spread(result["resigns"]),
            "the same of a drained agent": _spread(result["drains"]),
            "milliseconds of a call to an agent": _spread([1000 * took for took in result["calls"]]),
            "two at work": sums.get("overlaps", 0),
            "takeovers from a living leader": sums.get("false_takeovers", 0),
            "step-downs of a leader that led again": sums.get("interruptions", 0),
            "lateness of the machine, ms": result["lateness"],
            "counted": {name: value for name, value in sums.get("counted", {}).items() if name.startswith(COUNTED)},
            "runs": [{"took": round(kill["failover"], ROUNDING), "gap": round(kill["gap"], ROUNDING)} for kill in kills],
        }
        misses = _shortcomings(measured, bound) if took else ["no client was killed"]
        misses += _delays(result, HALF * parameters.heartbeat)
        misses += [result["broken"]] if result["broken"] else []
        expected = {"two at work": 0, "seconds until the next one acts": {"median": bound}}
        return Finding(measured, expected, not misses, (*misses, f"load of the machine before: {result['load']:g}"))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for name, label in (("took", "kill -9 until the next one's first deed"), ("gap", "the old deadline until that deed")):
            values = sorted(run[name] for run in finding.measured["runs"])
            shares = [(place + 1) / len(values) for place in range(len(values))]
            axes.plot(values, shares, drawstyle="steps-post", label=label)
        axes.axvline(
            finding.expected["seconds until the next one acts"]["median"], color="#7b8794", linestyle="--", label="asked of the median"
        )
        axes.set_xlabel("seconds")
        axes.set_ylabel("share of the kills")
        axes.set_xlim(left=0)
        axes.set_ylim(0, 1)
        axes.legend(loc="lower right")


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    shares = {f"p{round(share * 100)}": ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in SHARES}
    found = {"smallest": ordered[0], "median": median(values), "mean": fmean(values), **shares}
    return {name: round(value, ROUNDING) for name, value in found.items()}


def _shortcomings(measured: Mapping[str, Any], bound: float) -> list[str]:
    took, gap = (
        measured["seconds until the next one acts"]["median"],
        measured["seconds between the old deadline and the next one's first deed"],
    )
    told = [f"the median is {took:g} s, at most {bound:g} asked for"] if took > bound else []
    told += [f"a first deed came {-gap['smallest']:g} s before the old deadline"] if gap["smallest"] < 0 else []
    return told + ([f"two at work: {measured['two at work']}"] if measured["two at work"] else [])


def _delays(result: Mapping[str, Any], most: float) -> list[str]:
    """Of hand-overs by will."""
    found = {what: median(result[what]) if result[what] else UNMEASURED for what in ("resigns", "drains")}
    return [f"the median of {what} is {took:g} s, at most {most:g} asked for" for what, took in found.items() if took > most]


EXPERIMENT = RealKills()


class Size(NamedTuple):
    """Other parameters than the defaults, and where the results go."""

    settings: Mapping[str, str] = {}
    out: Path | None = Path("out")  # None: nothing is written


SIZE = Size()
QUICK = Size({"members": "3", "reign": "0", "resigns": "5", "drains": "2"})


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    target = str(ROOT / "benchmarks" / "leadership_kills.py")
    experiment = registry.find_experiment(target)
    found = perform(target, parameters_of(experiment, {"kills": str(rounds), **size.settings}), seed=0)
    if size.out is not None:
        write(experiment, found, size.out)
    measured = {name: value for name, value in found.measured.items() if name != "runs"}
    took = measured["seconds until the next one acts"]
    gap = measured["seconds between the old deadline and the next one's first deed"]
    resign = measured["seconds from the end of a resigned one's work to the next one's first deed"]
    drain, call = measured["the same of a drained agent"], measured["milliseconds of a call to an agent"]
    heartbeat = float(found.parameters["heartbeat"])
    ratios = {
        "failover_median_s": took.get("median", 0.0),
        "failover_max_s": took.get("p100", 0.0),
        "smallest_gap_s": gap.get("smallest", -1.0),
        "two_at_work": measured["two at work"],
        "resign_s": resign.get("median", UNMEASURED),
        "resign_p99_s": resign.get("p99", UNMEASURED),
        "resign_heartbeats": resign.get("median", UNMEASURED) / heartbeat,
        "drain_s": drain.get("median", UNMEASURED),
        "drain_p99_s": drain.get("p99", UNMEASURED),
        "drain_heartbeats": drain.get("median", UNMEASURED) / heartbeat,
        "call_ms": call.get("median", UNMEASURED),
        "false_takeovers": measured["takeovers from a living leader"],
        "machine_late_p999_ms": measured["lateness of the machine, ms"]["p99.9"],
    }
    problems = [] if found.verdict == "pass" else list(found.notes)
    return Report("leadership-kills", GOALS, ratios, {"rounds": rounds, **measured}, problems)
