"""An experiment as a user writes one: the mean of some drawn numbers, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING

from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Draws(Parameters, frozen=True, kw_only=True):
    """How much is drawn."""

    cells: int = 4
    draws: int = 200
    tolerance: float = 0.2
    label: str = "mean"


class MeanExperiment(Experiment[Draws]):
    """The mean of uniform numbers is one half."""

    id = "own/E1"
    name = "own/mean"
    title = "The mean of uniform numbers"
    source = "no paper, section 1"
    criterion = "every mean within the tolerance of 0.5"
    parameters = Draws
    quick = {"draws": "50"}  # noqa: RUF012 - a ClassVar of the base

    def cells(self, parameters: Draws, seed: int) -> Sequence[Cell]:
        return [{"seed": f"{seed}/{cell}", "draws": parameters.draws * parameters.seeds} for cell in range(parameters.cells)]

    def measure(self, cell: Cell) -> Measured:
        random = Random(cell["seed"])
        return {"mean": sum(random.random() for _ in range(cell["draws"])) / cell["draws"]}

    def judge(self, parameters: Draws, results: Sequence[Measured]) -> Finding:
        means = [result["mean"] for result in results]
        passed = all(abs(mean - 0.5) <= parameters.tolerance for mean in means)
        return Finding(
            {"means": means, "all": {parameters.label: sum(means) / len(means)}}, {"all": {"mean": 0.5}}, passed, ("drawn, not measured",)
        )

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        axes.plot(finding.measured["means"], "o", label="ours")
        axes.axhline(finding.expected["all"]["mean"], color="grey", label="paper")
        axes.set_xlabel("cell")
        axes.set_ylabel("mean")
        axes.legend()


EXPERIMENT = MeanExperiment()
