"""limits/F7: what do two halves use while the servers are cut apart?

Spec: limits 5.6, 5.7, 8 (F7), H360; paper 003, 7.1.1, Figure 7 (Case 3). Server s0 with L1 and L2 is apart from 10 s to 55 s. We have two
views, {L1, L2} and the other four, so L2 may use 2 Mbps and L6 4; ZooKeeper leaves L1 and L2 without a view: in panic L2 has R/6. Our
servers are simulated, the ensemble is a real one, in real time, where it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.flows import L2, L6, MEMBERS, RATE, FlowGroup, Recorded
from holdfast.features.limits.lab.measures import between, mean, thinned
from holdfast.features.limits.lab.terms import Policy
from holdfast.features.limits.lab.zookeeper_flows import ZooKeeperFlows, on_zookeeper
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.views.lab.experiments.table1_failures import CUTS, MISSING, MOSHE, ZOOKEEPER, BackEnd, unmeasured
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASE, LEADER = 3, 2
WARM = 40.0
CUT_AT, HEALED_AT, END = 10.0, 55.0, 80.0
LOOK = 15.0  # seconds before the heal: all of that is over
# Mbps of L2 and L6 while the servers are apart.
RANGES: Mapping[BackEnd, Mapping[str, tuple[float, float]]] = {
    MOSHE: {"L2": (1.95, 2.05), "L6": (3.85, 4.0)},
    ZOOKEEPER: {"L2": (0.95, 1.05), "L6": (3.85, 4.0)},
}
PARTS: Mapping[BackEnd, int] = {MOSHE: 2, ZOOKEEPER: 1}  # of the six, that L2 may use then
ROUNDING = 1e-9


class PartitionParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 7.1.1. A real ensemble draws nothing, and has one run for each policy."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 4

    policies: Annotated[tuple[Policy, ...], Meta(min_length=1, max_length=3)] = ("fair", "strict", "exact")
    back_ends: Annotated[tuple[BackEnd, ...], Meta(min_length=1, max_length=LIST_MAX)] = (MOSHE, ZOOKEEPER)
    zookeeper_seconds: Annotated[float, Meta(ge=8.0, le=600.0)] = HEALED_AT - CUT_AT  # of a cut in real time


class Partition(Experiment[PartitionParameters]):
    """The same partition under each policy, on each back end."""

    id = "limits/F7"
    name = "limits/partition"
    title = "Two halves of a group: each shares its part of the limit"
    source = "paper 003, 7.1.1, Figure 7; limits 8, F7"
    criterion = (
        "L2 at 1.95 to 2.05 (ZooKeeper: 0.95 to 1.05) and L6 at 3.85 to 4.0 Mbps while the servers are apart; "
        "exact: the sum of limits never above 6.00"
    )
    parameters = PartitionParameters
    seconds_per_cell = 25.0  # most of them waiting: a cut of a real ensemble lasts 45 s
    quick: ClassVar[Mapping[str, str]] = {"policies": '["fair"]', "seeds": "1", "back_ends": '["moshe"]'}

    def cells(self, parameters: PartitionParameters, seed: int) -> Sequence[Cell]:
        return [
            {
                "back end": back_end,
                "policy": policy,
                "leader": LEADER,
                "seconds": parameters.zookeeper_seconds if back_end == ZOOKEEPER else HEALED_AT - CUT_AT,
                "seed": seed * SEEDS_MAX + number,
            }
            for back_end in parameters.back_ends
            for policy in parameters.policies
            for number in range(1 if back_end == ZOOKEEPER else parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(BACK_ENDS[cell["back end"]], cell)

    def judge(self, parameters: PartitionParameters, results: Sequence[Measured]) -> Finding:
        rows = [row for row in completed(results) if not row.get(MISSING)]
        of: dict[str, list[Measured]] = {}
        for row in rows:
            of.setdefault(f"{row['back end']}, {row['policy']}", []).append(row)
        measured: dict[str, Any] = {
            **{name: {key: round(mean([row[name] for row in of[key]]), 4) for key in of} for name in ("L2", "L6")},
            "largest sum": {key: round(max(row["largest sum"] for row in of[key]), 9) for key in of},
            "seconds to 90 % of both after the cut": {key: [row["seconds to it"] for row in of[key]] for key in of},
            "seconds to 90 % of both after the heal": {key: [row["healed in"] for row in of[key]] for key in of},
            "lines": {key: of[key][0]["lines"] for key in of},
        }
        expected = {
            "L2": "the paper: 2 with Moshe; ZooKeeper: in panic at 1/6, which is 1.0",
            "L6": "the paper: 4 with both",
            "largest sum": "exact: 6.0",
            "seconds to 90 % of both after the heal": "the paper: ZooKeeper is slower",
        }
        misses = [*violations(results), *_misses(measured)]
        notes = [*misses, *unmeasured(results, parameters.back_ends)]
        return Finding(measured, expected, bool(rows) and not misses, shortened(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines = finding.measured["lines"]
        back_ends = list(dict.fromkeys(key.partition(", ")[0] for key in lines))
        plots = figure.subplots(len(back_ends), -(-len(lines) // len(back_ends)), sharey=True, squeeze=False)
        for axes, (key, of) in zip(plots.flat, lines.items(), strict=True):
            for name, label in ((L2, "L2, 40 flows"), (L6, "L6, 20 flows"), ("sum", "all")):
                axes.plot([at for at, _ in of[name]], [value for _, value in of[name]], label=label, linewidth=1)
            for at in (CUT_AT, HEALED_AT):
                axes.axvline(at, color="#0a7d33", linewidth=1)
            axes.set_title(key, fontsize=9)
        for axes in plots[-1]:
            axes.set_xlabel("seconds")
        for axes in plots[:, 0]:
            axes.set_ylabel("limit, Mbps")
        plots[0, 0].legend(fontsize=7)


def play_moshe(cell: Cell) -> Measured:
    """On our own servers, in the simulator."""
    group = FlowGroup(cell["seed"], LimitsConfig(), policy=cell["policy"])
    group.warm_up(WARM)
    group.record(CUT_AT)
    cuts = group.cut(*CUTS[CASE])
    group.record(HEALED_AT)
    group.heal(cuts)
    group.record(END)
    return _found(cell, group.recorded)


def play_zookeeper(cell: Cell) -> Measured:
    """On a real ensemble, in real time; or why that cannot be."""

    async def play(group: ZooKeeperFlows) -> Measured:
        healed_at = CUT_AT + cell["seconds"]
        await group.record(CUT_AT)
        await group.cut(CASE)
        await group.record(healed_at)
        await group.heal()
        await group.record(healed_at + END - HEALED_AT)
        return _found(cell, group.recorded)

    return on_zookeeper(cell, play, cell["policy"])


BACK_ENDS: Mapping[BackEnd, Callable[[Cell], Measured]] = {MOSHE: play_moshe, ZOOKEEPER: play_zookeeper}


def _found(cell: Cell, recorded: Recorded) -> Measured:
    l2, l6 = recorded.lines[L2], recorded.lines[L6]
    seconds = cell["seconds"]
    healed_at = CUT_AT + seconds
    look = healed_at - min(LOOK, seconds / 3)
    own = PARTS[cell["back end"]] / MEMBERS
    return {
        **cell,
        "L2": mean(between(l2, look, healed_at)),
        "L6": mean(between(l6, look, healed_at)),
        "largest sum": max(value for _, value in recorded.sums),
        "seconds to it": _reached(l2, l6, CUT_AT, healed_at, (RATE * own, RATE * 4 / MEMBERS)),
        "healed in": _reached(l2, l6, healed_at, healed_at + END - HEALED_AT, (RATE * 40 / 60, RATE * 20 / 60)),
        "lines": {**recorded.thin(), "sum": thinned(recorded.sums)},
    }


Line = Sequence[tuple[float, float]]


def _reached(l2: Line, l6: Line, begin: float, end: float, wanted: tuple[float, float]) -> float | None:
    """From when on do both have nine tenths of this? In seconds after the beginning."""
    late = [
        at for (at, one), (_, other) in zip(l2, l6, strict=True) if begin <= at < end and (one < 0.9 * wanted[0] or other < 0.9 * wanted[1])
    ]
    if late and late[-1] > end - 1.0:
        return None
    return round(late[-1] - begin, 2) if late else 0.0


def _misses(measured: Mapping[str, Mapping[str, float]]) -> list[str]:
    notes = []
    for back_end, ranges in RANGES.items():
        for name, (least, most) in ranges.items():
            for key, value in measured[name].items():
                if key.startswith(back_end) and not least <= value <= most:
                    notes.append(f"{key}: {name} has {value:.3f} in the mean, expected {least} to {most}")
    for key, largest in measured["largest sum"].items():
        if key.endswith("exact") and largest > RATE * (1 + ROUNDING):
            notes.append(f"{key}: the sum of limits is {largest:.6f}")
    return notes


EXPERIMENT = Partition()
