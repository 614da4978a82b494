"""Pool: what one agent does for one pool; who gets which message.  Spec: tickets 2 (Agent), 5.5, 5.6, 5.8; D18.

Answers that may be asked for again outlive the coordinator that gave them, so they are kept here.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from math import inf
from typing import TypeVar

from msgspec.structs import replace

from holdfast.features.tickets.protocol.candidate import Candidate
from holdfast.features.tickets.protocol.coordinator import Coordinator, State
from holdfast.features.tickets.protocol.cview import Cview, Entry, gone_entry, metadata_of
from holdfast.features.tickets.protocol.desk import Desk
from holdfast.features.tickets.protocol.line import Line
from holdfast.features.tickets.protocol.messages import AckCjoin, AckUpdate, Cancel, Cjoin, Cleave, Queued, Reject, Update
from holdfast.features.tickets.protocol.reasons import Late, Mismatch
from holdfast.features.tickets.protocol.serving import Waiter
from holdfast.features.tickets.protocol.values import (
    PLACES_MAX,
    TICKETS_MAX,
    Agent,
    LeaseId,
    Vacant,
    Val,
    Who,
    key_fits,
    places_fit,
    val_fits,
)
from holdfast.host import Message, NodeId
from holdfast.kit.hold import LossReason

ANNOUNCE_DELAY = 0.01  # seconds: a client that is granted something comes first, and what is given back at once is no news (H143)
ANNOUNCE_GAP = 0.1  # seconds: each announcement reaches all agents several times
KEPT_MAX = 4096  # answers, leases and hand-overs remembered; an agent that is pushed out is asked again, or lapses
K = TypeVar("K")
V = TypeVar("V")


class Returned:
    """Owns a grant that no client wants: a second one, or one that came after its attempt was cancelled (D26)."""

    metadata: Mapping[str, str] = {}

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        """It is leaving."""

    def on_extended(self, deadline: float) -> None:
        """It is leaving."""

    def on_at_risk(self) -> None:
        """It is leaving."""

    def on_lost(self, reason: LossReason) -> None:
        """No client waits for it."""


class Pool:
    """Coordinators and candidates of one pool at one agent."""

    def __init__(self, name: str, desk: Desk, cview: Cview, gone: Container[NodeId]) -> None:
        self.name, self.desk, self.cview, self.gone = name, desk, cview, gone
        self.coordinators: dict[str, Coordinator] = {}  # by cell
        self.candidates: list[Candidate] = []
        self._granted: dict[LeaseId, tuple[AckCjoin, Agent, float]] = {}
        self._moved: dict[str, tuple[Agent, float]] = {}  # cell -> whom it was handed to
        self._leases: dict[LeaseId, tuple[Candidate, set[tuple[Who, str]]]] = {}  # of this life, with what came of them
        self._versions = 0
        self._quiet: dict[str, Coordinator | None] = {}  # cells announced lately or soon, with what is to be announced then
        self.returned = Returned()
        self.vacant: Vacant | None = None
        self.line = Line(name, desk)
        self._pointing: dict[str, list[Coordinator]] | None = None  # coordinators by the cell that follows theirs; None: to be made

    @property
    def idle(self) -> bool:
        return not self.coordinators and not self.candidates

    @property
    def active(self) -> list[Coordinator]:
        return [each for each in self.coordinators.values() if each.valid]

    @property
    def waiting(self) -> int:
        """Candidates of this agent that own nothing yet, and those of others that queue here."""
        mine = sum(candidate.looking for candidate in self.candidates)
        others = {lease for each in self.coordinators.values() for lease in each.server.waiters if lease.life != self.desk.me.life}
        return mine + len(others)

    # What coordinators need.

    def add(self, coordinator: Coordinator) -> None:
        self.coordinators[coordinator.rid] = coordinator
        self._pointing = None

    def repointed(self) -> None:
        """A coordinator's cell may point to another one."""
        self._pointing = None

    def _before(self, rid: str) -> tuple[Coordinator, ...]:
        """Whose cell points to that one. With hundreds of tickets there are as many words between neighbours every round."""
        if self._pointing is None:
            self._pointing = {}
            for each in self.coordinators.values():
                self._pointing.setdefault(each.val.succ.rid, []).append(each)
        return tuple(self._pointing.get(rid, ()))

    def remove(self, coordinator: Coordinator) -> None:
        if self.coordinators.get(coordinator.rid) is coordinator:
            del self.coordinators[coordinator.rid]
            self._pointing = None
        for candidate in tuple(self.line.asking):
            candidate.unpark()

    def announce(self, coordinator: Coordinator) -> None:
        """Own(ticket, token, version, agent, metadata, free), in a moment. What changes again and again is announced now and then."""
        if coordinator.rid not in self._quiet:
            self.desk.host.after(ANNOUNCE_DELAY, lambda: self._on_gap(coordinator.rid))
        self._quiet[coordinator.rid] = coordinator

    def _on_gap(self, rid: str) -> None:
        coordinator = self._quiet.pop(rid, None)
        if coordinator is not None and coordinator.valid:
            self._quiet[rid] = None
            self.desk.host.after(ANNOUNCE_GAP, lambda: self._on_gap(rid))
            self._announce(coordinator)

    def _announce(self, coordinator: Coordinator) -> None:
        self._versions += 1
        coordinator.announced = True
        self.cview.announce(self.name, coordinator.head, self._entry(coordinator))

    def _entry(self, coordinator: Coordinator) -> Entry:
        me, metadata = self.desk.me, metadata_of(coordinator.owner.metadata.items())
        return Entry(coordinator.who.token, False, self._versions, me.life, me.address, coordinator.free, coordinator.val.n, metadata)

    @property
    def owned(self) -> dict[int, Entry]:
        """What is owned here, as it is announced or will be in a moment."""
        return {each.head: self._entry(each) for each in self.coordinators.values() if each.valid}

    def withdraw(self, coordinator: Coordinator) -> None:
        """Free(ticket, token), if it was ever announced. What was owned only while its cell was quiet is not announced."""
        if self._quiet.get(coordinator.rid) is coordinator:
            self._quiet[coordinator.rid] = None
        if coordinator.announced:
            self.announce_free(coordinator.head, coordinator.val)

    def announce_free(self, number: int, val: Val) -> None:
        self.cview.announce(self.name, number, gone_entry(val.token, self.desk.me, val.n))

    def announced(self, number: int) -> Agent | None:
        entry = self.cview.owners(self.name).get(number)
        return None if entry is None else entry.agent

    def roomy(self, at_most: int) -> tuple[Agent, ...]:
        """Agents that have announced free tickets, those with most of them first."""
        found = sorted(self.cview.rooms(self.name), key=lambda entry: (-entry.free, entry.agent))
        agents = dict.fromkeys(entry.agent for entry in found if entry.life not in self.gone and entry.life != self.desk.me.life)
        return tuple(agents)[:at_most]

    def grant(self, ack: AckCjoin, to: Agent) -> None:
        _keep(self._granted, ack.lease, (ack, to, self.desk.host.now))
        self.desk.tell(to, ack)

    def moved(self, rid: str, to: Agent) -> None:
        _keep(self._moved, rid, (to, self.desk.host.now))

    # What candidates need.

    @property
    def vacating(self) -> bool:
        """A coordinator of this agent is giving the anchor up, and no client waits for it."""
        return any(each.leaving and each.leaver.vacating for each in self.coordinators.values())

    def gave_up(self, vacant: Vacant) -> None:
        """The anchor. The next candidate of this agent goes on from there."""
        self.vacant = vacant
        self.doubt_vacant()

    def doubt_vacant(self) -> None:
        """Another is known to have had it since: this agent does not go on from there. Asked when the view changes (H245)."""
        vacant = self.vacant
        if vacant is not None and self.cview.newest_token(self.name, vacant.val.head) > vacant.val.token:
            self.vacant = None

    def take_vacant(self, n: int) -> Vacant | None:
        """What this agent gave up. Once: no two versions may have one number (I6)."""
        if self.vacant is None or self.vacant.val.n != n:
            return None
        vacant, self.vacant = self.vacant, None
        return vacant

    def longest_waiting(self) -> Waiter | None:
        """Who waits at another ticket of this agent, and has done so for longest; it leaves that queue (H167)."""
        best: tuple[Waiter, Coordinator] | None = None
        for each in self.coordinators.values():
            if each.server.waiters and each.valid:
                first = each.server.first
                if first is not None and (best is None or first.since < best[0].since):
                    best = first, each
        if best is None:
            return None
        best[1].server.cancel(best[0].lease)
        return best[0]

    def lease_for(self, candidate: Candidate) -> LeaseId:
        lease = self.desk.lease()
        _keep(self._leases, lease, (candidate, set()))
        return lease

    def stop(self) -> None:
        """This life of the agent ends; nothing is released, and no client is told: what was granted ends by its own clock."""
        for coordinator in tuple(self.coordinators.values()):
            coordinator.halt()
        for candidate in self.candidates:
            candidate.halt()
        self.line.stop()

    def forget_old(self) -> None:
        oldest = self.desk.host.now - self.desk.config.tombstone_ttl
        self._granted = {key: kept for key, kept in self._granted.items() if kept[2] > self._oldest_grant}
        self._moved = {key: kept for key, kept in self._moved.items() if kept[1] > oldest}

    @property
    def _oldest_grant(self) -> float:
        return self.desk.host.now - self.desk.config.grant_ttl

    # Messages.

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, Cjoin):
            self._on_cjoin(source, message)
        elif isinstance(message, AckCjoin):
            self._on_ack_cjoin(source, message)
        elif isinstance(message, Reject | Queued):
            self._on_answer(source, message)
        elif isinstance(message, Cancel):
            self._on_cancel(source, message)
        elif isinstance(message, Update):
            self._on_update(source, message)
        elif isinstance(message, AckUpdate):
            self._on_ack_update(source, message)
        elif isinstance(message, Cleave):
            self._on_cleave(message)

    def _on_cjoin(self, source: NodeId, cjoin: Cjoin) -> None:
        if cjoin.lease.life != source or not 1 <= cjoin.n <= TICKETS_MAX:
            self.desk.counts["malformed"] += 1
            return
        agent = Agent(source, cjoin.address)
        granted = self._granted.get(cjoin.lease)
        if granted is not None and granted[2] > self._oldest_grant:
            self.desk.tell(agent, granted[0])
            return
        active = self.active
        if active and self.desk.rounds.late and not any(each.server.keeps(cjoin.lease) for each in active):
            self.desk.counts["late"] += 1
            self._reject(cjoin, agent, Late.word, active[0].val.n)
        elif not active:
            self._reject(cjoin, agent, "leaving" if self.coordinators else "not-coordinator", 0)
        elif active[0].val.n != cjoin.n:
            self._reject(cjoin, agent, Mismatch.word, active[0].val.n)
        else:
            self._serve(cjoin, agent, active)

    def _serve(self, cjoin: Cjoin, agent: Agent, active: list[Coordinator]) -> None:
        """One place per agent. Who asks for room that it heard of gives up no place that it has (G7, H145)."""
        wait = cjoin.wait or any(each.server.keeps(cjoin.lease) for each in active)
        chosen = _server_for(cjoin.lease, active)
        for each in active:
            if each is not chosen:
                each.server.cancel(cjoin.lease)
        chosen.server.on_cjoin(replace(cjoin, wait=wait), agent)

    def _reject(self, cjoin: Cjoin, agent: Agent, reason: str, n: int) -> None:
        heirs = tuple(to for to, _ in reversed(self._moved.values()))[:PLACES_MAX]
        self.desk.tell(agent, Reject(self.name, cjoin.lease, reason, n, tuple(dict.fromkeys((*self.roomy(PLACES_MAX), *heirs)))))

    def _on_ack_cjoin(self, source: NodeId, ack: AckCjoin) -> None:
        """D18: once per (who, cell), and only for a lease that this life asked with, lately; the table has no others."""
        if not (key_fits(ack.key) and val_fits(ack.val) and places_fit(ack.places)) or ack.val.holder != ack.lease:
            self.desk.counts["malformed"] += 1
            return
        lease = self._leases.get(ack.lease)
        if lease is None or (ack.val.who, ack.key.rid) in lease[1] or (ack.stamp or lease[0].asked_at) <= self._oldest_grant:
            self.desk.counts["old_grant"] += 1
            return
        candidate, acted = lease
        acted.add((ack.val.who, ack.key.rid))
        wanted = candidate.wants(ack.lease)
        owner = candidate if wanted else self.returned
        coordinator = Coordinator(self, self.desk, owner, ack.key, ack.places, ack.ballot, ack.val, ack.pred)
        coordinator.server.inherit(ack.waiters, ack.stamps)
        coordinator.announced = ack.val.seq > 0  # Handed on, not split off: the former owner has not said that it is gone (H130).
        if wanted:
            granted_at = candidate.granted_at(ack)
            candidate.joining(coordinator, source)
            coordinator.start(granted_at)
        else:
            self.give_back(coordinator)

    def give_back(self, coordinator: Coordinator) -> None:
        self.desk.counts["returned"] += 1
        self.add(coordinator)
        coordinator.leave()

    def _on_answer(self, source: NodeId, message: Reject | Queued) -> None:
        lease = self._leases.get(message.lease)
        if lease is not None and lease[0].wants(message.lease):
            lease[0].on_answer(source, message)

    def _on_cancel(self, source: NodeId, cancel: Cancel) -> None:
        if cancel.lease.life == source:
            for each in self.coordinators.values():
                each.server.cancel(cancel.lease)

    def _on_update(self, source: NodeId, update: Update) -> None:
        chain = update.chain
        if not chain or len(chain) > PLACES_MAX or chain[0].life != source:
            self.desk.counts["malformed"] += 1
            return
        coordinator, moved = self.coordinators.get(update.rid), self._moved.get(update.rid)
        if coordinator is not None and coordinator.state in (State.JOINING, State.ACTIVE):
            coordinator.on_update(chain[0], update)
        elif moved is not None:
            self.desk.tell(chain[0], AckUpdate(self.name, update.rid, update.cfg, (), moved[0]))

    def _on_cleave(self, cleave: Cleave) -> None:
        """H167: to whose successor it is. Else to the nearest holder before it: if each passed it on, hundreds of tickets at each
        of three agents would make millions of one."""
        found = self._before(cleave.rid)
        if not found and 0 <= cleave.head < TICKETS_MAX:
            before = [each for each in self.active if each.rid != cleave.rid]
            found = (min(before, key=lambda each: (each.head - cleave.head) % each.val.n),) if before else ()
        for each in found:
            each.on_cleave(cleave)

    def _on_ack_update(self, source: NodeId, ack: AckUpdate) -> None:
        if ack.agent.life == source and not places_fit(ack.places):
            self.desk.counts["malformed"] += 1
            return
        for each in self._before(ack.rid):
            each.on_ack_update(source, ack)


def _keep(table: dict[K, V], key: K, value: V) -> None:
    table.pop(key, None)
    if len(table) >= KEPT_MAX:
        del table[next(iter(table))]
    table[key] = value


def _server_for(lease: LeaseId, active: list[Coordinator]) -> Coordinator:
    """Where it waits nearest to the front, unless only another one has room without an owner yet; else where there is most room, or the
    queue is shortest."""
    waiting = [each for each in active if lease in each.server.waiters]
    for each in waiting:
        if each.free > 0 or each.server.splitting == lease:
            return each
    best = max(active, key=lambda each: (each.free, -len(each.server.waiters)))
    if waiting and (best.server.splitting is not None or best.free <= len(best.server.waiters)):
        return min(waiting, key=lambda each: each.server.position(lease) or inf)
    return best
