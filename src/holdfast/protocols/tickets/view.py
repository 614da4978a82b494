"""What users see of a pool.  Spec: tickets 10."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from holdfast.host import NodeId

# Why a ticket is lost, or was never to be had; what a listener is told begins with one of these.
LAPSED = "lapsed"  # the deadline passed before a majority of guardians answered
DEPOSED = "deposed"  # somebody else has the cell: the guardians knew first that it had lapsed
MISMATCH = "mismatch"  # the pool has another number of tickets; the text goes on with it
FULL = "full"  # wait=False, and no ticket is free
UNAVAILABLE = "unavailable"  # wait=False, and no majority of the seats answered
CROWDED = "crowded"  # wait=False, and the guardians have no room for another cell now (H133)
LATE = "late"  # wait=False, and this agent, or who gives out tickets, has more to do than it can (H168)
TOO_MANY_POOLS = "too-many-pools"  # it would be a new one, and the seats keep as many as they can, for ever (H133)

METADATA_BYTES_MAX = 512  # of one ticket, names and values together: it travels in every announcement


class Holder(Struct, frozen=True):
    """Who owns a ticket."""

    agent: NodeId
    token: int
    metadata: Mapping[str, str] = {}


class TicketView(Struct, frozen=True):
    """The owners of one pool. With ``hint`` it is what was announced (never used for safety); without, cells were read with majorities."""

    pool: str
    n: int  # 0: not known here
    owners: Mapping[int, Holder]  # by ticket; who is not in it is free, or was reclaimed
    as_of: float  # host.now
    hint: bool
    waiting: int = 0  # candidates of this agent, and those that queue at its coordinators
