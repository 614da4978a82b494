"""limits/F6: what do two members use while a link between one of them and an idle one is cut?

Spec: limits 5.4, 8 (F6), D1; paper 003, 7.1.1, Figure 6 (Case 2). The link between L2 and L4 is cut from 10 s to 55 s. With the black list,
without it, and with push-sum as it was published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from statistics import pstdev
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.flows import L2, L4, L6, FlowGroup
from holdfast.features.limits.lab.measures import between, mean
from holdfast.features.limits.lab.mutations import as_published, plain_push_sum
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WARM = 40.0  # seconds before the clock of the figure begins: flows find their rates
CUT_AT, HEALED_AT, END = 10.0, 55.0, 80.0
FROM, LAST = 20.0, 15.0  # seconds: the cut has had its effect; what is looked at before the end
OURS, WITHOUT, PLAIN = WAYS = ("black list", "no black list", "plain push-sum")
L2_RANGE, L6_RANGE = (3.6, 4.1), (1.9, 2.1)
WITHOUT_MEAN_MAX = 3.2
EXPECTED_L6 = 2.0


class BlackListParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 7.1.1."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 4


class BlackList(Experiment[BlackListParameters]):
    """One cut, three ways to gossip."""

    id = "limits/F6"
    name = "limits/black-list"
    title = "A link is cut: with the black list the limits stay what they are"
    source = "paper 003, 7.1.1, Figure 6; limits 8, F6"
    criterion = (
        "with: L2 at 3.6 to 4.1 and L6 at 1.9 to 2.1 Mbps in the mean; without: the deviation of L2 at least twice that, its mean below "
        "3.2; plain push-sum: L6 not back at 1.9 after the heal"
    )
    parameters = BlackListParameters
    seconds_per_cell = 4.0
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1"}

    def cells(self, parameters: BlackListParameters, seed: int) -> Sequence[Cell]:
        return [{"way": way, "seed": seed * SEEDS_MAX + number} for way in WAYS for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        with ExitStack() as stack:
            if cell["way"] != OURS:
                as_published(stack)
            if cell["way"] == PLAIN:
                plain_push_sum(stack)
            return checked(_play, cell)

    def judge(self, parameters: BlackListParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        of = {way: [row for row in rows if row["way"] == way] for way in WAYS}
        measured: dict[str, Any] = {
            what: {way: round(mean([row[what] for row in of[way]]), 3) for way in WAYS if of[way]}
            for what in ("L2 while cut", "L6 while cut", "deviation of L2", "L6 after the heal")
        }
        measured["lines"] = {row["way"]: row["lines"] for row in rows if row["seed"] % SEEDS_MAX == 0}
        expected = {
            "L2 while cut": {OURS: "the paper: 4"},
            "L6 while cut": {OURS: "the paper: 2"},
            "deviation of L2": {WITHOUT: "the paper: all and nothing in turn"},
        }
        misses = [*violations(results), *_misses(measured)] if all(of.values()) else [*violations(results), "a way was not measured"]
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        plots = figure.subplots(1, len(WAYS), sharey=True)
        for axes, way in zip(plots, WAYS, strict=True):
            for name, label in ((L2, "L2, 40 flows"), (L6, "L6, 20 flows")):
                line = finding.measured["lines"].get(way, {}).get(name, [])
                axes.plot([at for at, _ in line], [value for _, value in line], label=label, linewidth=1)
            for at in (CUT_AT, HEALED_AT):
                axes.axvline(at, color="#b42318", linestyle="--", linewidth=1)
            axes.set_title(way)
            axes.set_xlabel("seconds")
        plots[0].set_ylabel("limit, Mbps")
        plots[0].legend(fontsize=7)


def _play(cell: Cell) -> Measured:
    group = FlowGroup(cell["seed"], LimitsConfig(branching=1))
    group.warm_up(WARM)
    group.record(CUT_AT)
    cut = group.cut([L2], [L4])
    group.record(HEALED_AT)
    group.heal(cut)
    group.record(END)
    l2, l6 = (between(group.recorded.lines[name], FROM, HEALED_AT) for name in (L2, L6))
    return {
        **cell,
        "L2 while cut": mean(l2),
        "L6 while cut": mean(l6),
        "deviation of L2": pstdev(l2),
        "L6 after the heal": mean(between(group.recorded.lines[L6], END - LAST, END)),
        "lines": group.recorded.thin(),
    }


def _misses(measured: Mapping[str, Mapping[str, float]]) -> list[str]:
    l2, l6, deviation, last = (measured[what] for what in ("L2 while cut", "L6 while cut", "deviation of L2", "L6 after the heal"))
    notes = []
    if not L2_RANGE[0] <= l2[OURS] <= L2_RANGE[1]:
        notes.append(f"with the black list L2 has {l2[OURS]:.2f}, expected {L2_RANGE[0]} to {L2_RANGE[1]}")
    if not L6_RANGE[0] <= l6[OURS] <= L6_RANGE[1]:
        notes.append(f"with the black list L6 has {l6[OURS]:.2f}, expected {L6_RANGE[0]} to {L6_RANGE[1]}")
    if deviation[WITHOUT] < 2 * deviation[OURS] or l2[WITHOUT] >= WITHOUT_MEAN_MAX:
        with_it = f"with the black list one of {deviation[OURS]:.2f}"
        notes.append(f"without it L2 has {l2[WITHOUT]:.2f} and a deviation of {deviation[WITHOUT]:.2f}, {with_it}")
    if abs(last[PLAIN] - EXPECTED_L6) < EXPECTED_L6 - L6_RANGE[0]:
        notes.append(f"plain push-sum is back after the heal: L6 has {last[PLAIN]:.2f}")
    return notes


EXPERIMENT = BlackList()
