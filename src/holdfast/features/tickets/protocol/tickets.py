"""Tickets: the machine of one agent.  Spec: tickets 2 (roles), 5, 9, 10; paper 001.

An agent is guardian (and with a slot: seat), observer, candidate once per ``acquire``, and coordinator once per ticket it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import blake2b
from math import inf
from typing import Protocol

from holdfast.bounds import MEMBERS_MAX, TEXT_CHARS_MAX
from holdfast.errors import ConfigError, shown
from holdfast.events import Decided, Failed, Joined, Left, MembershipEvent
from holdfast.features.tickets.protocol.abandoning import Abandonment
from holdfast.features.tickets.protocol.candidate import Candidate
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.cview import Cview, Entry, Listener
from holdfast.features.tickets.protocol.desk import Desk
from holdfast.features.tickets.protocol.guardian import Guardian, Requests
from holdfast.features.tickets.protocol.messages import (
    GUARDIAN_MESSAGES,
    MESSAGES,
    Abandon,
    Abandoned,
    Accepted,
    AckCjoin,
    AckUpdates,
    Alive,
    Info,
    Promised,
    Refuse,
    Renew,
    Renewals,
    Renewed,
    Updates,
)
from holdfast.features.tickets.protocol.orphans import Orphans
from holdfast.features.tickets.protocol.pool import Pool
from holdfast.features.tickets.protocol.reading import Abandoning, Read, Reading
from holdfast.features.tickets.protocol.values import TICKETS_MAX, Agent, pool_fits, val_fits
from holdfast.features.tickets.protocol.view import METADATA_BYTES_MAX, TicketView
from holdfast.host import Host, Membership, Message, NodeId, Timer, fingerprint, only
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import Claim, Holder
from holdfast.kit.phase import Call
from holdfast.kit.seats import Seats

POOLS_MAX = 1024  # in which this agent is candidate or coordinator, or was lately
CANDIDATES_MAX = 4096  # of all pools; as many as an agent has grants
GONE_MAX = MEMBERS_MAX // 2  # lives that the membership said are over
SWEEP_PERIOD = 60.0
ABANDON_TRIES = 20  # half a second each: the predecessor may be in the middle of something
DIGEST_BYTES = 8

__all__ = ["Attempt", "TicketView", "Tickets"]


class Attempt(Claim, Protocol):
    """One ``acquire``. What its holder may do with it after a loss is harmless."""

    @property
    def number(self) -> int:
        """Of the ticket; -1 before it is owned."""

    @property
    def token(self) -> int: ...
    @property
    def deadline(self) -> float: ...
    @property
    def valid(self) -> bool:
        """Owned now, by the clock (F9)."""

    def publish(self, payload: bytes) -> None:
        """An application event stamped with (number, token), to all listeners of the pool. Raises ``TicketLost``."""


class Tickets:
    """A machine (host.Machine). Add it after the seats, the broadcast and the exchange that it is given."""

    handles = MESSAGES

    def __init__(
        self, host: Host, membership: Membership, seats: Seats, broadcast: Broadcast, exchange: Exchange, config: TicketConfig
    ) -> None:
        self.config = config
        # Placement and k need not match: the set that guards a cell stands in the cell, and the agent that asks counts its majority (H134).
        self.fingerprint = fingerprint(ticket_lease=config.lease, ticket_rho=config.rho, ticket_seats=_digest(seats))
        self.guardian = Guardian(host, config, seats.keeper if seats.own is not None else None)
        self.desk = Desk(host, config, seats, self.on_message)
        self.cview = Cview(exchange, broadcast, host.wall)
        self._requests = Requests(host, self.desk.counts)
        self._orphans = Orphans(self.desk, self.guardian)
        self.pool_table: dict[str, Pool] = {}
        self._host, self._membership = host, membership
        self._gone: dict[NodeId, None] = {}
        self._timer: Timer | None = None
        self._go_at = inf  # while it drains: it does not wait after that
        self.cview.on_change(self._on_view)

    @property
    def counts(self) -> Counter[str]:
        """Of all parts: acquired, takeovers, handovers, exclusions, reballots, moves, returned, phase_timeouts, and what was refused."""
        return self.desk.counts + self.guardian.counts + self.cview.counts

    # What the agent calls.

    def acquire(self, pool: str, n: int, holder: Holder, *, wait: bool = True, metadata: Mapping[str, str] | None = None) -> Attempt:
        """Ask for one of ``n`` tickets. Raises ``ConfigError`` for a name, number or metadata that cannot be."""
        _check(pool, n, metadata or {})
        if sum(len(each.candidates) for each in self.pool_table.values()) >= CANDIDATES_MAX:
            raise ConfigError(f"tickets: this agent wants or holds {CANDIDATES_MAX} already, which is all it may")
        found = self._pool(pool)
        candidate = Candidate(found, self.desk, n, holder, wait=wait, metadata=dict(metadata or {}))
        found.candidates.append(candidate)
        candidate.start()
        return candidate

    def view(self, pool: str) -> TicketView:
        """Cview: a hint, at once."""
        entries = self._entries(pool)
        owners = {number: entries[number].holder for number in sorted(entries)}
        n = max((entry.n for entry in entries.values()), default=0)
        here = self.pool_table.get(pool)
        return TicketView(pool, n, owners, self._host.now, hint=True, waiting=0 if here is None else here.waiting)

    def _entries(self, pool: str) -> Mapping[int, Entry]:
        """What was announced, and what is owned here."""
        here = self.pool_table.get(pool)
        return self.cview.owners(pool) if here is None else {**self.cview.owners(pool), **here.owned}

    @property
    def waiting(self) -> dict[str, int]:
        """Who is known here to wait, by pool: candidates of this agent, and those that queue at its coordinators."""
        return {name: pool.waiting for name, pool in self.pool_table.items() if not pool.idle}

    def pools(self) -> tuple[str, ...]:
        """The pools that are known here, sorted."""
        here = (name for name, pool in self.pool_table.items() if not pool.idle)
        return tuple(sorted({*self.cview.pools, *here}))

    @property
    def coordinators(self) -> list[Coordinator]:
        return [each for pool in self.pool_table.values() for each in pool.coordinators.values()]

    def read(self, pool: str, done: Read) -> None:
        """The truth: walks the cells with majorities. ``Unavailable``: some majority did not answer."""
        Reading(pool, self.desk, self._entries, done).start()

    def abandon(self, pool: str, number: int, done: Callable[[str], None]) -> None:
        """9.5, after an operator confirmed that the holder is dead. ``done`` gets "" or why it was refused."""
        Abandoning(pool, number, self.desk, lambda agent, make: self._call_abandon(agent, make, done), done).start()

    def listen(self, pool: str, listener: Listener) -> Callable[[], None]:
        """Application events of a pool: number, token, payload. Call the result to stop."""
        return self.cview.listen(pool, listener)

    def watch(self, listener: Callable[[str, int, TicketView], None]) -> Callable[[], None]:
        """Changes of owners in any pool: pool, number, the view now. Call the result to stop."""
        return self.cview.on_change(lambda pool, number: listener(pool, number, self.view(pool)))

    def drain(self, *, draining: bool = True) -> None:
        """This agent shuts down: guardians say so in ALIVE, ring cells move away (9.6). Tickets are released by their users (F14)."""
        if draining and not self.guardian.draining:
            self._go_at = self._host.now + self.config.leave_timeout
        self.guardian.draining = draining

    @property
    def drained(self) -> bool:
        """True when this agent may leave: its cells are written and kept by others, or that was tried for 4 D. What a seat keeps it has in
        its journal, and it stays there."""
        if self.coordinators:
            return False  # Each of them tries for 4 D.
        return self.guardian.durable or self.guardian.kept == 0 or self._host.now >= self._go_at

    # The machine.

    def start(self) -> None:
        self.guardian.start()
        self._membership.subscribe(only(self._on_membership, Joined, Decided, Failed, Left))
        self._timer = self._host.after(SWEEP_PERIOD, self._on_sweep)

    def stop(self) -> None:
        self.guardian.stop()
        self.desk.rounds.stop()
        self._requests.clear()
        for pool in self.pool_table.values():
            pool.stop()
        if self._timer is not None:
            self._timer.cancel()

    def on_away(self, seconds: float) -> None:
        """F9 comes first in whatever happens next; here it comes at once."""
        for coordinator in self.coordinators:
            if coordinator.lapsed:
                coordinator.lapse()

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, Renew | Renewals):
            self.guardian.on_message(message, partial(self.desk.reply, source), source)
        elif isinstance(message, GUARDIAN_MESSAGES):
            self._requests.put(partial(self.guardian.on_message, message, partial(self.desk.reply, source)))
        elif isinstance(message, Alive):
            self._on_alive(source, message)
        elif isinstance(message, Renewed):
            self.desk.rounds.on_renewed(self.desk.voter_of(source), message)
        elif isinstance(message, Updates | AckUpdates):
            with self.desk.rounds.together():
                for each in message.updates if isinstance(message, Updates) else message.acks:
                    self._on_pool(source, each)
        elif isinstance(message, Promised | Info | Refuse) and message.val is not None and not val_fits(message.val):
            self.desk.counts["malformed"] += 1  # The agent that asked goes on from it: an arc that cannot be is no answer.
        elif isinstance(message, Promised | Info | Accepted):
            self.desk.questions.answer(message.op, self.desk.voter_of(source), message, yes=True, era=message.era)
        elif isinstance(message, Refuse):
            self.desk.questions.answer(message.op, self.desk.voter_of(source), message, yes=False, era=message.era)
        elif isinstance(message, Abandoned):
            self.desk.questions.answer(message.op, source, message)
        elif isinstance(message, Abandon):
            self._on_abandon(source, message)
        else:
            self._on_pool(source, message)

    def _on_alive(self, source: NodeId, alive: Alive) -> None:
        pool = self.pool_table.get(alive.key.pool)
        coordinator = None if pool is None else pool.coordinators.get(alive.key.rid)
        if coordinator is not None:
            coordinator.on_alive(self.desk.voter_of(source), alive)

    def _on_pool(self, source: NodeId, message: Message) -> None:
        name = message.key.pool if isinstance(message, AckCjoin) else getattr(message, "pool", "")
        if not pool_fits(name):
            self.desk.counts["malformed"] += 1
            return
        self._gone.pop(source, None)  # An agent that speaks is here, whatever the membership said.
        pool = self.pool_table.get(name) or Pool(name, self.desk, self.cview, self._gone)
        pool.on_message(source, message)  # A pool that is not known here may answer too: "not here".

    def _on_abandon(self, source: NodeId, abandon: Abandon) -> None:
        pool = self.pool_table.get(abandon.pool)
        found = [each for each in ([] if pool is None else pool.active) if each.val.succ.rid == abandon.rid]

        def answer(refusal: str) -> None:
            self.desk.reply(source, Abandoned(abandon.op, refusal[:TEXT_CHARS_MAX]))

        if not found or not found[0].enqueue("abandon", Abandonment(found[0], abandon.rid, answer).start):
            answer("the ring has changed meanwhile; look again")

    def _call_abandon(self, agent: Agent, make: Callable[[int], Abandon], done: Callable[[str], None]) -> None:
        def ended(answer: Message | None) -> None:
            done(answer.refusal if isinstance(answer, Abandoned) else "the holder of the cell before it does not answer")

        if agent.life == self._host.me:
            self._abandon_here(make, done)
            return
        self._host.meet(*agent)
        Call(self._host, self.desk.questions, agent.life, make, every=0.5, tries=ABANDON_TRIES, done=ended).start()

    def _abandon_here(self, make: Callable[[int], Abandon], done: Callable[[str], None]) -> None:
        abandon = make(0)
        for each in self.coordinators:
            if each.val.succ.rid == abandon.rid and each.enqueue("abandon", Abandonment(each, abandon.rid, done).start):
                return
        done("the ring has changed meanwhile; look again")

    def _pool(self, name: str) -> Pool:
        pool = self.pool_table.get(name)
        if pool is None:
            self._forget_idle()
            if len(self.pool_table) >= POOLS_MAX:
                raise ConfigError(f"pool: {shown(name)} would be one of more than {POOLS_MAX} in which this agent takes part at a time")
            pool = self.pool_table[name] = Pool(name, self.desk, self.cview, self._gone)
        return pool

    def _forget_idle(self) -> None:
        """Only when there are too many: an idle pool still answers what was asked twice."""
        if len(self.pool_table) >= POOLS_MAX:
            self.pool_table = {name: pool for name, pool in self.pool_table.items() if not pool.idle}

    def _on_view(self, pool: str, number: int) -> None:
        entry, here = self.cview.owners(pool).get(number), self.pool_table.get(pool)
        if here is None:
            return
        here.doubt_vacant()
        if entry is not None and entry.free > 0:
            for candidate in tuple(here.line.asking):
                candidate.poke()

    def _on_membership(self, event: MembershipEvent) -> None:
        """F15: word of absence only starts a question. A life that was given up may come back (F1)."""
        if isinstance(event, Joined):
            self._gone.pop(event.member.id, None)
            return
        if not isinstance(event, Decided):
            if len(self._gone) >= GONE_MAX:
                del self._gone[next(iter(self._gone))]
            self._gone[event.member.id] = None
        for coordinator in self.coordinators:
            coordinator.on_absence(event.member.id)

    def _on_sweep(self) -> None:
        for pool in self.pool_table.values():
            pool.forget_old()
        self._orphans.sweep()
        self._timer = self._host.after(SWEEP_PERIOD, self._on_sweep)


def _check(pool: str, n: int, metadata: Mapping[str, str]) -> None:
    if not pool_fits(pool):
        raise ConfigError(f"pool: {shown(pool)} is no name of a pool; accepted are 1 to 56 bytes of printable text")
    if not 1 <= n <= TICKETS_MAX:
        raise ConfigError(f"of: {n} tickets; accepted are 1 to {TICKETS_MAX}")
    size = sum(len(name.encode()) + len(value.encode()) for name, value in metadata.items())
    if size > METADATA_BYTES_MAX:
        raise ConfigError(f"metadata: {size} bytes; accepted are at most {METADATA_BYTES_MAX}")


def _digest(seats: Seats) -> str:
    """Two lists of seats would mean two anchors (D9)."""
    return blake2b(",".join(str(slot) for slot in seats.slots).encode(), digest_size=DIGEST_BYTES).hexdigest()
