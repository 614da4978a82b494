"""What members may believe about each other: no member that can act is declared gone, none joins unseen, no doubt lasts.

Spec: ring 7, I2, I10, I15.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import partial
from math import inf

from holdfast.events import Event
from holdfast.features.ring.lab.checkers.ring import LOOK_AGAIN, ROUNDING, Life, RingChecker, RingWatch
from holdfast.features.ring.lab.checkers.time import allowance
from holdfast.features.ring.protocol.facts import BecameMember, Removed, Won
from holdfast.features.ring.protocol.ids import RingId
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

DOUBT_LEASES = 3  # in T_l: two in which a tombstone that was missed is asked for, and one until the next tick


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


class DoubtEnds(RingChecker):
    """I15: a member shows another one as suspected or decided for no longer than T_a + 2 wait + 3 T_l since the doubt began, or since the
    last word of a member that has won against it could still come (``travel`` after the win), whichever is later.

    An own suspicion is decided within T_a. A member that has won tells all others, and again within ``wait`` when one that told it before
    is gone; it declares within ``wait`` or never. Who heard it waits for the tombstone, which two comparisons bring if a rumour missed it.
    """

    name = "I15 doubt-ends"

    def __init__(self, watch: RingWatch, travel: float) -> None:
        """``travel``: the longest way of a rumour, in true seconds, while no process is stopped."""
        super().__init__(watch)
        self._travel = travel
        self._won_at: dict[RingId, float] = {}  # the last win against each, by any member
        self._seen: dict[Life, tuple[RingId, int]] = {}
        self._doubts: dict[Life, dict[RingId, float]] = {}  # whom each shows in doubt, and since when

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Won) and event.entitled:
            self._won_at[event.peer] = world.now

    def changed(self, world: World, life: Life) -> None:
        state = life.id, life.ring.list.version
        before = self._seen.get(life)
        if state == before:
            return
        self._seen[life] = state
        known = self._doubts.get(life, {}) if before is not None and before[0] == life.id else {}
        self._doubts[life] = doubts = {peer: known.get(peer, world.now) for peer in life.ring.list.doubted} if life.member else {}
        for peer in doubts.keys() - known.keys():
            self.watch.at(world.now + self._bound(life), partial(self._judge, life, life.id, peer, world.now))

    def _bound(self, life: Life) -> float:
        config = life.ring.config
        return (config.t_a + 2 * config.wait + DOUBT_LEASES * config.lease) / life.host.rate + ROUNDING

    def _judge(self, life: Life, me: RingId, peer: RingId, since: float, world: World, now: float) -> None:
        if not life.valid(now, me) or self._doubts[life].get(peer) != since:
            return
        told_at = self._won_at.get(peer, -inf)
        told_at += self._travel + sum(other.paused(told_at, now) for other in self.watch.lives.values() if other is not None)
        begun = max(since, told_at)
        due = begun + self._bound(life) + allowance(life, since, now)
        if now >= due:
            other = self.watch.by_id.get(peer)
            self.fail(f"{life} has shown {other} in doubt for {now - since:g} s, and no member has won against it for {now - told_at:g} s")
        again = now + LOOK_AGAIN if life.stopped_at <= now else due
        self.watch.at(max(due, again), partial(self._judge, life, me, peer, since))
