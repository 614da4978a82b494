"""Runs of one lock that changes hands, as experiments count them: how long it took, in how many runs it never did, what was violated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

from msgspec import Meta

from holdfast.features.tickets.lab.groups import PATIENCE
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Measured, in_batches
from holdfast.lab.samples import summary
from holdfast.lab.violation import Violation

RUNS_PER_CELL = 20
NEVER, BROKEN = "never", "violations"
SOME = Meta(min_length=1, max_length=LIST_MAX)
Losses = Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.5)], ...], SOME]
T = TypeVar("T")


def cells(losses: Iterable[float], seeds: int, seed: int) -> list[Cell]:
    return [cell for loss in losses for cell in in_batches({"loss": loss}, seeds, RUNS_PER_CELL, seed * SEEDS_MAX)]


def played(cell: Cell, run: Callable[[int, float], T | None]) -> tuple[list[T], Measured]:
    """What ``run`` measured with each seed of the cell, and how many runs never came to it or violated an invariant."""
    found: list[T] = []
    violations: list[str] = []
    for number in range(cell["runs"]):
        try:
            measured = run(cell["seed"] + number, cell["loss"])
        except Violation as violation:
            violations.append(f"seed {cell['seed'] + number}: {violation}")
            continue
        if measured is not None:
            found.append(measured)
    return found, {NEVER: cell["runs"] - len(found) - len(violations), BROKEN: violations}


class Runs(NamedTuple):
    """All runs of one loss."""

    loss: float
    rows: list[Measured]

    @property
    def label(self) -> str:
        return label(self.loss)

    @property
    def times(self) -> list[float]:
        return [seconds for row in self.rows for seconds in row["times"]]

    @property
    def never(self) -> int:
        return sum(row[NEVER] for row in self.rows)

    @property
    def violations(self) -> list[str]:
        return [each for row in self.rows for each in row[BROKEN]]

    def summed(self, **more: Any) -> dict[str, Any]:
        """A row of the report."""
        return {**(summary(self.times) if self.times else {}), **more, NEVER: self.never, BROKEN: len(self.violations)}

    def misses(self, of_times: Callable[[list[float]], list[str]]) -> list[str]:
        """What is not as the criterion says. ``of_times`` judges the times, if there are any."""
        notes = [*self.violations[:3]]
        if self.never:
            notes.append(f"in {self.never} runs no candidate got it within {PATIENCE:g} s")
        notes += of_times(self.times) if self.times else () if notes else ("nothing was measured",)
        return [f"{self.label}: {note}" for note in notes]


def by_loss(losses: Iterable[float], results: Sequence[Measured]) -> list[Runs]:
    return [Runs(loss, [row for row in results if row["loss"] == loss]) for loss in losses]


def label(loss: float) -> str:
    return f"loss {loss:.0%}"
