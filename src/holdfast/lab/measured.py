"""What the cells of an experiment measured: a violation ends its cell, and is what the experiment found, no error of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.lab.experiment import Cell, Measured
from holdfast.lab.violation import Violation

VIOLATION = "violation"
NOTES_MAX = 12  # of one report


def checked(play: Callable[[Cell], Measured], cell: Cell) -> Measured:
    """What a cell measured, or the violation that ended it."""
    try:
        return {**play(cell), VIOLATION: ""}
    except Violation as violation:
        return {**cell, VIOLATION: f"{violation}, at {violation.at:.3f} s, seed {cell['seed']}"}


def violations(results: Sequence[Measured]) -> list[str]:
    """What ended cells."""
    return [result[VIOLATION] for result in results if result[VIOLATION]]


def completed(results: Sequence[Measured]) -> list[Measured]:
    """Those that were played to their end."""
    return [result for result in results if not result[VIOLATION]]


def shortened(notes: Sequence[str], what: str = "") -> tuple[str, ...]:
    """What a report has room for; ``what``: of what there are more."""
    more = len(notes) - NOTES_MAX
    return tuple(notes) if more <= 0 else (*notes[:NOTES_MAX], f"and {more} more {what}".rstrip())
