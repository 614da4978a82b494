"""The lease workload: every node watches k neighbours on either side, one request, one ack and one timeout per session.

It is the ring's traffic (ring 5.2) without its decisions, written as any machine is: one object per neighbour, ``host.send``,
``host.at``. ``lease_simpy`` says the same thing twice more. All three take the phases from here and draw loss and delay in
the order in which messages are sent, so that one seed gives one result on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from holdfast.host import Address, Host, Message, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.world import World

DELAY_MIN, DELAY_MAX = 0.001, 0.010
LOSS = 0.01
PERIOD = 1.0  # seconds from one request to the next


class Size(NamedTuple):
    """How much of it."""

    nodes: int = 1000
    neighbours: int = 3  # k: on either side
    seconds: float = 2.0  # of virtual time, per round
    seed: int = 1

    def neighbours_of(self, index: int) -> list[int]:
        steps = [step for step in range(-self.neighbours, self.neighbours + 1) if step]
        return [(index + step) % self.nodes for step in steps]

    def phases(self) -> list[list[float]]:
        """When each lease of each node begins its first session: spread over one period, or all nodes would speak at once."""
        random = Random(f"{self.seed}/phases")
        return [[PERIOD * random.random() for _ in self.neighbours_of(index)] for index in range(self.nodes)]


class Tally(NamedTuple):
    """What one node did: the result that all implementations must agree on."""

    requests_sent: int
    acks_sent: int
    acked: int  # sessions that ended well
    expired: int


def events(tallies: Sequence[Tally]) -> int:
    """Deliveries and timers behind a result: a session begins with a timer, whatever arrives was answered or counted."""
    return sum(tally.requests_sent + tally.acks_sent + tally.acked for tally in tallies)


class LeaseRequest(Message, frozen=True, tag=240):
    """Are you there?"""

    session: int


class LeaseAck(Message, frozen=True, tag=241):
    """Yes."""

    session: int


class LeaseMonitor:
    """Watches one neighbour through back-to-back sessions."""

    def __init__(self, host: Host, subject: NodeId) -> None:
        self.host, self.subject = host, subject
        self.session = 0
        self.ends_at = 0.0
        self.established = True  # Nothing was asked yet, so nothing can expire.
        self.acked = 0
        self.expired = 0

    def start(self, phase: float) -> None:
        self.ends_at = self.host.now + phase
        self.host.at(self.ends_at, self._on_session_end)

    def on_lease_ack(self, message: LeaseAck) -> None:
        if message.session == self.session and not self.established:
            self.established = True
            self.acked += 1

    def _on_session_end(self) -> None:
        if not self.established:
            self.expired += 1
        self.session += 1
        self.established = False
        self.host.send(self.subject, LeaseRequest(self.session))
        self.ends_at += PERIOD
        self.host.at(self.ends_at, self._on_session_end)


class Leases:
    """All leases of one node, and the answers to those of the others."""

    handles = (LeaseRequest, LeaseAck)
    fingerprint = b""

    def __init__(self, host: Host, neighbours: Sequence[NodeId], phases: Sequence[float]) -> None:
        self.host = host
        self.phases = phases
        self.monitors = {subject: LeaseMonitor(host, subject) for subject in neighbours}
        for subject in neighbours:
            host.meet(subject, Address(subject.name, PORT))

    def start(self) -> None:
        for monitor, phase in zip(self.monitors.values(), self.phases, strict=True):
            monitor.start(phase)

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, LeaseRequest):
            self.host.send(source, LeaseAck(message.session))
        elif isinstance(message, LeaseAck):
            self.monitors[source].on_lease_ack(message)

    def on_away(self, seconds: float) -> None:
        """No process is stopped here."""

    def stop(self) -> None:
        """Nothing to hand over."""


def build_world(size: Size, checkers: Sequence[Checker] = ()) -> World:
    """The workload as a user of the lab runs it."""
    names = [f"n{index}" for index in range(size.nodes)]
    lives = [NodeId(name, 1) for name in names]
    phases = size.phases()

    def build(host: Host) -> list[Leases]:
        index = int(host.me.name[1:])
        return [Leases(host, [lives[neighbour] for neighbour in size.neighbours_of(index)], phases[index])]

    link = Link(delay=Uniform(DELAY_MIN, DELAY_MAX), loss=LOSS)
    return World(size.seed, build, names=names, link=link, checkers=checkers)


def leases_of(world: World) -> list[Leases]:
    return [host.node.use(Leases) for host in world.nodes.values()]


def tallies_of(world: World) -> list[Tally]:
    return [_tally(host.endpoint.sent, host.node.use(Leases)) for host in world.nodes.values()]


def _tally(sent: dict[type[Message], int], leases: Leases) -> Tally:
    monitors = leases.monitors.values()
    return Tally(sent[LeaseRequest], sent[LeaseAck], sum(m.acked for m in monitors), sum(m.expired for m in monitors))
