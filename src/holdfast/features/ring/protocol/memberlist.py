"""Who is in the ring, as known here: the list itself, what its members publish, and its way to all others.

Spec: ring 2 (members, gone), 3 (rows), 5.7 (member list); foundation F2, 3 (Membership), 4 (Rows). The list is one table that all members
share by rumour and anti-entropy; whatever changes it, a neighbour's word or a rumour, passes through that table and from there to
``Listener``.

An entry of the table says where a member is and what it publishes, or that its membership is over. Entries join: a tombstone wins over
anything alive, the newer of two living ones wins, and two tombstones agree on the worst that either knows.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta, Struct

from holdfast.bounds import MEMBERS_MAX, Generation, Growing, Instant, Label, Payload, highest_of, is_beyond
from holdfast.errors import ConfigError
from holdfast.features.ring.protocol.ids import CIRCLE, Peer, RingId
from holdfast.host import ROWS_BYTES_MAX, Address, Host, Member, MemberStatus, NodeId, rows_bytes
from holdfast.kit.exchange import Exchange
from holdfast.kit.rows import Row, Rows
from holdfast.kit.versioned import UNREADABLE

TOPIC = "ring:"
KNOWN_MAX = 2 * MEMBERS_MAX  # addresses of ids, gone ones included: an arbitrator group may still name them
ENTRIES_KEPT = MEMBERS_MAX  # decoded entries, as many as a table has keys; every node of a large simulated ring reads the same ones
NAME_BYTES_MAX = 128
REASON_BYTES_MAX = 32


class Listed(Struct, frozen=True, array_like=True, tag=0):
    """A member."""

    node: NodeId
    address: Address
    since: Instant  # wall clock when it became one
    version: Growing  # of the rest; 0: hearsay of a neighbour, without rows
    rows: Annotated[dict[Label, Payload], Meta(max_length=ROWS_BYTES_MAX)]


class Tombstone(Struct, frozen=True, array_like=True, tag=1):
    """A membership that is over, for ever."""

    certain: bool  # it can no longer act
    gen: Generation  # the last fencing generation known of it
    reason: Label  # "failed", "left", "orphan", "restarted"


Entry = Listed | Tombstone
_HIGHEST = {kind: found for kind in (Listed, Tombstone) if (found := highest_of(kind)) is not None}
_DECODER: msgspec.msgpack.Decoder[Listed | Tombstone] = msgspec.msgpack.Decoder(Listed | Tombstone)


class Listener(Protocol):
    """Who is told of changes."""

    def on_listed(self, ring_id: RingId, before: Listed | None, now: Listed) -> None: ...
    def on_gone(self, ring_id: RingId, before: Listed | None, tombstone: Tombstone) -> None: ...


def topic_of(ring: int) -> str:
    """The table's topic: twins never mix, because they have different ones (D20)."""
    return f"{TOPIC}{ring:016x}"


class MemberList:
    """The list of one membership. ``ids`` is sorted, holds this node and those who are condemned but not declared."""

    def __init__(self, exchange: Exchange, host: Host, ring: int, listener: Listener, tombstone_ttl: float) -> None:
        self.ids: list[RingId] = []
        self.entries: dict[RingId, Listed] = {}
        self.gone: dict[RingId, tuple[Tombstone, float]] = {}  # and when we learnt it, own clock
        self.version = 0
        self._host, self._exchange, self._listener, self._ttl = host, exchange, listener, tombstone_ttl
        self.topic = topic_of(ring)
        self._statuses: dict[RingId, MemberStatus] = {}
        self._known: dict[RingId, Peer] = {}
        self._names: dict[str, tuple[RingId, ...]] = {}  # memberships listed under each name, all but always one
        self._members: tuple[Member, ...] = ()  # sorted by id; right but for the names in ``_stale``
        self._stale: dict[str, None] = {}
        self._table: Rows | None = None

    @property
    def table(self) -> Rows:
        assert self._table is not None, "only a member has a list that changes"
        return self._table

    def open(self) -> None:
        """A membership begins: the table is shared with all members of this ring."""
        is_credible = partial(credible, wall=self._host.wall)
        self._table = self._exchange.rows(self.topic, join, gone=gone, valid=valid, credible=is_credible, tombstone_ttl=self._ttl)
        self._table.on_change(self._on_change)

    def close(self) -> None:
        """This membership is over; its list stays as it is."""
        self._table = None
        self._exchange.close(self.topic)

    def __contains__(self, ring_id: RingId) -> bool:
        return ring_id in self.entries

    def __len__(self) -> int:
        return len(self.ids)

    def announce(self, ring_id: RingId, entry: Entry) -> None:
        """Something is new: take it, and tell all. Where peers filled the table, no member hears of one more."""
        try:
            self.table.set(key_of(ring_id), write(entry))
        except ConfigError:
            self.table.counts["table_full"] += 1

    def hear(self, peers: Iterable[Peer]) -> None:
        """A neighbour's word about others. One that is unknown and not gone becomes a member here; no other is told."""
        unknown = [peer for peer in peers if peer.id not in self.entries and peer.id not in self.gone]
        if unknown:
            self.table.learn([Row(key_of(peer.id), write(Listed(peer.node, peer.address, 0.0, 0, {})), 0.0) for peer in unknown])

    def peer(self, ring_id: RingId) -> Peer | None:
        """Where an id is, or was. Who is listed is always known."""
        entry = self.entries.get(ring_id)
        return self._known.get(ring_id) if entry is None else Peer(ring_id, entry.node, entry.address)

    def peers(self, ids: Iterable[RingId]) -> tuple[Peer, ...]:
        return tuple(peer for peer in map(self.peer, ids) if peer is not None)

    def meet(self, peer: Peer) -> None:
        """Remember where an id is, so that it can be written to; it is not listed by that."""
        known = self._known
        former = known.get(peer.id)
        if former == peer:
            return
        if former is None and len(known) >= KNOWN_MAX:
            del known[next(iter(known))]  # The oldest; a listed member is known all the same.
        known[peer.id] = peer
        self._host.meet(peer.node, peer.address)

    def compare_with(self, peer: Peer) -> None:
        """Anti-entropy with this one, now."""
        self._exchange.compare(self.topic, peer.node)

    def forget(self) -> list[RingId]:
        """Drop the tombstones whose time is over; says which."""
        oldest = self._host.now - self._ttl
        over = []
        for ring_id, (_, at) in self.gone.items():  # in the order in which they were learnt
            if at > oldest:
                break
            over.append(ring_id)
        for ring_id in over:
            del self.gone[ring_id]
            self._known.pop(ring_id, None)
        return over

    # What users see of it.

    def member(self, ring_id: RingId) -> Member:
        entry = self.entries[ring_id]
        return Member(entry.node, entry.address, entry.rows, self._statuses.get(ring_id, MemberStatus.ALIVE))

    def mark(self, ring_id: RingId, status: MemberStatus) -> bool:
        """A doubt about a member; it only grows (D3), until ``clear``. True if it is news."""
        if ring_id not in self.entries or self._statuses.get(ring_id, MemberStatus.ALIVE) >= status:
            return False
        self._statuses[ring_id] = status
        self._changed(self.entries[ring_id].node.name)
        return True

    def clear(self, ring_id: RingId) -> bool:
        """No decision about a member stands any more (H380). True if it is news."""
        if self._statuses.pop(ring_id, None) is None:
            return False
        self._changed(self.entries[ring_id].node.name)
        return True

    @property
    def doubted(self) -> tuple[RingId, ...]:
        """Members that are shown as suspected or decided."""
        return tuple(self._statuses)

    def members(self) -> tuple[Member, ...]:
        """Sorted by id. Of two memberships of one process, or of two lives of one name, the one that began last."""
        if self._stale:
            # Only what has changed is looked at: in a large ring all members do this after every crash.
            members = list(self._members)
            for name in self._stale:
                at = bisect_left(members, name, key=_name)
                if at < len(members) and members[at].id.name == name:
                    del members[at]
                newest = self.named(name)
                if newest is not None:
                    members.insert(at, newest)
            self._members = tuple(members)
            self._stale.clear()
        return self._members

    def named(self, name: str) -> Member | None:
        """The membership of this name that began last."""
        ids = self._names.get(name)
        return None if ids is None else self.member(max(ids, key=self._rank))

    def of_name(self, name: str) -> list[tuple[RingId, Listed]]:
        return [(ring_id, self.entries[ring_id]) for ring_id in self._names.get(name, ())]

    def _on_change(self, key: str, before: bytes | None, now: bytes) -> None:
        """The one place where the list changes."""
        ring_id = id_of(key)
        if ring_id is None:
            return
        entry = read(now)
        former = self.entries.get(ring_id)
        if isinstance(entry, Tombstone):
            if ring_id not in self.gone:
                self.gone[ring_id] = entry, self._host.now
                self._drop(ring_id)
                self._listener.on_gone(ring_id, former, entry)
            return
        if former is None:
            insort(self.ids, ring_id)
        elif former.node.name != entry.node.name:
            self._unname(ring_id, former.node.name)
        self._name(ring_id, entry.node.name)
        self.entries[ring_id] = entry
        self.meet(Peer(ring_id, entry.node, entry.address))
        self._listener.on_listed(ring_id, former, entry)

    def _drop(self, ring_id: RingId) -> None:
        entry = self.entries.pop(ring_id, None)
        if entry is not None:
            del self.ids[bisect_left(self.ids, ring_id)]
            self._unname(ring_id, entry.node.name)
        self._statuses.pop(ring_id, None)

    def _name(self, ring_id: RingId, name: str) -> None:
        if ring_id not in (others := self._names.get(name, ())):
            self._names[name] = (*others, ring_id)
        self._changed(name)

    def _unname(self, ring_id: RingId, name: str) -> None:
        others = tuple(each for each in self._names[name] if each != ring_id)
        if others:
            self._names[name] = others
        else:
            del self._names[name]
        self._changed(name)

    def _changed(self, name: str) -> None:
        self._stale[name] = None
        self.version += 1

    def _rank(self, ring_id: RingId) -> tuple[int, float, RingId]:
        entry = self.entries[ring_id]
        return entry.node.boot, entry.since, ring_id


def _name(member: Member) -> str:
    return member.id.name


# Entries, as they are written in the table.


@lru_cache(maxsize=ENTRIES_KEPT)
def read(value: bytes) -> Entry:
    """The entry in a row that ``valid`` has passed."""
    return _DECODER.decode(value)


def write(entry: Entry) -> bytes:
    return msgspec.msgpack.encode(entry)


def valid(value: bytes) -> bool:
    """A peer sent it: is it an entry at all?"""
    try:
        entry = read(value)
    except UNREADABLE:
        return False
    if isinstance(entry, Tombstone):
        return len(entry.reason) <= REASON_BYTES_MAX
    return len(entry.node.name.encode()) <= NAME_BYTES_MAX and rows_bytes(entry.rows) <= ROWS_BYTES_MAX


def credible(value: bytes, wall: Callable[[], float]) -> bool:
    """A peer sent it, and ``valid`` has passed it: does an honest clock come to these numbers?"""
    entry = read(value)
    return not is_beyond(_HIGHEST[type(entry)](entry), wall)


def gone(value: bytes) -> bool:
    return isinstance(read(value), Tombstone)


def join(a: bytes, b: bytes) -> bytes:
    """Any order, any repetition, the same result."""
    one, other = read(a), read(b)
    if isinstance(one, Tombstone) and isinstance(other, Tombstone):
        certain, gen = one.certain or other.certain, max(one.gen, other.gen)
        return write(Tombstone(certain, gen, min(one.reason, other.reason)))
    if isinstance(one, Tombstone):
        return a
    if isinstance(other, Tombstone):
        return b
    return max((one.version, a), (other.version, b))[1]


def key_of(ring_id: RingId) -> str:
    return f"{ring_id.pos:016x}{ring_id.inc:016x}"


def id_of(key: str) -> RingId | None:
    """The id that a row's key names; None if a peer made it up."""
    try:
        ring_id = RingId(int(key[:16], 16), int(key[16:], 16))
    except ValueError:
        return None
    return ring_id if key_of(ring_id) == key and min(ring_id) >= 0 and max(ring_id) < CIRCLE else None
