"""A few agents with tickets whose messages a test holds back, loses and delivers by hand.

Messages take no time, clocks run alike, and nothing happens between two steps of ``run``. What a predicate asks for stays in ``held`` until
the test lets it go. What was sent to a former life is dropped, as by the envelope (F3), unless a test wants to see what happens otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.events import Event
from holdfast.features.tickets.protocol.config import TicketConfig
from holdfast.features.tickets.protocol.coordinator import Coordinator
from holdfast.features.tickets.protocol.tickets import Attempt, Tickets
from holdfast.host import Address, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.hold import LossReason
from holdfast.kit.seats import Seats
from holdfast.kit.slots import Slot, own_slot
from tests.support.fake_host import FakeHost, FakeStorage
from tests.support.fake_members import FakeMembers, member

POOL = "pool"
STEP = 0.01
CONFIG = TicketConfig(period=0.5, lease=2.0, rtx=0.1)
ROUNDS_MAX = 500  # of messages that cause messages within one step

Item = tuple[str, str, Message]  # from, to, message
Addressed = tuple[str, str, Message, int]  # and the boot of the life it is meant for; 0: whoever is there
Which = Callable[[str, str, Message], bool]


class Asker:
    """One user: remembers what it was told."""

    def __init__(self, host: FakeHost) -> None:
        self._host = host
        self.attempt: Attempt | None = None
        self.number, self.token, self.until = -1, 0, 0.0
        self.lost: list[LossReason] = []
        self.queued: list[int] = []
        self.at_risk = 0
        self.acquired_at = 0.0

    @property
    def acting(self) -> bool:
        return self._host.now < self.until

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self.number, self.token, self.until, self.acquired_at = number, token, deadline, self._host.now

    def on_extended(self, deadline: float) -> None:
        self.until = deadline

    def on_at_risk(self) -> None:
        self.at_risk += 1

    def on_lost(self, reason: LossReason) -> None:
        self.lost.append(reason)

    def on_queued(self, position: int, why: str = "") -> None:
        self.queued.append(position)

    def release(self) -> None:
        assert self.attempt is not None
        self.until = 0.0
        self.attempt.release()


class Stand:
    """Agents by name; the first ``seats`` of them are seats."""

    def __init__(self, names: str, *, seats: int = 1, config: TicketConfig = CONFIG) -> None:
        self.names, self.config = names, config
        self.slots = [Slot(i, name, Address(name, 1)) for i, name in enumerate(names[:seats])]
        self.hosts: dict[str, FakeHost] = {}
        self.members: dict[str, FakeMembers] = {}
        self.seats: dict[str, Seats] = {}
        self.tickets: dict[str, Tickets] = {}
        self.broadcast: dict[str, Broadcast] = {}
        self.exchange: dict[str, Exchange] = {}
        self.down: set[str] = set()
        self.lose: Which = lambda source, target, message: False
        self.hold: Which = lambda source, target, message: False
        self.held: list[Addressed] = []
        self.confused = False  # lives are not told apart
        self.sent: list[Item] = []
        for name in names:
            self._start(name, FakeHost(name, storage=FakeStorage(auto=True)))
        self.run(config.lease * 2)

    # What tests do.

    def acquire(self, name: str, n: int, *, wait: bool = True, run: float = 0.0) -> Asker:
        asker = Asker(self.hosts[name])
        asker.attempt = self.tickets[name].acquire(POOL, n, asker, wait=wait)
        if run:
            self.run(run)
        return asker

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        self.deliver()
        while self.now < end - STEP / 2:
            for name, host in self.hosts.items():
                if name not in self.down:
                    host.pass_time(STEP)
                else:
                    host.clock += STEP
            self.deliver()

    def crash(self, name: str) -> None:
        self.down.add(name)

    def restart(self, name: str) -> None:
        """The next life, with the same disk."""
        former = self.hosts[name]
        host = FakeHost(name, former.me.boot + 1, storage=FakeStorage(former.disk.durable, auto=True))
        host.clock = former.clock
        self.down.discard(name)
        self._start(name, host)
        self.deliver()

    def pause(self, name: str, seconds: float) -> None:
        """SIGSTOP for a while; what arrives waits, and is served before the timers that are due (F10)."""
        before = self.hold
        self.hold = lambda source, target, message: target == name or before(source, target, message)
        self.down.add(name)
        self.run(seconds)
        self.hold = before
        held = [item for item in self.held if item[1] == name]
        self.held = [item for item in self.held if item[1] != name]
        self.down.discard(name)
        self.tickets[name].on_away(seconds)
        for item in held:
            self._receive(item)
        self.hosts[name].pause(0.0)
        self.deliver()

    def release_held(self, which: Which = lambda source, target, message: True) -> None:
        """Deliver what was held back, now."""
        freed = [item for item in self.held if which(*item[:3])]
        self.held = [item for item in self.held if not which(*item[:3])]
        for item in freed:
            self._receive(item)
        self.deliver()

    def coordinators(self, name: str) -> list[Coordinator]:
        return self.tickets[name].coordinators

    def holder(self, number: int) -> list[str]:
        """Who owns a ticket now, each by its own clock."""
        return [name for name in self.names for each in self.tickets[name].coordinators if each.valid and each.head == number]

    @property
    def now(self) -> float:
        return max(host.clock for host in self.hosts.values())

    def events(self, kind: type[Event]) -> list[tuple[str, Event]]:
        return [(name, event) for name, host in self.hosts.items() for event in host.emitted if isinstance(event, kind)]

    def count(self, kind: type[Message], source: str = "") -> int:
        return sum(isinstance(message, kind) and (not source or who == source) for who, _, message in self.sent)

    # How messages travel.

    def deliver(self) -> None:
        for _ in range(ROUNDS_MAX):
            batch = self._collect()
            if not batch:
                return
            for item in batch:
                if self.lose(*item[:3]):
                    continue
                if self.hold(*item[:3]):
                    self.held.append(item)
                else:
                    self._receive(item)
        raise AssertionError("the conversation does not end")

    def _collect(self) -> list[Addressed]:
        batch: list[Addressed] = []
        for name, host in self.hosts.items():
            if name in self.down:
                host.sent = []
                continue
            host.pass_time(0.0)
            for to, message in host.sent:
                batch.append((name, to.name, message, to.boot) if isinstance(to, NodeId) else (name, to.host, message, 0))
            host.sent = []
        self.sent += [item[:3] for item in batch]
        return batch

    def _receive(self, item: Addressed) -> None:
        source, target, message, boot = item
        if target in self.down or target not in self.hosts:
            return
        if boot not in (0, self.hosts[target].me.boot) and not self.confused:
            return
        for machine in (self.seats[target], self.broadcast[target], self.exchange[target], self.tickets[target]):
            if type(message) in machine.handles:
                machine.on_message(self.hosts[source].me, message)

    def _start(self, name: str, host: FakeHost) -> None:
        self.hosts[name] = host
        members = self.members[name] = FakeMembers(host.me)
        for other in self.names:  # Everybody keeps the ticket list.
            life = self.hosts[other].me if other in self.hosts else NodeId(other, 1)
            members.listed[life] = member(life, {"topic:tickets": b""})
        broadcast = self.broadcast[name] = Broadcast(host, members)
        exchange = self.exchange[name] = Exchange(host, broadcast)
        own = own_slot(self.slots, name, host.address)
        seats = self.seats[name] = Seats(host, self.slots, own, machine=name, rho=self.config.rho, length_max=self.config.lease)
        self.tickets[name] = Tickets(host, members, seats, broadcast, exchange, self.config)
        for machine in (broadcast, exchange, seats, self.tickets[name]):
            machine.start()
