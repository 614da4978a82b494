"""The door: what a member does for a process that wants to join.  Spec: ring 5.6 (member side), D8, D9, D12, D27; paper 000, V.

One candidate at a time. While the lock is held, this member admits no other, so that what it told the candidate about its
neighbourhood stays true until the candidate is in, has given up, or its time is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.features.ring.protocol.ids import Peer, RingId, owner_of
from holdfast.features.ring.protocol.messages import INVITED, Answer, Discover, Discovered, Lock, Locked, Unlock
from holdfast.features.ring.protocol.pair import Pair
from holdfast.host import NodeId

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode


NOBODY = RingId(0, 0)  # 0 is the inc of no member
SENT_AWAY_MAX = 64  # candidates that are told when this door is open; others come again by themselves
SENT_AWAY_LEASES = 8  # in T_l: a candidate that still waits then has asked again, here or elsewhere
GIVEN_UP_MAX = 1024  # candidates that gave up; each attempt has a new id, so that only the latest can still have a Lock on its way


class Held(NamedTuple):
    """The join lock."""

    candidate: RingId
    expires_at: float


class Door:
    """The join lock of one member, and its answers to candidates."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.lock: Held | None = None
        self._sent_away: dict[NodeId, float] = {}  # who found no ring or no open door here, and when it last did; the oldest first (H160)
        self._given_up: dict[RingId, None] = {}  # whose Lock may come after their Unlock; the oldest first

    def reset(self) -> None:
        """A membership has ended, or one begins."""
        self.lock = None
        self._given_up.clear()

    def serves(self, pair: Pair) -> bool:
        """This pair is that of a candidate which is not in yet."""
        return self.lock is not None and self.lock.candidate == pair.peer.id and not pair.obliged and not pair.opener

    def admits(self, candidate: RingId) -> bool:
        return self.lock is not None and self.lock.candidate == candidate

    def renew(self, candidate: RingId) -> None:
        self.lock = Held(candidate, self._ring.raw.now + self._ring.config.lock_ttl)

    def release(self, candidate: RingId) -> None:
        if self.lock is not None and self.lock.candidate == candidate:
            self.lock = None

    def expire(self) -> None:
        if not self._locked():
            self.lock = None

    def busy_for(self, candidate: RingId) -> bool:
        """No candidate is admitted next to a condemned node (D9), across a gap (D29), or beside another candidate."""
        ring = self._ring
        if (ring.condemned and ring.rules.quiet_joins) or not ring.settled:
            return True
        return self._locked() and self.lock is not None and self.lock.candidate != candidate

    def on_discover(self, source: NodeId, message: Discover) -> None:
        ring = self._ring
        if ring.is_member:
            self._bury_former(source, message)
        if not ring.is_member:
            no = Discovered(message.serial, Answer.NO_MEMBER, 0, (), seeded=False, asked=ring.raw.address, gen=ring.fencing.highest)
            ring.raw.send(source, no)
            self.send_away(source)
            return
        owner = self._guide(source, message)
        if owner != ring.id and owner is not None:
            # Before "busy": the owner's neighbourhood may be free although ours is not.
            self._answer(source, message, Answer.REDIRECT, ring.list.peers([owner]))
        elif self.busy_for(message.candidate):
            self._answer(source, message, Answer.BUSY, ())
            self.send_away(source)
        else:
            self._answer(source, message, Answer.OK, self._view())

    def on_lock(self, source: NodeId, message: Lock) -> None:
        ring = self._ring
        if not ring.is_member:
            return
        candidate = message.source
        granted = not self.busy_for(candidate) and candidate not in ring.list and candidate not in self._given_up
        if granted:
            self.renew(candidate)
        else:
            self.send_away(source)
        ring.raw.send(source, Locked(*ring.head(candidate), message.serial, granted, self._view() if granted else ()))

    def on_unlock(self, source: NodeId, message: Unlock) -> None:
        del source
        pair = self._ring.pairs.get(message.source)
        if pair is not None and self.serves(pair):
            self._ring.opening.drop(pair)
        self.give_up(message.source)

    def invite(self) -> None:
        """One of those we had to send away, if there is room for it now. One at a time: all at once would only lock each other out."""
        ring = self._ring
        if not self._sent_away or self.busy_for(NOBODY):
            return
        oldest = ring.raw.now - SENT_AWAY_LEASES * ring.config.lease
        while self._sent_away:
            candidate = next(iter(self._sent_away))
            if self._sent_away.pop(candidate) >= oldest:
                ring.raw.send(candidate, Discovered(INVITED, Answer.BUSY, ring.ring, (), ring.scouting.seeded, ring.raw.address))
                return

    def send_away(self, candidate: NodeId) -> None:
        """It is told when there is room; it comes again by itself as well."""
        if candidate not in self._sent_away and len(self._sent_away) >= SENT_AWAY_MAX:
            return
        self._sent_away[candidate] = self._ring.raw.now  # It keeps its place in the queue.

    def give_up(self, candidate: RingId) -> None:
        """It has said that it does not come any more; what it said before may still be on its way."""
        self.release(candidate)
        if len(self._given_up) >= GIVEN_UP_MAX:
            del self._given_up[next(iter(self._given_up))]
        self._given_up[candidate] = None

    def _locked(self) -> bool:
        """Until its time is over, or as long as its candidate's pair is DORMANT here."""
        if self.lock is None:
            return False
        pair = self._ring.pairs.get(self.lock.candidate)
        return self._ring.raw.now < self.lock.expires_at or (pair is not None and self.serves(pair))

    def _view(self) -> tuple[Peer, ...]:
        return (self._ring.me, *self._ring.nbr_peers)

    def _answer(self, to: NodeId, message: Discover, answer: Answer, view: tuple[Peer, ...]) -> None:
        ring = self._ring
        ring.raw.send(to, Discovered(message.serial, answer, ring.ring, view, ring.scouting.seeded, ring.raw.address))

    def _guide(self, source: NodeId, message: Discover) -> RingId | None:
        """The owner of the candidate's position. If that is a former membership of the candidate itself, the next to it: it knows
        which tokens were given out under that membership, and buries it."""
        ring = self._ring
        former = set(self._over(source, message))
        ids = [each for each in ring.list.ids if each not in former] if former else ring.list.ids
        return owner_of(ids, message.candidate.pos)

    def _over(self, source: NodeId, message: Discover) -> list[RingId]:
        """Which memberships the process itself says are over (F6). It names those of its present life one by one: this message may
        be old, and the membership that was won since is not over."""
        return [
            ring_id
            for ring_id, entry in self._ring.list.of_name(source.name)
            if (message.over and entry.node.boot < source.boot and entry.address == message.address)
            or (entry.node == source and ring_id in message.former)
        ]

    def _bury_former(self, source: NodeId, message: Discover) -> None:
        """Only by those who monitor it: others do not know its last token (G9)."""
        ring = self._ring
        for ring_id in self._over(source, message):
            pair = ring.pairs.get(ring_id)
            if ring.is_member and (ring_id == ring.id or ring_id in ring.condemned or (pair is not None and pair.entitled)):
                ring.changes.remove(ring_id, certain=True, reason="restarted")
