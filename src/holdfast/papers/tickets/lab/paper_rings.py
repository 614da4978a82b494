"""Clusters of ``PaperRing`` processes in one world, and an observer that sees who acts with which tickets.

Spec: tickets 7 (I1, I2), 8 (E2, E3); paper 001, Theorem 4.1. A process acts from ACKCJOIN, or from its place in the first core, until it
thinks it is disconnected. One that was stopped acts again when it has begun a round: before that it may only have read its mail.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from holdfast.events import Event
from holdfast.host import Address, Host, Machine
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.world import World
from holdfast.papers.tickets.lab.circle import bits, spread
from holdfast.papers.tickets.lab.paper_ring import PaperConfig, PaperRing
from holdfast.papers.tickets.lab.paper_ring_messages import Acknowledged, ArcChanged, Disconnected, Proceeded

DELAY = Uniform(0.005, 0.045)  # a message and its status take less than delta = 0.1
ALONE = 0  # no tickets


class Conflict(Struct, frozen=True):
    """Two processes act with the same tickets: what Theorem 4.1 says can never be."""

    at: float
    one: str
    other: str
    tickets: tuple[int, ...]


class Claim(Struct, frozen=True):
    """From now on a process acts with these tickets."""

    at: float
    name: str
    tickets: int  # bits


class PaperRings:
    """A core of ``size`` processes p0, p1, ..., each the predecessor of the next, and ``joiners`` that are in it later."""

    def __init__(
        self,
        seed: int,
        config: PaperConfig,
        *,
        size: int,
        joiners: Sequence[str] = (),
        phases: Sequence[float] | None = None,
        link: Link | None = None,
    ) -> None:
        self.config = config
        self.names = [f"p{i}" for i in range(size)]
        self.group = {name: Address(name, PORT) for name in (*self.names, *joiners)}
        self.processes: dict[str, PaperRing] = {}
        self.claims: list[Claim] = []  # every change, in order
        self.conflicts: list[Conflict] = []  # the first of each pair
        self.facts: list[tuple[float, str, Event]] = []  # what was acknowledged, who went
        self._acting: dict[str, int] = {}  # bits
        self._stopped: set[str] = set()
        self.world = World(seed, self._build, names=self.group, link=link or Link(DELAY))
        self.world.listeners.append(self._on_event)
        self._form(phases or [self.world.random.uniform(0, config.round) for _ in self.names])

    @property
    def acting(self) -> list[str]:
        """Who is in the core and knows it, stopped ones included."""
        return [name for name, process in self.processes.items() if process.in_core and not self.world.nodes[name].dead]

    def join(self, name: str, at: float, via: str | None = None) -> None:
        """A process wants in at this time, through a coordinator that it has heard of: any, or this one."""
        process = self.processes[name]
        if via is not None:
            process.known = lambda: (via,)
        self.world.at(at, process.cjoin)

    def stop(self, name: str, at: float, seconds: float) -> None:
        """SIGSTOP for a while."""
        self.world.at(at, lambda: self._stop(name))
        self.world.at(at + seconds, lambda: self._resume(name))

    def disconnected(self, *whys: str) -> int:
        """How many have left the core on their own, for any reason or for these."""
        return sum(isinstance(fact, Disconnected) and (not whys or fact.why in whys) for _, _, fact in self.facts)

    def _build(self, host: Host) -> Iterable[Machine]:
        process = self.processes[host.me.name] = PaperRing(host, self.config, self.group, lambda: self.acting)
        return (process,)

    def _form(self, phases: Sequence[float]) -> None:
        tickets = spread(len(self.names), self.config.n)
        cview = dict(zip(tickets, self.names, strict=True))
        for ticket, name, phase in zip(tickets, self.names, phases, strict=True):
            self.processes[name].place(ticket, cview, phase)
            self._claim(name)

    def _stop(self, name: str) -> None:
        self._stopped.add(name)
        self._claim(name)
        self.world.stop(name)

    def _resume(self, name: str) -> None:
        self.world.resume(name)

    def _on_event(self, host: LabHost, event: Event) -> None:
        name = host.me.name
        if isinstance(event, Proceeded):
            self._stopped.discard(name)
        if isinstance(event, Acknowledged | Disconnected):
            self.facts.append((self.world.now, name, event))
        if isinstance(event, Proceeded | ArcChanged | Disconnected):
            self._claim(name)

    def _claim(self, name: str) -> None:
        """Note with which tickets a process acts now, and with whom it shares some."""
        process = self.processes[name]
        acts = process.in_core and name not in self._stopped
        mine = bits(process.i, process.j, self.config.n) if acts else ALONE
        if mine != self._acting.get(name, ALONE):
            self.claims.append(Claim(self.world.now, name, mine))
            self._acting[name] = mine
        for other, theirs in self._acting.items():
            if other != name and mine & theirs:
                self._conflict(name, other, mine & theirs)

    def _conflict(self, name: str, other: str, both: int) -> None:
        pair = {name, other}
        if not any({known.one, known.other} == pair for known in self.conflicts):
            tickets = tuple(ticket for ticket in range(self.config.n) if both >> ticket & 1)
            self.conflicts.append(Conflict(self.world.now, name, other, tickets))


def intervals(claims: Sequence[Claim], ticket: int, end: float) -> dict[str, list[tuple[float, float]]]:
    """When each process acted with a ticket."""
    found: dict[str, list[tuple[float, float]]] = {}
    since: dict[str, float] = {}
    for claim in claims:
        has = bool(claim.tickets >> ticket & 1)
        if has and claim.name not in since:
            since[claim.name] = claim.at
        elif not has and claim.name in since:
            found.setdefault(claim.name, []).append((since.pop(claim.name), claim.at))
    for name, at in since.items():
        found.setdefault(name, []).append((at, end))
    return found
