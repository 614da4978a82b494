"""Where a member sits on the ring, and who is next to whom.  Spec: ring 2 (id), 5.7 (owner); foundation F2.

Positions are 64-bit numbers on a circle. A ``RingId`` is one membership: it is drawn for every attempt to join and ends with the
departure, while the ``NodeId`` below it lasts as long as the process. Ring order is the order of ids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from holdfast.bounds import U64
from holdfast.host import Address, NodeId
from holdfast.kit.positions import CIRCLE, position_of

__all__ = ["CIRCLE", "Peer", "RingId", "hash_of", "nearest", "owner_of", "position_of", "sides"]

HASH_BYTES = 8


class RingId(NamedTuple):
    """One membership in one ring. Code that compares memberships compares both fields."""

    pos: U64
    inc: U64

    def __str__(self) -> str:
        return f"{self.pos:016x}.{self.inc:016x}"


class Peer(NamedTuple):
    """A membership, the life it belongs to, and where that listens: what one member tells another about a third."""

    id: RingId
    node: NodeId
    address: Address

    def __str__(self) -> str:
        return f"{self.node.name}@{self.id.pos:016x}"


def hash_of(ids: Iterable[RingId]) -> int:
    """Stands for a list of ids on the wire, where the other end is known to hold the list itself."""
    digest = blake2b(digest_size=HASH_BYTES)
    for each in ids:
        digest.update(each.pos.to_bytes(8, "big") + each.inc.to_bytes(8, "big"))
    return int.from_bytes(digest.digest(), "big")


def nearest(ids: Sequence[RingId], centre: RingId, k: int) -> tuple[RingId, ...]:
    """The k nearest on each side of ``centre`` in a sorted list, itself left out; all others if there are at most 2k."""
    at = bisect_left(ids, centre)
    here = at < len(ids) and ids[at] == centre
    others = len(ids) - here
    if others <= 2 * k:
        return tuple(each for each in ids if each != centre)
    after = at + here
    chosen = {ids[(after + i) % len(ids)] for i in range(k)} | {ids[at - 1 - i] for i in range(k)}
    return tuple(sorted(chosen))


def sides(ids: Sequence[RingId], centre: RingId) -> tuple[RingId, RingId] | None:
    """The nearest predecessor and successor of ``centre`` in a sorted list without it; None if the list is empty."""
    if not ids:
        return None
    at = bisect_left(ids, centre)
    return ids[at - 1], ids[at % len(ids)]


def owner_of(ids: Sequence[RingId], pos: int) -> RingId | None:
    """Whose position is closest to ``pos``; of two equally close ones the predecessor. ``ids`` is sorted."""
    if not ids:
        return None
    at = bisect_left(ids, RingId(pos + 1, 0))  # The predecessor may sit exactly there.
    pred, succ = ids[at - 1], ids[at % len(ids)]
    return pred if (pos - pred.pos) % CIRCLE <= (succ.pos - pos) % CIRCLE else succ
