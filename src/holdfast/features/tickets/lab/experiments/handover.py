"""tickets/E11: the holder of a lock gives it back while others wait: how long until the first of them has it?

Spec: tickets 8 (E11), 5.8, G7; docs/decisions.md H113. The paper has no lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import PATIENCE, ROUND_TRIP, lock
from holdfast.lab.checker import Violation
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import by_column, curves, draw_curves, quantile, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = 3 * ROUND_TRIP + 0.005  # of the median, where nothing is lost
PROTOTYPE = 0.028
RUNS_PER_CELL = 20
SOME = Meta(min_length=1, max_length=LIST_MAX)
NEVER, BROKEN = "never", "violations"


class HandoverParameters(Parameters, frozen=True, kw_only=True):
    """Hand-overs per loss."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 200
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.5)], ...], SOME] = (0.0, 0.05, 0.2)


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
        firsts = range(0, parameters.seeds, RUNS_PER_CELL)
        return [
            {"loss": loss, "runs": min(RUNS_PER_CELL, parameters.seeds - first), "seed": seed * SEEDS_MAX + first}
            for loss in parameters.losses
            for first in firsts
        ]

    def measure(self, cell: Cell) -> Measured:
        times: list[float] = []
        violations: list[str] = []
        for number in range(cell["runs"]):
            try:
                found = _release(cell["seed"] + number, cell["loss"])
            except Violation as violation:
                violations.append(f"seed {cell['seed'] + number}: {violation}")
                continue
            if found is not None:
                times.append(found)
        return {"loss": cell["loss"], "times": times, NEVER: cell["runs"] - len(times) - len(violations), BROKEN: violations}

    def judge(self, parameters: HandoverParameters, results: Sequence[Measured]) -> Finding:
        rows: dict[str, dict[str, Any]] = {}
        samples: dict[str, list[float]] = {}
        notes: list[str] = []
        for loss in parameters.losses:
            parts = [row for row in results if row["loss"] == loss]
            times = samples[_label(loss)] = [seconds for row in parts for seconds in row["times"]]
            never, violations = sum(row[NEVER] for row in parts), [each for row in parts for each in row[BROKEN]]
            notes += [f"{_label(loss)}: {note}" for note in _misses(loss, times, never, violations)]
            rows[_label(loss)] = {**(summary(times) if times else {}), NEVER: never, BROKEN: len(violations)}
        expected = {"p50": {_label(0.0): f"< {LIMIT:.3f}; {PROTOTYPE} (prototype)"}}
        return Finding({**by_column(rows), "curves": curves(samples)}, expected, not notes, tuple(notes))

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


def _misses(loss: float, times: Sequence[float], never: int, violations: Sequence[str]) -> list[str]:
    notes = [*violations[:3]]
    if never:
        notes.append(f"in {never} runs nobody got it within {PATIENCE:g} s")
    if not times:
        return notes or ["nothing was measured"]
    if loss == 0 and quantile(times, 0.5) >= LIMIT:
        notes.append(f"median {quantile(times, 0.5):.4f} s, accepted is below {LIMIT:.3f}")
    return notes


def _label(loss: float) -> str:
    return f"loss {loss:.0%}"


EXPERIMENT = Handover()
