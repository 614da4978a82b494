"""What members may believe about each other: no member that can act is declared gone, none joins unseen.  Spec: ring 7, I2, I10."""

from __future__ import annotations

from bisect import bisect_left
from math import inf

from holdfast.events import Event
from holdfast.features.ring.lab.checkers.ring import Life, RingChecker, RingWatch
from holdfast.features.ring.protocol.facts import BecameMember, Removed
from holdfast.features.ring.protocol.ids import RingId
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class NoFalseDeclaration(RingChecker):
    """I2: a member that is declared gone with certainty is crashed, departed or not valid, and stays so (Cor. 3, Th. 5).

    Whichever way the news came: the own wait, a rumour, the word of the member itself or of its next life.
    """

    name = "I2 no-false-declaration"

    def __init__(self, watch: RingWatch) -> None:
        super().__init__(watch)
        self._declared: dict[RingId, str] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Removed) and event.certain:
            self._declared.setdefault(event.id, str(host.me))
            other = self.watch.by_id.get(event.id)
            if other is not None and other.valid(world.now, event.id):
                valid_for = "ever" if other.until == inf else f"another {other.until - world.now:g} s"
                self.fail(f"{host.me} declared {other} ({event.reason}), which is valid for {valid_for}")

    def changed(self, world: World, life: Life) -> None:
        if life.id in self._declared and life.valid(world.now):
            self.fail(f"{life} is valid, and {self._declared[life.id]} has declared it gone")


class JoinKnown(RingChecker):
    """I10: when C becomes a member, on each side no valid member lies between C and the nearest id in C's view; and if that
    nearest one is valid, it holds C ACTIVE or has condemned or removed it (Th. 6 and 7)."""

    name = "I10 join-known"

    def __init__(self, watch: RingWatch) -> None:
        super().__init__(watch)
        self._new: set[RingId] = set()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, BecameMember) and not event.founded:
            self._new.add(event.id)

    def changed(self, world: World, life: Life) -> None:
        if life.id not in self._new or not life.member:
            return
        self._new.discard(life.id)
        ids = life.ring.list.ids
        at = bisect_left(ids, life.id)
        members = [each for each in self.watch.valid(life.number, world.now) if each is not life and each.id not in self.watch.orphans]
        for nearest, low, high in ((ids[at - 1], ids[at - 1], life.id), (ids[(at + 1) % len(ids)], life.id, ids[(at + 1) % len(ids)])):
            for other in members:
                if _between(low, other.id, high):
                    self.fail(f"{life} became a member, and {other} lies between it and {nearest}, the nearest it knows")
                if other.id == nearest and not _knows(other, life):
                    self.fail(f"{life} became a member, and its neighbour {other} does not hold it ACTIVE")


def _between(low: RingId, each: RingId, high: RingId) -> bool:
    """Strictly, on the circle. Between an id and itself lie all others."""
    return low < each < high if low < high else each > low or each < high


def _knows(member: Life, joiner: Life) -> bool:
    side = member.pairs.get(joiner.id)
    if side is not None and side.entitled:
        return True
    return joiner.id in member.ring.condemned or joiner.id in member.ring.list.gone
