"""Why a ticket was refused that was asked for.  Spec: tickets 10; H133, H168. ``kit.hold`` has why one is lost that was held.

A coordinator that refuses a candidate says the word in ``Reject``; the candidate makes the reason of it.

These are the refusals of the group. An agent refuses by itself: ``agent/grants/grants.py`` (too many grants, no such kind, it leaves),
``missing.py`` (it has no seats), ``kind.py`` (an option that cannot be), ``protocol/tickets.py`` (a pool, number or metadata that cannot
be, too many candidates or pools here).
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import shown
from holdfast.kit.hold import LossReason


class Refusal(LossReason, frozen=True):
    """It was never granted. The texts of all but the first two begin with what users look for in a log."""

    pool: str


class Unanswered(LossReason, frozen=True):
    """A cell was given to us, and no majority of its guardians ever granted it. The candidate goes on, and no user hears of it."""

    word = "unanswered"

    def __str__(self) -> str:
        return "no majority of its guardians granted it"


class Full(Refusal, frozen=True):
    """wait=False, and no ticket is free."""

    word = "full"
    ERROR = "NoTicket"

    def __str__(self) -> str:
        return f"full: every ticket of {shown(self.pool)} is held"


class Mismatch(Refusal, frozen=True):
    """The pool has another number of tickets."""

    word = "mismatch"
    ERROR = "TicketCountMismatch"

    expected: int  # were asked for
    actual: int

    @property
    def numbers(self) -> Mapping[str, int]:
        return {"expected": self.expected, "actual": self.actual}

    def __str__(self) -> str:
        return f"mismatch: {shown(self.pool)} has {self.actual} tickets, and {self.expected} were asked for"


class SeatsSilent(Refusal, frozen=True):
    """wait=False, and no majority of the seats answered, or no coordinator did."""

    word = "unavailable"
    ERROR = "Unavailable"

    needed: int = 0  # seats; 0: they answered
    reachable: int = 0

    @property
    def numbers(self) -> Mapping[str, int]:
        return {"needed": self.needed, "reachable": self.reachable} if self.needed else super().numbers

    def __str__(self) -> str:
        return f"unavailable: too few seats answer, or the coordinator of pool {shown(self.pool)} does not answer (`holdfast seats`)"


class Crowded(Refusal, frozen=True):
    """wait=False, and the guardians have no room for another cell now (H133)."""

    word = "crowded"
    ERROR = "Unavailable"

    def __str__(self) -> str:
        return (
            f"unavailable: tickets of {shown(self.pool)} are free, but the seats have no room to note another holder now; `holdfast "
            "doctor` on a seat says more (cells_full), and waiting clients are served when there is room"
        )


class Late(Refusal, frozen=True):
    """wait=False, and this agent, or the coordinator that was asked, has more to do than it can (H168)."""

    word = "late"
    ERROR = "Unavailable"

    def __str__(self) -> str:
        return (
            f"unavailable: this agent, or one that gives out tickets of {shown(self.pool)}, has more to do than it can, and takes in no "
            "new ticket so that none is lost that is held; ask again in a moment, or wait (`holdfast doctor` on that agent)"
        )


class TooManyPools(Refusal, frozen=True):
    """It would be a new pool, and the seats keep as many as they can, for ever (H133)."""

    word = "too-many-pools"
    ERROR = "Unavailable"

    def __str__(self) -> str:
        return (
            f"unavailable: {shown(self.pool)} would be a new pool, and the seats keep as many as they can, none of which is ever "
            "forgotten; use few names again and again instead of a new one per job (`holdfast doctor` on a seat: pools_full)"
        )
