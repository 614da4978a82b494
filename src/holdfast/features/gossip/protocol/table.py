"""The list of one member, tombstones included: one entry per name, the newest life of it.  Spec: gossip 2, D1, D19, D22.

Entries are immutable and may be shared: a ``Base`` is what many tables of one laboratory began with, and a table
keeps only where it differs from it. An agent begins with an empty base. ``put`` and ``drop`` are the two places where
a table changes; who calls them, and when, is ``merge.py``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from random import Random
from typing import NamedTuple, TypeVar

from msgspec import Struct

from holdfast.bounds import MEMBERS_MAX
from holdfast.features.gossip.protocol.messages import BUCKETS, Rumour, Status
from holdfast.host import Address, Member, MemberStatus, NodeId

HASH_BYTES = 8
DRAWS_MAX = 64  # tries to hit a listed member before all of them are looked at: at least every other place is one, nearly always
SHARED_MAX = 1024  # different sets of rows that are kept once
PLACES_MAX = 128  # hosts and ports that are kept once: of many members on few machines, or of many machines at few ports
NO_ROWS: Mapping[str, bytes] = {}  # one for all; a dict, because clients are told of such members, and msgspec encodes no proxy
_STATUSES = (MemberStatus.ALIVE, MemberStatus.SUSPECTED, MemberStatus.DECIDED, MemberStatus.DECIDED)

V = TypeVar("V", str, int)


class Entry(Struct, frozen=True, gc=False):
    """What is held of one life. ``member`` is how users see it; it is in the list only while ``listed``."""

    member: Member
    inc: int
    status: Status
    rows_at: int  # the inc at which the rows that are held were published; 0: none ever were

    @property
    def id(self) -> NodeId:
        return self.member.id

    @property
    def address(self) -> Address:
        return self.member.address

    @property
    def rows(self) -> Mapping[str, bytes]:
        return self.member.rows

    @property
    def listed(self) -> bool:
        return self.status <= Status.SUSPECT

    @property
    def rank(self) -> tuple[int, Status]:
        """Of two words about one life the larger wins (gossip D2)."""
        return self.inc, self.status


class Tombstone(NamedTuple):
    """When a member died: as far as the group knows, and since when it is missing here. Own clock."""

    since: float
    missing_since: float


def entry(
    life: NodeId, address: Address, inc: int = 0, status: Status = Status.ALIVE, rows: Mapping[str, bytes] = NO_ROWS, rows_at: int = 0
) -> Entry:
    shared = _rows_of(tuple(rows.items())) if rows else NO_ROWS
    return Entry(Member(life, address, shared, _STATUSES[status]), inc, status, rows_at)


def of_rumour(rumour: Rumour) -> Entry:
    """Of a life that was not known; rows that did not come along are fetched later (gossip D18)."""
    rows, rows_at = (NO_ROWS, 0) if rumour.rows is None else (rumour.rows, rumour.rows_at)
    address = Address(_same(rumour.address.host), _same(rumour.address.port))
    return entry(rumour.id, address, rumour.inc, rumour.status, rows, rows_at)


# Each datagram brings new objects for what is said again and again. Kept once, it is 200 bytes less per member (gossip D22).


@lru_cache(maxsize=PLACES_MAX)
def _same(value: V) -> V:
    return value


@lru_cache(maxsize=SHARED_MAX)
def _rows_of(items: tuple[tuple[str, bytes], ...]) -> Mapping[str, bytes]:
    return dict(items)


class Base:
    """Entries that many tables begin with. Never changed."""

    __slots__ = ("entries", "hashes", "listed", "members", "names")

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        found = sorted(entries, key=lambda each: each.id)
        self.entries: dict[str, Entry] = {each.id.name: each for each in found}
        self.names: tuple[str, ...] = tuple(self.entries)
        self.members: tuple[Member, ...] = tuple(each.member for each in found if each.listed)
        self.listed = len(self.members)
        hashes = [0] * BUCKETS
        for each in found:
            hashes[bucket_of(each.id)] ^= hash_of(each)
        self.hashes: tuple[int, ...] = tuple(hashes)


EMPTY = Base()


class Table:
    """The list. ``n`` counts listed members; ``size`` counts tombstones, too."""

    def __init__(self, base: Base = EMPTY, *, members_max: int = MEMBERS_MAX) -> None:
        assert len(base.entries) <= members_max
        self.base = base
        self.own: dict[str, Entry | None] = {}  # where this table differs from its base; None: forgotten here
        self.added: list[str] = []  # names that the base does not have, in the order in which they came; see ``_stale``
        self._stale: dict[str, None] = {}  # of these, who is not listed any more
        self.tombstones: dict[str, Tombstone] = {}  # DEAD and LEFT, those that were decided longest ago first, nearly
        self.members_max = members_max
        self.n = base.listed
        self.size = len(base.entries)
        self.version = 0
        self.hashes = list(base.hashes)
        self._members = base.members  # right but for the names in ``_changed``
        self._changed: dict[str, None] = {}

    def __len__(self) -> int:
        return self.size

    def get(self, name: str) -> Entry | None:
        own = self.own
        return own[name] if name in own else self.base.entries.get(name)

    def of(self, life: NodeId) -> Entry | None:
        """The entry of this very life; None: another life has its name, or none."""
        found = self.get(life.name)
        return found if found is not None and found.id == life else None

    def lists(self, life: NodeId) -> bool:
        found = self.get(life.name)
        return found is not None and found.status <= Status.SUSPECT and found.id == life

    def entries(self) -> Iterator[Entry]:
        """All, tombstones included; the order is the same in every run."""
        own = self.own
        for name, each in self.base.entries.items():
            if name not in own:
                yield each
        yield from (each for each in own.values() if each is not None)

    @property
    def root(self) -> int:
        root = 0
        for each in self.hashes:
            root ^= each
        return root

    # Changes.

    def put(self, new: Entry, tombstone: Tombstone | None = None) -> None:
        """Hold this of its name from now on. A life that is DEAD or LEFT has a tombstone."""
        assert (tombstone is None) == new.listed
        name = new.id.name
        former = self.get(name)
        self.size += former is None
        self._count(name, former is not None and former.listed, new.listed)
        self._hash(former, new)
        self.own[name] = new
        self.tombstones.pop(name, None)
        if tombstone is not None:
            self.tombstones[name] = tombstone
        self._note(name, former, new)

    def drop(self, name: str) -> None:
        """Forget it."""
        former = self.get(name)
        assert former is not None
        self.size -= 1
        self._count(name, former.listed, False)
        self._hash(former, None)
        if name in self.base.entries:
            self.own[name] = None
        else:
            del self.own[name]
        self.tombstones.pop(name, None)
        self._note(name, former, None)

    @property
    def is_full(self) -> bool:
        return self.size >= self.members_max

    # What is asked of it.

    def members(self) -> tuple[Member, ...]:
        """The listed, sorted by id. One change does not cost a look at all of them."""
        if self._changed:
            members = list(self._members)
            for name in self._changed:
                at = bisect_left(members, name, key=_name)
                if at < len(members) and members[at].id.name == name:
                    del members[at]
                found = self.get(name)
                if found is not None and found.listed:
                    members.insert(at, found.member)
            self._members = tuple(members)
            self._changed.clear()
        return self._members

    def listed(self) -> Iterator[Entry]:
        return (each for each in self.entries() if each.listed)

    def draw(self, random: Random, count: int, accept: Callable[[Entry], bool]) -> list[Entry]:
        """So many different listed members that ``accept`` takes, or all of them if there are fewer; each as likely as any other."""
        found: dict[str, Entry] = {}
        places = len(self.base.names) + len(self.added)
        if count * 2 < self.n:
            for _ in range(DRAWS_MAX + count):
                if len(found) == count:
                    break
                each = self.get(self.place(random.randrange(places)))
                if each is not None and each.listed and each.id.name not in found and accept(each):
                    found[each.id.name] = each
            else:
                found.clear()
        if len(found) == count:
            return list(found.values())
        every = [each for each in self.listed() if accept(each)]
        return random.sample(every, min(count, len(every)))

    @property
    def places(self) -> int:
        """Where names stand, also of some that are not listed any more."""
        return len(self.base.names) + len(self.added)

    def place(self, at: int) -> str:
        names = self.base.names
        return names[at] if at < len(names) else self.added[at - len(names)]

    # Keeping count.

    def _count(self, name: str, was: bool, is_now: bool) -> None:
        if was == is_now:
            return
        self.n += is_now - was
        if name in self.base.entries:
            return
        if not is_now:
            self._stale[name] = None
            if 2 * len(self._stale) > len(self.added):
                self.added = [each for each in self.added if each not in self._stale]
                self._stale.clear()
        elif name in self._stale:
            del self._stale[name]
        else:
            self.added.append(name)

    def _hash(self, former: Entry | None, new: Entry | None) -> None:
        for each in (former, new):
            if each is not None:
                self.hashes[bucket_of(each.id)] ^= hash_of(each)

    def _note(self, name: str, former: Entry | None, new: Entry | None) -> None:
        """The version grows with what users see: the list and the rows in it."""
        before = former.member if former is not None and former.listed else None
        after = new.member if new is not None and new.listed else None
        if before != after:
            self.version += 1
            self._changed[name] = None


def bucket_of(life: NodeId) -> int:
    """The bucket of an entry, by the name alone: a new life of it stays in its bucket."""
    return blake2b(life.name.encode(), digest_size=1).digest()[0] % BUCKETS


def hash_of(each: Entry) -> int:
    """The hash of what two tables have to agree on. A suspicion alone is no difference (gossip D19)."""
    text = f"{each.id}/{each.inc}/{each.status >= Status.DEAD}/{each.rows_at}"
    return int.from_bytes(blake2b(text.encode(), digest_size=HASH_BYTES).digest(), "big")


def _name(member: Member) -> str:
    return member.id.name
