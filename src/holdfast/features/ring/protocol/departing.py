"""Departing: saying so, and answering for memberships that are over.  Spec: ring 5.5, D12, D13; foundation F14.

Who departs is out first and speaks second: nothing is said as long as a client may act under what it was told. Then three
copies of Leave go to every peer, and for a while every question to the former id is answered with one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from holdfast.features.ring.protocol.fencing import GEN_MAX
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.messages import Gone, LeaseRequest, Leave, OfRing
from holdfast.host import NodeId
from holdfast.kit.deadline import wait_length

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

LEAVES = 3  # copies, r T_l apart
FORMER_MAX = 8  # memberships of this life that are remembered


class Former(NamedTuple):
    """A membership of this life that is over."""

    ring: int
    id: RingId
    reason: str
    gen: int
    speaks_at: float  # not before (F14)
    silent_at: float  # not after
    was_member: bool


class Departing:
    """The former memberships of one life."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._former: dict[int, Former] = {}  # by inc
        self._born_at = ring.raw.now
        self.speaking = 0  # Leaves that are still to be sent

    def keep(self, reason: str, *, was_member: bool) -> None:
        """The present membership, or attempt at one, has ended. Its pairs are still there."""
        ring = self._ring
        now = ring.raw.now
        speaks_at = max(now, ring.fencing.published_until)
        if len(self._former) >= FORMER_MAX:
            # Failed attempts first: an id that was listed somewhere is what others may still ask about.
            del self._former[next((inc for inc, each in self._former.items() if not each.was_member), next(iter(self._former)))]
        former = Former(ring.ring, ring.id, reason, ring.fencing.gen, speaks_at, speaks_at + 2 * ring.config.t_arb, was_member)
        self._former[ring.id.inc] = former
        if was_member and ring.rules.leave_notice:
            peers = [(pair.peer.node, pair.peer.id.inc) for pair in ring.pairs.values()]
            self.speaking += 1
            self._say_at(speaks_at, former, peers, LEAVES)

    def claims(self) -> tuple[tuple[RingId, ...], bool]:
        """What a candidate may say about its former memberships (F6): those of this life under which no client acts any more and, once no
        deadline that the former life published can be running, that this life is over."""
        ring = self._ring
        now = ring.raw.now
        past = ring.former_until
        if past is None:
            past = self._born_at + wait_length(ring.config.publish_length, ring.config.rho, ring.config.margin)
        former = tuple(each.id for each in self._former.values() if each.was_member and each.speaks_at <= now)
        return former, ring.sole_life and now >= past

    def on_stray(self, source: NodeId, message: OfRing) -> None:
        """For another ring, another inc, or no member here: only a question to a former id gets an answer."""
        ring = self._ring
        ring.counts["stray"] += 1
        former = self._former.get(message.to)
        if former is None or former.ring != message.ring or not isinstance(message, LeaseRequest) or not ring.rules.leave_notice:
            return
        if former.speaks_at <= ring.raw.now < former.silent_at:
            ring.raw.send(source, Leave(former.ring, former.id, message.source.inc, former.reason, former.gen))

    def on_leave(self, source: NodeId, message: Leave) -> None:
        """Its own word: no arbitration, no wait."""
        del source
        ring = self._ring
        peer = message.source
        pair = ring.pairs.get(peer)
        if not ring.is_member:
            if pair is not None:
                ring.joiner.fail("a neighbour left")
            return
        if peer in ring.list:
            ring.changes.remove(peer, certain=True, reason="left", gen=min(message.gen, GEN_MAX))
        elif pair is not None:
            ring.opening.drop(pair)  # A candidate that gave up.
        ring.door.give_up(peer)

    def on_gone(self, source: NodeId, message: Gone) -> None:
        """A member holds this id to be over. About ourselves, that decides; about others, their tombstones travel by themselves."""
        del source
        ring = self._ring
        if message.id != ring.id:
            return
        if ring.is_member:
            ring.depart("declared")
        else:
            ring.joiner.fail("declared")

    def _say_at(self, due: float, former: Former, peers: list[tuple[NodeId, int]], copies: int) -> None:
        ring = self._ring
        if ring.raw.now >= due:
            self._say(former, peers, copies)
        else:
            ring.raw.at(due, partial(self._say, former, peers, copies))

    def _say(self, former: Former, peers: list[tuple[NodeId, int]], copies: int) -> None:
        ring = self._ring
        for node, inc in peers:
            ring.raw.send(node, Leave(former.ring, former.id, inc, former.reason[:64], former.gen))
        if copies > 1:
            ring.raw.after(ring.config.retry * ring.config.lease, partial(self._say, former, peers, copies - 1))
        else:
            self.speaking -= 1
