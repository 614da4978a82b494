"""What a checker is: it sees all nodes after every event and stops the run at the first violation.

Checkers live outside the code they check. After each event they are told which node it touched, because only
that node's state can have changed: a checker that keeps what it needs of the others stays cheap in large groups.
"""

from __future__ import annotations

from pathlib import PurePath
from traceback import extract_tb
from typing import TYPE_CHECKING

from holdfast.events import Event

if TYPE_CHECKING:
    from holdfast.lab.host import LabHost
    from holdfast.lab.world import World


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


class Checker:
    """Base of all checkers; override what you need. Raise ``Violation`` through ``self.fail``."""

    name = "checker"

    def after(self, world: World, host: LabHost | None) -> None:
        """After every event. ``host`` is the node it touched, None if the event was a fault or a scenario's own step."""

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        """A node emitted a fact."""

    def fail(self, what: str) -> None:
        raise Violation(self.name, what)
