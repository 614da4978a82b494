"""election/F2: the worked example of Hybrid, in all six orders of the answers.  Paper 004, section IV-D, Figure 2.  Spec: election 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.features.election.lab.vector import ASKED, play
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEADER, NOTIFIED = "2", 2
# In the paper's order: after each answer what is excluded, who are candidates, who may lead, whom it tells. The paper prints candidates {2}
# after the last answer: its set has the excluded removed already, and it drops 0, which no line of Algorithm 4 does.
STEPS = (
    ("4", ("1", "3"), ("0", "2"), ("0", "2"), "0"),
    ("0", ("1", "3"), ("0", "2"), ("0", "2"), ""),
    ("1", ("0", "1", "3"), ("0", "1", "2"), ("2",), "2"),
)


class VectorParameters(Parameters, frozen=True, kw_only=True):
    """Nothing is drawn."""


class WorkedVector(Experiment[VectorParameters]):
    """Six orders."""

    id = "election/F2"
    name = "election/worked-vector"
    title = "The worked example: leader 2 in every order"
    source = "paper 004, section IV-D, Figure 2; election 6, worked vector"
    criterion = "leader 2 with exactly two NOTIFYLEADER in all six orders; in the paper's order each set as computed by Algorithm 4"
    parameters = VectorParameters
    seconds_per_cell = 0.05
    repetitions = ""
    quick: ClassVar[Mapping[str, str]] = {}

    def cells(self, parameters: VectorParameters, seed: int) -> Sequence[Cell]:
        return [{"order": list(order)} for order in permutations(ASKED)]

    def measure(self, cell: Cell) -> Measured:
        return {**cell, "steps": [list(step) for step in play(cell["order"])]}

    def judge(self, parameters: VectorParameters, results: Sequence[Measured]) -> Finding:
        told = {" ".join(row["order"]): [step[4] for step in row["steps"] if step[4]] for row in results}
        misses = [
            f"order {order}: NOTIFYLEADER to {', '.join(nominees) or 'no node'}"
            for order, nominees in told.items()
            if len(nominees) != NOTIFIED or nominees[-1] != LEADER or nominees[0] not in ("0", "1")
        ]
        printed = next(row for row in results if tuple(row["order"]) == ASKED)
        found = tuple((step[0], *map(tuple, step[1:4]), step[4]) for step in printed["steps"])
        misses += [
            f"after {mine[0]}: {mine[1:]}, expected {theirs[1:]}" for mine, theirs in zip(found, STEPS, strict=True) if mine != theirs
        ]
        measured: dict[str, Any] = {"notified": told, "steps": [list(map(_text, step)) for step in found]}
        expected = {"notified": "first 0 or 1, then 2", "steps": [list(map(_text, step)) for step in STEPS]}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        axes.axis("off")
        head = ["answer of", "excluded", "candidates", "leaders", "NOTIFYLEADER to"]
        rows = finding.measured["steps"]
        axes.table([[step[0], *step[1:4], step[4] or "-"] for step in rows], colLabels=head, loc="upper center")
        lines = [f"{order.replace(' ', ', ')}: told {', then '.join(nominees)}" for order, nominees in finding.measured["notified"].items()]
        axes.text(0.5, 0.1, "\n".join(lines), ha="center", transform=axes.transAxes, fontsize=8)


def _text(value: object) -> str:
    return value if isinstance(value, str) else f"{{{', '.join(value)}}}"  # type: ignore[arg-type]


EXPERIMENT = WorkedVector()
