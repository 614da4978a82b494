"""The paper's protocol for a world without failures, on reliable FIFO channels.  Spec: tickets 5.10, D8; paper 001, Algorithms 1, 2.

For the lab alone: here Lemmas 3.1 and 3.2 and Theorem 3.1 are put to the test. Messages, states and variables have the paper's names.
The caller decides what happens next: a process wants in or out, or the oldest message of one channel arrives.

Where the pseudocode leaves something open, the text of section 3.1 decides:

* What requires a coordinator waits at a process that has not yet received its ACKCJOIN (the other end may hear of it earlier).
* A CLEAVE counts only if it comes from the present successor; a process that was moved away sends it again when NEWSUCC arrives.
* A process begins to leave as soon as it is ``coordinator``: until then it owes its successor, or its predecessor, an answer.

A life joins once: a process that left and comes back is another one (foundation F1), because a CLEAVE of a former life may still be under
way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum

from msgspec import Struct

from holdfast.host import NodeId
from holdfast.papers.tickets.lab.circle import coordinated

View = dict[int, NodeId]  # Cview: who is believed to own which ticket
Choose = Callable[[Sequence[int]], int]  # "select ticket t from S_p": one of those that are free


class State(Enum):
    """state_p; GONE is what the paper has no word for: out of the core again, or refused."""

    JOINING = "joining"
    COORDINATOR = "coordinator"
    EXCLUSION = "exclusion"
    LEAVING = "leaving"
    GONE = "gone"


class Cjoin(Struct, frozen=True):
    """May I become a coordinator?"""


class AckCjoin(Struct, frozen=True):
    """Ticket ``t`` is yours, your successor owns ``j``."""

    t: int
    j: int
    view: tuple[tuple[int, NodeId], ...]


class Reject(Struct, frozen=True):
    """Not here, not now."""


class NewSucc(Struct, frozen=True):
    """You are my successor."""


class AckSucc(Struct, frozen=True):
    """And you are my predecessor."""


class Cleave(Struct, frozen=True):
    """I want to leave; my successor is ``s``, which owns ``j``."""

    j: int
    s: NodeId


class AckCleave(Struct, frozen=True):
    """Your tickets are mine now."""


Message = Cjoin | AckCjoin | Reject | NewSucc | AckSucc | Cleave | AckCleave
Waiting = tuple[NodeId, Message]


class Process:
    """One process p: its variables, without what it does."""

    __slots__ = ("i", "immed_pred", "immed_succ", "j", "me", "state", "view", "waiting", "wants_out")

    def __init__(self, me: NodeId) -> None:
        self.me = me
        self.state = State.JOINING
        self.i = self.j = -1  # owns i, its successor owns j; -1 until it knows
        self.immed_succ = self.immed_pred = me
        self.view: View = {}
        self.wants_out = False
        self.waiting: list[Waiting] = []  # what came before ACKCJOIN

    @property
    def placed(self) -> bool:
        """It is, or was, coordinator of Cview[i] until Cview[j - 1]."""
        return self.i >= 0

    @property
    def owns(self) -> bool:
        """It may act with its ticket. A process that leaves has stopped before it asked (D8)."""
        return self.state in (State.COORDINATOR, State.EXCLUSION)

    @property
    def coordinates(self) -> bool:
        return self.placed and self.state in (State.JOINING, State.COORDINATOR, State.EXCLUSION)


class FailureFreeRing:
    """All processes of one cluster, and the channels between them."""

    def __init__(self, n: int, first: NodeId, choose: Choose) -> None:
        self.n = n
        self.processes: dict[NodeId, Process] = {}
        self.channels: dict[tuple[NodeId, NodeId], deque[Message]] = {}  # only those with something in them
        self._choose = choose
        founder = self.processes[first] = Process(first)
        founder.state, founder.i, founder.j, founder.view = State.COORDINATOR, 0, 0, {0: first}

    @property
    def core(self) -> list[Process]:
        """All that have a ticket or are about to get one or to give it back."""
        return [process for process in self.processes.values() if process.state is not State.GONE]

    def cjoin(self, p: NodeId, known: NodeId) -> None:
        """Init_p."""
        assert p not in self.processes
        self.processes[p] = Process(p)
        self._send(p, known, Cjoin())

    def cleave(self, p: NodeId) -> None:
        """A process decides to leave; it begins as soon as it may."""
        process = self.processes[p]
        process.wants_out = True
        self._leave_if_ready(process)

    def deliver(self, source: NodeId, target: NodeId) -> None:
        """The oldest message of a channel arrives."""
        channel = self.channels[source, target]
        message = channel.popleft()
        if not channel:
            del self.channels[source, target]
        self._receive(self.processes[target], source, message)
        self._leave_if_ready(self.processes[target])

    def tickets(self, process: Process) -> tuple[int, ...]:
        """S_p."""
        return coordinated(process.i, process.j, self.n)

    def _receive(self, p: Process, q: NodeId, message: Message) -> None:
        match message:
            case Cjoin():
                self._on_cjoin(p, q)
            case AckCjoin():
                self._on_ack_cjoin(p, q, message)
            case Reject():
                p.state = State.GONE
            case AckSucc():
                p.state, p.immed_succ = State.COORDINATOR, q
            case AckCleave():
                p.state = State.GONE
            case _ if not p.placed:
                p.waiting.append((q, message))
            case NewSucc():
                self._on_new_succ(p, q)
            case Cleave():
                self._on_cleave(p, q, message)

    def _on_ack_cjoin(self, p: Process, q: NodeId, ack: AckCjoin) -> None:
        p.view = dict(ack.view)
        p.i, p.j = ack.t, ack.j
        p.immed_succ, p.immed_pred = p.view[ack.j], q
        self._send(p.me, p.immed_succ, NewSucc())
        waiting, p.waiting = p.waiting, []
        for source, message in waiting:
            self._receive(p, source, message)

    def _on_cjoin(self, p: Process, q: NodeId) -> None:
        free = self.tickets(p)[1:] if p.state is State.COORDINATOR else ()
        if not free:
            self._send(p.me, q, Reject())
            return
        t, j = self._choose(free), p.j
        p.view[t] = p.immed_succ = q
        p.j = t
        self._send(p.me, q, AckCjoin(t, j, tuple(sorted(p.view.items()))))

    def _on_new_succ(self, p: Process, q: NodeId) -> None:
        if p.state is State.LEAVING:
            self._send(p.me, q, Cleave(p.j, p.immed_succ))
        elif p.state is not State.GONE:
            p.immed_pred = q
            self._send(p.me, q, AckSucc())

    def _leave_if_ready(self, p: Process) -> None:
        if p.wants_out and p.state is State.COORDINATOR:
            p.state = State.LEAVING
            self._send(p.me, p.immed_pred, Cleave(p.j, p.immed_succ))

    def _on_cleave(self, p: Process, q: NodeId, cleave: Cleave) -> None:
        if p.state in (State.LEAVING, State.GONE) or q != p.immed_succ:
            return
        p.state = State.EXCLUSION
        p.view.pop(p.j, None)
        p.view[cleave.j] = p.immed_succ = cleave.s
        p.j = cleave.j
        self._send(p.me, q, AckCleave())
        self._send(p.me, cleave.s, NewSucc())

    def _send(self, source: NodeId, target: NodeId, message: Message) -> None:
        self.channels.setdefault((source, target), deque()).append(message)
