"""kit/promise: every interleaving of a promise's small world, walked to the end.

Spec: foundation 4 (Promise), F13. The model and what it leaves out: ``holdfast.lab.kit.promise_model``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.explore import explore
from holdfast.lab.kit.promise_model import Bounds, GroupModel, Seat, SeatModel

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STATES_MAX = 3_000_000  # about 2 GiB; no cell comes near it


class PromiseParameters(Parameters, frozen=True, kw_only=True):
    """Nothing is drawn, so nothing is repeated."""

    seats: Annotated[tuple[Literal[1, 3, 5], ...], Meta(min_length=1)] = (1, 3, 5)
    numbers: Annotated[int, Meta(ge=1, le=5)] = 3  # with one seat; 3 walks 37552 states in about half a minute


class ExploredPromises(Experiment[PromiseParameters]):
    """One seat with all that can happen to it; 3 and 5 seats with as much as a walk over their product allows."""

    id = "kit/promise"
    name = "kit/promise-explored"
    title = "Promises, explored exhaustively"
    source = "foundation 4 (Promise), F13"
    criterion = "every reachable state visited; in none of them two holders of one number or two holders at one time"
    parameters = PromiseParameters
    seconds_per_cell = 1.5
    repetitions = ""
    quick: ClassVar[Mapping[str, str]] = {"seats": "[1]", "numbers": "2"}

    def cells(self, parameters: PromiseParameters, seed: int) -> Sequence[Cell]:
        alone = [_cell(1, Bounds(numbers)) for numbers in range(1, parameters.numbers + 1)]
        together = [(3, Bounds(1, pending=1)), (3, Bounds(2, pending=1, resigning=False)), (5, Bounds(1, pending=1, resigning=False))]
        cells = alone + [_cell(seats, bounds) for seats, bounds in together]
        return [cell for cell in cells if cell["seats"] in parameters.seats]

    def measure(self, cell: Cell) -> Measured:
        model = GroupModel(SeatModel(Seat, Bounds(cell["numbers"], cell["pending"], cell["resigning"])), cell["seats"])
        found = explore(model.first, model.moves, model.wrong, states_max=STATES_MAX)
        return {
            **cell,
            "states": found.states,
            "moves": found.moves,
            "depth": found.depth,
            "complete": found.complete,
            "violation": found.violation,
        }

    def judge(self, parameters: PromiseParameters, results: Sequence[Measured]) -> Finding:
        notes = [f"{_label(r)}: {r['violation'] or 'not complete'}" for r in results if r["violation"] or not r["complete"]]
        measured = {
            "violations": sum(bool(result["violation"]) for result in results),
            "states": sum(result["states"] for result in results),
            "walks": [dict(result) for result in results],
        }
        return Finding(measured, {"violations": 0}, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        walks = finding.measured["walks"]
        axes.barh([_label(walk) for walk in walks], [walk["states"] for walk in walks])
        axes.set_xscale("log")
        axes.set_xlabel("states visited")
        for place, walk in enumerate(walks):
            axes.text(walk["states"], place, f" {walk['states']:,}", va="center")


def _cell(seats: int, bounds: Bounds) -> Cell:
    return {"seats": seats, "numbers": bounds.numbers, "pending": bounds.pending, "resigning": bounds.resigning}


def _label(walk: Measured) -> str:
    resigning = "with" if walk["resigning"] else "without"
    return f"seats {walk['seats']}, numbers {walk['numbers']}\nwrites {walk['pending']}, {resigning} resigning"


EXPERIMENT = ExploredPromises()
