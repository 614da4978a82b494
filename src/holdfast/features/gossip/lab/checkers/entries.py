"""What a member may hold of another one: it goes forward, it is the owner's word, goodbye is for good.  Spec: gossip 7 (G1, G2, G5, G7)."""

from __future__ import annotations

from math import inf

from holdfast.features.gossip.lab.members import Change
from holdfast.features.gossip.lab.watch import GossipChecker, GossipWatch, Life
from holdfast.features.gossip.protocol.messages import Status
from holdfast.features.gossip.protocol.table import Entry
from holdfast.host import NodeId
from holdfast.lab.calm import Calm
from holdfast.lab.links import Exponential, Fixed, Link, LogNormal, Uniform
from holdfast.lab.world import World


def rank(entry: Entry) -> tuple[int, int, Status]:
    return (entry.id.boot, *entry.rank)


class Monotone(GossipChecker):
    """G1: what a member holds of a name, as (boot, inc, status), never goes back until the tombstone is reaped."""

    name = "G1 monotone"

    def changed(self, world: World, life: Life, change: Change) -> None:
        former, new = change.former, change.new
        if former is None:
            return
        if new is None:
            if former.listed:
                self.fail(f"{life} forgot {former.id}, which it listed")
        elif rank(new) < rank(former):
            self.fail(f"{life} held {former.id} at {_of(former)} and holds {new.id} at {_of(new)} now")


class Ownership(GossipChecker):
    """G2: no member holds an inc of another one above its own, or rows that it did not publish at that inc."""

    name = "G2 ownership"

    def __init__(self, watch: GossipWatch) -> None:
        super().__init__(watch)
        self._begun: set[NodeId] = set()

    def began(self, world: World, life: Life) -> None:
        """A process that takes the boot of its former life would not know what it said of itself."""
        for host, other in self.watch.lives.items():
            entry = None if other is None or other is life or host.dead else other.node.table.of(life.me)
            if entry is not None and life.me in self._begun:
                self._check(world, other, entry)  # type: ignore[arg-type]
        self._begun.add(life.me)

    def changed(self, world: World, life: Life, change: Change) -> None:
        new = change.new
        if new is None:
            return
        if new.id == life.me:
            return
        if new.id.name == life.me.name:
            self.fail(f"{life} put {new.id} in the place of its own entry")
        self._check(world, life, new)

    def _check(self, world: World, life: Life, entry: Entry) -> None:
        owner = self.watch.of(entry)
        if owner is None:
            self.fail(f"{life} holds {entry.id}, and there never was such a life")
            return
        if entry.inc > owner.inc:
            self.fail(f"{life} holds {entry.id} at inc {entry.inc}, and it never said more than {owner.inc}")
        if not entry.rows_at:
            if entry.rows:
                self.fail(f"{life} holds rows of {entry.id} that belong to no inc")
        elif owner.published.get(entry.rows_at) != dict(entry.rows):
            self.fail(f"{life} holds rows of {entry.id} from inc {entry.rows_at} that it did not publish then")


class CalmAccuracy(GossipChecker):
    """G5: with no loss, one-way delays below a quarter of the probe timeout and no pause, no living member is ever suspected."""

    name = "G5 calm-accuracy"

    def __init__(self, watch: GossipWatch, calm: Calm, link: Link) -> None:
        super().__init__(watch)
        self._calm = calm
        self._delay = inf if link.loss or link.tail else longest(link)

    def changed(self, world: World, life: Life, change: Change) -> None:
        new = change.new
        if new is None or new.status is not Status.SUSPECT or self._delay >= life.node.config.timeout / 4:
            return
        if change.former is not None and change.former.rank == new.rank:
            return
        owner = self.watch.of(new)
        if owner is not None and owner.member and self._calm.since() == -inf:
            self.fail(f"{life} suspects {new.id}, and nothing has gone wrong")


class LeftStaysLeft(GossipChecker):
    """G7: a life that said goodbye is never listed again by a member that heard so."""

    name = "G7 left-stays-left"

    def changed(self, world: World, life: Life, change: Change) -> None:
        new = change.new
        if new is None or new.id == life.me:
            return
        owner = self.watch.of(new)
        if owner is None or not owner.left:
            return
        gone: set[NodeId] = life.kept.setdefault(self.name, set())
        if new.status is Status.LEFT:
            gone.add(new.id)
        elif new.listed and new.id in gone:
            self.fail(f"{life} lists {new.id}, which has left as it knew")


def longest(link: Link) -> float:
    """The longest delay of a link."""
    delay = link.delay
    if isinstance(delay, Fixed):
        return delay.seconds
    if isinstance(delay, Uniform):
        return delay.high
    assert isinstance(delay, Exponential | LogNormal)
    return inf


def _of(entry: Entry) -> str:
    return f"{entry.inc} {entry.status.name}"
