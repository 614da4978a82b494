"""limits/F12: F11 again with one collector, beside gossip.  Spec: limits 8 (F12), 5.8; paper 003, 7.2.3, Figure 12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.features.limits.lab.experiments.figure11_flows import PLAIN, FlowParameters, draw_lines, play, setting_of
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GOSSIP, CENTRAL = "gossip", "central"
USE_NEAR = 0.03  # of the use with gossip


class CentralFlowParameters(FlowParameters, frozen=True, kw_only=True):
    """Those of Figure 11."""


class CentralFlows(Experiment[CentralFlowParameters]):
    """Both ways to know the sum, with the same flows and the same cuts."""

    id = "limits/F12"
    name = "limits/large-group-central"
    title = "One collector knows the weight a little better, and limits are not markedly better for it"
    source = "paper 003, 7.2.3, Figure 12; limits 8, F12"
    criterion = (
        "after each step, from 15 s on, the use is within 3 % of that with gossip, and the members differ less in what they take the "
        "weight to be"
    )
    parameters = CentralFlowParameters
    seconds_per_cell = 60
    quick: ClassVar[Mapping[str, str]] = {"members": "24", "branching": "5", "changed": "5", "every": "22.0", "seconds": "44.0"}

    def cells(self, parameters: CentralFlowParameters, seed: int) -> Sequence[Cell]:
        return [
            {**setting_of(parameters), "aggregate": aggregate, "reserve": PLAIN, "seed": seed * SEEDS_MAX + number}
            for aggregate in (GOSSIP, CENTRAL)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(play, cell)

    def judge(self, parameters: CentralFlowParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        ours = {row["seed"]: row for row in rows if row["aggregate"] == GOSSIP}
        central = {row["seed"]: row for row in rows if row["aggregate"] == CENTRAL}
        measured: dict[str, Any] = {
            what: {kind: next(iter(of.values()))[what] for kind, of in ((GOSSIP, ours), (CENTRAL, central)) if of}
            for what in ("use", "spread", "mean of limits", "most of limits", "least of limits", "lines")
        }
        expected = {"use": f"{CENTRAL} within 3 % of {GOSSIP}", "spread": f"{CENTRAL} below {GOSSIP}"}
        pairs = [(seed, ours[seed], central[seed]) for seed in ours if seed in central]
        misses = [*violations(results), *(note for seed, one, other in pairs for note in _misses(seed, one, other))]
        return Finding(measured, expected, bool(pairs) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        draw_lines(figure, finding.measured["lines"])


def _misses(seed: int, gossip: Measured, central: Measured) -> list[str]:
    notes = []
    for number, (one, other) in enumerate(zip(gossip["use"], central["use"], strict=True), 1):
        if abs(other - one) > USE_NEAR * one:
            notes.append(f"seed {seed}, step {number}: {other:g} Mbps are used, accepted is {one:g} within 3 %")
    for number, (one, other) in enumerate(zip(gossip["spread"], central["spread"], strict=True), 1):
        if other >= one:
            notes.append(f"seed {seed}, step {number}: the standard deviation of the weight is {other:g}, with gossip it is {one:g}")
    return notes


EXPERIMENT = CentralFlows()
