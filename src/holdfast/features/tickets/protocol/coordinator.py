"""Coordinator: one held ticket, its lease and what it does one after the other.  Spec: tickets 2, 5.3; D1, D5, D7, D17; foundation F9.

The lease counts from the send time of a RENEW that a majority of the guardian set in force has echoed. Every handler, timer and end of a
question begins with the clock: a coordinator whose deadline has passed is dead, whatever arrives (``entry``, ``turn``).

The parts: ``writing`` its own cell, ``serving`` candidates, ``care`` of the successor, ``moving`` its guardians, ``leaving``. Each
is made when it is first asked for: most tickets are alone on their circle, and are given back before a round has passed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.features.tickets.protocol.care import Care
from holdfast.features.tickets.protocol.desk import Desk, voter
from holdfast.features.tickets.protocol.facts import TicketAcquired, TicketAtRisk, TicketExtended, TicketLost, TicketReleased
from holdfast.features.tickets.protocol.leaving import Leaver
from holdfast.features.tickets.protocol.messages import Accept, AckUpdate, Alive, Cjoin, Cleave, Renew, Update
from holdfast.features.tickets.protocol.moving import Mover
from holdfast.features.tickets.protocol.reasons import Unanswered
from holdfast.features.tickets.protocol.serving import Server
from holdfast.features.tickets.protocol.values import ANCHOR, NOBODY, Agent, Ballot, Key, LeaseId, Place, Val, Voter, arc
from holdfast.features.tickets.protocol.writing import Writer
from holdfast.host import NodeId, Timer
from holdfast.kit.deadline import Deadline, entry
from holdfast.kit.hold import Grantee, Lapsed, LossReason
from holdfast.kit.phase import Phase

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.pool import Pool

QUEUE_MAX = 64  # operations that wait; each kind but splits waits at most once
JOINING_LEASES = 2  # 5.3: in D
AT_RISK_ROUNDS = 1.5  # in T: a lease that was renewed in the last round is one round old
SINGLE = ("reballot", "absorb", "repoint", "move")

State = Enum("State", ["JOINING", "ACTIVE", "LEAVING", "DEAD"])
A = TypeVar("A")


class Owner(Grantee, Protocol):
    """Whom a coordinator works for: one ``acquire``."""

    @property
    def metadata(self) -> Mapping[str, str]: ...


class Coordinator:
    """One cell, held. ``who`` never changes; ``state`` goes only forward."""

    def __init__(
        self, pool: Pool, desk: Desk, owner: Owner, key: Key, places: Sequence[Place], ballot: Ballot, val: Val, pred: Agent = NOBODY
    ) -> None:
        self.pool, self.desk, self.host, self.config, self.owner = pool, desk, desk.host, desk.config, owner
        self.rid, self.cfg, self.places = key.rid, key.cfg, tuple(places)
        self.ballot, self.val = ballot, val  # the last version known to be chosen, and under which ballot the next one is written
        self.head, self.who, self.pred = val.head, val.who, pred
        self.state = State.JOINING
        self.deadline = Deadline(self.host)
        self.stamps: dict[Voter, float] = {}  # newest own send time that each guardian echoed
        self.preds: tuple[Agent, ...] = ()  # the closest predecessors, nearest first
        self.shrunk = 0  # tickets given away by a split still in flight
        self.busy = ""  # the operation under way
        self.phase: Phase[Voter] | None = None  # its question, if it waits for one
        self.owned = False  # was ever active
        self.announced = False  # others were told so, or that another owned it that handed it on to us
        self._queue: list[tuple[str, Callable[[], None]]] = []
        self._timers: dict[str, Timer] = {}
        self.began_at = self.host.now
        self._stamp = -inf  # of the last RENEW
        self.stamp_limit = inf  # what was sent after it extends nothing: a move is under way
        self._at_risk = False

    @cached_property
    def writer(self) -> Writer:
        return Writer(self)

    @cached_property
    def server(self) -> Server:
        return Server(self)

    @cached_property
    def care(self) -> Care:
        return Care(self)

    @cached_property
    def mover(self) -> Mover:
        return Mover(self)

    @cached_property
    def leaver(self) -> Leaver:
        return Leaver(self)

    @property
    def key(self) -> Key:
        return Key(self.pool.name, self.rid, self.cfg)

    @property
    def tickets(self) -> tuple[int, ...]:
        """S_p: what it coordinates, its own ticket first."""
        return arc(self.head, self.val.length - self.shrunk, self.val.n)

    @property
    def free(self) -> int:
        return self.val.length - self.shrunk - 1

    @property
    def valid(self) -> bool:
        """Owns its ticket now (F9)."""
        return self.state is State.ACTIVE and self.deadline.valid

    @property
    def leaving(self) -> bool:
        return self.state is State.LEAVING

    @property
    def lapsed(self) -> bool:
        return self.state is State.ACTIVE and not self.deadline.valid

    def lapse(self) -> None:
        self.die(Lapsed())

    # Life.

    def start(self, stamps: Mapping[Voter, float] | None = None) -> None:
        """``stamps``: the cell was written with a grant at these times, and these guardians accepted (takeover, H113)."""
        self.pool.add(self)
        self.stamps.update(stamps or {})
        self._extend()
        if self.state is State.ACTIVE and self.val.length == self.val.n:
            # Alone on the circle: there is no successor to test, and what was just granted need not be renewed before a round has passed.
            self.desk.rounds.plan(self, max(self.host.now, self._lease_end() - self.desk.hold + self.config.period))
        elif self.state is not State.DEAD:
            self.desk.rounds.begin(self)

    @entry
    def leave(self) -> None:
        """5.8: stop owning first; the cell is written afterwards."""
        if self.state not in (State.JOINING, State.ACTIVE):
            return
        self.state = State.LEAVING
        self.deadline.end()
        self.desk.rounds.forget(self)
        self._cancel_timers("deadline")  # An operation in flight is finished.
        self._queue.clear()
        if self.owned:
            self.host.emit(TicketReleased(self.pool.name, self.head, self.who))
        self.leaver.begin()

    def die(self, reason: LossReason | None = None) -> None:
        """A dead coordinator never acts again. Without a reason it was leaving, and its owner knows."""
        before = self.state
        if before is State.DEAD:
            return
        self.halt()
        self.pool.remove(self)
        if before is State.LEAVING:
            if not self.leaver.handed_on:
                self.pool.withdraw(self)
            return
        assert reason is not None
        if self.owned:
            self.host.emit(TicketLost(self.pool.name, self.head, self.who, reason.word))
            self.pool.withdraw(self)
        self.owner.on_lost(reason)

    def halt(self) -> None:
        self.state = State.DEAD
        self.deadline.end()
        self.desk.rounds.forget(self)
        self._cancel_timers(*tuple(self._timers))
        self._queue.clear()
        self._end_phase()

    def turn(self, callback: Callable[[A], None]) -> Callable[[A], None]:
        """F9 for the end of a question: a dead coordinator hears nothing."""

        def guarded(argument: A) -> None:
            if self.lapsed:
                self.lapse()
            if self.state is not State.DEAD:
                self.phase = None
                callback(argument)

        return guarded

    def after(self, name: str, delay: float, callback: Callable[[], None]) -> None:
        """One timer of each name; it dies with the coordinator."""

        def due() -> None:
            if self.lapsed:
                self.lapse()
            if self.state is not State.DEAD:
                callback()

        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = self.host.after(delay, due)

    def _end_phase(self) -> None:
        if self.phase is not None:
            self.phase.cancel()
            self.phase = None

    # One operation at a time, first come first served (D17).

    def enqueue(self, name: str, start: Callable[[], None]) -> bool:
        if self.state not in (State.JOINING, State.ACTIVE) or len(self._queue) >= QUEUE_MAX:
            return False
        if name in SINGLE and any(queued == name for queued, _ in self._queue):
            return False
        self._queue.append((name, start))
        self._next()
        return True

    def finish(self) -> None:
        """The operation under way is over; it may have ended the coordinator."""
        self.busy = ""
        if self.state is State.LEAVING:
            self.leaver.begin()
        elif self.state is not State.DEAD:
            self._next()

    def _next(self) -> None:
        if not self.busy and self._queue:
            self.busy, start = self._queue.pop(0)
            start()

    # 5.3, the lease.

    @entry
    def on_alive(self, source: Voter, alive: Alive) -> None:
        if self.state not in (State.JOINING, State.ACTIVE) or alive.who != self.who or alive.key != self.key:
            return
        if not alive.stamp <= self._stamp or all(voter(place) != source for place in self.places):
            self.desk.counts["strangers"] += 1  # It was not asked, or not then; or a seat that has not said yet where it sits.
            return
        self.mover.heard(source, draining=alive.draining)
        if alive.stale:
            self._repair(source)
        if alive.ok:
            if alive.stamp > self.stamps.get(source, -inf):
                self.desk.renew_rtt.add(self.host.now - alive.stamp)
            self.stamps[source] = max(self.limited(alive.stamp), self.stamps.get(source, -inf))
            self._extend()
        elif alive.promised > self.ballot:
            self.enqueue("reballot", lambda: self._reballot(alive.promised))

    def limited(self, stamp: float) -> float:
        """H103: while a new set of guardians is asked, the old one extends nothing that goes beyond what the new one grants."""
        return min(stamp, self.stamp_limit)

    def replace_guardians(self, cfg: int, places: tuple[Place, ...], stamps: Mapping[Voter, float]) -> None:
        """5.7, D15: another set is in force. What the old one granted counts no more; ``limited`` saw to it that it was not more."""
        before = self.deadline.until
        self.cfg, self.places, self.stamps = cfg, places, dict(stamps)
        self.deadline.replace(self._lease_end())
        assert self.deadline.until >= before
        self._tell_extension(before)

    def _lease_end(self) -> float:
        need = len(self.places) // 2 + 1
        newest = sorted(self.stamps.values(), reverse=True)
        return newest[need - 1] + self.desk.hold if len(newest) >= need else -inf

    def _extend(self) -> None:
        before = self.deadline.until
        self.deadline.extend(self._lease_end())
        if self.state is State.JOINING and self.deadline.valid:
            self._activate()
        else:
            self._tell_extension(before)

    def _tell_extension(self, before: float) -> None:
        until = self.deadline.until
        if self.state is State.ACTIVE and until > before:
            self._at_risk = False
            self.desk.lease_margin.add(before - self.host.now)
            self.host.emit(TicketExtended(self.pool.name, self.head, self.who, until, before - self.host.now))
            self.owner.on_extended(until)

    def _activate(self) -> None:
        self.state, self.owned = State.ACTIVE, True
        self.host.emit(TicketAcquired(self.pool.name, self.head, self.who, self.deadline.until))
        self._arm_deadline()
        self.owner.on_granted(self.who.token, self.deadline.until, self.head)
        if self.state is State.ACTIVE:  # The owner may have changed its mind.
            self.pool.announce(self)
            self.tell_pred()
            self.care.test_soon()
            self.server.serve()

    def _arm_deadline(self) -> None:
        """So that its user hears at once; nothing rests on this timer."""
        self.after("deadline", max(0.0, self.deadline.until - self.host.now), self._arm_deadline)

    @property
    def peers(self) -> Sequence[Place | Agent]:
        """Whom a round writes to."""
        return (*self.places, self.care.agent)

    @entry
    def on_round(self, stamp: float) -> None:
        """Every T, with the other coordinators of this agent; ``stamp`` is the clock before anything was asked."""
        if self.state not in (State.JOINING, State.ACTIVE):
            return
        self.desk.rounds.plan(self, stamp + self.config.period)
        if self.state is State.JOINING and self.host.now - self.began_at > JOINING_LEASES * self.config.lease:
            self.give_up()
            return
        self._renew(stamp)
        if self.state is State.ACTIVE:
            self._watch_risk()
            self.care.round()
            self.mover.round()
            self.server.serve()

    def give_up(self) -> None:
        """A grant that did not become a lease is given back."""
        self.leave()
        self.owner.on_lost(Unanswered())

    def _renew(self, stamp: float) -> None:
        self._stamp = stamp
        self.desk.rounds.renew(self, self.places, Renew(self.key, self.who, self.ballot, self.val.seq, stamp))

    def _watch_risk(self) -> None:
        """9.2: the RENEW of the last round has not extended the lease. Said once until something does."""
        age = self.host.now - (self.deadline.until - self.desk.hold)
        if age > AT_RISK_ROUNDS * self.config.period and not self._at_risk:
            self._at_risk = True
            self.host.emit(TicketAtRisk(self.pool.name, self.head, self.who))
            self.owner.on_at_risk()

    def _repair(self, source: Voter) -> None:
        """Its version is older than the chosen one."""
        for place in self.places:
            if voter(place) == source:
                self.desk.post(place, Accept(0, self.key, self.ballot, self.val, grant=True))

    def _reballot(self, above: Ballot) -> None:
        """D14: a candidate was promised a higher ballot where it did not know that we live. Write the same again under a higher one."""
        if above <= self.ballot:
            self.finish()
            return
        self.desk.counts["reballots"] += 1
        self.writer.write(lambda val: val, self._on_written, above=above)

    def _on_written(self, val: Val) -> None:
        self.finish()

    # 5.6, as the successor.

    @entry
    def on_update(self, source: Agent, update: Update) -> None:
        if self.state not in (State.JOINING, State.ACTIVE):
            return  # A coordinator that leaves says CLEAVE.
        self.pred = source
        self.preds = tuple(agent for agent in update.chain if agent.life != self.host.me)
        self.mover.recorded(update.cfg)
        self.tell_pred()

    @entry
    def on_ack_update(self, source: NodeId, ack: AckUpdate) -> None:
        if self.state in (State.JOINING, State.ACTIVE):
            self.care.on_ack(source, ack)

    @entry
    def on_cleave(self, cleave: Cleave) -> None:
        if self.state in (State.JOINING, State.ACTIVE):
            self.care.on_cleave(cleave)

    @entry
    def on_absence(self, life: NodeId) -> None:
        if self.state is State.ACTIVE:
            self.care.on_absence(life)

    @entry
    def on_cjoin(self, cjoin: Cjoin, agent: Agent) -> None:
        if self.state is State.ACTIVE:
            self.server.on_cjoin(cjoin, agent)

    def tell_pred(self) -> None:
        if self.pred != NOBODY:
            self.desk.rounds.tell(self.pred, AckUpdate(self.pool.name, self.rid, self.cfg, self.places, self.desk.me))

    @property
    def anchor(self) -> bool:
        return self.rid == ANCHOR

    @property
    def lease(self) -> LeaseId:
        """Whose ballots it writes under."""
        assert self.who.holder is not None
        return self.who.holder

    def _cancel_timers(self, *names: str) -> None:
        for name in names:
            if name in self._timers:
                self._timers.pop(name).cancel()
