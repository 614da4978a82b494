"""What happened, for traces, metrics and checkers.  Spec: tickets 9.7. Users hear of their own tickets through ``kit.hold.Holder``."""

from __future__ import annotations

from typing import ClassVar

from holdfast.events import Internal
from holdfast.features.tickets.protocol.values import Ballot, Key, LeaseId, Val, Who
from holdfast.host import NodeId


class TicketFact(Internal, frozen=True):
    """Base of the facts of tickets."""

    family: ClassVar[str] = "tickets"


class CellWritten(TicketFact, frozen=True):
    """A guardian accepted a version that it did not have."""

    key: Key
    ballot: Ballot
    val: Val


class TicketQueued(TicketFact, frozen=True):
    """A candidate of this agent has a place in a queue, or another one than before: the best of those it has (H126)."""

    pool: str
    lease: LeaseId
    position: int  # 1 is next


class TicketAcquired(TicketFact, frozen=True):
    """A coordinator of this agent owns a ticket."""

    pool: str
    number: int
    who: Who
    deadline: float


class TicketExtended(TicketFact, frozen=True):
    """A majority of its guardians answered; ``margin`` is how much was left before."""

    pool: str
    number: int
    who: Who
    deadline: float
    margin: float


class TicketAtRisk(TicketFact, frozen=True):
    """A round passed without that."""

    pool: str
    number: int
    who: Who


class TicketLost(TicketFact, frozen=True):
    """It is over, not by the owner's wish."""

    pool: str
    number: int
    who: Who
    why: str


class TicketReleased(TicketFact, frozen=True):
    """Its owner stopped owning it; what becomes of the cell is written afterwards."""

    pool: str
    number: int
    who: Who


class ArcChanged(TicketFact, frozen=True):
    """A coordinator's arc was split or grew."""

    pool: str
    number: int
    length: int


class HandedOver(TicketFact, frozen=True):
    """A released ticket went to the first who waited."""

    pool: str
    number: int
    to: LeaseId


class Excluded(TicketFact, frozen=True):
    """The arc of a dead or retired coordinator was merged into its predecessor's."""

    pool: str
    rid: str
    number: int
    by: int  # the predecessor's ticket


class GuardiansMoved(TicketFact, frozen=True):
    """Another set of guardians keeps a cell from now on (5.7)."""

    pool: str
    rid: str
    cfg: int


class AnchorTaken(TicketFact, frozen=True):
    """A candidate took over the first arc."""

    pool: str
    token: int


class CellLost(TicketFact, frozen=True):
    """The successor's cell cannot be read by a majority; until it can, its arc has no owner (9.5)."""

    pool: str
    rid: str
    holder: NodeId


# 9.7: several a second for every ticket. Who shows facts to people, or keeps the last of them, leaves these out.
FREQUENT = (TicketExtended, CellWritten)
