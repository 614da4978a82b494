"""Who owns a key: at most one member at a time, with a token that grows, as it was told to clients.  Spec: ring 7, I8, I13; F14, F16.

A member that claims anything claims an arc around its position, so that I8 is judged for every key at once: two arcs either
share a key or they do not. Tokens are followed for sampled keys, random ones and those within 3 of a position where members sit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf
from random import Random
from typing import NamedTuple

from holdfast.events import Event
from holdfast.features.ring.lab.checkers.ring import ROUNDING, Life, RingChecker, RingWatch
from holdfast.features.ring.protocol.facts import BecameMember, Removed
from holdfast.features.ring.protocol.ids import CIRCLE, RingId
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

AROUND = 3  # positions on each side of a member
RANDOM_KEYS = 5


class Arc(NamedTuple):
    """``length`` keys from ``start`` on, clockwise."""

    start: int
    length: int

    def __contains__(self, key: object) -> bool:
        return isinstance(key, int) and (key - self.start) % CIRCLE < self.length


def arcs(ids: Sequence[RingId], me: RingId) -> tuple[Arc, ...]:
    """The keys that ``me`` owns according to a sorted list: up to half way to the next position on each side (5.7).

    With the predecessor the tie, so d // 2 keys to the right and (d - 1) // 2 to the left. Of several ids at one position the largest
    is the predecessor of what lies right of it, and owns the position; the smallest is the successor of what lies left.
    """
    first, last = bisect_left(ids, RingId(me.pos, 0)), bisect_left(ids, RingId(me.pos + 1, 0)) - 1
    left = (me.pos - ids[first - 1].pos) % CIRCLE or CIRCLE
    right = (ids[(last + 1) % len(ids)].pos - me.pos) % CIRCLE or CIRCLE
    before, after = (left - 1) // 2, right // 2
    found = []
    if ids[first] == me and before:
        found.append(Arc((me.pos - before) % CIRCLE, before))
    if ids[last] == me:
        found.append(Arc(me.pos, after + 1))
    return tuple(found)


def _overlapping(some: tuple[Arc, ...], others: tuple[Arc, ...]) -> bool:
    """Of two arcs that share a key one contains the start of the other. Asked for every two members at every change, hence so plain."""
    for start, length in some:
        for other, its_length in others:
            if (other - start) % CIRCLE < length or (start - other) % CIRCLE < its_length:
                return True
    return False


class OneOwner(RingChecker):
    """I8: at every instant at most one member, stopped ones included, claims a key (section II, Th. 6 and 7).

    Claims change only with events of the claimant, and time only ends them. Orphans are left out from their removal on (G3).
    """

    name = "I8 one-owner"

    def __init__(self, watch: RingWatch) -> None:
        super().__init__(watch)
        self._claims: dict[Life, tuple[Arc, ...]] = {}

    def changed(self, world: World, life: Life) -> None:
        claims = claimed(life)
        if not claims:
            self._claims.pop(life, None)
            return
        self._claims[life] = claims
        now, orphans = world.now, self.watch.orphans
        if not life.valid(now) or life.id in orphans:
            return
        for other, theirs in self._claims.items():
            if other is life or other.number != life.number or other.id in orphans or not other.valid(now):
                continue
            if _overlapping(claims, theirs):
                self.fail(f"{life} and {other} own the same keys")


def claimed(life: Life) -> tuple[Arc, ...]:
    """What a life would act for while it is valid."""
    return arcs(life.ring.list.ids, life.id) if life.member and life.ring.settled else ()


class TokenOrder(RingChecker):
    """I13: tokens of successive distinct owners of a key strictly increase (G9); those of a ring that was founded after another had
    emptied are larger than all of that one (F16)."""

    name = "I13 token-order"

    def __init__(self, watch: RingWatch, keys: Iterable[int]) -> None:
        super().__init__(watch)
        self._keys = sorted(keys)
        self._last: dict[int, dict[int, tuple[RingId, int]]] = defaultdict(dict)  # ring -> key -> owner and token
        self._highest: dict[int, int] = {}  # ring -> token
        self._founded: dict[int, int] = {}  # ring -> no token of it is below
        self._held: dict[Life, tuple[object, ...]] = {}

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, BecameMember) and event.founded and event.ring not in self._founded:
            over = [token for ring, token in self._highest.items() if not any(self.watch.valid(ring, world.now))]
            self._founded[event.ring] = max(over, default=0)

    def changed(self, world: World, life: Life) -> None:
        token = life.ring.fencing.token() if life.valid(world.now) and life.id not in self.watch.orphans else None
        claims = claimed(life) if token is not None else ()
        if token is None or not claims:
            self._held.pop(life, None)
            return
        if self._held.get(life) == (life.id, token, claims):
            return
        self._held[life] = life.id, token, claims
        self._highest[life.number] = max(token, self._highest.get(life.number, 0))
        if token <= self._founded.get(life.number, 0):
            self.fail(f"{life} has token {token} in a new ring; in one that is over, {self._founded[life.number]} was given out")
        last = self._last[life.number]
        for key in self._within(claims):
            owner, given = last.get(key, (life.id, 0))
            if token < given or (token == given and owner != life.id):
                self.fail(f"{life} owns {key:016x} with token {token}, after {owner} had {given}")
            last[key] = life.id, token

    def _within(self, claims: tuple[Arc, ...]) -> Iterable[int]:
        for arc in claims:
            end = arc.start + arc.length
            yield from self._keys[bisect_left(self._keys, arc.start) : bisect_left(self._keys, end)]
            yield from self._keys[: bisect_right(self._keys, end - CIRCLE - 1)]


class Published(NamedTuple):
    """What one member told a client."""

    owner: RingId
    number: int
    token: int
    until: float  # true time


class OnePublisher(RingChecker):
    """F14: what was told to clients about one key never overlaps in true time and its tokens grow, whatever became of the teller; and
    no member is declared gone with certainty while something it told a client is running."""

    name = "F14 one-publisher"

    def __init__(self, watch: RingWatch) -> None:
        super().__init__(watch)
        self._told: dict[int, dict[RingId, Published]] = defaultdict(dict)  # key -> the last that each owner said
        self._until: dict[RingId, float] = {}
        self.granted = 0

    def ask(self, world: World, life: Life, key: int) -> None:
        """A client asks; call it as a step of that process."""
        granted = life.ring.owns(key)
        if granted is None:
            return
        self.granted += 1
        me, orphans, now = life.ring.id, self.watch.orphans, world.now
        new = Published(me, life.ring.ring, granted.token, life.true(granted.until))
        for old in self._told[key].values():
            if old.owner == me or old.number != new.number or old.owner in orphans or me in orphans:
                continue
            if now < old.until - ROUNDING:
                self.fail(f"{life} told a client that it owns {key:016x}, as {old.owner} did for another {old.until - now:g} s")
            if new.token <= old.token:
                self.fail(f"{life} told a client token {new.token} for {key:016x}, after {old.owner} had told {old.token}")
        self._told[key][me] = new
        self._until[me] = max(new.until, self._until.get(me, -inf))

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, Removed) and event.certain and self._until.get(event.id, -inf) > world.now + ROUNDING:
            left = self._until[event.id] - world.now
            self.fail(f"{host.me} declared {event.id} ({event.reason}), and a client may act under it for another {left:g} s")


def sampled_keys(random: Random, positions: Iterable[int]) -> tuple[int, ...]:
    """Random keys, and all within 3 of a position."""
    near = {(position + step) % CIRCLE for position in positions for step in range(-AROUND, AROUND + 1)}
    return (*sorted(near), *(random.randrange(CIRCLE) for _ in range(RANDOM_KEYS)))
