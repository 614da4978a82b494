"""Where keys and members lie on a circle of 64 bits, and which member is closest to a key.  Spec: ring 5.7 (owner);
docs/decisions.md H321."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from hashlib import blake2b

CIRCLE = 1 << 64  # M: number of positions
HASH_BYTES = 8

_positions = blake2b(digest_size=HASH_BYTES, person=b"holdfast ring")  # copied for each key: making one anew takes twice as long


def position_of(key: str | bytes | int) -> int:
    """Where a key, or a member of this name, lies on the circle."""
    if isinstance(key, int):
        return key % CIRCLE
    data = key.encode() if isinstance(key, str) else key
    digest = _positions.copy()
    digest.update(data)
    return int.from_bytes(digest.digest(), "big")


def closest(positions: Sequence[int], position: int) -> int:
    """The index of the position that is closest; of two equally close ones that of the predecessor. ``positions`` is sorted, not empty."""
    at = bisect_left(positions, position + 1)  # The predecessor may sit exactly there.
    before, after = at - 1, at % len(positions)
    near = (position - positions[before]) % CIRCLE <= (positions[after] - position) % CIRCLE
    return before % len(positions) if near else after
