"""ring/E5-real: how long until a crash is suspected, by real members on real sockets?

Spec: ring 8 (E5, real agents), G4, D2; paper 000, section VII-E, Figure 11. Half of the crashes are a kill -9 of a process, half
close the sockets of one member among many in a process. Each monitor of the crashed member is one sample.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from statistics import fmean, quantiles
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from benchmarks.ring_fleet import NeverHappened, name_of
from benchmarks.ring_formed import KINDS, Formed, formed
from holdfast.errors import ConfigError
from holdfast.features.ring.protocol.config import K_MAX, LEASE_MAX, LEASE_MIN, RingConfig
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EARLY, SLOP = 0.005, 0.02  # seconds below T_l, for an answer on its way; above 2 T_l, for a loop that wakes late
SHARE = 0.99  # of the samples that must lie within
JUDGED_FROM = 0.128  # T_l below which a loop's own jitter is a part of T_l; reported, not judged
ROUNDING = 4


class DetectionParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 11."""

    leases: Annotated[tuple[Annotated[float, Meta(ge=LEASE_MIN, le=LEASE_MAX)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (
        0.032, 0.064, 0.128, 0.256, 0.512, 1.024,
    )  # fmt: skip
    crashes: Annotated[int, Meta(ge=1, le=10_000)] = 40
    members: Annotated[int, Meta(ge=4, le=256)] = 64
    least: Annotated[int, Meta(ge=3, le=256)] = 48  # members; before there are fewer, the crashed come back
    k: Annotated[int, Meta(ge=1, le=K_MAX)] = 3
    alone: Annotated[int, Meta(ge=1, le=64)] = 8  # members with a process of their own
    shared: Annotated[int, Meta(ge=1, le=64)] = 2  # processes for all others

    def __post_init__(self) -> None:
        if not self.alone < self.members or not self.least < self.members:
            raise ConfigError(f"alone {self.alone} and least {self.least}: accepted are fewer than members ({self.members})")


class RealDetection(Experiment[DetectionParameters]):
    """One crash after the other in a ring that comes back to its size now and then."""

    id = "ring/E5-real"
    name = "ring/real-detection-time"
    title = "Real processes: time from a crash to its suspicion"
    source = "paper 000, Figure 11; ring 8, E5 (real agents)"
    criterion = (
        "for T_l >= 128 ms at least 99 % of the samples in [T_l - 5 ms, 2 T_l + 20 ms + the largest loop lateness that monitor "
        "saw in that run]; a monitor that says nothing is a sample outside"
    )
    parameters = DetectionParameters
    repetitions = "crashes"
    quick: ClassVar[Mapping[str, str]] = {"leases": "[0.5]", "crashes": "4", "members": "12", "least": "8", "alone": "4"}

    def cells(self, parameters: DetectionParameters, seed: int) -> Sequence[Cell]:
        shape = {name: getattr(parameters, name) for name in ("crashes", "members", "least", "k", "alone", "shared")}
        return [{"lease": lease, "seed": f"{seed}/{lease:g}", **shape} for lease in parameters.leases]

    def measure(self, cell: Cell) -> Measured:
        runs: list[dict[str, Any]] = []
        broken = ""
        config = RingConfig(lease=cell["lease"], k=cell["k"])
        load = os.getloadavg()[0]
        try:
            with formed(cell["members"], config, solos=cell["alone"], shared=cell["shared"], seed=cell["seed"]) as ring:
                for number in range(cell["crashes"]):
                    if len(ring.members()) <= cell["least"]:
                        ring.revive(name for name in ring.names if name not in ring.fleet.view)
                    runs.append(_crash(ring, KINDS[number % len(KINDS)]))
        except NeverHappened as error:
            broken = str(error).partition(";")[0]
        return {"lease": cell["lease"], "asked": cell["crashes"], "runs": runs, "broken": broken, "load": round(load, 2)}

    def judge(self, parameters: DetectionParameters, results: Sequence[Measured]) -> Finding:
        rows = {f"T_l = {round(result['lease'] * 1000)} ms": _row(result) for result in results}
        misses: list[str] = []
        notes: list[str] = []
        for result, (name, row) in zip(results, rows.items(), strict=True):
            told = [f"{name}: {what}" for what in _shortcomings(row, result)]
            (misses if result["lease"] >= JUDGED_FROM else notes).extend(told)
        if not any(result["lease"] >= JUDGED_FROM for result in results):
            misses.append("no T_l of 128 ms or more was measured")
        expected = {name: {"share within": SHARE, "least": 1.0, "most": 2.0, "mean": 1.5, "quartiles": [1.25, 1.5, 1.75]} for name in rows}
        loads = ", ".join(f"{result['load']:g}" for result in results)
        return Finding(
            {"of T_l": rows}, {"of T_l": expected}, not misses, (*misses, *notes, f"load of the machine before each T_l: {loads}")
        )

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        rows = {name: row for name, row in finding.measured["of T_l"].items() if row["samples"]}
        stats = [_candle(name, row) for name, row in rows.items()]
        if stats:
            axes.bxp(stats, showfliers=False, showmeans=True, meanprops={"marker": "D", "markerfacecolor": "#d55e00"})
        for bound in (1.0, 2.0):
            axes.axhline(bound, color="#7b8794", linestyle="--")
        axes.axhline(1.5, color="#7b8794", linestyle=":", label="paper: between T_l and 2 T_l, mean 1.5 T_l")
        axes.plot([], [], "D", color="#d55e00", label="ours: mean; box and line: quartiles; whiskers: least and most")
        axes.set_ylabel("from crash to suspicion, in T_l")
        axes.set_ylim(bottom=0)
        axes.legend(loc="lower right")


def _crash(ring: Formed, kind: str) -> dict[str, Any]:
    """One crash, and what its monitors made of it."""
    it, config = ring.fleet, ring.config
    members = ring.members()
    candidates = [name for name in members if ring.kind_of(name) == kind] or members
    victim = ring.random.choice(candidates)
    life = ring.id_of(victim)
    it.lateness()
    it.pass_time(ring.random.uniform(0.0, config.lease))
    crashed_at = ring.crash([victim])[victim]
    rest = [name for name in members if name != victim]
    it.until_agreed(rest, f"{len(rest)} agree that {victim} is gone")
    late = it.lateness()
    suspicions = [line for line in ring.about("Suspicion", life, crashed_at) if line["entitled"]]
    departed = it.found("Departed", since=crashed_at, was_member=True)
    return {
        "kind": ring.kind_of(victim),
        "monitors": min(2 * config.k, len(rest)),
        "took": [line["stop"] - crashed_at for line in suspicions],
        "late": [late.get(name_of(line), 0.0) for line in suspicions],
        "departed": len(departed),
    }


def _row(result: Measured) -> dict[str, Any]:
    """What is said about one T_l; times in T_l, lateness in seconds."""
    lease, runs = result["lease"], result["runs"]
    samples = [(took, late) for run in runs for took, late in zip(run["took"], run["late"], strict=True)]
    monitors = sum(run["monitors"] for run in runs)
    times = sorted(took / lease for took, _ in samples)
    within = [lease - EARLY <= took <= 2 * lease + SLOP + late for took, late in samples]
    row: dict[str, Any] = {
        "crashes": len(runs),
        "samples": len(samples),
        "monitors": monitors,
        "kill -9": sum(run["kind"] == KINDS[0] for run in runs),
        "share within": _share([*within, *[False] * (monitors - len(samples))]),
        "share above the plain 2 T_l": _share([took > 2 * lease for took, _ in samples]),
        "share below T_l": _share([took < lease for took, _ in samples]),
        "largest lateness": round(max((late for _, late in samples), default=0.0), ROUNDING),
        "departures of healthy members": sum(run["departed"] for run in runs),
    }
    if len(times) > 1:
        row |= {"least": round(times[0], ROUNDING), "most": round(times[-1], ROUNDING), "mean": round(fmean(times), ROUNDING)}
        row["quartiles"] = [round(each, ROUNDING) for each in quantiles(times, n=4, method="inclusive")]
    return row


def _share(holds: Sequence[bool]) -> float:
    return round(sum(holds) / len(holds), ROUNDING) if holds else 0.0


def _shortcomings(row: Mapping[str, Any], result: Measured) -> list[str]:
    told = []
    if result["broken"]:
        told.append(f"after {row['crashes']} of {result['asked']} crashes: {result['broken']}")
    if row["share within"] < SHARE:
        told.append(f"{row['share within']:.2%} of {row['samples']} samples within, {SHARE:.0%} are asked for")
    return told


def _candle(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    low, middle, high = row["quartiles"]
    return {"label": name, "whislo": row["least"], "q1": low, "med": middle, "q3": high, "whishi": row["most"], "mean": row["mean"]}


EXPERIMENT = RealDetection()
