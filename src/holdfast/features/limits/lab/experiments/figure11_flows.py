"""limits/F11: 182 members share 30 Mbps, and more and more of them have flows.

Spec: limits 8 (F11), 5.2 (flows), D7, H307; paper 003, 7.2.3, Figure 11. What is reported is averaged over two seconds, as in the paper.
The paper's shares have no part that is split equally; with ours idle members keep theirs, and it is left unused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.failing_links import FailingLinks, window_of_trace
from holdfast.features.limits.lab.many_flows import ManyFlows
from holdfast.features.limits.lab.measures import thinned
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATE = 30.0  # Mbps
LINK = Link(delay=Uniform(0.02, 0.15), loss=0.01)
FORMING = 20.0  # seconds without flows, until weights are at rest
SAMPLED, AVERAGED = 0.5, 4  # seconds between samples, and how many of them are averaged
SETTLING = 15.0  # seconds after each step in which nothing is judged
PLAIN, OURS = 0.0, 0.05  # reserve: of the paper's rule, and ours
USE = (29.0, 30.5)
MEAN_NEAR, MOST_NEAR = 0.02, 0.10


class FlowParameters(Parameters, frozen=True, kw_only=True):
    """The setting of Figure 11."""

    members: Annotated[int, Meta(ge=8, le=400)] = 182
    branching: Annotated[int, Meta(ge=1, le=16)] = 8
    changed: Annotated[int, Meta(ge=1, le=100)] = 38  # members that get flows at a step
    flows: Annotated[int, Meta(ge=1, le=1000)] = 10  # of each
    every: Annotated[float, Meta(ge=16.0, le=600.0)] = 90.0
    seconds: Annotated[float, Meta(ge=16.0, le=3600.0)] = 360.0


class FlowLimits(Experiment[FlowParameters]):
    """Gossip alone."""

    id = "limits/F11"
    name = "limits/large-group-flows"
    title = "182 members keep 30 Mbps, whatever part of them has traffic"
    source = "paper 003, 7.2.3, Figure 11; limits 8, F11"
    criterion = (
        "with the paper's shares (no reserve): from 15 s after each step on, the use is 29 to 30.5 Mbps in the mean, and the sum of all "
        "limits is within 2 % of 30 Mbps in the mean and, averaged over 2 s, within 10 % always"
    )
    parameters = FlowParameters
    seconds_per_cell = 60
    quick: ClassVar[Mapping[str, str]] = {"members": "24", "branching": "5", "changed": "5", "every": "22.0", "seconds": "44.0"}

    def cells(self, parameters: FlowParameters, seed: int) -> Sequence[Cell]:
        return [
            {**setting_of(parameters), "aggregate": "gossip", "reserve": reserve, "seed": seed * SEEDS_MAX + number}
            for reserve in (PLAIN, OURS)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(play, cell)

    def judge(self, parameters: FlowParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        judged = [row for row in rows if row["reserve"] == PLAIN]
        measured: dict[str, Any] = {
            **{what: {_key(row): row[what] for row in rows} for what in ("use", "mean of limits", "most of limits", "least of limits")},
            "spread of weights": {_key(row): row["spread"] for row in rows},
            "lines": {_key(row): row["lines"] for row in rows[:1] + rows[parameters.seeds : parameters.seeds + 1]},
        }
        expected = {
            "use": "29 to 30.5; at 60 members 29.4 to 29.8",
            "mean of limits": "29.4 to 30.6; at 60 members 30.07 to 30.22",
            "most of limits": "27 to 33; at 60 members 31.6",
        }
        misses = [*violations(results), *(note for row in judged for note in misses_of(row))]
        notes = [
            f"with a reserve of {OURS:g} (D7), for comparison: {note}"
            for row in rows
            if row["reserve"] == OURS
            for note in misses_of(row)[:2]
        ]
        return Finding(measured, expected, bool(judged) and not misses, shortened([*misses, *notes]))

    def draw(self, figure: Figure, finding: Finding) -> None:
        draw_lines(figure, finding.measured["lines"])


def setting_of(parameters: FlowParameters) -> dict[str, Any]:
    return {
        "members": parameters.members,
        "branching": parameters.branching,
        "changed": parameters.changed,
        "flows": parameters.flows,
        "every": parameters.every,
        "seconds": parameters.seconds,
    }


def play(cell: Cell) -> Measured:
    """One run: what was used, what was allowed, what members knew."""
    config = LimitsConfig(epoch=0.5, branching=cell["branching"])
    group = ManyFlows(
        cell["seed"], cell["members"], config, link=LINK, rate=RATE, reserve=cell["reserve"], aggregate=cell["aggregate"]
    )  # fmt: skip
    names, seconds = group.names, cell["seconds"]
    FailingLinks(group.world, names).plan(window_of_trace(cell["seed"], names, FORMING + seconds))
    group.install()
    group.run(FORMING)
    users = [group.user(name) for name in names]
    begun_at = group.world.now
    steps = [cell["every"] * number for number in range(int(seconds / cell["every"]) + 1) if cell["every"] * number < seconds]
    due, begun = list(steps), 0
    samples: list[tuple[float, ...]] = []
    for number in range(int(seconds / SAMPLED) + 1):
        at = number * SAMPLED
        group.run(begun_at + at - group.world.now)
        while due and due[0] <= at:
            due.pop(0)
            for user in users[begun : begun + cell["changed"]]:
                user.traffic.flows = cell["flows"]
            begun += cell["changed"]
        for user in users:
            user.traffic.advance()
        weights = [user.aggregate for user in users]
        limits = sum(user.traffic.told for user in users)
        weight = sum(user.weight for user in users)
        samples.append((at, sum(user.traffic.use for user in users), limits, weight, fmean(weights), pstdev(weights)))
    return {**cell, **_summary(averaged(samples[1:]), steps, seconds)}


def averaged(samples: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Each value is the mean of the last two seconds, as in the paper."""
    found = []
    for number in range(len(samples)):
        window = samples[max(0, number + 1 - AVERAGED) : number + 1]
        found.append((samples[number][0], *(fmean(column) for column in list(zip(*window, strict=True))[1:])))
    return found


def _summary(samples: Sequence[tuple[float, ...]], steps: Sequence[float], seconds: float) -> dict[str, Any]:
    uses, means, most, least, spreads = [], [], [], [], []
    for begin, end in zip(steps, [*steps[1:], seconds], strict=True):
        calm = [sample for sample in samples if begin + SETTLING <= sample[0] < end]
        uses.append(round(fmean(sample[1] for sample in calm), 3))
        means.append(round(fmean(sample[2] for sample in calm), 3))
        most.append(round(max(sample[2] for sample in calm), 3))
        least.append(round(min(sample[2] for sample in calm), 3))
        spreads.append(round(fmean(sample[5] for sample in calm), 4))
    names = ("use", "limits", "true weight", "mean weight", "spread")
    return {
        "use": uses,
        "mean of limits": means,
        "most of limits": most,
        "least of limits": least,
        "spread": spreads,
        "lines": {name: thinned([(sample[0], sample[place]) for sample in samples]) for place, name in enumerate(names, 1)},
    }


def misses_of(row: Measured) -> list[str]:
    """Where one run is not as it is accepted, by step."""
    where, notes = _key(row), []
    for number, use in enumerate(row["use"], 1):
        if not USE[0] <= use <= USE[1]:
            notes.append(f"{where}: step {number}: {use:g} Mbps are used in the mean, accepted are {USE[0]:g} to {USE[1]:g}")
    for number, mean in enumerate(row["mean of limits"], 1):
        if abs(mean - RATE) > MEAN_NEAR * RATE:
            notes.append(f"{where}: step {number}: the sum of limits is {mean:g} in the mean, accepted is {RATE:g} within 2 %")
    for number, (low, high) in enumerate(zip(row["least of limits"], row["most of limits"], strict=True), 1):
        if max(high - RATE, RATE - low) > MOST_NEAR * RATE:
            notes.append(f"{where}: step {number}: the sum of limits is {low:g} to {high:g}, accepted is {RATE:g} within 10 %")
    return notes


def draw_lines(figure: Figure, lines: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]]) -> None:
    """The three graphs of the paper, for each run."""
    grid = figure.subplots(3, 1, sharex=True)
    for (key, line), colour in zip(lines.items(), ("#0072b2", "#d55e00"), strict=False):
        for axes, what in zip(grid, ("limits", "true weight", "mean weight"), strict=True):
            axes.plot([at for at, _ in line[what]], [value for _, value in line[what]], color=colour, linewidth=0.9, label=key)
        grid[0].plot(
            [at for at, _ in line["use"]], [value for _, value in line["use"]], ":", color=colour, linewidth=0.9, label=f"use, {key}"
        )
        means, spreads = line["mean weight"], line["spread"]
        grid[2].fill_between(
            [at for at, _ in means],
            [mean - spread for (_, mean), (_, spread) in zip(means, spreads, strict=True)],
            [mean + spread for (_, mean), (_, spread) in zip(means, spreads, strict=True)],
            color=colour,
            alpha=0.2,
        )
    for axes, label in zip(grid, ("sum of limits, Mbps", "true weight", "mean weight ± sd"), strict=True):
        axes.set_ylabel(label, fontsize=8)
    grid[0].set_ylim(bottom=0.0)
    grid[0].legend(fontsize=7)
    grid[2].set_xlabel("seconds")


def _key(row: Measured) -> str:
    return f"{row['aggregate']}, reserve {row['reserve']:g}, seed {row['seed']}"


EXPERIMENT = FlowLimits()
