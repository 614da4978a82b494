"""The cells of one guardian, and for how many there is room.  Spec: tickets 2, 5.1 (FORGET); D18, D21; docs/decisions.md H133.

Three kinds are counted apart, because each goes by a rule of its own. Anchors stay for ever: the fence in them is what makes tokens grow
(G3). Other cells stay until they are merged. Forgotten ones, tombstones, stay for ``tombstone_ttl``, and never for less: while a message
about such a cell may be on the road, only the tombstone keeps it from coming back as an empty register.

What is new is refused where there is no room. What others keep already, and this guardian missed, has a reserve: merging makes room, so
it must go on when nothing new is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from math import inf

from holdfast.bounds import NUMBER_MAX
from holdfast.features.tickets.protocol.messages import Accept, Prepare
from holdfast.features.tickets.protocol.values import ANCHOR, NO_BALLOT, NO_LEASE, Ballot, Key, Val

ANCHORS_MAX = 16_384  # pools that were ever used, since none is forgotten; about 5 MiB of journal
CELLS_MAX = 16_384  # the others: four of the largest pools, every ticket held; about 5 MiB
TOMBSTONES_MAX = 65_536  # a hundred merges a second, for ever: each stays for ten minutes and a sweep; about 6 MiB
RESERVE = 2_048  # of each kind, for what is not new


class Cell:
    """One register. ``grant_until`` is on this agent's clock and dies with it."""

    __slots__ = ("accepted", "gone", "grant_until", "promised", "touched_at", "unsaid", "val")

    def __init__(self, now: float) -> None:
        self.promised = NO_BALLOT
        self.accepted = NO_BALLOT
        self.val: Val | None = None
        self.gone = False
        self.grant_until = -inf
        self.touched_at = now
        self.unsaid: list[Callable[[], None]] | None = None  # answers that wait for the last save; None: all of it is durable

    def bury(self, now: float) -> None:
        """From now on a tombstone. Of what it promised as much is left as tells its holder that it is over: to go beyond it, in vain."""
        self.promised = Ballot(min(self.promised.number + 1, NUMBER_MAX), NO_LEASE)
        self.accepted, self.val, self.gone, self.grant_until, self.touched_at = NO_BALLOT, None, True, -inf, now


class Cells:
    """The table. ``kept`` and ``tombstones`` have no key in common; tombstones are in the order of their making."""

    def __init__(self) -> None:
        self.kept: dict[Key, Cell] = {}
        self.tombstones: dict[Key, Cell] = {}
        self.anchors = 0  # of those kept

    @property
    def others(self) -> int:
        """Cells that are kept and are no anchors."""
        return len(self.kept) - self.anchors

    def get(self, key: Key) -> Cell | None:
        return self.kept.get(key) or self.tombstones.get(key)

    def has_room(self, asked: Prepare | Accept) -> bool:
        """For a cell that is not here, of which this is the first word."""
        spare = 0 if _is_new(asked) else RESERVE
        return self.anchors < ANCHORS_MAX + spare if asked.key.rid == ANCHOR else self._has_room(spare)

    @property
    def has_room_for_tombstone(self) -> bool:
        """For one of a cell that was never here: where a new cell would be refused, nothing of a split that was refused shall stay."""
        return self._has_room(0)

    def _has_room(self, spare: int) -> bool:
        """No cell is taken that could not become a tombstone one day."""
        return self.others < CELLS_MAX + spare and len(self.tombstones) < TOMBSTONES_MAX + spare

    def put(self, key: Key, cell: Cell) -> Cell:
        """Not here yet."""
        if cell.gone:
            self.tombstones[key] = cell
        else:
            self.kept[key] = cell
            self.anchors += key.rid == ANCHOR
        return cell

    def bury(self, key: Key, now: float) -> Cell:
        """The tombstone of a cell that is kept, or was never here."""
        assert key.rid != ANCHOR  # D11
        cell = self.kept.pop(key, None) or Cell(now)
        cell.bury(now)
        return self.put(key, cell)

    def old(self, oldest: float) -> list[Key]:
        """Tombstones, and cells that never got a value, that no agent has asked about since then."""
        tombstones = takewhile(lambda key: self.tombstones[key].touched_at <= oldest, self.tombstones)
        return [*tombstones, *(key for key, cell in self.kept.items() if _is_old(cell, oldest))]

    def drop_old(self, key: Key, oldest: float) -> bool:
        """Delete it if it still is."""
        cell = self.get(key)
        if cell is None or not _is_old(cell, oldest):
            return False
        if self.tombstones.pop(key, None) is None:
            del self.kept[key]
            self.anchors -= key.rid == ANCHOR
        return True


def _is_new(asked: Prepare | Accept) -> bool:
    """A pool that is founded, or a cell that is split off. Who re-ballots, merges, moves or repairs speaks of a cell that others have."""
    if isinstance(asked, Prepare):
        return asked.key.rid == ANCHOR
    return asked.op != 0 and asked.val.seq == 0


def _is_old(cell: Cell, oldest: float) -> bool:
    return cell.val is None and cell.unsaid is None and cell.touched_at <= oldest
