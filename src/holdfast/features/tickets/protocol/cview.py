"""Cview: who owns what, as announced; a hint, never used for safety.  Spec: tickets 5.9, G6; docs/decisions.md H104.

One table of the kit for all pools, so that an agent may know any number of them: a row per owned ticket, the larger (token, gone,
version) wins. Application events are rumours to those who listen to the pool, stamped with (number, token).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from holdfast.bounds import Growing, Number, Payload, highest_of, is_beyond
from holdfast.errors import ConfigError
from holdfast.features.tickets.protocol.values import TICKETS_MAX, Agent, Tickets, pool_fits
from holdfast.features.tickets.protocol.view import Holder
from holdfast.host import Address, NodeId
from holdfast.kit.broadcast import Broadcast, RumourId
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import Rows
from holdfast.kit.versioned import UNREADABLE

TOPIC = "tickets"  # of the table; events of a pool have TOPIC:POOL
ENTRY_BYTES_MAX = 1024
EVENT_BYTES_MAX = 15 * 1024  # of an application event: a rumour of the kit, less its stamp
POOLS_MAX = 4096  # whose largest tokens of events are remembered

MetadataText = Annotated[str, Meta(max_length=ENTRY_BYTES_MAX)]

Listener = Callable[[int, int, bytes], None]  # number, token, payload
Changed = Callable[[str, int], None]  # pool, number


Metadata = Annotated[tuple[tuple[MetadataText, MetadataText], ...], Meta(max_length=ENTRY_BYTES_MAX)]


class Entry(Struct, frozen=True, array_like=True):
    """One ticket, as its owner announced it."""

    token: Growing
    gone: bool
    version: Number  # of one owner's announcements
    life: NodeId
    address: Address
    free: Tickets  # tickets that its coordinator could give away
    n: Tickets
    metadata: Metadata = ()

    @property
    def agent(self) -> Agent:
        return Agent(self.life, self.address)

    @property
    def holder(self) -> Holder:
        return Holder(self.life, self.token, dict(self.metadata))


class Cview:
    """The view of one agent, of all pools."""

    def __init__(self, exchange: Exchange, broadcast: Broadcast, wall: Callable[[], float]) -> None:
        self._broadcast, self._wall = broadcast, wall
        self._rows: Rows = exchange.rows(TOPIC, larger, gone=is_gone, valid=is_entry, credible=self._is_credible)
        self._rows.on_change(self._on_row)
        self.pools: dict[str, dict[int, Entry]] = {}  # what is owned
        self._holders: dict[str, Counter[Agent]] = {}  # of ``pools``: who owns something, and how many
        self._rooms: dict[str, dict[int, Entry]] = {}  # of ``pools``: who has announced free tickets
        self._listeners: dict[str, list[Listener]] = {}
        self._changed: list[Changed] = []
        self._tokens: dict[tuple[str, int], int] = {}  # largest token of an event
        self.version = 0  # grows with every change of ``pools``
        self.counts: Counter[str] = Counter()  # announced, view_full, published, old_event, malformed

    def owners(self, pool: str) -> Mapping[int, Entry]:
        return self.pools.get(pool, {})

    def holders(self, pool: str) -> Iterable[Agent]:
        """Who owns something, each once."""
        return self._holders.get(pool, ())

    def rooms(self, pool: str) -> Iterable[Entry]:
        """What has free tickets beside it."""
        return self._rooms.get(pool, {}).values()

    def newest_token(self, pool: str, number: int) -> int:
        """Of the known owner, or of the last one; 0: none."""
        return max((_decode(row.value).token for row in self._rows.read((_key(pool, number),))), default=0)

    def announce(self, pool: str, number: int, entry: Entry) -> None:
        try:
            self._rows.set(_key(pool, number), msgspec.msgpack.encode(entry))
            self.counts["announced"] += 1
        except ConfigError:
            self.counts["view_full"] += 1  # A hint less.

    def on_change(self, listener: Changed) -> Callable[[], None]:
        self._changed.append(listener)
        return lambda: self._changed.remove(listener)

    # Application events.

    def publish(self, pool: str, number: int, token: int, payload: bytes) -> None:
        if len(payload) > EVENT_BYTES_MAX:
            raise ConfigError(f"payload: {len(payload)} bytes; accepted are at most {EVENT_BYTES_MAX}")
        self._broadcast.cast(f"{TOPIC}:{pool}", msgspec.msgpack.encode((number, token, payload)))
        self.counts["published"] += 1
        self._deliver(pool, number, token, payload)

    def listen(self, pool: str, listener: Listener) -> Callable[[], None]:
        if pool not in self._listeners:
            self._broadcast.on_rumour(f"{TOPIC}:{pool}", lambda rumour, payload: self._on_rumour(pool, rumour, payload))
        self._listeners.setdefault(pool, []).append(listener)
        return lambda: self._unlisten(pool, listener)

    def _unlisten(self, pool: str, listener: Listener) -> None:
        listeners = self._listeners.get(pool, [])
        if listener in listeners:
            listeners.remove(listener)
            if not listeners:
                del self._listeners[pool]
                self._broadcast.leave(f"{TOPIC}:{pool}")

    def _on_rumour(self, pool: str, rumour: RumourId, payload: bytes) -> None:
        del rumour
        try:
            number, token, body = _EVENT.decode(payload)
        except UNREADABLE:
            self.counts["malformed"] += 1
            return
        if not (number < TICKETS_MAX and token > 0) or is_beyond(token, self._wall):
            self.counts["malformed"] += 1  # A token that no owner can have would silence all that do.
            return
        self._deliver(pool, number, token, body)

    def _deliver(self, pool: str, number: int, token: int, payload: bytes) -> None:
        """5.9: an event of a former owner is dropped."""
        if token < max(self._tokens.get((pool, number), 0), self.newest_token(pool, number)):
            self.counts["old_event"] += 1
            return
        if len(self._tokens) >= POOLS_MAX:
            self._tokens.clear()
        self._tokens[pool, number] = token
        for listener in tuple(self._listeners.get(pool, ())):
            listener(number, token, payload)

    def _is_credible(self, value: bytes) -> bool:
        """Of an entry that a peer sent: does an honest clock come to its token?"""
        assert _highest is not None
        return not is_beyond(_highest(_decode(value)), self._wall)

    def _on_row(self, key: str, before: bytes | None, now: bytes) -> None:
        number, _, pool = key.partition("/")
        if not number.isascii() or not number.isdigit() or not 0 <= int(number) < TICKETS_MAX or not pool_fits(pool):
            self.counts["malformed"] += 1
            return
        self._note(pool, int(number), _decode(now))
        self.version += 1
        for listener in tuple(self._changed):
            listener(pool, int(number))

    def _note(self, pool: str, number: int, entry: Entry) -> None:
        owners, holders = self.pools.setdefault(pool, {}), self._holders.setdefault(pool, Counter())
        rooms = self._rooms.setdefault(pool, {})
        before = owners.pop(number, None)
        rooms.pop(number, None)
        if before is not None:
            holders[before.agent] -= 1
            if not holders[before.agent]:
                del holders[before.agent]
        if not entry.gone:
            owners[number] = entry
            holders[entry.agent] += 1
            if entry.free > 0:
                rooms[number] = entry
        if not owners:
            del self.pools[pool], self._holders[pool], self._rooms[pool]


def gone_entry(token: int, agent: Agent, n: int) -> Entry:
    return Entry(token, True, 0, agent.life, agent.address, 0, n)


def larger(a: bytes, b: bytes) -> bytes:
    return max(a, b, key=_rank)


def is_gone(value: bytes) -> bool:
    return _decode(value).gone


def is_entry(value: bytes) -> bool:
    """A peer sent it."""
    if len(value) > ENTRY_BYTES_MAX:
        return False
    try:
        entry = _decode(value)
    except UNREADABLE:
        return False
    return entry.free < TICKETS_MAX and 1 <= entry.n <= TICKETS_MAX


def metadata_of(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(pairs))


def _rank(value: bytes) -> tuple[int, bool, int, bytes]:
    entry = _decode(value)
    return entry.token, entry.gone, entry.version, value


def _key(pool: str, number: int) -> str:
    return f"{number}/{pool}"


_highest = highest_of(Entry)
_decode = msgspec.msgpack.Decoder(Entry).decode
_EVENT = msgspec.msgpack.Decoder(tuple[Tickets, Growing, Payload])
