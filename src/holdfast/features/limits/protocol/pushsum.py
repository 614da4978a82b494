"""Push-sum that conserves: one instance of gossip at one member.  Spec: limits 2, 5.3, D1, D2, D4, D6, D8; paper 003, 6.1, 6.2.1.

Every member holds weight ``w`` and, for each limit, a portion ``p`` of what all want together. A peer that is chosen is
given an equal part of all of it; the whole stays what it is, also while parts are under way or wait to be sent again. So
at any member, size times p over w comes to be the sum of all demands. All amounts are integers and remainders stay home.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from holdfast.features.limits.protocol.config import AMOUNT_MAX, DEMAND_MAX, PORTIONS_MAX, UNIT, WEIGHT
from holdfast.host import NodeId, ViewId
from holdfast.kit.ledger import Batch, Ledger, Refusal

MIXED = 0.01  # of an estimate: what is closer to it is no other number
W_KEY = -1  # of the weight among the amounts of a ledger; no limit has it


class Told(NamedTuple):
    """What a change of the own demand did."""

    before: float  # estimate before it, cost per second
    delta: float  # by how much the own portion moved


class PushSum:
    """One instance at one member. Knows nothing of time and sends nothing."""

    def __init__(self, inst: ViewId, size: int, reports: Mapping[int, int], *, mixing: int = 5) -> None:
        """``mixing``: epochs until a change of one member has spread evenly."""
        assert size >= 1
        self.inst, self.size = inst, size
        self.w = WEIGHT
        self.p: dict[int, int] = {key: value for key, value in reports.items() if value}
        self.rep: dict[int, int] = dict(self.p)
        self.ledgers: dict[NodeId, Ledger] = {}
        self._mixing = mixing
        self._falling: dict[int, float] = {}  # what is left of the sum after own decreases, until the estimate has come to that

    def ledger(self, peer: NodeId) -> Ledger:
        found = self.ledgers.get(peer)
        if found is None:
            found = self.ledgers[peer] = Ledger()
        return found

    # The sum.

    def estimate(self, key: int) -> float:
        """What all members want together, cost per second."""
        held = self.p.get(key)
        return self.size * held / self.w * (WEIGHT / UNIT) if held else 0.0

    def report(self, key: int, value: int, *, stands: bool = False) -> Told:
        """The own demand is ``value`` now; once an epoch. Less is taken out of what this member holds, and no more than half of
        that at once (D8). ``stands``: until that is mixed, what was known before counts, less what was taken out, for a quiet
        group gives nothing back at first (H273). It comes to the estimate within a few epochs.
        """
        assert 0 <= value <= DEMAND_MAX
        known = self.estimate(key)
        falling = self._falling.get(key, 0.0)
        before = max(known, falling - (falling - known) / self._mixing)
        held, reported = self.p.get(key, 0), self.rep.get(key, 0)
        delta = value - reported
        if delta < 0:
            delta = max(delta, -held // 2)
        if delta:
            _set(self.p, key, held + delta)
            _set(self.rep, key, reported + delta)
        if stands and (delta < 0 or before > known * (1 + MIXED)):
            self._falling[key] = before + delta / UNIT
        else:
            self._falling.pop(key, None)
        return Told(before, delta / UNIT)

    @property
    def keys(self) -> Iterable[int]:
        return self.p.keys() | self.rep.keys()

    # Giving and taking.

    def spread(self, peers: Sequence[NodeId]) -> list[NodeId]:
        """Give each of them an equal part of everything held, and keep one. Returns those that were given theirs."""
        parts = len(peers) + 1
        shares = {key: part for key, held in self.p.items() if (part := held // parts)}
        shares[W_KEY] = self.w // parts
        return [peer for peer in peers if self._give(peer, shares)]

    def halve(self, peer: NodeId) -> bool:
        """Give it half of everything (D14)."""
        return bool(self.spread((peer,)))

    def take(self, peer: NodeId, batch: Batch) -> Refusal | None:
        """What is new in it is held here from now on. Whatever is wrong with it, nothing is taken then."""
        taken = self.ledger(peer).take(batch, self._has_room)
        if isinstance(taken, Refusal):
            return taken
        for key, amount in taken.items():
            if key == W_KEY:
                self.w += amount
            else:
                self.p[key] = self.p.get(key, 0) + amount
        return None

    @property
    def outstanding_weight(self) -> int:
        """Given and not acknowledged."""
        return sum(ledger.outstanding.get(W_KEY, 0) for ledger in self.ledgers.values())

    def _give(self, peer: NodeId, shares: Mapping[int, int]) -> bool:
        if not self.ledger(peer).give(shares):
            return False
        for key, part in shares.items():
            if key == W_KEY:
                self.w -= part
            else:
                self.p[key] -= part
        assert self.w > 0, "what remains of a division stays home"
        return True

    def _has_room(self, new: Mapping[int, int]) -> bool:
        """A peer can send anything; what all members hold together is far below these bounds."""
        p = self.p
        if any((self.w if key == W_KEY else p.get(key, 0)) + amount > AMOUNT_MAX for key, amount in new.items()):
            return False
        return len(p) + sum(key not in p for key in new if key != W_KEY) <= PORTIONS_MAX


def batch_of(lb: int, seq: int, w: int, p: Mapping[int, int]) -> Batch:
    """What a message carries, for a ledger."""
    return Batch(lb, seq, {**p, W_KEY: w} if w else p)


def portions_of(batch: Batch) -> tuple[int, dict[int, int]]:
    """Weight and portions of what is outstanding, for a message."""
    portions = dict(batch.amounts)
    return portions.pop(W_KEY, 0), portions


def _set(amounts: dict[int, int], key: int, value: int) -> None:
    """A limit that no member wants anything of takes no room."""
    if value:
        amounts[key] = value
    else:
        amounts.pop(key, None)
