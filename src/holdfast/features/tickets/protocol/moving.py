"""Which guardians: choosing a set for a new cell, and moving a cell to another.  Spec: tickets 5.5, 5.7; D4, D7, D9, D15, D27.

With placement "seats" every cell is kept by all seats, and moves only if an agent with another placement made it. "ring" is the paper's:
the predecessors, filled up with seats.
The set in force stands in the cell itself: a move is written to a majority of the old set before the new one counts, so a candidate that
wants to exclude us finds the new set there. So agents may differ in placement (H140): each holder brings its own cell where it wants it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.features.tickets.protocol.desk import End, voter
from holdfast.features.tickets.protocol.facts import GuardiansMoved
from holdfast.features.tickets.protocol.values import Agent, Ballot, Key, Next, Place, Val, Voter

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.coordinator import Coordinator

SHUNNED_LEASES = 8  # in D: a guardian that was silent is not chosen again for so long; then its death has been found out


class Mover:
    """The guardian set of one coordinator."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._it = coordinator
        began_at = coordinator.began_at
        self._heard = {voter(place): began_at for place in coordinator.places}
        self._draining: set[Voter] = set()
        self._shunned: dict[Voter, float] = {}  # until
        self._doubted: dict[Voter, float] = {}  # until
        self._moved_at = began_at
        self._former: list[tuple[Key, tuple[Place, ...]]] = []  # sets that the predecessor may still point to

    def heard(self, source: Voter, *, draining: bool) -> None:
        self._heard[source] = self._it.host.now
        if draining:
            self._draining.add(source)
        else:
            self._draining.discard(source)

    def unanswered(self, places: Iterable[Place], end: End) -> None:
        """Who was asked to keep a cell and did not comes after all others for a while, or the same set would be tried for ever (H127)."""
        kept = {source for source, _ in end.yes}
        for place in places:
            if voter(place) not in kept:
                self._doubted[voter(place)] = self._later

    def recorded(self, cfg: int) -> None:
        """Our predecessor's cell points to this set: those before it are not needed."""
        for key, places in [former for former in self._former if former[0].cfg < cfg]:
            self._it.desk.forget(key, places)
        self._former = [former for former in self._former if former[0].cfg >= cfg]

    def choose(self, candidate: Agent) -> tuple[Place, ...]:
        """For a cell that is split off: ourselves, our predecessors, then seats; the candidate itself only if there is no other."""
        it = self._it
        if it.config.guardians == "seats":
            return it.desk.seats
        first = [it.desk.place_of(agent) for agent in (it.desk.me, *it.preds)]
        return self._fill([*first, *it.desk.seats], it.desk.place_of(candidate))

    def round(self) -> None:
        it, now = self._it, self._it.host.now
        if it.anchor:
            return
        for place in it.places:
            if now - self._heard.get(voter(place), -inf) > it.config.silent_after:
                self._shunned[voter(place)] = self._later
        if now - self._moved_at < it.config.move_after:
            return
        want = self._wanted()
        if {voter(place) for place in want} != {voter(place) for place in it.places}:
            it.enqueue("move", self._move)

    @property
    def _later(self) -> float:
        return self._it.host.now + SHUNNED_LEASES * self._it.config.lease

    def _wanted(self) -> tuple[Place, ...]:
        it = self._it
        if it.config.guardians == "seats":
            return it.desk.seats
        me = it.desk.place_of(it.desk.me)
        return self._fill([*(it.desk.place_of(agent) for agent in it.preds), *it.desk.seats], me)

    def _fill(self, candidates: Iterable[Place], last: Place) -> tuple[Place, ...]:
        """The first 2k+1 that are of use, ``last`` only if there are fewer, and after it those who are doubted; an odd number. They are not
        left out: a lost message must not make a set smaller."""
        now, size = self._it.host.now, 2 * self._it.config.k + 1
        usable = [
            each
            for each in dict.fromkeys(candidates)
            if each != last and voter(each) not in self._draining and self._shunned.get(voter(each), -inf) <= now
        ]
        doubted = [each for each in usable if self._doubted.get(voter(each), -inf) > now]
        trusted = [each for each in usable if each not in doubted]
        chosen = trusted[:size] if len(trusted) >= size else [*trusted, last, *doubted][:size]
        return tuple(chosen if len(chosen) % 2 else chosen[:-1])

    def _move(self) -> None:
        it = self._it
        want = self._wanted()
        self._moved_at = it.host.now
        # The number of the version that begins the move: it was not used for another set of this cell.
        nxt = Next(it.writer.newest().seq + 1, want)
        it.writer.write(lambda val: replace(val, nxt=nxt), self._on_begun)

    def _on_begun(self, val: Val) -> None:
        it, nxt = self._it, val.nxt
        assert nxt is not None
        key, ballot = Key(it.pool.name, it.rid, nxt.cfg), Ballot(1, it.lease)
        new = replace(val, nxt=None, seq=val.seq + 1)

        def ended(end: End) -> None:
            it.stamp_limit = inf
            if end.won and not it.leaving:
                self._in_force(nxt, ballot, new, end)
            else:
                self.unanswered(nxt.places, end)
                if it.config.guardians == "seats":
                    self._moved_at = self._later  # It is the only set that is wanted, so there is no hurry to try it again.
                it.writer.write(lambda val: replace(val, nxt=None), lambda val: self._cancelled(key, nxt.places, end))

        # From here on the old set extends nothing: what our user was told must not end after what the new set grants (D15, H103).
        it.stamp_limit = it.host.now
        timeout = min(it.config.phase_timeout, it.config.lease / 4)  # so that a move which fails costs no lease
        it.phase = it.desk.accept(key, nxt.places, ballot, new, it.turn(ended), grant=True, timeout=timeout)

    def _in_force(self, nxt: Next, ballot: Ballot, val: Val, end: End) -> None:
        it = self._it
        self._former.append((it.key, it.places))
        self._moved_at = it.host.now
        self._heard = {voter(place): it.host.now for place in nxt.places}
        it.writer.adopt(ballot, val)
        it.replace_guardians(nxt.cfg, nxt.places, {source: end.asked_at for source, _ in end.yes})
        if it.lapsed:
            it.lapse()
            return
        it.desk.counts["moves"] += 1
        it.host.emit(GuardiansMoved(it.pool.name, it.rid, it.cfg))
        it.tell_pred()
        it.finish()

    def _cancelled(self, key: Key, places: tuple[Place, ...], end: End) -> None:
        self._it.desk.forget(key, places, but=end.full)
        self._it.finish()
