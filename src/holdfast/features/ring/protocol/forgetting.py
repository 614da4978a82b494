"""What a node no longer keeps about ids that no peer will mention any more.  Spec: ring 5 (tombstones); foundation F17."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

EPOCHS_MAX = 1024  # ids with a burnt epoch, before those of failed candidates are dropped


def forget(ring: RingNode) -> None:
    """Called once per T_l."""
    gone = set(ring.list.forget())
    if len(ring.epochs) > EPOCHS_MAX:  # Candidates that never came in: each attempt has a new id.
        gone.update(each for each in ring.epochs if each not in ring.list and each not in ring.pairs and each not in ring.list.gone)
    if gone:
        for table in (ring.epochs, ring.fencing.gens, ring.opening.retry_at):
            for each in gone & table.keys():
                del table[each]
