"""News on its way: what rides on probes, and on datagrams of its own while there is any.  Spec: gossip 5.6; SWIM 4.1, Lifeguard (buddy).

One rumour per member, the newest; each is sent ceil(lambda log10(n+1)) times. Those sent least go first, of these the
newest.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.messages import INLINE_BYTES_MAX, RUMOURS_MAX, Gossip, Rumour, Status
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import Member, NodeId, Timer, rows_bytes

# Of the 1200 of a datagram: seal, envelope, sequence number and hint take less than 200, even with the longest name.
RUMOUR_BYTES = 1000
MISFITS_MAX = 4  # rumours that do not fit any more, after which the datagram counts as full

_encode = msgspec.msgpack.Encoder().encode


class Item:
    """One rumour in the queue."""

    __slots__ = ("rumour", "sends", "size")

    def __init__(self, rumour: Rumour) -> None:
        self.rumour = rumour
        self.sends = 0
        self.size = size_of(rumour)


class Rumours:
    """The queue. At most one per name in the table, so it is bounded as the table is."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._items: dict[str, Item] = {}
        self._levels: list[dict[str, Item]] = [{}]  # by how often each was sent; the newest last
        self._limit, self._limit_of = 0, 0
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> Mapping[str, Item]:
        return self._items

    @property
    def limit(self) -> int:
        """How often each is sent in a group of the present size."""
        n = self._core.n
        if n != self._limit_of:
            self._limit, self._limit_of = self._core.config.sends(n), n
        return self._limit

    def put(self, rumour: Rumour) -> None:
        """Tell a rumour to others from now on; what was said of this member before is not said any more."""
        name = rumour.id.name
        self.discard(name)
        if name not in self._items and len(self._items) >= self._core.table.members_max:
            self._core.counts["rumours_full"] += 1
            return
        item = self._items[name] = Item(rumour)
        self._levels[0][name] = item
        self.wake()

    def discard(self, name: str) -> None:
        item = self._items.pop(name, None)
        if item is not None:
            del self._levels[item.sends][name]

    def clear(self) -> None:
        self._items.clear()
        self._levels = [{}]

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def pick(self, to: NodeId, *, first: tuple[Rumour, ...] = (), room: int = RUMOUR_BYTES) -> tuple[Rumour, ...]:
        """Pick what a datagram to this life carries. ``first`` goes before all else and is not counted."""
        core = self._core
        found = core.table.get(to.name)
        if found is not None and Status.SUSPECT <= found.status <= Status.DEAD and found.id == to:
            first = (*first, self.accusation(found))  # The buddy rule: it hears at once that it has to refute.
        if not self._items and not first:
            return ()
        room -= sum(size_of(rumour) for rumour in first)
        taken = self._take(to.name, room, RUMOURS_MAX - len(first), {rumour.id.name for rumour in first})
        for item in taken:
            self._count(item)
        return (*first, *(item.rumour for item in taken))

    def round(self, *, soon: bool = False) -> bool:
        """One round of gossip: to a few members drawn at random. ``soon``: in another callback, where a peer could cause many. False if
        there is no member to tell anything: of two, each has nothing but the word that the other one lives."""
        core = self._core
        if not self._items or core.n < 2:
            return False
        drawn = core.table.draw(core.host.random, core.config.gossip_fanout, core.is_other)
        told = len(drawn) < core.n - 1
        for each in drawn:
            rumours = self.pick(each.id)
            if rumours:
                told = True
                (core.put if soon else core.send)(each.member, Gossip(rumours))
        return told

    def tell(self, to: Member, rumour: Rumour) -> None:
        """Tell this rumour directly and at once; not counted."""
        self._core.send(to, Gossip((rumour,)))

    def wake(self) -> None:
        """Begin rounds again: there is something to tell, or a member to tell it to."""
        core = self._core
        if self._timer is None and self._items and core.config.gossip_fanout and core.active and core.n > 1:
            self._timer = core.host.after(core.config.interval, self._on_interval)

    def accusation(self, each: Entry) -> Rumour:
        """The accusation of a member, to be told to that member."""
        return rumour_of(each, accusers=self._core.accusers.get(each.id.name, ()))

    def _take(self, to: str, room: int, most: int, without: set[str]) -> list[Item]:
        taken: list[Item] = []
        misfits = 0
        for level in self._levels[: self.limit]:
            for name in reversed(level):
                item = level[name]
                if name in without or (name == to and item.rumour.status is Status.ALIVE):
                    continue  # It knows that it lives.
                if item.size > room:
                    misfits += 1
                elif len(taken) < most:
                    taken.append(item)
                    room -= item.size
                if misfits >= MISFITS_MAX or len(taken) >= most:
                    return taken
        return taken

    def _count(self, item: Item) -> None:
        """Count that a rumour was sent once more; at the limit it is dropped."""
        name = item.rumour.id.name
        del self._levels[item.sends][name]
        item.sends += 1
        if item.sends >= self.limit:
            del self._items[name]
            return
        while len(self._levels) <= item.sends:
            self._levels.append({})
        self._levels[item.sends][name] = item

    def _on_interval(self) -> None:
        self._timer = None
        for level in self._levels[self.limit :]:  # The group has become smaller.
            for name in level:
                del self._items[name]
            level.clear()
        if self.round():
            self.wake()


def rumour_of(each: Entry, *, accusers: tuple[str, ...] = (), rows_at: int = 0, ago: int = 0) -> Rumour:
    """An entry as it travels; ``rows_at``: of newer rows that were heard of and are not here yet."""
    inline = each.status is Status.ALIVE and rows_at <= each.rows_at and each.rows_at > 0 and rows_bytes(each.rows) <= INLINE_BYTES_MAX
    rows = dict(each.rows) if inline else None
    return Rumour(each.id, each.address, each.inc, each.status, accusers, max(rows_at, each.rows_at), rows, ago)


def size_of(rumour: Rumour) -> int:
    return len(_encode(rumour))
