"""ring/E15: how soon do all know, at the price of 22 packets per second and member?

Spec: ring 12 (E15, P4), G5, G7. A process is killed with kill -9; when does the first and the last survivor hear ``Suspected``,
``Decided``, ``Failed``? Then processes are stopped (SIGSTOP) for 0.7 times the median detection time: does a member decide against them?
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from benchmarks.ring_fleet import NeverHappened, now
from benchmarks.ring_formed import Formed, formed
from holdfast.features.ring.protocol.config import K_MAX, LEASE_MAX, LEASE_MIN, RingConfig
from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVENTS = ("Suspected", "Decided", "Failed")
FIRST_DECIDED, LAST_DECIDED = 0.55, 0.7  # seconds, medians
PACKETS = 22.0  # sent per second and member, idle
PAUSE = 0.7  # of the median time to the first Decided
IDLE = 20  # in T_l: how long packets are counted
ROUNDING = 4


class LatencyParameters(Parameters, frozen=True, kw_only=True):
    """The setting of E15."""

    sizes: Annotated[tuple[Annotated[int, Meta(ge=3, le=256)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (5, 16, 64)
    kills: Annotated[int, Meta(ge=1, le=1000)] = 20
    pauses: Annotated[int, Meta(ge=1, le=1000)] = 30
    lease: Annotated[float, Meta(ge=LEASE_MIN, le=LEASE_MAX)] = 0.4
    k: Annotated[int, Meta(ge=1, le=K_MAX)] = 2
    alone: Annotated[int, Meta(ge=1, le=64)] = 16  # members with a process of their own; those are killed and stopped
    shared: Annotated[int, Meta(ge=1, le=64)] = 2  # processes for all others


class RealLatency(Experiment[LatencyParameters]):
    """Kill, wait, bring back; then stop and resume."""

    id = "ring/E15"
    name = "ring/real-latency"
    title = "Real processes: how soon everybody knows"
    source = "ring 12, E15, P4"
    criterion = (
        "at every size: idle at most 22 packets sent per second and member; median first Decided <= 0.55 s, median last <= 0.7 s; every "
        "Failed <= 4 T_l + T_a (scaled for drift, plus margin) after the kill; no Decided about a process stopped for less than T_l"
    )
    parameters = LatencyParameters
    repetitions = "kills"
    quick: ClassVar[Mapping[str, str]] = {"sizes": "[5]", "kills": "3", "pauses": "3"}

    def cells(self, parameters: LatencyParameters, seed: int) -> Sequence[Cell]:
        shape = {name: getattr(parameters, name) for name in ("kills", "pauses", "lease", "k", "alone", "shared")}
        return [{"size": size, "seed": f"{seed}/{size}", **shape} for size in parameters.sizes]

    def measure(self, cell: Cell) -> Measured:
        config = RingConfig(lease=cell["lease"], k=cell["k"])
        found: dict[str, Any] = {"size": cell["size"], "kills": [], "pauses": [], "broken": "", "load": round(os.getloadavg()[0], 2)}
        solos = min(cell["alone"], cell["size"])
        try:
            with formed(cell["size"], config, solos=solos, shared=cell["shared"], seed=cell["seed"]) as ring:
                found["packets"] = _idle(ring)
                for _ in range(cell["kills"]):
                    found["kills"].append(_kill(ring))
                seconds = PAUSE * median(kill["first Decided"] for kill in found["kills"])
                for _ in range(cell["pauses"]):
                    found["pauses"].append(_pause(ring, seconds))
        except NeverHappened as error:
            found["broken"] = str(error).partition(";")[0]
        return found

    def judge(self, parameters: LatencyParameters, results: Sequence[Measured]) -> Finding:
        config = RingConfig(lease=parameters.lease, k=parameters.k)
        bound = round(2 * config.lease + config.wait, ROUNDING)
        rows = {f"{result['size']} members": _row(result, config.lease) for result in results}
        misses = [f"{name}: {what}" for name, row in rows.items() for what in _shortcomings(row, bound)]
        misses += [f"{result['size']} members: {result['broken']}" for result in results if result["broken"]]
        expected = {
            name: {
                "packets per second and member": PACKETS,
                "median first Decided": FIRST_DECIDED,
                "median last Decided": LAST_DECIDED,
                "longest Failed": bound,
                "false Decided, stopped for less than T_l": 0,
            }
            for name in rows
        }
        loads = ", ".join(f"{result['load']:g}" for result in results)
        return Finding(dict(rows), expected, not misses, (*misses, f"load of the machine before each size: {loads}"))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for which, marker in (("first", "o"), ("last", "^")):
            for event in EVENTS:
                values = [row.get(f"median {which} {event}") for row in finding.measured.values()]
                axes.plot(list(finding.measured), values, marker=marker, label=f"{which} {event}, median")
        for value, label in ((FIRST_DECIDED, "asked: first Decided"), (LAST_DECIDED, "asked: last Decided")):
            axes.axhline(value, color="#7b8794", linestyle="--")
            axes.annotate(label, (0, value), color="#7b8794", fontsize=8, va="bottom")
        bound = next(iter(finding.expected.values()))["longest Failed"]
        axes.axhline(bound, color="#7b8794", linestyle=":", label="4 T_l + T_a: every Failed")
        axes.set_ylabel("seconds after kill -9")
        axes.set_ylim(bottom=0)
        axes.legend(loc="center right")


def _idle(ring: Formed) -> float:
    """Packets sent per second and member while nothing happens."""
    it = ring.fleet
    before = it.mark()
    it.pass_time(IDLE * ring.config.lease)
    after = it.mark()
    rates = [(after[name]["sent"] - before[name]["sent"]) / (after[name]["at"] - before[name]["at"]) for name in after]
    return fmean(rates)


def _kill(ring: Formed) -> dict[str, Any]:
    it = ring.fleet
    victim = ring.random.choice([name for name in ring.members() if name in ring.alone])
    node, life = it.view[victim]["node"], ring.id_of(victim)
    it.lateness()
    it.pass_time(ring.random.uniform(0.0, ring.config.lease))
    killed_at = ring.crash([victim])[victim]
    rest = [name for name in ring.names if name != victim]
    it.until_agreed(rest, f"all but {victim} agree")
    late = max(it.lateness().values())
    suspicions = sorted(line["stop"] - killed_at for line in ring.about("Suspicion", life, killed_at))
    found: dict[str, Any] = {"lateness": late, "monitors": len(suspicions), "apart": suspicions[-1] - suspicions[0] if suspicions else 0.0}
    for event in EVENTS:
        times = [line["at"] - killed_at for line in it.found(event, since=killed_at, member=node)]
        found |= {f"first {event}": min(times), f"last {event}": max(times), f"survivors with {event}": len(times)}
    ring.revive([victim])
    return found


def _pause(ring: Formed, seconds: float) -> dict[str, Any]:
    it = ring.fleet
    victim = ring.random.choice([name for name in ring.members() if name in ring.alone])
    node, process = it.view[victim]["node"], it.home[victim]
    it.pass_time(ring.random.uniform(0.0, ring.config.lease))
    stopped_at = process.signal(signal.SIGSTOP)
    it.pass_time(seconds)
    resumed_at = now()
    process.signal(signal.SIGCONT)
    it.pass_time(2 * ring.config.lease + ring.config.t_a)
    found = {
        "stopped for": resumed_at - stopped_at,
        "Decided": len(it.found("Decided", since=stopped_at, member=node)),
        "departed": len(it.found("Departed", since=stopped_at, was_member=True)),
    }
    it.until_agreed(ring.names, "all are there after a pause")
    return found


def _row(result: Measured, lease: float) -> dict[str, Any]:
    """What is said about one size; seconds."""
    kills, pauses = result["kills"], result["pauses"]
    row: dict[str, Any] = {"kills": len(kills), "packets per second and member": round(result.get("packets", 0.0), 2)}
    if kills:
        for event in EVENTS:
            for which in ("first", "last"):
                row[f"median {which} {event}"] = round(median(kill[f"{which} {event}"] for kill in kills), ROUNDING)
        row["longest Failed"] = round(max(kill["last Failed"] for kill in kills), ROUNDING)
        row["fewest survivors with Decided"] = min(kill["survivors with Decided"] for kill in kills)
        row["median spread of one victim's monitors"] = round(median(kill["apart"] for kill in kills), ROUNDING)
        row["largest lateness"] = round(max(kill["lateness"] for kill in kills), ROUNDING)
    short = [pause for pause in pauses if pause["stopped for"] < lease]
    row["pauses"] = len(pauses)
    row["pauses shorter than T_l"] = len(short)
    row["longest pause"] = round(max((pause["stopped for"] for pause in pauses), default=0.0), ROUNDING)
    row["false Decided, stopped for less than T_l"] = sum(pause["Decided"] > 0 for pause in short)
    row["false Decided, any pause"] = sum(pause["Decided"] > 0 for pause in pauses)
    row["departures after a pause"] = sum(pause["departed"] for pause in pauses)
    return row


def _shortcomings(row: Mapping[str, Any], bound: float) -> list[str]:
    if not row["kills"]:
        return ["no member was killed"]
    limits = {
        "packets per second and member": PACKETS,
        "median first Decided": FIRST_DECIDED,
        "median last Decided": LAST_DECIDED,
        "longest Failed": bound,
        "false Decided, stopped for less than T_l": 0,
    }
    told = [f"{what} {row[what]:g}, at most {limit:g} asked for" for what, limit in limits.items() if row[what] > limit]
    if not row["pauses shorter than T_l"]:
        told.append("no pause was shorter than T_l, so nothing is known about those")
    return told


EXPERIMENT = RealLatency()
