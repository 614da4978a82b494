"""Agents with tickets, for experiments: who owns what from when to when, in true time, and what it costs.

Spec: tickets 8 (E5, E7, E9 to E12, E14). Seats s0.. and others c0..; links of 1 to 10 ms; clocks that run as wrong as they may. The
checkers of the scenario tickets/mixed look on. The membership is a list that is right from the start and says of a death nothing, or
says it late: what is measured is tickets alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from math import inf
from random import Random

from holdfast.events import Event
from holdfast.features.tickets.lab.checkers import Cells, LeaseCover, NoReturn, OwnExclusive, QuorumAlone, TicketWatch, TokensGrow
from holdfast.features.tickets.lab.scenarios.tickets import POOL, readable
from holdfast.features.tickets.lab.users import Habits, TicketUsers, User
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.messages import MESSAGES
from holdfast.features.tickets.protocol.tickets import Tickets
from holdfast.features.tickets.protocol.values import Val
from holdfast.host import Address, Host, Machine, Member
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import LossReason
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.accounting import total
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.listed_members import ListedMembers
from holdfast.lab.network import PORT
from holdfast.lab.world import World

DELAY = Uniform(0.001, 0.010)  # section 8
ROUND_TRIP = DELAY.low + DELAY.high  # in the mean
AGAIN = 0.05  # mean seconds until a user that lost its ticket wants another
PATIENCE = 60.0  # seconds that an experiment waits for a ticket
STEP = 0.05  # seconds between two looks at whether something has come about
TALK = frozenset(kind.__name__ for kind in MESSAGES)  # of tickets; announcements are the kit's


class Grant:
    """One ticket as its user was told of it, in true time."""

    def __init__(self, name: str, number: int, token: int, since: float, until: float) -> None:
        self.name, self.number, self.token = name, number, token
        self.since = since
        self.until = until  # the last deadline it was told, or when it heard of the end


class Wisher(User):
    """Wants one ticket and keeps it; wants another when it was lost."""

    def __init__(self, host: Host, tickets: Tickets, habits: Habits, group: TicketGroup) -> None:
        super().__init__(host, tickets, habits)
        self._group = group
        self.grant: Grant | None = None

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        super().on_granted(token, deadline, number)
        group, name = self._group, self._host.me.name
        self.grant = Grant(name, number, token, group.world.now, group.true(name, deadline))
        group.on_grant(self.grant)

    def on_extended(self, deadline: float) -> None:
        super().on_extended(deadline)
        if self.grant is not None and self.acting:
            self.grant.until = self._group.true(self._host.me.name, deadline)

    def on_lost(self, reason: LossReason) -> None:
        self._end()
        super().on_lost(reason)

    def leave(self) -> None:
        self._end()
        super().leave()

    def _end(self) -> None:
        if self.grant is not None:
            self.grant.until = min(self.grant.until, self._group.world.now)
            self.grant = None


class Wishers(TicketUsers):
    """The users of one agent; each begins when the experiment says so."""

    def __init__(self, host: Host, tickets: Tickets, group: TicketGroup) -> None:
        self._make = partial(Wisher, host, tickets, Habits(POOL, group.n, users=0, keep=True, pause=AGAIN), group)
        super().__init__(host, tickets, Habits(POOL, group.n, users=0))

    def start(self) -> None:
        """No user wants anything yet."""

    def wish(self) -> None:
        user = self._make()
        self.users.append(user)
        user.begin()


class TicketGroup:
    """A group of agents, one pool of ``n`` tickets. ``word``: seconds until the membership says that an agent died."""

    def __init__(
        self,
        seed: int,
        n: int,
        *,
        seats: int,
        others: int,
        config: TicketConfig,
        loss: float = 0.0,
        word: float = inf,
        checked: bool = True,
    ) -> None:
        self.n, self.config = n, config
        self.grants: list[Grant] = []  # in order of their beginning
        self.events: list[tuple[float, str, Event]] = []  # of the kinds that were asked for
        self.cells = Cells()
        self._word = word
        self._random = Random(f"{seed}/drift")
        self._slots = tuple(Slot(i, f"s{i}", Address(f"s{i}", PORT)) for i in range(seats))
        self._heard: Callable[[], None] = _nothing
        self._listed: dict[str, Member] = {}
        self.world = World(seed, self._build, link=Link(DELAY, loss=loss), checkers=self._checkers() if checked else ())
        self.others = [f"c{i}" for i in range(others)]
        for name in [slot.name for slot in self._slots] + self.others:
            self.start(name)
        self.run(2 * config.lease)  # F13: seats that begin wait once

    # What experiments do.

    def start(self, name: str) -> None:
        rho = self.config.rho
        self.world.drift[name] = 1 + rho * self._random.choice((-1.0, 1.0, self._random.uniform(-1, 1)))
        host = self.world.start(name)
        self._listed[name] = Member(host.me, host.address, {})
        self._show()

    def crash(self, name: str) -> None:
        self.world.crash(name)
        if self._word < inf:
            self.world.at(self.world.now + self._word, lambda: self._bury(name))

    def wish(self, name: str) -> None:
        host = self.world.nodes[name]
        self.world.step(host, host.node.use(Wishers).wish)

    def release(self, name: str) -> None:
        """Everything that the users of this agent have; they want nothing any more."""
        host = self.world.nodes[name]
        for user in host.node.use(Wishers).users:
            self.world.step(host, user.leave)

    def note(self, *kinds: type[Event]) -> None:
        """From now on keep events of these kinds."""

        def listen(host: LabHost, event: Event) -> None:
            if isinstance(event, kinds):
                self.events.append((self.world.now, host.me.name, event))

        self.world.listeners.append(listen)

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Run until it is so; False if it is not within so many seconds."""
        end = self.world.now + seconds
        while not done():
            if self.world.now >= end:
                return False
            self.run(STEP)
        return True

    def next_grant(self, before: int) -> float | None:
        """True time of the grant after so many; None if there is none for a minute."""
        return self.grants[before].since if self.until(lambda: len(self.grants) > before, PATIENCE) else None

    def owning(self, names: Iterable[str] | None = None) -> list[Grant]:
        """The tickets that users of these living agents act under now."""
        chosen = [self.world.nodes[name] for name in (self.world.nodes if names is None else names)]
        users = [user for host in chosen if not host.dead for user in host.node.use(Wishers).users]
        return [user.grant for user in users if isinstance(user, Wisher) and user.grant is not None and user.acting]

    def coordinators(self) -> list[tuple[str, Coordinator]]:
        """All that own a ticket now, in the order of the ring: the anchor first, then downward (D24)."""
        found = [(host.me.name, each) for host in self.world.alive for each in host.node.use(Tickets).coordinators if each.valid]
        return sorted(found, key=lambda item: -item[1].head % self.n)

    def lost(self) -> list[Val]:
        """Cells on the ring without a holder whose guardians are dead, most of them: their arcs have no owner for ever (D27)."""
        held = {coordinator.who for _, coordinator in self.coordinators()}
        return [val for val, keys in self.cells.walk(POOL) if val.who not in held and not readable(self.world, self.cells, keys, val)]

    def sent(self) -> tuple[dict[str, int], int]:
        """Messages of tickets so far by kind, and those of everything else: announcements and who sits where."""
        counts = {kind: each.messages for kind, each in total(self.world).items()}
        return {kind: number for kind, number in counts.items() if kind in TALK}, sum(
            number for kind, number in counts.items() if kind not in TALK
        )

    def overlaps(self) -> list[str]:
        """G1 once more, from what users were told alone: tickets that two of them had at a time."""
        found = []
        for number in range(self.n):
            held = [grant for grant in self.grants if grant.number == number]
            found += [f"ticket {number}: {b.name} while {a.name} has it" for a, b in pairwise(held) if b.since < a.until]
        return found

    # What users tell.

    def true(self, name: str, instant: float) -> float:
        """An instant of an agent's clock, in true time."""
        host = self.world.nodes[name]
        return self.world.now + (instant - host.now) / host.rate

    def on_grant(self, grant: Grant) -> None:
        self.grants.append(grant)
        self._heard()

    def when_granted(self, listener: Callable[[], None]) -> None:
        """Called at the very instant of each grant from now on."""
        self._heard = listener

    def _show(self) -> None:
        for host in self.world.alive:
            members = host.node.use(ListedMembers)
            if members.differs(self._listed):
                self.world.step(host, partial(members.show, dict(self._listed)))

    def _bury(self, name: str) -> None:
        del self._listed[name]
        self._show()

    def _checkers(self) -> Sequence[Checker]:
        cover = LeaseCover()
        return [TicketWatch(OwnExclusive(), cover, QuorumAlone()), cover, TokensGrow(), self.cells, NoReturn()]

    def _build(self, host: Host) -> Sequence[Machine]:
        members = ListedMembers(host)
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast)
        own = own_slot(self._slots, host.me.name, host.address)
        seats = Seats(host, self._slots, own, machine=host.me.name, rho=self.config.rho, length_max=self.config.lease)
        tickets = Tickets(host, members, seats, broadcast, exchange, self.config)
        return [members, broadcast, exchange, seats, tickets, Wishers(host, tickets, self)]


def lock(seed: int, loss: float, *, seats: int = 3, candidates: int = 3) -> tuple[TicketGroup, str]:
    """E10, E11: all candidates want the only ticket, and one has it, at any point of its round. Who that is."""
    group = TicketGroup(seed, 1, seats=seats, others=candidates, config=TicketConfig(), loss=loss)
    random = group.world.random
    for name in random.sample(group.others, len(group.others)):
        group.wish(name)
        group.run(random.uniform(0.0, 0.5))
    group.run(4.0 + random.random())
    owned = group.until(lambda: bool(group.owning()), PATIENCE)
    assert owned, "no user ever owns the lock"
    return group, group.owning()[0].name


def _nothing() -> None:
    """No listener is set."""
