"""Takeover of the anchor: founding a pool, or going on where its holder stopped.  Spec: tickets 5.5 step 1; D10 to D13, D21."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.desk import Desk, End
from holdfast.features.tickets.protocol.facts import AnchorTaken
from holdfast.features.tickets.protocol.values import ANCHOR, NO_BALLOT, Key, LeaseId, Ptr, Status, Vacant, Val

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.candidate import Candidate
    from holdfast.features.tickets.protocol.pool import Pool


class Takeover:
    """One try, under a lease id of its own (D12): a candidate that lost one may be handed the same cell later."""

    def __init__(self, candidate: Candidate, pool: Pool, desk: Desk) -> None:
        self._candidate, self._pool, self._desk = candidate, pool, desk
        self._key = Key(pool.name, ANCHOR, 0)
        self._lease: LeaseId = pool.lease_for(candidate)
        self._ballot = NO_BALLOT

    def start(self) -> None:
        self._ballot = self._desk.ballot(self._lease, self._candidate.above)
        self._desk.prepare(self._key, self._desk.seats, self._ballot, None, self._on_prepared)

    def resume(self, vacant: Vacant) -> None:
        """No candidate was promised a higher ballot since, or the one that was says so: the version after FREE needs no promise of its
        own."""
        self._ballot = vacant.ballot
        val = taken_over(vacant.val, self._lease, self._desk)
        self._desk.accept(
            self._key, self._desk.seats, self._ballot, val, lambda end: self._on_resumed(val, end), grant=True, era=vacant.era
        )

    def _on_resumed(self, val: Val, end: End) -> None:
        if end.won:
            self._desk.counts["resumed"] += 1
            self._on_accepted(val, end)
        else:
            self._candidate.above = max(self._candidate.above, end.promised)
            self._candidate.look()

    def _on_prepared(self, end: End) -> None:
        candidate = self._candidate
        if not candidate.looking:
            return
        if end.crowded:
            candidate.too_many_pools()
            return
        if not end.won:
            candidate.above = max(candidate.above, end.promised)
            candidate.ask_around(end.seen, end.busy or self._desk.config.poll)
            return
        best = end.best[1] or founding(self._desk, candidate.n)
        if best.n != candidate.n:
            candidate.mismatch(best.n)
            return
        val = taken_over(best, self._lease, self._desk)
        self._desk.accept(self._key, self._desk.seats, self._ballot, val, lambda end: self._on_accepted(val, end), grant=True, era=end.era)

    def _on_accepted(self, val: Val, end: End) -> None:
        candidate = self._candidate
        if not end.won:
            candidate.above = max(candidate.above, end.promised)
            candidate.ask_around(end.seen, self._desk.config.poll)
            return
        self._desk.counts["takeovers"] += 1
        self._desk.host.emit(AnchorTaken(self._pool.name, val.token))
        owner = candidate if candidate.looking else self._pool.returned
        coordinator = Coordinator(self._pool, self._desk, owner, self._key, self._desk.seats, self._ballot, val)
        if candidate.looking:
            candidate.joining(coordinator)
            coordinator.start({source: end.asked_at for source, _ in end.yes})
        else:
            self._pool.give_back(coordinator)


def founding(desk: Desk, n: int) -> Val:
    """The pool is new: one arc of all tickets. Tokens begin at wall-clock ms: above those that lost seats gave (D21)."""
    alone = Ptr(ANCHOR, 0, desk.seats, desk.me)
    return Val(-1, None, 0, int(desk.host.wall() * 1000), 0, n, alone, Status.FREE, None, n, desk.me.address)


def taken_over(val: Val, lease: LeaseId, desk: Desk) -> Val:
    """The same arc under a new holder."""
    token = val.fence + 1
    return replace(val, seq=val.seq + 1, holder=lease, token=token, fence=token, status=Status.LIVE, address=desk.me.address)
