"""Rows: a table that all members of a topic end up sharing.  Spec: foundation 4 (Rows); tickets 5.9.

``merge`` is a join: commutative, associative, idempotent. So updates may arrive in any order, any number of times,
and two tables that told each other everything are equal. This file is what one node keeps and how it compares it
with another's; ``kit.exchange`` is who talks to whom, and when.

A value may say "gone". It is kept as a tombstone for ``tombstone_ttl`` seconds, counted from the moment it was
written: its age travels with it, so all members forget it at about the same time. A member that was cut off for
longer brings the old value back; keep the ttl above the longest partition that should heal without that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Annotated, NamedTuple

from msgspec import Meta

from holdfast.bounds import MEMBERS_MAX, Label, Seconds
from holdfast.errors import ConfigError, shown
from holdfast.kit.deadline import Clock

KEY_BYTES_MAX = 128
VALUE_BYTES_MAX = 4096  # above about 800 bytes a row no longer fits a datagram and goes by stream
KEYS_MAX = MEMBERS_MAX  # a member list is such a table; tombstones count
BUCKETS = 64  # their hashes fit one datagram; a full table has 320 keys in each
HASH_BYTES = 8
TOMBSTONE_TTL = 600.0  # tickets 4
PAGE_BYTES = 900  # a page is a datagram, with room for the envelope
PAGES_MAX = 8  # more than this goes in big pages by stream instead
BULK_BYTES = 64 * 1024
ROW_OVERHEAD_BYTES = 16  # lengths, age and array headers of one row

RowBytes = Annotated[bytes, Meta(max_length=VALUE_BYTES_MAX)]
Merge = Callable[[bytes, bytes], bytes]
Test = Callable[[bytes], bool]
Change = Callable[[str, bytes | None, bytes], None]  # key, value before, value now


class Row(NamedTuple):
    """One row on its way to a peer."""

    key: Label
    value: RowBytes
    age: Seconds  # seconds since it said "gone"; 0.0 for what lives


class Kept(NamedTuple):
    """One row as it is kept."""

    value: bytes
    hash: int  # of key and value
    bucket: int
    gone_at: float | None  # own clock; None: it lives


def never(value: bytes) -> bool:
    """Values of this table cannot say "gone"."""
    del value
    return False


def always(value: bytes) -> bool:
    """Any bytes are a value of this table."""
    del value
    return True


class Rows:
    """One table. ``push`` is told which keys changed here, so that others hear of it."""

    def __init__(
        self,
        clock: Clock,
        topic: str,
        merge: Merge,
        push: Callable[[Rows, list[str]], None],
        *,
        gone: Test = never,
        valid: Test = always,
        credible: Test = always,
        tombstone_ttl: float = TOMBSTONE_TTL,
    ) -> None:
        """``valid``: is it a value of this table at all? ``credible``: of a valid one that a peer sent, can its numbers be?"""
        assert tombstone_ttl > 0
        self.topic = topic
        self._clock, self._merge, self._push = clock, merge, push
        self._gone, self._valid, self._credible, self._ttl = gone, valid, credible, tombstone_ttl
        self._kept: dict[str, Kept] = {}
        self._tombstones: dict[str, None] = {}
        self._keys: list[dict[str, None]] = [{} for _ in range(BUCKETS)]
        self._hashes = [0] * BUCKETS
        self._listeners: list[Change] = []
        self.counts: Counter[str] = Counter()  # learnt, malformed, table_full, forgotten

    def __len__(self) -> int:
        return len(self._kept) - len(self._tombstones)

    def get(self, key: str) -> bytes | None:
        """The value; None if there is none or it is gone."""
        kept = self._kept.get(key)
        return None if kept is None or kept.gone_at is not None else kept.value

    def is_gone(self, key: str) -> bool:
        """Its value says so, and the tombstone is still kept."""
        return key in self._tombstones

    def raw(self, key: str) -> bytes | None:
        """What is kept, whether it lives or says "gone"."""
        kept = self._kept.get(key)
        return None if kept is None else kept.value

    def items(self) -> Iterator[tuple[str, bytes]]:
        """What lives, sorted by key."""
        return ((key, self._kept[key].value) for key in self.keys() if self._kept[key].gone_at is None)

    def keys(self) -> list[str]:
        """Every key that is kept, tombstones included, sorted."""
        return sorted(self._kept)

    def set(self, key: str, value: bytes) -> None:
        """Merge a value of our own, and tell all members of the topic if that changed anything."""
        self.update([(key, value)])

    def update(self, items: Iterable[tuple[str, bytes]]) -> None:
        """Several at once: together they fill few rumours instead of one each."""
        rows = [Row(key, value, 0.0) for key, value in items]
        for row in rows:
            self._check(row)
        if len(self._kept) + len({row.key for row in rows if row.key not in self._kept}) > KEYS_MAX:
            raise ConfigError(f"table {shown(self.topic)} would be too full; accepted are at most {KEYS_MAX} keys")
        changed = [row.key for row in rows if self._take(row)]
        if changed:
            self._push(self, changed)

    def quietly(self, items: Iterable[tuple[str, bytes]]) -> None:
        """Take living rows that all members have already: no member is told. Only for an empty table."""
        assert not self._kept
        for key, value in items:
            self._put(key, value, None, None)

    def copy(self, other: Rows) -> None:
        """Hold what another table holds. Only for an empty one."""
        assert not self._kept
        self._kept, self._tombstones = dict(other._kept), dict(other._tombstones)
        self._keys, self._hashes = [dict(keys) for keys in other._keys], list(other._hashes)

    def on_change(self, listener: Change) -> None:
        """Called after every change, own ones and "gone" included; not when a tombstone is forgotten."""
        self._listeners.append(listener)

    # What the exchange with a peer consists of.

    @property
    def root(self) -> int:
        """Equal tables have equal roots; unequal ones differ but for one chance in 2^64."""
        root = 0
        for bucket in self._hashes:
            root ^= bucket
        return root

    @property
    def hashes(self) -> tuple[int, ...]:
        return tuple(self._hashes)

    def digest(self, bucket: int) -> tuple[tuple[str, int], ...]:
        """All keys of one bucket, each with the hash of its value."""
        return tuple((key, self._kept[key].hash) for key in self._keys[bucket])

    def differing(self, bucket: int, digest: Iterable[tuple[str, int]]) -> tuple[list[str], list[str]]:
        """Against a peer's whole bucket: keys of ours that it lacks or has otherwise, and keys that we lack."""
        theirs = dict(digest)
        ours = [key for key in self._keys[bucket] if theirs.get(key) != self._kept[key].hash]
        return ours, [key for key in theirs if key not in self._kept]

    def read(self, keys: Iterable[str]) -> list[Row]:
        """Those of the keys that are here, ready to be sent."""
        return [Row(key, kept.value, self._age(kept)) for key in keys if (kept := self._kept.get(key)) is not None]

    def learn(self, rows: Iterable[Row]) -> list[str]:
        """Merge what a peer sent. Returns the keys of which we now know better than it did when it sent."""
        better = []
        for row in rows:
            if not self._acceptable(row):
                self.counts["malformed"] += 1
                continue
            self.counts["learnt"] += self._take(row)
            kept = self._kept.get(row.key)
            if kept is not None and kept.value != row.value:
                better.append(row.key)
        return better

    def forget(self) -> None:
        """Drop the tombstones whose time is over."""
        oldest = self._clock.now - self._ttl
        for key in [key for key in self._tombstones if (self._kept[key].gone_at or 0.0) <= oldest]:
            kept = self._kept.pop(key)
            del self._keys[kept.bucket][key], self._tombstones[key]
            self._hashes[kept.bucket] ^= kept.hash
            self.counts["forgotten"] += 1

    def _take(self, row: Row) -> bool:
        """The one place where a row changes."""
        key = row.key
        kept = self._kept.get(key)
        value = row.value if kept is None else self._merge(kept.value, row.value)
        if kept is not None and value == kept.value:
            return False
        if kept is None and len(self._kept) >= KEYS_MAX:
            self.counts["table_full"] += 1
            return False
        gone = self._gone(value)
        if gone and row.age >= self._ttl:
            return False  # Forgotten elsewhere while it was on its way.
        self._put(key, value, kept, self._clock.now - row.age if gone else None)
        for listener in tuple(self._listeners):
            listener(key, None if kept is None else kept.value, value)
        return True

    def _put(self, key: str, value: bytes, former: Kept | None, gone_at: float | None) -> None:
        bucket = _hash(key.encode()) % BUCKETS if former is None else former.bucket
        kept = Kept(value, _hash(key.encode() + b"\0" + value), bucket, gone_at)
        self._hashes[bucket] ^= kept.hash ^ (0 if former is None else former.hash)
        self._kept[key] = kept
        self._keys[bucket][key] = None
        if gone_at is None:
            self._tombstones.pop(key, None)
        else:
            self._tombstones[key] = None

    def _age(self, kept: Kept) -> float:
        return 0.0 if kept.gone_at is None else max(0.0, self._clock.now - kept.gone_at)

    def _check(self, row: Row) -> None:
        """What our own code may put in; the same limits as for peers, but said aloud."""
        if not 1 <= len(row.key.encode()) <= KEY_BYTES_MAX:
            size = len(row.key.encode())
            raise ConfigError(f"key {shown(row.key)} of {shown(self.topic)}: {size} bytes; accepted are 1 to {KEY_BYTES_MAX}")
        if len(row.value) > VALUE_BYTES_MAX:
            name = f"{shown(row.key)} in {shown(self.topic)}"
            raise ConfigError(f"value of {name}: {len(row.value)} bytes; accepted are at most {VALUE_BYTES_MAX}")
        assert self._valid(row.value)

    def _acceptable(self, row: Row) -> bool:
        key_bytes = len(row.key.encode())
        fits = 1 <= key_bytes <= KEY_BYTES_MAX and len(row.value) <= VALUE_BYTES_MAX and row.age >= 0
        return fits and self._valid(row.value) and self._credible(row.value)


def pages(rows: Iterable[Row], *, bulk_bytes: int = BULK_BYTES) -> list[tuple[Row, ...]]:
    """Cut rows into messages: datagrams if a few are enough, otherwise large pieces for the stream."""
    rows = list(rows)
    size = sum(_size(row) for row in rows)
    limit = PAGE_BYTES if size <= PAGES_MAX * PAGE_BYTES else bulk_bytes
    cut: list[list[Row]] = []
    room = 0
    for row in rows:
        room -= _size(row)
        if not cut or room < 0:
            cut.append([])
            room = limit - _size(row)
        cut[-1].append(row)
    return [tuple(page) for page in cut]


def _size(row: Row) -> int:
    return len(row.key.encode()) + len(row.value) + ROW_OVERHEAD_BYTES


def _hash(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=HASH_BYTES).digest(), "big")
