"""What members say to each other.  Spec: gossip 3; papers SWIM, Lifeguard, Medley.

News about a member is a ``Rumour`` and rides on probes. A message that names no life goes to an address that may
belong to any (``Knock``).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, ClassVar, NamedTuple

from msgspec import Meta, Struct

from holdfast.bounds import MEMBERS_MAX, U64, Bits32, Label, Name, Number, Seconds
from holdfast.host import ROW_BYTES_MAX, ROWS_MAX, Address, Message, NodeId

ACCUSERS_MAX = 4  # the prober and the helpers that it asks; K confirmations beside the first accuser (gossip 3)
RUMOURS_MAX = 64  # in a datagram: each has more than 16 bytes
FRONT_MAX = 4  # observations of c that a member keeps (gossip 5.11)
MET_MAX = 8  # members that a member names to one that knocks
BUCKETS = 64  # of a table that is compared: their hashes fit one datagram (gossip D19)
ALL_BUCKETS = (1 << BUCKETS) - 1
PAGES_MAX = 1024  # of one table: MEMBERS_MAX entries of less than 1 KiB, in pages of 64 KiB, are 128
ENTRIES_MAX = 2048  # in a page of 64 KiB: each entry has more than 32 bytes
WANT_MAX = 64  # rows that are asked for at once
INLINE_BYTES_MAX = 512  # rows that ride on the rumour that announces them; larger ones are fetched (gossip D18)
PAGE_BYTES_MAX = 64 * 1024
BOOT_MAX = 1 << 48  # wall-clock milliseconds until the year 10889, as features/names has it


class Status(IntEnum):
    """What a member is held to be; of two rumours with one ``inc`` the larger status wins (gossip D2)."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3


RowValue = Annotated[bytes, Meta(max_length=ROW_BYTES_MAX)]
RowsOf = Annotated[dict[Label, RowValue], Meta(max_length=ROWS_MAX)]
Accusers = Annotated[tuple[Name, ...], Meta(max_length=ACCUSERS_MAX)]


class Rumour(Struct, frozen=True, array_like=True, gc=False):
    """News about one member, and one entry of a table on its way."""

    id: NodeId
    address: Address
    inc: Bits32  # raised by this member alone
    status: Status
    accusers: Accusers = ()  # SUSPECT, DEAD: whose probes failed
    rows_at: Bits32 = 0  # the ``inc`` at which its rows last changed; 0: it never published any
    rows: RowsOf | None = None  # ALIVE: the rows themselves, if they are small
    ago: Bits32 = 0  # DEAD, LEFT: whole seconds since that was decided


class Observation(NamedTuple):
    """Somewhere ``value`` lists lacked a live member; that counts for ``ttl`` more seconds."""

    value: Annotated[int, Meta(ge=0, le=MEMBERS_MAX)]
    ttl: Seconds


class Wanted(NamedTuple):
    """Rows that are asked for: of this member, at least as new as that."""

    id: NodeId
    rows_at: Bits32


class MemberRows(Struct, frozen=True, array_like=True, gc=False):
    """What a member published when its ``inc`` was ``rows_at``."""

    id: NodeId
    rows_at: Bits32
    rows: RowsOf


class Named(NamedTuple):
    """A member and where it listens."""

    id: NodeId
    address: Address


Rumours = Annotated[tuple[Rumour, ...], Meta(max_length=RUMOURS_MAX)]
Entries = Annotated[tuple[Rumour, ...], Meta(max_length=ENTRIES_MAX)]
Front = Annotated[tuple[Observation, ...], Meta(max_length=FRONT_MAX)]
Serial = Number


class Knock(Message, frozen=True, tag=96):
    """Is a member here, and which others does it list? By address, because no life is known there yet (gossip D20)."""

    greeting: ClassVar[bool] = True


class Met(Message, frozen=True, tag=97):
    """I am here, and so are these."""

    members: Annotated[tuple[Named, ...], Meta(max_length=MET_MAX)]


class Ping(Message, frozen=True, tag=98):
    """Are you there?"""

    seq: Serial
    rumours: Rumours = ()
    hint: Observation | None = None


class Ack(Message, frozen=True, tag=99):
    """I am. Or, from a helper: the member that you asked about is."""

    seq: Serial
    rumours: Rumours = ()
    hint: Observation | None = None


class PingReq(Message, frozen=True, tag=100):
    """This member does not answer me. Please ask it."""

    seq: Serial
    target: NodeId
    address: Address
    rumours: Rumours = ()


class Nack(Message, frozen=True, tag=101):
    """I am here, and the member that you asked about does not answer me either."""

    seq: Serial


class Gossip(Message, frozen=True, tag=102):
    """News without a probe."""

    rumours: Rumours


class SyncDigest(Message, frozen=True, tag=103):
    """Do we hold the same table? In an answer no hashes mean "yes", and otherwise they are this table in 64 parts."""

    serial: Serial  # of the question; the answer has the same
    root: U64
    hashes: Annotated[tuple[U64, ...], Meta(max_length=BUCKETS)] = ()
    answer: bool = False


class Sync(Message, frozen=True, tag=104):
    """One page of a table, or of some of its buckets."""

    serial: Serial  # of the question; the answer has the same
    page: Annotated[int, Meta(ge=0, lt=PAGES_MAX)]
    of: Annotated[int, Meta(ge=1, le=PAGES_MAX)]
    entries: Entries
    front: Front = ()
    want: bool = False  # send me yours
    buckets: U64 = ALL_BUCKETS  # which of them this table consists of, one bit each


class Want(Message, frozen=True, tag=105):
    """Please send me these rows."""

    members: Annotated[tuple[Wanted, ...], Meta(max_length=WANT_MAX)]


class Rows(Message, frozen=True, tag=106):
    """Rows that were asked for."""

    members: Annotated[tuple[MemberRows, ...], Meta(max_length=WANT_MAX)]


class Missed(Message, frozen=True, tag=107):
    """I held you to be dead, by mistake, from so many seconds ago until now."""

    serial: Serial
    ago: Seconds


class MissedAck(Message, frozen=True, tag=108):
    """I have noted it."""

    serial: Serial


TYPES = (Knock, Met, Ping, Ack, PingReq, Nack, Gossip, SyncDigest, Sync, Want, Rows, Missed, MissedAck)
