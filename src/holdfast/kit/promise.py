"""Promises: what a seat keeps for those it promised something to, one record per key.  Spec: foundation 4 (Promise), F13, F15, F16.

One rule. ``ask(holder, number, length)`` is refused while another holder's promise runs, refused if ``number`` is below
the recorded one, refused if it equals it and the holder differs; otherwise it is recorded and granted. The pair
(holder, number) is durable before its first grant leaves, so a crash between the two can never let a second
holder win the same number. Renewals touch only ``until``, which is not saved: ``kit.keeper`` waits instead.

Nothing here asks who is alive (F15). Which number a holder asks for is its own business (F16: wall-clock ms at first).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from math import inf
from typing import NamedTuple

import msgspec

from holdfast.bounds import NUMBER_MAX, Growing, Name, Number, is_beyond, is_bound_broken
from holdfast.errors import StorageDamaged, shown
from holdfast.host import Host, NodeId, Storage
from holdfast.kit.keeper import Keeper

KEY_BYTES_MAX = 128
KEYS_MAX = 4096  # a number once recorded is never forgotten, so the table only grows; about 1 MiB of journal


class HolderId(NamedTuple):
    """Who holds: one life of one agent, and which of its attempts."""

    life: NodeId
    serial: int


class Answer(NamedTuple):
    """What a seat says to an ask."""

    granted: bool
    number: int  # the recorded one: who is refused for a low number learns what to go beyond
    wait: float  # seconds until it makes sense to ask again; 0.0 if waiting does not help or is not needed
    era: int  # F13: answers of different eras are never added up


class Promise:
    """One record. ``until`` is on the seat's clock and dies with it."""

    __slots__ = ("holder", "number", "saved", "until")

    def __init__(self, holder: HolderId | None, number: int, *, saved: bool) -> None:
        self.holder = holder
        self.number = number
        self.saved = saved  # (holder, number) is durable
        self.until = -inf


class Promises:
    """All promises of one seat."""

    def __init__(self, host: Host, storage: Storage, keeper: Keeper) -> None:
        self._host, self._storage, self._keeper = host, storage, keeper
        self.unusable: dict[str, str] = {}  # key -> why: this seat neither grants it nor says anything about it
        self._table: dict[str, Promise] = {}
        for key, value in storage.load().items():
            self._read(key, value)
        self.counts: Counter[str] = Counter()  # granted, refused, silent, malformed, table_full, unwritten, unusable

    def __len__(self) -> int:
        return len(self._table)

    def get(self, key: str) -> Promise | None:
        return self._table.get(key)

    @property
    def running_until(self) -> float:
        """The end of the longest promise that was not given back; minus infinity if there is none."""
        return max((promise.until for promise in self._table.values()), default=-inf)

    def ask(self, key: str, holder: HolderId, number: int, length: float, then: Callable[[Answer], None]) -> None:
        """May ``holder`` act under ``number`` for ``length`` seconds? ``then`` may run later, or never if the disk fails."""
        if self._keeper.wait == inf:
            self.counts["silent"] += 1
            return
        if key in self.unusable:
            self.counts["unusable"] += 1
            return
        refusal = self._refusal(key, holder, number, length)
        if refusal is not None:
            self.counts["refused"] += 1
            then(refusal)
            return
        if not self._keeper.reaches(self._host.now + length):
            self.counts["unwritten"] += 1
            return
        self._record(key, holder, number, length)
        self._when_durable(key, holder, number, length, lambda: self._conclude(key, holder, number, then))

    def release(self, key: str, holder: HolderId, number: int) -> None:
        """The holder's own word that it has stopped, at ``number`` or below (fast-detection RESIGN). The number stays spent."""
        record = self._table.get(key)
        if record is not None and record.holder == holder and record.number <= number:
            record.until = -inf

    def _refusal(self, key: str, holder: HolderId, number: int, length: float) -> Answer | None:
        """The one rule; None if nothing speaks against it."""
        record = self._table.get(key)
        recorded = 0 if record is None else record.number
        if not 1 <= len(key.encode()) <= KEY_BYTES_MAX or not 1 <= number <= NUMBER_MAX or not 0 < length <= self._keeper.length_max:
            self.counts["malformed"] += 1
            return self._no(recorded)
        if self._keeper.wait > 0:
            return self._no(recorded, wait=self._keeper.wait)
        if record is None:
            if len(self._table) < KEYS_MAX:
                return None
            self.counts["table_full"] += 1
            return self._no(recorded)
        if record.holder != holder and self._host.now < record.until:
            return self._no(recorded, wait=record.until - self._host.now)
        if number < recorded or (number == recorded and holder != record.holder):
            return self._no(recorded)
        return None

    def _record(self, key: str, holder: HolderId, number: int, length: float) -> None:
        """In memory at once: whatever is asked while the disk works is judged by what is on its way there."""
        record = self._table.get(key)
        if record is None or record.number != number or record.holder != holder:
            until = record.until if record is not None and record.holder == holder else -inf
            record = self._table[key] = Promise(holder, number, saved=False)
            record.until = until
        record.until = max(record.until, self._host.now + length)

    def _when_durable(self, key: str, holder: HolderId, number: int, length: float, then: Callable[[], None]) -> None:
        """A pair that is not known to be durable is saved again by each candidate that asks for it: no ask waits for another's save."""
        if self._table[key].saved:
            self._keeper.cover(length, then)
            return
        if not self._keeper.covers(length):
            self._keeper.cover(length, lambda: None)  # completes before the next save does
        self._storage.save(key, _written(holder, number), then)
        self._keeper.on_change()

    def _conclude(self, key: str, holder: HolderId, number: int, then: Callable[[Answer], None]) -> None:
        record = self._table[key]
        if (record.holder, record.number) != (holder, number):
            # The disk was so slow that this promise ended and another began.
            self.counts["refused"] += 1
            then(self._no(record.number, wait=max(0.0, record.until - self._host.now)))
            return
        record.saved = True
        self.counts["granted"] += 1
        then(Answer(granted=True, number=number, wait=0.0, era=self._keeper.era))

    def _read(self, key: str, value: bytes) -> None:
        """A recorded number from which no candidate could go on is not handed out: its key stays as it is, and unused (H174)."""
        try:
            name, boot, serial, number = msgspec.msgpack.decode(value, type=tuple[Name, Growing, Number, Growing])
        except msgspec.DecodeError as error:
            if not (isinstance(error, msgspec.ValidationError) and is_bound_broken(error)):
                raise StorageDamaged(f"the promise {shown(key)} in the seat's journal is unreadable: {error}") from None
            self.unusable[key] = str(error)
            return
        if is_beyond(number, self._host.wall):
            self.unusable[key] = f"number {number} is further ahead of the clock than any honest one"
        else:
            self._table[key] = Promise(HolderId(NodeId(name, boot), serial), number, saved=True)

    def _no(self, number: int, *, wait: float = 0.0) -> Answer:
        return Answer(granted=False, number=number, wait=wait, era=self._keeper.era)


def _written(holder: HolderId, number: int) -> bytes:
    return msgspec.msgpack.encode((holder.life.name, holder.life.boot, holder.serial, number))
