"""What is told about a membership: where it is and what it publishes, or that it is over.  Spec: ring 3 (rows), 5.7; foundation F2.

Entries are the values of one shared table (``kit.rows``). They join: a tombstone wins over anything alive, the newer of two
living ones wins, and two tombstones agree on the worst that either knows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from holdfast.bounds import MEMBERS_MAX, Generation, Growing, Instant, Label, Payload, highest_of, is_beyond
from holdfast.features.ring.protocol.ids import CIRCLE, RingId
from holdfast.host import Address, NodeId
from holdfast.kit.versioned import UNREADABLE

ENTRIES_KEPT = MEMBERS_MAX  # decoded entries, as many as a table has keys; every node of a large simulated ring reads the same ones
NAME_BYTES_MAX = 128
ROWS_BYTES_MAX = 3072  # all published rows of one member; an entry has to stay below 4096 bytes
REASON_BYTES_MAX = 32


class Listed(Struct, frozen=True, array_like=True, tag=0):
    """A member."""

    node: NodeId
    address: Address
    since: Instant  # wall clock when it became one
    version: Growing  # of the rest; 0: hearsay of a neighbour, without rows
    rows: Annotated[dict[Label, Payload], Meta(max_length=ROWS_BYTES_MAX)]


class Tombstone(Struct, frozen=True, array_like=True, tag=1):
    """A membership that is over, for ever."""

    certain: bool  # it can no longer act
    gen: Generation  # the last fencing generation known of it
    reason: Label  # "failed", "left", "orphan", "restarted"


Entry = Listed | Tombstone
_HIGHEST = {kind: found for kind in (Listed, Tombstone) if (found := highest_of(kind)) is not None}
_DECODER: msgspec.msgpack.Decoder[Listed | Tombstone] = msgspec.msgpack.Decoder(Listed | Tombstone)


@lru_cache(maxsize=ENTRIES_KEPT)
def read(value: bytes) -> Entry:
    """The entry in a row that ``valid`` has passed."""
    return _DECODER.decode(value)


def write(entry: Entry) -> bytes:
    return msgspec.msgpack.encode(entry)


def valid(value: bytes) -> bool:
    """A peer sent it: is it an entry at all?"""
    try:
        entry = read(value)
    except UNREADABLE:
        return False
    if isinstance(entry, Tombstone):
        return len(entry.reason) <= REASON_BYTES_MAX
    return len(entry.node.name.encode()) <= NAME_BYTES_MAX and rows_bytes(entry.rows) <= ROWS_BYTES_MAX


def credible(value: bytes, wall: Callable[[], float]) -> bool:
    """A peer sent it, and ``valid`` has passed it: does an honest clock come to these numbers?"""
    entry = read(value)
    return not is_beyond(_HIGHEST[type(entry)](entry), wall)


def gone(value: bytes) -> bool:
    return isinstance(read(value), Tombstone)


def join(a: bytes, b: bytes) -> bytes:
    """Any order, any repetition, the same result."""
    one, other = read(a), read(b)
    if isinstance(one, Tombstone) and isinstance(other, Tombstone):
        certain, gen = one.certain or other.certain, max(one.gen, other.gen)
        return write(Tombstone(certain, gen, min(one.reason, other.reason)))
    if isinstance(one, Tombstone):
        return a
    if isinstance(other, Tombstone):
        return b
    return max((one.version, a), (other.version, b))[1]


def rows_bytes(rows: dict[str, bytes]) -> int:
    return sum(len(name.encode()) + len(value) for name, value in rows.items())


def key_of(ring_id: RingId) -> str:
    return f"{ring_id.pos:016x}{ring_id.inc:016x}"


def id_of(key: str) -> RingId | None:
    """The id that a row's key names; None if a peer made it up."""
    try:
        ring_id = RingId(int(key[:16], 16), int(key[16:], 16))
    except ValueError:
        return None
    return ring_id if key_of(ring_id) == key and min(ring_id) >= 0 and max(ring_id) < CIRCLE else None
