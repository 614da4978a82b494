"""limits/N1: how soon does a new instance of a large group know what all want?

Spec: limits 5.6, 8 (N1), D9; paper 003, 6.3: 500 limiters, epochs of 500 ms and a branching factor of two take about 5 s. What is asked is
what gossip itself says, not the blend with what was known before the view changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.measures import checked, completed, mean, shortened, thinned, violations
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EPOCH, LOOK = 0.5, 0.25
FIRST = 8.0  # seconds of the instance before
SHOWN = 10.0  # seconds after the restart
NEAR, WITHIN = 0.05, 5.0


class RestartParameters(Parameters, frozen=True, kw_only=True):
    """The paper's numbers."""

    members: Annotated[int, Meta(ge=2, le=2000)] = 500
    branching: Annotated[int, Meta(ge=1, le=16)] = 2


class Restart(Experiment[RestartParameters]):
    """Everybody begins anew with its own demand."""

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
        return [{**base, "seed": seed * SEEDS_MAX + number} for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: RestartParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        slow = [row for row in rows if row["seconds"] is None or row["seconds"] > WITHIN]
        misses = [*violations(results), *(f"seed {row['seed']}: a mean error below 5 % after {row['seconds']} s" for row in slow)]
        measured: dict[str, Any] = {
            "seconds to a mean error below 5 %": [row["seconds"] for row in rows],
            "error after 5 s": [row["error after 5 s"] for row in rows],
            "lines": {str(row["seed"]): row["line"] for row in rows[:4]},
        }
        expected = {"seconds to a mean error below 5 %": "the paper: about 5 s"}
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for seed, line in finding.measured["lines"].items():
            axes.semilogy([at for at, _ in line], [max(1e-6, error) * 100 for _, error in line], label=f"seed {seed}")
        axes.axhline(NEAR * 100, color="#7b8794", linestyle="--")
        axes.set_xlabel("seconds after the restart")
        axes.set_ylabel("mean relative error, %")


def _play(cell: Cell) -> Measured:
    config = LimitsConfig(epoch=EPOCH, branching=cell["branching"])
    group = SumGroup(cell["seed"], cell["members"], config, link=Link(Uniform(0.02, 0.15)))
    random = Random(f"{cell['seed']}/wants")
    wants = {name: random.choice((1.0, 5.0, 50.0)) * random.uniform(0.5, 1.5) for name in group.names}
    for name, want in wants.items():
        group.set(name, want)
    group.install()
    group.run(FIRST)
    group.install()
    began, truth = group.world.now, sum(wants.values())
    line: list[tuple[float, float]] = []
    while group.world.now < began + SHOWN:
        group.run(LOOK)
        line.append((group.world.now - began, mean(group.errors(truth, group.raw))))
    late = [at for at, error in line if error >= NEAR]
    after = next(error for at, error in line if at >= WITHIN)
    seconds = None if late and late[-1] >= SHOWN - LOOK else round((late[-1] if late else 0.0) + LOOK, 2)
    return {**cell, "seconds": seconds, "error after 5 s": float(f"{after:.4g}"), "line": thinned(line)}


EXPERIMENT = Restart()
