"""limits/N1: how soon does a new instance of a large group know what all want?

Spec: limits 5.6, 8 (N1), D9, H361; paper 003, 6.3: 500 limiters, epochs of 500 ms and a branching factor of two take about 5 s. What is
asked is what gossip itself says, not the blend with what was known before the view changed. Beside it stands what members use meanwhile:
with our ramp, and with the moving average of the paper, which no criterion judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.measures import mean, thinned
from holdfast.features.limits.lab.mutations import Mutation, ewma_blending, without
from holdfast.features.limits.lab.sums import RATE, SumGroup
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPOCH, LOOK = 0.5, 0.25
FIRST = 8.0  # seconds of the instance before
SHOWN = 10.0  # seconds after the restart
NEAR, WITHIN = 0.05, 5.0
RAMP, EWMA = "ramp", "moving average"
RULES: Mapping[str, Mutation] = {RAMP: lambda stack: None, EWMA: ewma_blending}
GOSSIP = "gossip itself"


class RestartParameters(Parameters, frozen=True, kw_only=True):
    """The paper's numbers."""

    members: Annotated[int, Meta(ge=2, le=2000)] = 500
    branching: Annotated[int, Meta(ge=1, le=16)] = 2


class Restart(Experiment[RestartParameters]):
    """Each member begins anew with its own demand."""

    id = "limits/N1"
    name = "limits/restart"
    title = "A new instance of 500 members knows the aggregate within seconds"
    source = "paper 003, 6.3; limits 8, N1"
    criterion = "mean error below 5 % at most 5 s after the restart"
    parameters = RestartParameters
    seconds_per_cell = 40.0
    quick: ClassVar[Mapping[str, str]] = {"members": "60"}

    def cells(self, parameters: RestartParameters, seed: int) -> Sequence[Cell]:
        base = {"members": parameters.members, "branching": parameters.branching}
        return [{**base, "rule": rule, "seed": seed * SEEDS_MAX + number} for rule in RULES for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        with without(RULES[cell["rule"]]):
            return checked(_play, cell)

    def judge(self, parameters: RestartParameters, results: Sequence[Measured]) -> Finding:
        rows = [row for row in completed(results) if row["rule"] == RAMP]
        of = {rule: [row for row in completed(results) if row["rule"] == rule] for rule in RULES}
        slow = [row for row in rows if row["seconds"] is None or row["seconds"] > WITHIN]
        misses = [*violations(results), *(f"seed {row['seed']}: a mean error below 5 % after {row['seconds']} s" for row in slow)]
        measured: dict[str, Any] = {
            "seconds to a mean error below 5 %": [row["seconds"] for row in rows],
            "error after 5 s": [row["error after 5 s"] for row in rows],
            "largest mean error of what is used": {rule: max(row["largest"] for row in of[rule]) for rule in of if of[rule]},
            "seconds of the whole limit that were lost": {rule: [row["lost"] for row in of[rule]] for rule in of},
            "lines": {GOSSIP: rows[0]["line"] if rows else [], **{rule: of[rule][0]["used"] for rule in of if of[rule]}},
        }
        expected = {
            "seconds to a mean error below 5 %": "the paper: about 5 s",
            "seconds of the whole limit that were lost": "the prototype, 24 members, one busy: a moving average loses 50 times as much",
        }
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for what, line in finding.measured["lines"].items():
            label = what if what == GOSSIP else f"used, {what}"
            axes.semilogy([at for at, _ in line], [max(1e-6, error) * 100 for _, error in line], label=label)
        axes.axhline(NEAR * 100, color="#7b8794", linestyle="--")
        axes.set_xlabel("seconds after the restart")
        axes.set_ylabel("mean relative error, %")
        axes.legend(fontsize=7)


def _play(cell: Cell) -> Measured:
    config = LimitsConfig(epoch=EPOCH, branching=cell["branching"])
    group = SumGroup(cell["seed"], cell["members"], config, link=Link(Uniform(0.02, 0.15)))
    random = Random(f"{cell['seed']}/wants")
    wants = {name: random.choice((1.0, 5.0, 50.0)) * random.uniform(0.5, 1.5) for name in group.names}
    for name, want in wants.items():
        group.set(name, want)
    group.install()
    group.run(FIRST)
    before = {name: group.share(name) for name in group.names}
    group.install()
    began, truth = group.world.now, sum(wants.values())
    line: list[tuple[float, float]] = []
    used: list[tuple[float, float]] = []
    lost = 0.0
    while group.world.now < began + SHOWN:
        group.run(LOOK)
        at = group.world.now - began
        line.append((at, mean(group.errors(truth, group.raw))))
        used.append((at, mean(group.errors(truth))))
        lost += LOOK * sum(max(0.0, before[name] - group.share(name)) for name in group.names) / RATE
    late = [at for at, error in line if error >= NEAR]
    after = next(error for at, error in line if at >= WITHIN)
    seconds = None if late and late[-1] >= SHOWN - LOOK else round((late[-1] if late else 0.0) + LOOK, 2)
    largest = max(error for _, error in used)
    found = {"seconds": seconds, "error after 5 s": after, "largest": largest, "lost": lost}
    rounded = {name: value if value is None else float(f"{value:.4g}") for name, value in found.items()}
    return {**cell, **rounded, "line": thinned(line), "used": thinned(used)}


EXPERIMENT = Restart()
