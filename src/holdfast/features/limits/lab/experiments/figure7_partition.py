"""limits/F7: what do two halves use while the servers are cut apart?

Spec: limits 5.6, 5.7, 8 (F7); paper 003, 7.1.1, Figure 7 (Case 3). Server s0 with L1 and L2 is apart from 10 s to 55 s. We have two
views, {L1, L2} and the other four, so L2 may use 2 Mbps and L6 4; ZooKeeper leaves L1 and L2 without a view, which is computed here and
measured where there is an ensemble (views/T1): L2 in panic has R/6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.flows import L2, L6, MEMBERS, RATE, FlowGroup
from holdfast.features.limits.lab.measures import between, checked, completed, mean, shortened, violations
from holdfast.features.limits.lab.terms import Policy
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.views.lab.experiments.table1_failures import CUTS
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASE = 3
WARM = 40.0
CUT_AT, HEALED_AT, END = 10.0, 55.0, 80.0
LOOK = 15.0  # seconds before the heal: all of that is over
L2_RANGE, L6_RANGE = (1.95, 2.05), (3.85, 4.0)
ROUNDING = 1e-9


class PartitionParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 7.1.1."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 4

    policies: Annotated[tuple[Policy, ...], Meta(min_length=1, max_length=3)] = ("fair", "strict", "exact")


class Partition(Experiment[PartitionParameters]):
    """The same partition under each policy."""

    id = "limits/F7"
    name = "limits/partition"
    title = "Two halves of a group: each shares its part of the limit"
    source = "paper 003, 7.1.1, Figure 7; limits 8, F7"
    criterion = "L2 at 1.95 to 2.05 and L6 at 3.85 to 4.0 Mbps while the servers are apart; exact: the sum of limits never above 6.00"
    parameters = PartitionParameters
    seconds_per_cell = 5.0
    quick: ClassVar[Mapping[str, str]] = {"policies": '["fair"]', "seeds": "1"}

    def cells(self, parameters: PartitionParameters, seed: int) -> Sequence[Cell]:
        return [
            {"policy": policy, "seed": seed * SEEDS_MAX + number} for policy in parameters.policies for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: PartitionParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        of = {policy: [row for row in rows if row["policy"] == policy] for policy in parameters.policies}
        measured: dict[str, Any] = {
            what: {policy: round(mean([row[what] for row in of[policy]]), 4) for policy in of if of[policy]} for what in ("L2", "L6")
        }
        measured["largest sum"] = {policy: round(max(row["largest sum"] for row in of[policy]), 9) for policy in of if of[policy]}
        measured["seconds to 90 % of both after the cut"] = {policy: [row["seconds"] for row in of[policy]] for policy in of if of[policy]}
        measured["seconds to 90 % of both after the heal"] = {
            policy: [row["healed in"] for row in of[policy]] for policy in of if of[policy]
        }
        measured["lines"] = {row["policy"]: row["lines"] for row in rows if row["seed"] % SEEDS_MAX == 0}
        expected = {
            "L2": "the paper: 2 with Moshe; ZooKeeper: in panic at 1/6, which is 1.0",
            "L6": "the paper: 4 with both",
            "largest sum": "exact: 6.0",
        }
        misses = [*violations(results), *_misses(measured)]
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines = finding.measured["lines"]
        plots = figure.subplots(1, len(lines), sharey=True, squeeze=False)[0]
        for axes, (policy, of) in zip(plots, lines.items(), strict=True):
            for name, label in ((L2, "L2, 40 flows"), (L6, "L6, 20 flows"), ("sum", "all")):
                axes.plot([at for at, _ in of[name]], [value for _, value in of[name]], label=label, linewidth=1)
            for at in (CUT_AT, HEALED_AT):
                axes.axvline(at, color="#0a7d33", linewidth=1)
            axes.set_title(policy)
            axes.set_xlabel("seconds")
        plots[0].set_ylabel("limit, Mbps")
        plots[0].legend(fontsize=7)


def _play(cell: Cell) -> Measured:
    group = FlowGroup(cell["seed"], LimitsConfig(), policy=cell["policy"])
    group.warm_up(WARM)
    group.record(CUT_AT)
    cuts = group.cut(*CUTS[CASE])
    group.record(HEALED_AT)
    group.heal(cuts)
    group.record(END)
    l2, l6 = group.lines[L2], group.lines[L6]
    whole = (RATE * 40 / 60, RATE * 20 / 60)
    return {
        **cell,
        "L2": mean(between(l2, HEALED_AT - LOOK, HEALED_AT)),
        "L6": mean(between(l6, HEALED_AT - LOOK, HEALED_AT)),
        "largest sum": max(value for _, value in group.sums),
        "seconds": _reached(l2, l6, CUT_AT, HEALED_AT, (RATE * 2 / MEMBERS, RATE * 4 / MEMBERS)),
        "healed in": _reached(l2, l6, HEALED_AT, END, whole),
        "lines": {**group.thin(), "sum": group.sums[::4]},
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
    for name, (least, most) in (("L2", L2_RANGE), ("L6", L6_RANGE)):
        for policy, value in measured[name].items():
            if not least <= value <= most:
                notes.append(f"{policy}: {name} has {value:.3f} in the mean, expected {least} to {most}")
    largest = measured["largest sum"].get("exact", 0.0)
    if largest > RATE * (1 + ROUNDING):
        notes.append(f"exact: the sum of limits is {largest:.6f}")
    return notes


EXPERIMENT = Partition()
