"""Fencing generations, and what was told to clients.  Spec: ring 5.7 (owns, token), 9; foundation F14, F16.

Every removal of a member raises the generation of those who may inherit its keys. A token is given out only when all who
might inherit from this member know its generation: the next owner has a larger one. A new ring begins with the wall clock's
microseconds, and above everything that its founder, or a member that it asked, ever knew (H26).
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

import msgspec

from holdfast.features.ring.protocol.ids import RingId, owner_of
from holdfast.features.ring.protocol.messages import Gen
from holdfast.features.ring.protocol.pair import Pair
from holdfast.host import NodeId, Ownership
from holdfast.kit.versioned import UNREADABLE

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

ORPHAN_JUMP = 1 << 20  # the last generation of an orphan is unknown; more removals than this in one life are not seen
GEN_MAX = (1 << 53) - 2  # F16: below 2^53, with one to add; a peer cannot push us beyond
MICROSECONDS = 1_000_000  # of wall-clock time: below 2^53 until the year 2255, and an orphan's jump is one second (H26)
JUMPED = "gen"  # on disk: the highest generation that this process ever knew
PUBLISHED_MAX = 4096  # keys with a running deadline that are kept one by one; beyond, one deadline stands for all


class Fencing:
    """The generation of one member."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.gen = 0
        self.highest = _read(ring.storage.load().get(JUMPED))  # of all that this process ever knew, in whatever ring
        self.gens: dict[RingId, int] = {}  # last known of each member that we were a pair with
        self._published: dict[int, float] = {}  # key position -> deadline
        self._published_all = float("-inf")  # deadline that covers every key

    def begin(self, gen: int) -> None:
        """A membership begins with this generation."""
        self.gen = gen
        self.note(gen)

    def first(self) -> int:
        """What a ring begins with that is founded now (F16): tokens survive a re-founding, because time has grown beyond all of them,
        and where jumps were faster, because a member remembers."""
        return min(GEN_MAX, max(int(self._ring.raw.wall() * MICROSECONDS), self.highest + 1))

    def note(self, gen: int) -> None:
        """A member had this generation."""
        if gen > self.highest:
            self.highest = min(gen, GEN_MAX)

    def raise_above(self, dead: RingId, known: int, *, certain: bool) -> None:
        """A member is gone: whatever tokens it gave out are smaller than ours from now on."""
        ring = self._ring
        # A member that removes another for certain was in a pair with it, or was told by itself: the tombstone brings what it gave out
        # last.
        jump = 1 if certain or not ring.rules.jump else ORPHAN_JUMP
        self.gen = min(GEN_MAX, max(self.gen, known, self.gens.pop(dead, 0)) + jump)
        self.note(self.gen)
        if not certain:  # Rare, and the only way to outrun the wall clock: the next life shall know of it.
            ring.storage.save(JUMPED, msgspec.msgpack.encode(self.highest), _nothing)
        for pair in ring.pairs.values():
            if pair.entitled:
                ring.raw.send(pair.peer.node, Gen(*ring.head(pair.peer.id), pair.epoch, self.gen, pair.pgen, reply=False))

    def remember(self, pair: Pair) -> None:
        """An ACTIVE pair ends, perhaps because its peer did: it gave out nothing that we do not know of, and no token since."""
        if pair.entitled:
            self.gens[pair.peer.id] = max(pair.pgen, self.gens.get(pair.peer.id, 0))

    def forget(self, peer: RingId) -> None:
        """A pair was dissolved: from now on the peer gives out tokens without telling us."""
        self.gens.pop(peer, None)

    def on_gen(self, source: NodeId, message: Gen) -> None:
        ring = self._ring
        pair = ring.pairs.get(message.source)
        if pair is None or pair.epoch != message.epoch or not 0 <= message.gen <= GEN_MAX:
            return
        pair.pgen = max(pair.pgen, message.gen)
        self.note(pair.pgen)
        pair.pseen = max(pair.pseen, message.seen)
        if not message.reply:
            ring.raw.send(source, Gen(*ring.head(message.source), pair.epoch, self.gen, pair.pgen, reply=True))

    def token(self) -> int | None:
        """The generation, if all that monitor us know it; suspected ones included."""
        ring = self._ring
        if not ring.valid or any(pair.pseen < self.gen for pair in ring.pairs.values() if pair.entitled):
            return None
        return self.gen

    def owns(self, pos: int) -> Ownership | None:
        """Told to a client, and therefore binding: until then no other client will be told so (F14)."""
        ring = self._ring
        if not ring.claims(pos) or self._promised_away(pos):
            return None
        token = self.token()
        if token is None:
            return None
        until = min(ring.safe_until, ring.raw.now + ring.config.publish_length)
        self._publish(pos, until)
        return Ownership(token, until)

    @property
    def published_until(self) -> float:
        """Nothing that was told to a client lasts longer."""
        return max(self._published_all, *self._published.values(), float("-inf"))

    def withdrawn(self) -> None:
        """The clients have stopped: nothing that was told to them is used any more."""
        self._published.clear()
        self._published_all = float("-inf")

    def handed_over_at(self, candidate: RingId) -> float:
        """From then on no client acts for one of the keys that the candidate will own, as far as any was told."""
        ids = self._with(candidate)
        return max(
            (until for pos, until in self._published.items() if until > self._published_all and owner_of(ids, pos) == candidate),
            default=self._published_all,
        )

    def _publish(self, pos: int, until: float) -> None:
        now = self._ring.raw.now
        if pos not in self._published and len(self._published) >= PUBLISHED_MAX:
            self._published = {each: end for each, end in self._published.items() if end > now}
            if len(self._published) >= PUBLISHED_MAX:
                self._published_all = max(self._published_all, until)
                return
        self._published[pos] = max(until, self._published.get(pos, until))

    def _promised_away(self, pos: int) -> bool:
        """A candidate that holds our lock will own it in a moment: telling a client now would only make it wait."""
        lock = self._ring.door.lock
        return lock is not None and owner_of(self._with(lock.candidate), pos) == lock.candidate

    def _with(self, candidate: RingId) -> list[RingId]:
        """The ids as they will be."""
        ids = list(self._ring.list.ids)
        if candidate not in self._ring.list:
            insort(ids, candidate)
        return ids


def _read(value: bytes | None) -> int:
    if value is None:
        return 0
    try:
        return max(0, min(GEN_MAX, msgspec.msgpack.decode(value, type=int)))
    except UNREADABLE:
        return 0  # As if this disk had never seen a jump; others may remember it.


def _nothing() -> None:
    """No caller waits for this row."""
