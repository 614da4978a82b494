"""Ledger: integer amounts that move between two lives, and none is lost or counted twice.  Spec: foundation 4; limits 5.3, D1, D4, D6.

One ledger per peer's life, both directions. What is given leaves the giver at once and is outstanding until the peer acknowledges it. A
message carries everything that is outstanding, ``(lb, seq]``, whatever was carried before; the receiver knows how much of that it took in
already, because it keeps what it took since ``lb`` by number (D4). So any loss, repetition, order and path brings each amount once.
Both ends must speak of one instance of whatever is counted, and of the same two lives (foundation F3): a new instance has new ledgers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import NamedTuple

AMOUNT_MAX = (1 << 63) - 1  # MessagePack has integers of 64 bits; half of them leaves room for one addition
# Numbers that one direction may have open. A peer that acknowledges nothing is given nothing after a few; this is what is left to chance.
OPEN_MAX = 64
KEYS_MAX = 4096  # of one message

Amounts = Mapping[int, int]


class Refusal(StrEnum):
    """Why nothing was taken. The value is the name of a counter."""

    PAST = "past"  # all of it was taken before: its acknowledgement was lost, or it was late
    UNKNOWN_BOUND = "unknown_bound"  # it counts from a number that was never acknowledged to it
    SHRUNK = "shrunk"  # it carries less than what was taken of it already, or less than nothing
    TOO_MANY = "too_many"  # numbers or keys
    NO_ROOM = "no_room"  # the receiver has no room for the amounts


class Batch(NamedTuple):
    """All that is outstanding: the sums of what was given under the numbers above ``lb`` up to ``seq``."""

    lb: int
    seq: int
    amounts: Amounts


class Ledger:
    """What this life gave to one peer's life, and what it took from it."""

    __slots__ = ("_entries", "_open", "_outstanding", "_since", "acked", "given", "taken")

    def __init__(self) -> None:
        self.given = 0  # newest number that something was given under
        self.acked = 0  # newest number that the peer is known to have taken
        self.taken = 0  # newest number that was taken from the peer: what is acknowledged to it
        self._open: list[tuple[int, Amounts]] = []  # given and not acknowledged, by number
        self._outstanding: dict[int, int] = {}  # their sum
        self._entries: list[tuple[int, Amounts]] = []  # taken under numbers that the peer does not know to be acknowledged
        self._since = 0  # number from which ``_entries`` count

    # Giving.

    def give(self, amounts: Amounts) -> bool:
        """From now on they belong to the peer. False: there is no room, and nothing changed."""
        assert all(amount >= 0 for amount in amounts.values()), "an amount is never negative"
        if len(self._open) >= OPEN_MAX:
            return False
        outstanding = self._outstanding
        if any(outstanding.get(key, 0) + amount > AMOUNT_MAX for key, amount in amounts.items()):
            return False
        self.given += 1
        self._open.append((self.given, dict(amounts)))
        _add(outstanding, amounts)
        return True

    def message(self) -> Batch:
        """Everything that is outstanding."""
        return Batch(self.acked, self.given, dict(self._outstanding))

    def ack(self, seq: int) -> bool:
        """The peer has taken everything up to this number. False: it was never given, so nothing changed."""
        if seq > self.given or seq < 0:
            return False
        while self._open and self._open[0][0] <= seq:
            _, amounts = self._open.pop(0)
            _subtract(self._outstanding, amounts)
        self.acked = max(self.acked, seq)
        return True

    @property
    def outstanding(self) -> Amounts:
        """The sum of what was given and is not acknowledged; the peer may have taken it."""
        return self._outstanding

    @property
    def is_open(self) -> bool:
        """Something was given that is not acknowledged, if only nothing under a number."""
        return self.acked < self.given

    # Taking.

    def take(self, batch: Batch, fits: Callable[[Amounts], bool] | None = None) -> dict[int, int] | Refusal:
        """What is new in it, which belongs to this life from now on. ``fits`` may refuse that; then nothing changed."""
        if batch.seq <= self.taken:
            return Refusal.PAST
        entries = [entry for entry in self._entries if entry[0] > batch.lb]
        known = batch.lb == self._since or (batch.lb > self._since and any(seq == batch.lb for seq, _ in self._entries))
        if not known:
            return Refusal.UNKNOWN_BOUND
        if len(entries) >= OPEN_MAX or len(batch.amounts) > KEYS_MAX:
            return Refusal.TOO_MANY
        new = dict(batch.amounts)
        for _, amounts in entries:
            for key, amount in amounts.items():
                new[key] = new.get(key, 0) - amount
        if any(amount < 0 for amount in new.values()):
            return Refusal.SHRUNK
        new = {key: amount for key, amount in new.items() if amount}
        if fits is not None and not fits(new):
            return Refusal.NO_ROOM
        entries.append((batch.seq, new))
        self._entries, self._since, self.taken = entries, batch.lb, batch.seq
        return new


def _add(sums: dict[int, int], amounts: Amounts) -> None:
    for key, amount in amounts.items():
        if amount:
            sums[key] = sums.get(key, 0) + amount


def _subtract(sums: dict[int, int], amounts: Amounts) -> None:
    for key, amount in amounts.items():
        if amount:
            left = sums[key] - amount
            assert left >= 0, "a sum holds its parts"
            if left:
                sums[key] = left
            else:
                del sums[key]
