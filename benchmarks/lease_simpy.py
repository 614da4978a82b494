"""The lease workload for SimPy: as a bare callback queue, and in SimPy's own process style.

The protocol is said as in ``lease``: a node hears a message from a source and looks up whose lease it is about. What is gone
is all that the lab does around it: no host, no addresses, no envelope, no routes. A message is a tuple, a peer is the node
itself, and only loss, delay and a count per node and type remain. Only public names of SimPy are used; of several spellings
the fastest one that reads well stands here: a message as the ``value`` of its timeout is quicker than one in a lambda, a
callback that puts into an inbox a third quicker than SimPy's own example, a process per message.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
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
    """A node whose timers and arrivals are callbacks of timeouts."""

    def __init__(self, env: simpy.Environment, loss: Chance, delay: Chance) -> None:
        self.env, self.loss, self.delay = env, loss, delay
        self.sent: dict[str, int] = defaultdict(int)
        self.leases: dict[CallbackNode, CallbackLease] = {}

    def send(self, target: CallbackNode, kind: str, session: int) -> None:
        self.sent[kind] += 1
        if self.loss() < LOSS:
            return
        self.env.timeout(DELAY_MIN + DELAY_SPAN * self.delay(), (self, kind, session)).callbacks.append(target.on_message)

    def on_message(self, event: Any) -> None:
        source, kind, session = event.value
        if kind == REQUEST:
            self.send(source, ACK, session)
        else:
            self.leases[source].on_ack(session)


class CallbackLease:
    """Watches one neighbour."""

    def __init__(self, node: CallbackNode, subject: CallbackNode) -> None:
        self.node, self.subject = node, subject
        self.session = 0
        self.established = True
        self.acked = 0
        self.expired = 0

    def start(self, phase: float) -> None:
        self.node.env.timeout(phase).callbacks.append(self._on_session_end)

    def on_ack(self, session: int) -> None:
        if session == self.session and not self.established:
            self.established = True
            self.acked += 1

    def _on_session_end(self, _: simpy.Event) -> None:
        if not self.established:
            self.expired += 1
        self.session += 1
        self.established = False
        self.node.send(self.subject, REQUEST, self.session)
        self.node.env.timeout(PERIOD).callbacks.append(self._on_session_end)


class Callbacks:
    """The whole group on a bare callback queue."""

    def __init__(self, size: Size) -> None:
        self.env, (loss, delay) = simpy.Environment(), chances(size)
        self.nodes = [CallbackNode(self.env, loss, delay) for _ in range(size.nodes)]
        for index, (node, phases) in enumerate(zip(self.nodes, size.phases(), strict=True)):
            subjects = [self.nodes[neighbour] for neighbour in size.neighbours_of(index)]
            node.leases = {subject: CallbackLease(node, subject) for subject in subjects}
            for lease, phase in zip(node.leases.values(), phases, strict=True):
                lease.start(phase)

    def run(self, until: float) -> None:
        self.env.run(until)

    def tallies(self) -> list[Tally]:
        return [_tally(node.sent, node.leases.values()) for node in self.nodes]


# ------------------------------------------------------------------------------------------------------------- processes


class ProcessNode:
    """A node with an inbox, and the process that reads it."""

    def __init__(self, env: simpy.Environment, loss: Chance, delay: Chance) -> None:
        self.env, self.loss, self.delay = env, loss, delay
        self.inbox = simpy.Store(env)
        self.sent: dict[str, int] = defaultdict(int)
        self.leases: dict[ProcessNode, ProcessLease] = {}

    def send(self, target: ProcessNode, kind: str, session: int) -> None:
        self.sent[kind] += 1
        if self.loss() < LOSS:
            return
        arrival: Any = self.env.timeout(DELAY_MIN + DELAY_SPAN * self.delay())
        arrival.callbacks.append(lambda _: target.inbox.put((self, kind, session)))

    def serve(self) -> Generator[simpy.Event, Any, None]:
        while True:
            source, kind, session = yield self.inbox.get()
            if kind == REQUEST:
                self.send(source, ACK, session)
            else:
                self.leases[source].on_ack(session)


class ProcessLease:
    """Watches one neighbour: a process that waits for the ack or the end of the session, whatever comes first."""

    def __init__(self, node: ProcessNode, subject: ProcessNode) -> None:
        self.node, self.subject = node, subject
        self.session = 0
        self.answered = node.env.event()
        self.acked = 0
        self.expired = 0

    def run(self, phase: float) -> Generator[simpy.Event, Any, None]:
        env = self.node.env
        yield env.timeout(phase)
        while True:
            self.session += 1
            self.answered, end = env.event(), env.timeout(PERIOD)
            self.node.send(self.subject, REQUEST, self.session)
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
            subjects = [self.nodes[neighbour] for neighbour in size.neighbours_of(index)]
            node.leases = {subject: ProcessLease(node, subject) for subject in subjects}
            for lease, phase in zip(node.leases.values(), phases, strict=True):
                self.env.process(lease.run(phase))

    def run(self, until: float) -> None:
        self.env.run(until)

    def tallies(self) -> list[Tally]:
        return [_tally(node.sent, node.leases.values()) for node in self.nodes]


def _tally(sent: dict[str, int], leases: Iterable[CallbackLease | ProcessLease]) -> Tally:
    watched = list(leases)
    return Tally(sent[REQUEST], sent[ACK], sum(lease.acked for lease in watched), sum(lease.expired for lease in watched))
