"""Rounds: all coordinators of one agent renew together.  Spec: tickets 3 (RENEW, UPDATE), 5.3; D5, D22; docs/decisions.md H166, H168.

One timer for all of them. When the first is due, so are all whose turn would come soon, and they share messages: to each guardian
one for many cells, to each agent with successors one for many of them. A page of them takes one callback, so that what others say is heard
between two pages.

An agent that is late loses the tickets that it holds. How late this timer is says so long before: see ``late``.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from typing import NamedTuple, Protocol

from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.messages import (
    CELLS_MAX,
    UPDATES_MAX,
    AckUpdate,
    AckUpdates,
    Alive,
    Renew,
    Renewal,
    Renewals,
    Renewed,
    Update,
    Updates,
)
from holdfast.features.tickets.protocol.values import NO_BALLOT, Agent, Key, Place, Voter, Who
from holdfast.host import Host, Message, Timer

EARLY = 0.75  # in T: whose turn comes within it goes along; so there are at most four batches in three rounds, however they began
PAGE_CELLS = CELLS_MAX  # coordinators whose rounds one callback runs: about 2 ms
PAGE_PEERS = 32  # and guardians and neighbours that they may have together: half of what a callback may reach (F17)
PAGE_BYTES = 900  # of cells or updates in one message; the rest of a datagram is envelope
CELL_BYTES = 32  # of one without its names: three numbers of 9 bytes, what is small, and the arrays around it
AGENT_BYTES = 24  # of one agent without its names
PAGES_MAX = 2048  # pages whose answers count: 4096 cells in pages of 10, for the rounds of one lease
LATE_ROUNDS = 1.0  # in T: so late it has missed nothing yet, and two rounds are left of a lease of four


class Turning(Protocol):
    """A coordinator, as far as rounds are concerned."""

    @property
    def peers(self) -> Sequence[Place | Agent]:
        """Whom its round may write to."""

    def on_round(self, stamp: float) -> None:
        """Its round, begun at ``stamp``."""

    def on_alive(self, source: Voter, alive: Alive) -> None: ...


class Sender(Protocol):
    """The way out, and what belongs to the agent: ``desk.Desk``."""

    host: Host
    config: TicketConfig
    counts: Counter[str]

    def post(self, place: Place, message: Message) -> None: ...
    def tell(self, agent: Agent, message: Message) -> None: ...


class Page(NamedTuple):
    """What one ``Renewals`` asked for, and when."""

    stamp: float
    cells: tuple[tuple[Turning, Key, Who], ...]


class Rounds:
    """The rounds of one agent."""

    def __init__(self, desk: Sender) -> None:
        self.lateness = 0.0  # seconds that the last round was late
        self._desk, self._host, self._config = desk, desk.host, desk.config
        self._due: dict[Turning, float] = {}
        self._ready: deque[Turning] = deque()  # whose round has come
        self._timer: Timer | None = None
        self._late_until = -inf
        self._serial = 0
        self._pages: dict[int, Page] = {}
        self._renewals: list[tuple[Turning, Sequence[Place], Renew]] | None = None  # of the page under way
        self._words: dict[Agent, list[Update | AckUpdate]] | None = None  # to neighbours, of what is under way

    def __len__(self) -> int:
        return len(self._due)

    @property
    def late(self) -> float:
        """Seconds by which this agent is late, 0.0 if it is not: then it has more to do than it can, and takes in nothing new (H168)."""
        overdue = 0.0 if self._timer is None else self._host.now - self._timer.due_at
        if overdue > LATE_ROUNDS * self._config.period:
            return overdue
        return self.lateness if self._host.now < self._late_until else 0.0

    # What coordinators ask.

    def plan(self, coordinator: Turning, at: float) -> None:
        """Its next round."""
        self._due.pop(coordinator, None)
        self._due[coordinator] = at
        if not self._ready and (self._timer is None or at < self._timer.due_at):
            self._arm()

    def forget(self, coordinator: Turning) -> None:
        """It has no more. A timer that comes for it does nothing."""
        self._due.pop(coordinator, None)

    def begin(self, coordinator: Turning) -> None:
        """Its first round, now, by itself: a client waits for it."""
        self._turn([coordinator])

    def renew(self, coordinator: Turning, places: Sequence[Place], renew: Renew) -> None:
        if self._renewals is None:
            for place in places:
                self._desk.post(place, renew)
        else:
            self._renewals.append((coordinator, places, renew))

    def tell(self, neighbour: Agent, word: Update | AckUpdate) -> None:
        """With the others that are told the same agent in this moment."""
        if self._words is None:
            self._desk.tell(neighbour, word)
        else:
            self._words.setdefault(neighbour, []).append(word)

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is told to neighbours in this block leaves at its end, in few messages."""
        if self._words is not None:
            yield
            return
        self._words = {}
        yield
        words, self._words = self._words, None
        for neighbour, its in words.items():
            updates = [word for word in its if isinstance(word, Update)]
            acks = [word for word in its if isinstance(word, AckUpdate)]
            for part in _pages([_update_bytes(update) for update in updates], UPDATES_MAX):
                self._desk.tell(neighbour, Updates(tuple(updates[part])) if len(updates[part]) > 1 else updates[part][0])
            for part in _pages([_ack_bytes(ack) for ack in acks], UPDATES_MAX):
                self._desk.tell(neighbour, AckUpdates(tuple(acks[part])) if len(acks[part]) > 1 else acks[part][0])

    def on_renewed(self, source: Voter, renewed: Renewed) -> None:
        """Each cell that is named is answered, and no other. What is granted counts from our own note of when we asked (D5)."""
        page = self._pages.get(renewed.serial)
        if page is None:
            self._desk.counts["strangers"] += 1
            return
        stale = dict.fromkeys(renewed.stale)
        answers = [(index, True, NO_BALLOT, index in stale) for index in renewed.ok]
        answers += [(each.place, False, each.promised, each.stale) for each in renewed.refused]
        for index, ok, promised, old in answers:
            if index < len(page.cells):
                coordinator, key, who = page.cells[index]
                coordinator.on_alive(source, Alive(key, who, page.stamp, ok, promised, old, renewed.draining))

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due.clear()
        self._ready.clear()
        self._pages.clear()

    # The clock.

    def _arm(self) -> None:
        due = min(self._due.values(), default=inf)
        if self._timer is not None and self._timer.due_at != due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and due < inf:
            self._timer = self._host.at(due, self._on_due)

    def _on_due(self) -> None:
        now, timer = self._host.now, self._timer
        assert timer is not None
        self._timer, self.lateness = None, now - timer.due_at
        overdue = self.lateness
        if overdue > LATE_ROUNDS * self._config.period:
            self._desk.counts["late_rounds"] += 1
            self._late_until = now + self._config.period
        soon = now + EARLY * self._config.period
        self._ready.extend(each for each, at in self._due.items() if at <= soon)
        oldest = now - self._config.lease  # No answer to what was asked before would extend anything.
        self._pages = {serial: page for serial, page in self._pages.items() if page.stamp > oldest}
        self._on_page()

    def _on_page(self) -> None:
        page: list[Turning] = []
        peers: set[Place | Agent] = set()
        while self._ready and len(page) < PAGE_CELLS and len(peers) < PAGE_PEERS:
            each = self._ready.popleft()
            if each in self._due:  # It may have ended, or had its round, since it was put there.
                page.append(each)
                peers.update(each.peers)
        self._turn(page)
        if self._ready:
            self._host.after(0.0, self._on_page)
        else:
            self._arm()

    def _turn(self, page: Sequence[Turning]) -> None:
        """The clock is read first (F8): whatever is granted counts from before it was asked for."""
        stamp, before = self._host.now, self._renewals
        self._renewals = []
        with self.together():
            for each in page:
                self._due.pop(each, None)
                each.on_round(stamp)
        renewals, self._renewals = self._renewals, before
        self._send(stamp, renewals)

    def _send(self, stamp: float, renewals: Sequence[tuple[Turning, Sequence[Place], Renew]]) -> None:
        kept: dict[Place, list[int]] = {}  # what each guardian keeps of them
        for number, (_, places, _) in enumerate(renewals):
            for place in places:
                kept.setdefault(place, []).append(number)
        alike: dict[tuple[int, ...], list[Place]] = {}  # seats keep the same, so they are written the same
        for place, numbers in kept.items():
            alike.setdefault(tuple(numbers), []).append(place)
        for same, places in alike.items():
            its = [renewals[number] for number in same]
            for part in _pages([_renew_bytes(renew) for _, _, renew in its], CELLS_MAX):
                message = self._message(stamp, its[part])
                for place in places:
                    self._desk.post(place, message)

    def _message(self, stamp: float, renewals: Sequence[tuple[Turning, Sequence[Place], Renew]]) -> Renew | Renewals:
        if len(renewals) == 1:
            return renewals[0][2]
        self._serial += 1
        if len(self._pages) >= PAGES_MAX:
            del self._pages[next(iter(self._pages))]
        self._pages[self._serial] = Page(stamp, tuple((each, renew.key, renew.who) for each, _, renew in renewals))
        self._desk.counts["renewed_together"] += len(renewals)
        return Renewals(self._serial, stamp, tuple(_renewal(renew) for _, _, renew in renewals))


def _renewal(renew: Renew) -> Renewal:
    holder, ballot = renew.who.holder, renew.ballot
    assert holder is not None
    return Renewal(renew.key, holder.serial, renew.who.token, ballot.number, None if ballot.lease == holder else ballot.lease, renew.seq)


def _renew_bytes(renew: Renew) -> int:
    size = CELL_BYTES + len(renew.key.pool.encode()) + len(renew.key.rid.encode())
    return size if renew.ballot.lease == renew.who.holder else size + AGENT_BYTES + len(renew.ballot.lease.life.name.encode())


def _update_bytes(update: Update) -> int:
    return CELL_BYTES + len(update.pool.encode()) + len(update.rid.encode()) + sum(map(_agent_bytes, update.chain))


def _ack_bytes(ack: AckUpdate) -> int:
    agents = (ack.agent, *(place.agent for place in ack.places))
    return CELL_BYTES + len(ack.pool.encode()) + len(ack.rid.encode()) + sum(map(_agent_bytes, agents))


def _agent_bytes(agent: Agent) -> int:
    return AGENT_BYTES + len(agent.life.name.encode()) + len(agent.address.host)


def _pages(sizes: Sequence[int], at_most: int) -> Iterator[slice]:
    """So that none has more than ``at_most`` entries, or more than ``PAGE_BYTES`` and more than one."""
    start, room = 0, PAGE_BYTES
    for number, size in enumerate(sizes):
        if number > start and (size > room or number - start >= at_most):
            yield slice(start, number)
            start, room = number, PAGE_BYTES
        room -= size
    if start < len(sizes):
        yield slice(start, len(sizes))
