"""What a checker is: it sees all nodes after every event and stops the run at the first violation.

Checkers live outside the code they check. After each event they are told which node it touched, because only
that node's state can have changed: a checker that keeps what it needs of the others stays cheap in large groups.
"""

from __future__ import annotations

from holdfast.lab.violation import Violation
from holdfast.lab.world import Onlooker


class Checker(Onlooker):
    """Base of all checkers; override what you need. Raise ``Violation`` through ``self.fail``."""

    name = "checker"

    def fail(self, what: str) -> None:
        raise Violation(self.name, what)
