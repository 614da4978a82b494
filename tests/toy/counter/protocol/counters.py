"""Counters that only grow: how do members that add at the same time come to one value?

Each life keeps, per counter, what it has added itself, as a row of a table that all members share (``kit.rows``). Rows of one life only
grow, so of two versions the larger is the newer, and the value of a counter is the sum over all lives. What a life added stays when it is
gone; what it told no other before it crashed is lost with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from holdfast.bounds import NUMBER_MAX
from holdfast.errors import ConfigError, Unavailable, shown
from holdfast.host import Host, Message, NodeId
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import KEYS_MAX
from tests.toy.counter.errors import CounterLimit
from tests.toy.counter.events import CounterBegan
from tests.toy.counter.protocol.facts import Closed, Counted

TOPIC = "counter"
NAME_BYTES_MAX = 32  # with the longest name of a life (81 bytes) it fits the key of a row (128)
SEPARATOR = "/"  # between the name of a counter and a life, in the key of a row
ROW_BYTES = 8
SPREAD = 1.0  # seconds; a rumour is with all members well before
ROW_MAX = NUMBER_MAX // KEYS_MAX  # the sum of a full table is a number that every language has


class Counters:
    """All counters of one member. It has no messages of its own: ``Exchange`` carries the rows."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, host: Host, exchange: Exchange, *, limit: int) -> None:
        self._host, self._limit = host, limit
        self._rows = exchange.rows(TOPIC, max, valid=is_row)
        self._rows.on_change(self._on_change)
        self._values: dict[str, int] = {}
        self.version = 0  # grows with every change
        self._closed = False
        self._spread_at = host.now  # until then the others may not have heard of what was added last
        self.counts: Counter[str] = Counter()  # added, by this life; malformed, rows of peers that name no counter

    @property
    def values(self) -> Mapping[str, int]:
        return self._values

    @property
    def is_full(self) -> bool:
        return len(self._values) >= self._limit

    @property
    def spread(self) -> bool:
        return self._host.now >= self._spread_at

    def close(self, *, closed: bool) -> None:
        """This member leaves; or it stays, with ``closed`` False."""
        self._closed = closed
        if closed:
            self._host.emit(Closed(max(0.0, self._spread_at - self._host.now)))

    def add(self, name: str, by: int) -> int:
        """Returns the value that this member knows then."""
        if self._closed:
            raise Unavailable("counter: this agent is leaving its group, and adds no more")
        if not is_name(name):
            raise ConfigError(f"name: {shown(name)}; accepted are 1 to {NAME_BYTES_MAX} bytes of printable text without {SEPARATOR}")
        if self.is_full and name not in self._values:
            raise CounterLimit(f"counter {shown(name)}: there are {len(self._values)} others; counter_limit accepts {self._limit}")
        key = f"{name}{SEPARATOR}{self._host.me}"
        former = number(self._rows.get(key) or row(0))
        if not 1 <= by <= ROW_MAX - former:
            raise ConfigError(f"by: {shown(by)}; accepted are 1 to {ROW_MAX - former}")
        self._rows.set(key, row(former + by))
        self.counts["added"] += by
        self._spread_at = self._host.now + SPREAD
        return self._values[name]

    def start(self) -> None:
        """Nothing is sent before a client adds."""

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("nothing is sent to it")

    def on_away(self, seconds: float) -> None:
        """A pause changes nothing."""

    def stop(self) -> None:
        """It has no timers."""

    def _on_change(self, key: str, before: bytes | None, now: bytes) -> None:
        name, separator, _ = key.partition(SEPARATOR)
        if not separator or not is_name(name):
            self.counts["malformed"] += 1
            return
        if name not in self._values:
            self._host.emit(CounterBegan(name))
        self.version += 1
        grown = number(now) - number(before or row(0))
        self._values[name] = self._values.get(name, 0) + grown
        self._host.emit(Counted(name, self._values[name]))


def row(value: int) -> bytes:
    """Of equal length and with the highest byte first: the larger number is the larger text of bytes."""
    return value.to_bytes(ROW_BYTES, "big")


def number(value: bytes) -> int:
    return int.from_bytes(value, "big")


def is_row(value: bytes) -> bool:
    return len(value) == ROW_BYTES and number(value) <= ROW_MAX


def is_name(name: str) -> bool:
    return 1 <= len(name.encode()) <= NAME_BYTES_MAX and name.isprintable() and SEPARATOR not in name
