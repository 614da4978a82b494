"""The lease workload for SimPy: as a bare callback queue, and in SimPy's own process style.

Both keep what the lab keeps (loss, delay, a count per node and type) and nothing else: a message is whatever is cheapest,
nobody routes, and only public names of SimPy are used. Of several spellings the fastest one that reads well stands here:
a message as the ``value`` of its timeout beats a lambda by a tenth, a callback that puts beats a process per message by a third.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator
from random import Random
from typing import Any

import simpy

from benchmarks.lease import DELAY_MAX, DELAY_MIN, LOSS, PERIOD, Size, Tally

DELAY_SPAN = DELAY_MAX - DELAY_MIN
REQUEST, ACK = "request", "ack"


Chance = Callable[[], float]


def chances(size: Size) -> tuple[Chance, Chance]:
    """What the lab's network draws from: one stream for losses, one for delays, both in the order of sending."""
    return Random(f"{size.seed}/network").random, Random(f"{size.seed}/delays").random


# ------------------------------------------------------------------------------------------------------------- callbacks


class CallbackNode:
    """Counts what it sends, as the lab does for every node."""

    def __init__(self, env: simpy.Environment, loss: Chance, delay: Chance) -> None:
        self.env, self.loss, self.delay = env, loss, delay
        self.sent: dict[str, int] = defaultdict(int)
        self.leases: list[CallbackLease] = []

    def transmit(self, kind: str, arrive: Callable[[Any], None], session: int) -> None:
        self.sent[kind] += 1
        if self.loss() < LOSS:
            return
        self.env.timeout(DELAY_MIN + DELAY_SPAN * self.delay(), session).callbacks.append(arrive)


class CallbackLease:
    """Both ends of one lease: a bare queue needs no address, whoever schedules a callback knows whose it is."""

    def __init__(self, monitor: CallbackNode, subject: CallbackNode) -> None:
        self.monitor, self.subject = monitor, subject
        self.session = 0
        self.established = True
        self.acked = 0
        self.expired = 0

    def start(self, phase: float) -> None:
        self.monitor.env.timeout(phase).callbacks.append(self._on_session_end)

    def _on_request(self, event: Any) -> None:
        self.subject.transmit(ACK, self._on_ack, event.value)

    def _on_ack(self, event: Any) -> None:
        if event.value == self.session and not self.established:
            self.established = True
            self.acked += 1

    def _on_session_end(self, _: simpy.Event) -> None:
        if not self.established:
            self.expired += 1
        self.session += 1
        self.established = False
        self.monitor.transmit(REQUEST, self._on_request, self.session)
        self.monitor.env.timeout(PERIOD).callbacks.append(self._on_session_end)


class Callbacks:
    """The whole group on a bare callback queue."""

    def __init__(self, size: Size) -> None:
        self.env, (loss, delay) = simpy.Environment(), chances(size)
        self.nodes = [CallbackNode(self.env, loss, delay) for _ in range(size.nodes)]
        for index, (node, phases) in enumerate(zip(self.nodes, size.phases(), strict=True)):
            node.leases = [CallbackLease(node, self.nodes[neighbour]) for neighbour in size.neighbours_of(index)]
            for lease, phase in zip(node.leases, phases, strict=True):
                lease.start(phase)

    def run(self, until: float) -> None:
        self.env.run(until)

    def tallies(self) -> list[Tally]:
        return [_tally(node.sent, node.leases) for node in self.nodes]


# ------------------------------------------------------------------------------------------------------------- processes


class ProcessNode:
    """A node with an inbox, and the process that reads it."""

    def __init__(self, env: simpy.Environment, loss: Chance, delay: Chance) -> None:
        self.env, self.loss, self.delay = env, loss, delay
        self.inbox = simpy.Store(env)
        self.sent: dict[str, int] = defaultdict(int)
        self.leases: list[ProcessLease] = []

    def transmit(self, target: ProcessNode, kind: str, lease: ProcessLease, session: int) -> None:
        self.sent[kind] += 1
        if self.loss() < LOSS:
            return
        arrival: Any = self.env.timeout(DELAY_MIN + DELAY_SPAN * self.delay())
        arrival.callbacks.append(lambda _: target.inbox.put((kind, lease, session)))

    def serve(self) -> Generator[simpy.Event, Any, None]:
        while True:
            kind, lease, session = yield self.inbox.get()
            if kind == REQUEST:
                self.transmit(lease.monitor, ACK, lease, session)
            else:
                lease.on_ack(session)


class ProcessLease:
    """One lease: a process that waits for the ack or the end of the session, whatever comes first."""

    def __init__(self, monitor: ProcessNode, subject: ProcessNode) -> None:
        self.monitor, self.subject = monitor, subject
        self.session = 0
        self.answered = monitor.env.event()
        self.acked = 0
        self.expired = 0

    def run(self, phase: float) -> Generator[simpy.Event, Any, None]:
        env = self.monitor.env
        yield env.timeout(phase)
        while True:
            self.session += 1
            self.answered, end = env.event(), env.timeout(PERIOD)
            self.monitor.transmit(self.subject, REQUEST, self, self.session)
            yield self.answered | end
            if self.answered.triggered:
                self.acked += 1
                yield end
            else:
                self.expired += 1

    def on_ack(self, session: int) -> None:
        if session == self.session and not self.answered.triggered:
            self.answered.succeed()


class Processes:
    """The whole group as processes: one per lease, one per inbox."""

    def __init__(self, size: Size) -> None:
        self.env, (loss, delay) = simpy.Environment(), chances(size)
        self.nodes = [ProcessNode(self.env, loss, delay) for _ in range(size.nodes)]
        for index, (node, phases) in enumerate(zip(self.nodes, size.phases(), strict=True)):
            self.env.process(node.serve())
            node.leases = [ProcessLease(node, self.nodes[neighbour]) for neighbour in size.neighbours_of(index)]
            for lease, phase in zip(node.leases, phases, strict=True):
                self.env.process(lease.run(phase))

    def run(self, until: float) -> None:
        self.env.run(until)

    def tallies(self) -> list[Tally]:
        return [_tally(node.sent, node.leases) for node in self.nodes]


def _tally(sent: dict[str, int], leases: list[CallbackLease] | list[ProcessLease]) -> Tally:
    return Tally(sent[REQUEST], sent[ACK], sum(lease.acked for lease in leases), sum(lease.expired for lease in leases))
