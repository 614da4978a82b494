"""What coordinators, candidates and guardians say to each other.  Spec: tickets 3; the paper's names in brackets.

``op`` is the serial of a question (kit.phase): never used again in a life, and the envelope keeps answers to former lives away (D18).
``era`` is that of the seat that answers (F13). EXCLUDE and ACKCLEAVE of the paper are not sent (D6, D8); RUMOR and the exchange
of views are the kit's.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta

from holdfast.bounds import PLACES_MAX, Growing, Instant, Label, Number, Seconds, Small, Text
from holdfast.features.tickets.protocol.values import TICKETS_MAX, Agent, Ballot, Key, LeaseId, Places, Pool, Tickets, Val, Who
from holdfast.host import Address, Message

CELLS_MAX = 32  # cells that one message renews (H166): about 45 bytes each, so some 20 fill a datagram
UPDATES_MAX = 16  # words between neighbours that one message carries: about 100 bytes each

Few = Meta(max_length=PLACES_MAX)
Index = Annotated[int, Meta(ge=0, lt=CELLS_MAX)]
Indices = Annotated[tuple[Index, ...], Meta(max_length=CELLS_MAX)]


class Renew(Message, frozen=True, tag=64):
    """Coordinator to each guardian, every round: I am here."""

    key: Key
    who: Who
    ballot: Ballot
    seq: Growing
    stamp: Instant  # own clock when it was sent: what the lease counts from (D5)


class Alive(Message, frozen=True, tag=65):
    """(ALIVE) The answer. ``ok``: no other candidate gets a promise here for the next D seconds."""

    key: Key
    who: Who
    stamp: Instant  # echo
    ok: bool
    promised: Ballot
    stale: bool  # an older version is here: send the present one
    draining: bool  # this agent is about to leave


class Prepare(Message, frozen=True, tag=66):
    """(REQCOORD) An excluder or a candidate (``who`` None), or the holder itself, wants to write under a new ballot."""

    op: Number
    key: Key
    ballot: Ballot
    who: Who | None


class Promised(Message, frozen=True, tag=67):
    """(ACKCOORD) Nothing below that ballot is accepted here any more; this is what was."""

    op: Number
    accepted: Ballot
    val: Val | None
    era: Number


class Accept(Message, frozen=True, tag=68):
    """Write this version. ``grant``: it is a renewal at the same time (D13)."""

    op: Number  # 0: no answer is waited for
    key: Key
    ballot: Ballot
    val: Val
    grant: bool


class Accepted(Message, frozen=True, tag=69):
    """Done, or done before; also the answer to ``Forget``."""

    op: Number
    era: Number


class Refuse(Message, frozen=True, tag=70):
    """No to ``Prepare`` or ``Accept``, and why."""

    op: Number
    promised: Ballot
    val: Val | None
    busy: Seconds  # seconds that a grant to another one still runs; 0.0 if that is not the reason
    gone: bool  # the cell was merged and forgotten
    era: Number
    full: bool = False  # there is no such cell here, and no room for it (H133)


class Query(Message, frozen=True, tag=71):
    """What is in this cell? To a seat also as the first word ever (F3)."""

    greeting: ClassVar[bool] = True
    op: Number
    key: Key


class Info(Message, frozen=True, tag=72):
    """The answer to ``Query``."""

    op: Number
    accepted: Ballot
    val: Val | None
    busy: Seconds
    gone: bool
    era: Number


class Forget(Message, frozen=True, tag=73):
    """This cell was merged, or its guardians replaced, and that is chosen."""

    op: Number
    key: Key


class Cjoin(Message, frozen=True, tag=74):
    """(CJOIN) A candidate asks a coordinator's agent for a ticket; repeated, which also keeps its place in the queue."""

    pool: Pool
    n: Tickets
    lease: LeaseId
    address: Address  # of the candidate's agent
    wait: bool  # queue me if you have none
    stamp: Instant = 0.0  # own clock when it was sent: comes back with the grant


class AckCjoin(Message, frozen=True, tag=75):
    """(ACKCJOIN) A cell is yours: split off, or handed over. Sent after that is chosen."""

    lease: LeaseId
    key: Key
    places: Places
    ballot: Ballot
    val: Val
    pred: Agent
    waiters: Annotated[tuple[tuple[LeaseId, Address], ...], Few] = ()  # who else waits for this very cell, first come first
    stamp: Instant = 0.0  # of a CJOIN that came before the cell was written: a majority has granted it since (H113). 0.0: unknown
    stamps: Annotated[tuple[Instant, ...], Few] = ()  # of the last CJOIN of each of the waiters


class Reject(Message, frozen=True, tag=76):
    """(REJECT) Not here."""

    pool: Pool
    lease: LeaseId
    reason: Label  # a word of ``reasons``, or "leaving" or "not-coordinator": another agent may have one
    n: Tickets  # tickets of the pool as known here; 0: unknown
    roomy: Annotated[tuple[Agent, ...], Few]  # who may have free tickets


class Queued(Message, frozen=True, tag=77):
    """You wait at this position, 1 is next."""

    pool: Pool
    lease: LeaseId
    position: Small


class Cancel(Message, frozen=True, tag=78):
    """The acquire gave up, or was served elsewhere."""

    pool: Pool
    lease: LeaseId


class Update(Message, frozen=True, tag=79):
    """(UPDATE, NEWSUCC) A coordinator to its successor, every round."""

    pool: Pool
    rid: Label  # the successor's cell
    cfg: Growing  # as the sender's cell records it: sets before it are not needed any more
    chain: Annotated[tuple[Agent, ...], Few]  # R: the sender, then its predecessors, 2k+1 at most


class AckUpdate(Message, frozen=True, tag=80):
    """(ACKSUCC, ACKEXCLUDE) The successor is ``agent``: the sender itself, or whom it handed the cell to."""

    pool: Pool
    rid: Label
    cfg: Growing
    places: Places
    agent: Agent


class Cleave(Message, frozen=True, tag=81):
    """(CLEAVE) My cell is RETIRED. A hint: its predecessor finds out anyway (D8)."""

    pool: Pool
    rid: Label
    hops: Small = 0  # how often it was passed on: whom the leaver takes for its predecessor may have split its arc meanwhile
    head: Annotated[int, Meta(ge=-1, lt=TICKETS_MAX)] = -1  # the leaver's ticket: its predecessor is before it on the circle; -1: not said


class Abandon(Message, frozen=True, tag=82):
    """An operator confirms that the holder of your successor's cell is dead (9.5)."""

    op: Number
    pool: Pool
    rid: Label


class Abandoned(Message, frozen=True, tag=83):
    """What became of it; "" if it was done."""

    op: Number
    refusal: Text


class Renewal(NamedTuple):
    """One cell of ``Renewals``: what ``Renew`` says of it. Its holder is a lease of the sender's life."""

    key: Key
    holder: Number  # serial of the lease
    token: Growing
    ballot: Growing
    by: LeaseId | None  # whose ballot it is; None: the holder's own
    seq: Growing


class Renewals(Message, frozen=True, tag=84):
    """``Renew`` of many cells of one agent to one guardian, whatever their pools (H166)."""

    serial: Number  # of this page; comes back
    stamp: Instant  # own clock before it was sent: what every lease in it counts from (D5)
    cells: Annotated[tuple[Renewal, ...], Meta(min_length=1, max_length=CELLS_MAX)]


class Refusal(NamedTuple):
    """One cell of ``Renewed`` that is not renewed."""

    place: Index
    promised: Ballot
    stale: bool


class Renewed(Message, frozen=True, tag=85):
    """``Alive`` of many cells, by their place in the page. A cell that is not named was not answered: it waits for the guardian's disk,
    and is answered by an ``Alive`` of its own."""

    serial: Number
    ok: Indices
    stale: Indices  # of those: an older version is here
    refused: Annotated[tuple[Refusal, ...], Meta(max_length=CELLS_MAX)]
    draining: bool


class Updates(Message, frozen=True, tag=86):
    """``Update`` of many coordinators of one agent to their successors at another one (H166)."""

    updates: Annotated[tuple[Update, ...], Meta(min_length=1, max_length=UPDATES_MAX)]


class AckUpdates(Message, frozen=True, tag=87):
    """``AckUpdate`` of as many."""

    acks: Annotated[tuple[AckUpdate, ...], Meta(min_length=1, max_length=UPDATES_MAX)]


AGENT_MESSAGES = (Cjoin, AckCjoin, Reject, Queued, Cancel, Update, AckUpdate, Cleave, Abandon, Abandoned)
GUARDIAN_MESSAGES = (Renew, Renewals, Prepare, Accept, Query, Forget)
ANSWERS = (Promised, Accepted, Refuse, Info)
MESSAGES = (*GUARDIAN_MESSAGES, Alive, Renewed, *ANSWERS, *AGENT_MESSAGES, Updates, AckUpdates)
