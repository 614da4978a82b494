"""Serving candidates: the queue, and splitting the arc.  Spec: tickets 5.5; D17, D26; paper 3.1 ("serve all previous operations first").

One queue, first come first served. A candidate that does not want to wait leaves it with REJECT as soon as there is nothing to split.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from holdfast.features.tickets.protocol.desk import End
from holdfast.features.tickets.protocol.facts import ArcChanged
from holdfast.features.tickets.protocol.messages import AckCjoin, Cjoin, Queued, Reject
from holdfast.features.tickets.protocol.reasons import Crowded, Full
from holdfast.features.tickets.protocol.values import Agent, Ballot, Key, LeaseId, Place, Ptr, Status, Val
from holdfast.host import Address

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.coordinator import Coordinator

WAITERS_MAX = 256  # of one coordinator; each asks again every second
HANDED_ON = 8  # of those who wait, so many go with the cell to its next holder: as many as fit a datagram beside it
ROOMY_MAX = 4  # agents that a REJECT names


class Waiter(NamedTuple):
    """One candidate in the queue."""

    lease: LeaseId
    agent: Agent
    seen_at: float
    wait: bool
    stamp: float = 0.0  # of its last CJOIN, on its own clock
    since: float = 0.0  # when it came here


class Server:
    """The queue of one coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._it = coordinator
        self.waiters: dict[LeaseId, Waiter] = {}  # in the order of arrival
        self.splitting: LeaseId | None = None
        self._crowded_until = -inf  # the guardians have no room for another cell; asked again then (H133)

    def on_cjoin(self, cjoin: Cjoin, agent: Agent) -> None:
        if cjoin.lease not in self.waiters and len(self.waiters) >= WAITERS_MAX:
            self._it.desk.counts["queue_full"] += 1
            self._reject(Waiter(cjoin.lease, agent, 0.0, wait=False))
            return
        self._enter(Waiter(cjoin.lease, agent, self._it.host.now, cjoin.wait, cjoin.stamp))
        self.serve()
        if cjoin.wait and cjoin.lease in self.waiters:
            self._it.desk.tell(agent, Queued(self._it.pool.name, cjoin.lease, self.position(cjoin.lease)))

    def inherit(self, waiters: Sequence[tuple[LeaseId, Address]], stamps: Sequence[float]) -> None:
        """Those who waited for this very cell at its former holder. Who handed it on without their stamps knew none."""
        for (lease, address), stamp in zip(waiters[:HANDED_ON], [*stamps, *repeat(0.0, HANDED_ON)], strict=False):
            self._enter(Waiter(lease, Agent(lease.life, address), self._it.host.now, wait=True, stamp=stamp))

    def keeps(self, lease: LeaseId) -> bool:
        """It has a place here."""
        known = self.waiters.get(lease)
        return known is not None and known.wait

    def cancel(self, lease: LeaseId) -> None:
        self.waiters.pop(lease, None)

    def position(self, lease: LeaseId) -> int:
        """1 is next; 0 if it does not wait here."""
        return next((place for place, each in enumerate(self.fresh(), 1) if each.lease == lease), 0)

    def fresh(self) -> list[Waiter]:
        """Who has been heard lately, and is not known to be gone. Others are forgotten."""
        oldest = self._it.host.now - self._it.config.waiter_ttl
        gone = self._it.pool.gone
        self.waiters = {each.lease: each for each in self.waiters.values() if each.seen_at >= oldest and each.agent.life not in gone}
        return list(self.waiters.values())

    def serve(self) -> None:
        """The first in the queue gets half of the arc, if it has a half and guardians keep it. While a split is under way, all wait."""
        if self.splitting is not None or not self._it.valid:
            return
        fresh = self.fresh()
        if not fresh:
            return
        if self._it.free > 0 and self._it.host.now >= self._crowded_until:
            if not self._it.desk.rounds.late:  # H168: it is tried again in the next round.
                self._split(fresh[0])
            return
        for each in fresh:
            if not each.wait:
                del self.waiters[each.lease]
                self._reject(each, Crowded.word if self._it.free > 0 else Full.word)

    def _enter(self, waiter: Waiter) -> None:
        """Who is in it keeps its place."""
        known = self.waiters.get(waiter.lease)
        self.waiters[waiter.lease] = waiter._replace(since=waiter.seen_at if known is None else known.since)

    @property
    def first(self) -> Waiter | None:
        """Who would be handed this ticket; None if no candidate waits, or the first is about to get a part of the arc."""
        return next((each for each in self.fresh() if each.wait and each.lease != self.splitting), None)

    def _split(self, first: Waiter) -> None:
        """It stays in the queue until it is served: if we leave before, it is the first to be handed the rest."""
        self.splitting = first.lease
        if not self._it.enqueue("split", Split(self._it, self, first).start):
            self.splitting = None

    def ended(self, candidate: Waiter, *, done: bool) -> None:
        """A split is over. If nothing came of it, it is tried again in the next round."""
        self.splitting = None
        if done:
            self.cancel(candidate.lease)
        self._it.finish()
        if done:
            self.serve()

    def crowded(self, candidate: Waiter) -> None:
        """A majority of the guardians has no room for the child. A candidate that waits stays in the queue, until there is."""
        self._it.desk.counts["crowded"] += 1
        self._crowded_until = self._it.host.now + self._it.config.poll
        self.ended(candidate, done=False)
        self.serve()

    def _reject(self, waiter: Waiter, reason: str = Full.word) -> None:
        it = self._it
        it.desk.tell(waiter.agent, Reject(it.pool.name, waiter.lease, reason, it.val.n, it.pool.roomy(ROOMY_MAX)))


class Split:
    """5.5 split(q): the child cell is complete at its majority before our own cell points to it, and q hears of it last."""

    def __init__(self, coordinator: Coordinator, server: Server, candidate: Waiter) -> None:
        self._it, self._server, self._candidate = coordinator, server, candidate

    def start(self) -> None:
        it = self._it
        if it.free < 1:
            self._server.ended(self._candidate, done=False)
            return
        base = it.writer.newest()
        self._key = Key(it.pool.name, it.desk.rid(), 0)
        self._places: tuple[Place, ...] = it.mover.choose(self._candidate.agent)
        self._ballot = Ballot(1, self._candidate.lease)
        self._child = child_of(base, self._candidate.lease, self._candidate.agent.address)
        it.phase = it.desk.accept(self._key, self._places, self._ballot, self._child, it.turn(self._on_created), grant=True)

    def _on_created(self, end: End) -> None:
        it = self._it
        if not end.won:
            it.desk.forget(self._key, self._places, but=end.full)  # Nothing points to it.
            it.mover.unanswered(self._places, end)
            if end.crowded:
                self._server.crowded(self._candidate)
            else:
                self._server.ended(self._candidate, done=False)
            return
        it.shrunk = self._child.length
        succ = Ptr(self._key.rid, self._key.cfg, self._places, self._candidate.agent)
        it.writer.write(lambda val: parent_of(val, self._child, succ), self._on_chosen)

    def _on_chosen(self, val: Val) -> None:
        it, lease = self._it, self._candidate.lease
        it.shrunk = 0
        it.care.adopt(val.succ)
        it.host.emit(ArcChanged(it.pool.name, it.head, val.length))
        ack = AckCjoin(lease, self._key, self._places, self._ballot, self._child, it.desk.me, stamp=self._candidate.stamp)
        it.pool.grant(ack, self._candidate.agent)
        if it.valid:
            it.pool.announce(it)
        self._server.ended(self._candidate, done=True)


def child_of(val: Val, lease: LeaseId, address: Address) -> Val:
    """The lower half of an arc, for a new holder; the upper half, with the head, is the larger one."""
    kept = (val.length + 1) // 2
    head, token = (val.head - kept) % val.n, val.fence + 1
    return Val(0, lease, token, token, head, val.length - kept, val.succ, Status.LIVE, None, val.n, address)


def parent_of(val: Val, child: Val, succ: Ptr) -> Val:
    """What is left, pointing to the child. Its fence grows with the child's token, which was taken from it."""
    return replace(val, length=val.length - child.length, fence=child.fence, succ=succ)
