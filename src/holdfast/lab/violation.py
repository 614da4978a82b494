"""What ends a run in the lab: an invariant that does not hold, or a handler that raises."""

from __future__ import annotations

from pathlib import PurePath
from traceback import extract_tb


class Violation(Exception):
    """An invariant does not hold. Carries when and where, so that a report needs nothing else."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant
        self.what = what
        self.at = 0.0
        self.node = ""

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.invariant, self.what)


def found_bug(error: Exception) -> Violation:
    """A handler that raises is a finding like any other; it says where, because the traceback is not shown."""
    frame = extract_tb(error.__traceback__)[-1]
    where = f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}"
    return Violation("no-bug", f"{type(error).__name__}: {str(error) or frame.line} in {where}")
