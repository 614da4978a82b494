"""What a cell contains and how things are named: immutable, the same in memory, on the wire and in the journal.  Spec: tickets 2.

A pool (the paper's cluster) has tickets 0..n-1 on a circle. An *arc* is a head ticket and the tickets that follow it downward
(the successor of i is i-1, as in the paper, D24). Each arc is one register, a *cell*, kept by a set of guardians.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from holdfast.bounds import NUMBER_MAX, Growing, Label, Number, Slot
from holdfast.host import Address, NodeId

ANCHOR = "anchor"  # rid of the first arc: head ticket 0, kept by the seats, never absorbed or moved (D11)
NO_SLOT = -1
TICKETS_MAX = 4096  # of one pool; Cview has room for two such pools, fully owned
POOL_BYTES_MAX = 56  # a pool is a topic of the broadcast, with a few letters before it
RID_BYTES_MAX = 128  # the longest name, its boot and a serial
PLACES_MAX = 7  # k <= 3

Pool = Annotated[str, Meta(max_length=POOL_BYTES_MAX)]
Tickets = Annotated[int, Meta(ge=0, le=TICKETS_MAX)]  # one of a pool, or how many


class LeaseId(NamedTuple):
    """One attempt of one life to hold something; never used again (D12, D18)."""

    life: NodeId
    serial: Number

    def __str__(self) -> str:
        return f"{self.life}/{self.serial}"


class Who(NamedTuple):
    """One ownership of one cell (D12): the same lease may not come back under another token."""

    holder: LeaseId | None
    token: Growing


class Ballot(NamedTuple):
    """Compared lexicographically. No candidate uses a ballot for two different questions."""

    number: Growing
    lease: LeaseId


class Agent(NamedTuple):
    """One life of an agent and where it listens."""

    life: NodeId
    address: Address


class Place(NamedTuple):
    """One member of a guardian set: a seat by its slot, whichever agent sits there now, or one life of another agent."""

    slot: Slot  # NO_SLOT: a life
    agent: Agent  # NOBODY: a slot


Voter = tuple[int, NodeId]  # a place as answers are counted: a slot and the life of NOBODY, or NO_SLOT and a life
Places = Annotated[tuple[Place, ...], Meta(max_length=PLACES_MAX)]


class Next(NamedTuple):
    """The guardian set that a cell is being moved to (D4)."""

    cfg: Growing
    places: Places


class Ptr(NamedTuple):
    """The cell of the next arc, and who holds it as far as known (a hint)."""

    rid: Label
    cfg: Growing
    places: Places
    agent: Agent


class Key(NamedTuple):
    """Under what a guardian keeps a cell. ``cfg`` grows with every move to another guardian set."""

    pool: Pool
    rid: Label
    cfg: Growing


class Status(IntEnum):
    """LIVE has a holder, FREE is the anchor without one, RETIRED waits for its predecessor to take it in."""

    LIVE = 0
    FREE = 1
    RETIRED = 2


class Val(Struct, frozen=True, array_like=True, gc=False):
    """One version of a cell."""

    seq: Growing  # one more with every write of the same cell
    holder: LeaseId | None
    token: Growing  # fencing token of the holder for ticket ``head``
    fence: Growing  # at least every token ever issued for a ticket of this arc
    head: Tickets
    length: Tickets
    succ: Ptr
    status: Status
    nxt: Next | None
    n: Tickets  # tickets of the pool
    address: Address  # of the holder, a hint

    @property
    def who(self) -> Who:
        return Who(self.holder, self.token)

    @property
    def arc(self) -> tuple[int, ...]:
        return arc(self.head, self.length, self.n)


class Vacant(NamedTuple):
    """The anchor as this life of an agent gave it up: FREE, chosen under a ballot that only this agent writes under (H114)."""

    ballot: Ballot
    era: Number | None
    val: Val


NOBODY = Agent(NodeId("", 0), Address("", 0))
NO_LEASE = LeaseId(NOBODY.life, 0)
NO_BALLOT = Ballot(0, NO_LEASE)


def seat(slot: int) -> Place:
    return Place(slot, NOBODY)


def life(agent: Agent) -> Place:
    return Place(NO_SLOT, agent)


def arc(head: int, length: int, n: int) -> tuple[int, ...]:
    """The tickets of an arc, the head first (S_p of the paper, D24)."""
    return tuple((head - i) % n for i in range(length))


def newest(found: Iterable[tuple[Ballot, Val | None]]) -> tuple[Ballot, Val | None]:
    """The highest accepted value, by ballot and then by version; (NO_BALLOT, None) if there is none."""
    best: tuple[Ballot, Val | None] = NO_BALLOT, None
    for ballot, val in found:
        if val is not None and (best[1] is None or (ballot, val.seq) > (best[0], best[1].seq)):
            best = ballot, val
    return best


def pool_fits(pool: str) -> bool:
    return 1 <= len(pool.encode()) <= POOL_BYTES_MAX and pool.isprintable()


def key_fits(key: Key) -> bool:
    """A peer sent it."""
    return pool_fits(key.pool) and 1 <= len(key.rid.encode()) <= RID_BYTES_MAX and 0 <= key.cfg <= NUMBER_MAX


def val_fits(val: Val) -> bool:
    """A peer sent it: are these the numbers of an arc at all?"""
    if not (1 <= val.n <= TICKETS_MAX and 0 <= val.head < val.n and 1 <= val.length <= val.n):
        return False
    if not (0 <= val.seq <= NUMBER_MAX and 0 <= val.token <= val.fence <= NUMBER_MAX):
        return False
    return places_fit(val.succ.places) and (val.nxt is None or places_fit(val.nxt.places))


def places_fit(places: tuple[Place, ...]) -> bool:
    return len(places) <= PLACES_MAX and len(places) % 2 == 1
