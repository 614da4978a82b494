"""Candidate: one acquire, until it is owned, cancelled or impossible.  Spec: tickets 5.5; D10 to D13, D21, D26.

Each turn of its loop looks at the anchor first. If it is free, the candidate takes it over (``Takeover``): it founds the pool, or goes on
where the last holder stopped. Otherwise it asks one coordinator that is believed to have room, or waits in the queues of a few.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.errors import TicketLost, shown
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.desk import Desk, End, voter
from holdfast.features.tickets.protocol.facts import AnchorTaken, TicketQueued
from holdfast.features.tickets.protocol.line import late_text
from holdfast.features.tickets.protocol.messages import AckCjoin, Cancel, Cjoin, Info, Queued, Reject
from holdfast.features.tickets.protocol.reasons import Crowded, Full, Late, Mismatch, Refusal, SeatsSilent, TooManyPools
from holdfast.features.tickets.protocol.values import ANCHOR, NO_BALLOT, Agent, Key, LeaseId, Ptr, Status, Vacant, Val, Voter
from holdfast.host import NodeId, Timer
from holdfast.kit.hold import Holder, LossReason

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.pool import Pool

NO_NUMBER = -1
QUEUES = 3  # coordinators at which a candidate waits at the same time
FULL_TURNS = 2  # turns in a row that find no room before wait=False gives up, if a coordinator said that it is full
SILENT_TURNS = 6  # the same, if there was no answer
HINTS_MAX = 32
AFTER_GRANT = 0.001  # seconds after the end of a grant: the guardian's clock has passed it
SOON = 0.05  # in polls: when there is reason to look again at once

CandidateState = Enum("CandidateState", ["LOOKING", "JOINING", "OWNED", "OVER"])


class Candidate:
    """One ``acquire``: the ``Attempt`` that its caller holds."""

    def __init__(self, pool: Pool, desk: Desk, n: int, holder: Holder, *, wait: bool, metadata: Mapping[str, str]) -> None:
        self.pool, self.n, self.metadata = pool, n, metadata
        self.state = CandidateState.LOOKING
        self.coordinator: Coordinator | None = None
        self.began_at = desk.host.now
        self.above = NO_BALLOT  # the highest ballot of the anchor heard of
        self._desk, self._holder, self._wait = desk, holder, wait
        self._lease = pool.lease_for(self)
        self._told = True  # extensions are passed on
        self._queues: dict[NodeId, tuple[Agent, int]] = {}  # where it waits, at which position
        self._asked: dict[NodeId, Agent] = {}  # who may hold a place for the present lease
        self._hints: dict[Agent, None] = {}
        self._full: dict[NodeId, float] = {}  # no room there until then
        self._refused: type[Refusal] = Full  # by who said no last: also Crowded, it has free tickets and no guardian with room, and Late
        self._position, self._why = 0, ""  # as told
        self._fruitless = 0  # turns in a row in which no coordinator was believed to have room
        self._stamp = 0.0  # of the last CJOIN
        self._parked = False  # a coordinator of this agent is giving the anchor up, for us to go on with
        self._waited = False  # for that, in vain
        self._timer: Timer | None = None

    # The Attempt.

    @property
    def number(self) -> int:
        return NO_NUMBER if self.coordinator is None or not self.coordinator.owned else self.coordinator.head

    @property
    def token(self) -> int:
        return 0 if self.coordinator is None else self.coordinator.who.token

    @property
    def deadline(self) -> float:
        return -inf if self.coordinator is None else self.coordinator.deadline.until

    @property
    def valid(self) -> bool:
        return self.state is CandidateState.OWNED and self.coordinator is not None and self.coordinator.valid

    def cancel(self) -> None:
        self._end()

    def release(self) -> None:
        self._end()

    def renew_allowed(self, allowed: bool) -> None:
        self._told = allowed

    def publish(self, payload: bytes) -> None:
        if not self.valid:
            raise TicketLost(f"ticket of {shown(self.pool.name)}: it is not held any more, and nothing was published")
        self.pool.cview.publish(self.pool.name, self.number, self.token, payload)

    # The loop.

    def start(self) -> None:
        self.pool.line.enter(self, wait=self._wait)

    @property
    def position(self) -> int:
        return self._position

    @property
    def looking(self) -> bool:
        return self.state is CandidateState.LOOKING

    def wants(self, lease: LeaseId) -> bool:
        """A grant for this lease would be welcome."""
        return self.looking and lease == self._lease

    def poke(self) -> None:
        """A coordinator announced room."""
        poll = self._desk.config.poll
        if self.looking and self._timer is not None and self._timer.due_at > self._desk.host.now + poll * 0.2:
            self._turn_after(poll * 0.2 * self._desk.host.random.random())

    def _turn_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._desk.host.after(seconds, self.look)

    def look(self) -> None:
        """One turn."""
        self._timer, self._waited, self._parked = None, self._parked, False
        if not self.looking:
            return
        late = self._desk.rounds.late
        if late:
            self._on_late(late)
            return
        vacant = self.pool.take_vacant(self.n)
        if vacant is not None:
            Takeover(self, self.pool, self._desk).resume(vacant)
        elif self.pool.vacating and not self._waited:
            self._parked = True
            self._turn_after(self._desk.config.rtx)
        else:
            self.pool.line.look(self, self._on_looked)

    def look_soon(self) -> None:
        if self.looking and self._timer is None:
            self._turn_after(self._desk.config.poll * self._desk.host.random.uniform(0.1, 0.3))

    def _on_late(self, late: float) -> None:
        """H168: this agent has more to do than it can. What it holds comes first."""
        self._desk.counts["late"] += 1
        poll, random = self._desk.config.poll, self._desk.host.random
        if self._wait:
            self.stands_at(self._position, late_text(late))
            self._turn_after(poll * random.uniform(0.3, 1.0))
            return
        self._fruitless += 1
        if self._fruitless > FULL_TURNS:
            self._lose(Late(self.pool.name))
        else:
            self._turn_after(poll * random.uniform(0.1, 0.3))

    def unpark(self) -> None:
        """What was waited for has ended, one way or the other."""
        if self._parked and self._timer is not None:
            self._timer.cancel()
            self.look()

    def _on_looked(self, end: End, age: float) -> None:
        """Step 1. A turn that was begun before a grant came is over. ``age``: seconds since another one of this agent saw it."""
        if not self.looking or self._timer is not None:
            return
        if not end.won:
            if self._wait:
                self.ask_around(None, inf)
            else:
                needed, reachable = len(self._desk.seats) // 2 + 1, len(end.yes) + len(end.no)
                self._lose(SeatsSilent(self.pool.name, needed, reachable))
            return
        infos = [each for _, each in end.yes if isinstance(each, Info)]
        accepted, best = end.best
        self.above = max(self.above, accepted)
        busy = max(info.busy for info in infos) - age
        if all(info.val is not None and info.val.n != self.n for info in infos):
            assert best is not None
            self.mismatch(best.n)
        elif busy <= 0 or (best is not None and best.status is Status.FREE):
            Takeover(self, self.pool, self._desk).start()
        else:
            self.ask_around(best, busy)

    def ask_around(self, anchor: Val | None, busy: float) -> None:
        """Step 2, and the next turn: soon enough to be there when the anchor's grant ends."""
        if not self.looking:
            return
        desk, poll = self._desk, self._desk.config.poll
        known = self._known(anchor)
        roomy = self._roomy(known)
        if roomy:
            agents, weights = list(roomy), list(roomy.values())
            self._ask(desk.host.random.choices(agents, weights)[0], wait=False)
            pause = poll * desk.host.random.uniform(0.1, 0.3)
        else:
            for agent in self._where_to_wait(known):
                self._ask(agent, wait=self._wait)
            pause = poll * desk.host.random.uniform(0.3, 1.0)
            if not known:
                pause = poll * desk.host.random.uniform(0.1, 0.3)
        self._fruitless = 0 if roomy else self._fruitless + 1
        if not self._wait and self._fruitless > (FULL_TURNS if self._full else SILENT_TURNS):
            self._lose(self._refused(self.pool.name) if self._full else SeatsSilent(self.pool.name))
            return
        self._turn_after(min(pause, max(0.0, busy) + AFTER_GRANT + poll * SOON * desk.host.random.random()))

    def _known(self, anchor: Val | None) -> dict[NodeId, Agent]:
        """All agents that may be coordinators: Cview, the anchor's holder, its successor, hints. By life, sorted: dict order is an
        input."""
        found = [*self.pool.cview.holders(self.pool.name)]
        if anchor is not None and anchor.holder is not None:
            found.append(Agent(anchor.holder.life, anchor.address))
            found.append(anchor.succ.agent)
        found += self._hints
        found += [agent for agent, _ in self._queues.values()]
        return {agent.life: agent for agent in sorted(found) if agent.life not in self.pool.gone and agent.life.name}

    def _roomy(self, known: Mapping[NodeId, Agent]) -> dict[Agent, int]:
        """Who is believed to have free tickets, with how many; a hint counts for one."""
        now = self._desk.host.now
        self._full = {life: until for life, until in self._full.items() if until > now}
        roomy = dict.fromkeys(self._hints, 1)
        for entry in self.pool.cview.rooms(self.pool.name):
            roomy[entry.agent] = max(entry.free, roomy.get(entry.agent, 0))
        return {agent: room for agent, room in sorted(roomy.items()) if agent.life in known and agent.life not in self._full}

    def _where_to_wait(self, known: Mapping[NodeId, Agent]) -> list[Agent]:
        """Where it has a place already, and others up to three; all of them in a small pool."""
        staying = [agent for life, (agent, _) in self._queues.items() if life in known]
        others = [agent for life, agent in known.items() if life not in self._queues]
        more = max(0, QUEUES - len(staying))
        return [*staying[:QUEUES], *self._desk.host.random.sample(others, min(more, len(others)))]

    def _ask(self, agent: Agent, *, wait: bool) -> None:
        self._asked[agent.life] = agent
        self._stamp = self._desk.host.now
        self._desk.tell(agent, Cjoin(self.pool.name, self.n, self._lease, self._desk.me.address, wait, self._stamp))

    def on_answer(self, source: NodeId, answer: Reject | Queued) -> None:
        if isinstance(answer, Queued):
            agent = self._asked.get(source)
            if agent is not None:
                self._queues[source] = agent, answer.position
                self._is_full(source)
                self._tell_position()
        elif answer.reason == Mismatch.word:
            self.mismatch(answer.n)
        else:
            self._on_rejected(source, answer)

    def _on_rejected(self, source: NodeId, reject: Reject) -> None:
        self._queues.pop(source, None)
        self._is_full(source)
        self._refused = next((each for each in (Crowded, Late) if each.word == reject.reason), Full)
        news = [agent for agent in reject.roomy if agent.life not in self._full and agent not in self._hints]
        self._hints = dict.fromkeys([*self._hints, *news][-HINTS_MAX:])
        if news and self._timer is not None:
            self._turn_after(self._desk.config.poll * SOON * self._desk.host.random.random())

    def _is_full(self, life: NodeId) -> None:
        """It has no room now, whatever was heard: a place in its queue says so too, and is not asked for room again and again."""
        self._full[life] = self._desk.host.now + self._desk.config.poll
        self._hints = {agent: None for agent in self._hints if agent.life != life}

    def _tell_position(self) -> None:
        """Only a change is told: at most one per answer, so a few per poll."""
        self.stands_at(min(position for _, position in self._queues.values()))

    def stands_at(self, position: int, why: str = "") -> None:
        """``why``: what it waits for, if that is not its turn alone."""
        if (position, why) != (self._position, self._why):
            self._position, self._why = position, why
            self._desk.host.emit(TicketQueued(self.pool.name, self._lease, position))
            self._holder.on_queued(position, why)

    # What became of it.

    def joining(self, coordinator: Coordinator, giver: NodeId | None = None) -> None:
        """Step 3: a cell was given to us, or taken over. It has to become a lease yet. The agent that gave it has us in no queue any
        more."""
        self.state, self.coordinator = CandidateState.JOINING, coordinator
        if giver is not None:
            self._asked.pop(giver, None)
        self._stop_asking()
        self.pool.line.leave(self)

    @property
    def asked_at(self) -> float:
        """When it last asked a coordinator."""
        return self._stamp

    def granted_at(self, ack: AckCjoin) -> dict[Voter, float]:
        """H113: the cell was written with a grant for us after that CJOIN had come, and a majority has accepted it."""
        return {voter(place): ack.stamp for place in ack.places} if 0 < ack.stamp <= self._stamp else {}

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self.state = CandidateState.OWNED
        self._desk.counts["acquired"] += 1
        self._holder.on_granted(token, deadline, number)

    def on_extended(self, deadline: float) -> None:
        if self._told:
            self._holder.on_extended(deadline)

    def on_at_risk(self) -> None:
        self._holder.on_at_risk()

    def on_lost(self, reason: LossReason) -> None:
        if self.state is CandidateState.OWNED:
            self._lose(reason)
        elif self.state is CandidateState.JOINING:
            # D12: a fresh lease id, so that nothing of the lost attempt is taken for ours.
            self.state, self.coordinator, self._lease = CandidateState.LOOKING, None, self.pool.lease_for(self)
            self.pool.line.back(self)
            self._turn_after(self._desk.config.poll * SOON * self._desk.host.random.random())

    def mismatch(self, n: int) -> None:
        self._lose(Mismatch(self.pool.name, self.n, n))

    def too_many_pools(self) -> None:
        """However long it waits: no pool is ever forgotten."""
        self._lose(TooManyPools(self.pool.name))

    def _lose(self, reason: LossReason) -> None:
        self._over()
        self._holder.on_lost(reason)

    def _end(self) -> None:
        """By its user's wish."""
        coordinator = self.coordinator
        self._over()
        if coordinator is not None:
            coordinator.leave()

    def _over(self) -> None:
        if self.state is CandidateState.OVER:
            return
        self.state = CandidateState.OVER
        self._stop_asking()
        if self in self.pool.candidates:
            self.pool.candidates.remove(self)
        self.pool.line.leave(self)

    def halt(self) -> None:
        self.state = CandidateState.OVER
        if self._timer is not None:
            self._timer.cancel()

    def _stop_asking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for agent in self._asked.values():
            self._desk.tell(agent, Cancel(self.pool.name, self._lease))
        self._asked.clear()
        self._queues.clear()
        self._fruitless = 0


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
