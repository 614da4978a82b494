"""tickets/E11: the holder of a lock gives it back while others wait: how long until the first of them has it?

Spec: tickets 8 (E11), 5.8, G7; docs/decisions.md H113. The paper has no lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import ROUND_TRIP, lock
from holdfast.features.tickets.lab.locks import Losses, by_loss, cells, label, played
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import by_column, curves, draw_curves, quantile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = 3 * ROUND_TRIP + 0.005  # of the median, where nothing is lost
PROTOTYPE = 0.028


class HandoverParameters(Parameters, frozen=True, kw_only=True):
    """Hand-overs per loss."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 200
    losses: Losses = (0.0, 0.05, 0.2)


class Handover(Experiment[HandoverParameters]):
    """One ticket, three seats, three candidates, all with default settings; the one that has the ticket gives it back."""

    id = "tickets/E11"
    name = "tickets/hand-over"
    title = "A lock that is given back while others wait"
    source = "tickets 8, E11 (the paper has no measurement)"
    criterion = "median below 3 round trips + 5 ms where nothing is lost; always handed over, no invariant violated"
    parameters = HandoverParameters
    seconds_per_cell = 0.13
    quick: ClassVar[Mapping[str, str]] = {"seeds": "5"}

    def cells(self, parameters: HandoverParameters, seed: int) -> Sequence[Cell]:
        return cells(parameters.losses, parameters.seeds, seed)

    def measure(self, cell: Cell) -> Measured:
        times, counted = played(cell, _release)
        return {"loss": cell["loss"], "times": times, **counted}

    def judge(self, parameters: HandoverParameters, results: Sequence[Measured]) -> Finding:
        found = by_loss(parameters.losses, results)
        notes = [note for runs in found for note in runs.misses(partial(_misses, runs.loss))]
        rows = {runs.label: runs.summed() for runs in found}
        measured = {**by_column(rows), "curves": curves({runs.label: runs.times for runs in found})}
        expected = {"p50": {label(0.0): f"< {LIMIT:.3f}; {PROTOTYPE} (prototype)"}}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        draw_curves(axes, finding.measured["curves"])
        axes.axvline(LIMIT, color="#7b8794", linestyle="--", label="3 round trips + 5 ms, for the median without loss")
        axes.axvline(PROTOTYPE, color="#7b8794", linestyle=":", label="prototype's median")
        axes.set_xscale("log")
        axes.set_xlabel("seconds from the release until the next one owns the lock")
        axes.legend(loc="lower right")


def _release(seed: int, loss: float) -> float | None:
    group, holder = lock(seed, loss)
    released_at, before = group.world.now, len(group.grants)
    group.release(holder)
    owned_at = group.next_grant(before)
    return None if owned_at is None else owned_at - released_at


def _misses(loss: float, times: list[float]) -> list[str]:
    if loss == 0 and quantile(times, 0.5) >= LIMIT:
        return [f"median {quantile(times, 0.5):.4f} s, accepted is below {LIMIT:.3f}"]
    return []


EXPERIMENT = Handover()
