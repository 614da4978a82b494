"""Worker processes of one machine, in virtual time.  Spec: limits 5.1, 7 (RL4, RL8), D22; foundation F9, F14.

They outlive their agent: a process attaches to whatever life of the agent it finds, goes on with what it was told when that life dies, and
attaches again; then it goes on until that life may claim the part (H310). A process may be killed, which the kernel tells the agent, or
hang, which nothing tells it. Local messages take a moment and keep their order; an agent that is stopped reads them when it goes on. The
clock is the machine's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from random import Random

from msgspec import Struct

from holdfast.features.limits.bucket import DEPTH_MIN, Bucket, cost_micros, micros, nanos
from holdfast.features.limits.lab.admitted import Admitted
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.outlet import NOTHING, Allotment
from holdfast.features.limits.protocol.workers import Tell, Workers
from holdfast.host import Host, Message, NodeId
from holdfast.lab.host import LabHost
from holdfast.lab.links import Uniform
from holdfast.lab.violation import Violation
from holdfast.lab.world import World

LOCAL = Uniform(0.00005, 0.003)  # seconds that a local message takes
NOTICED = Uniform(0.0005, 0.02)  # seconds until the kernel has told the agent of a death
PATIENCE = 1.0  # seconds of what it wants that a process lets wait; more is refused
TAKES_MAX = 2000  # in one look: a bucket that lets more go at once has no depth


class Appetite(Struct):
    """What one process wants of one limit. It may change while the process runs."""

    rate: float  # cost per second
    cost: float = 1.0  # of each request
    declared: bool = False  # it says so by a ``demand=`` callable, and uses whatever it may; otherwise requests arrive at that rate
    called: bool = False  # requests come one by one, from ``programs``
    weight: float = 1.0


class Part:
    """One limit at one process: its bucket, and what it was told."""

    def __init__(self, name: str, appetite: Appetite, now: float) -> None:
        self.name, self.appetite = name, appetite
        self.bucket = Bucket(nanos(now))
        self.watched = Admitted(nanos(now), DEPTH_MIN, cost_micros(appetite.cost))
        self.tell: Tell | None = None
        self.former: Tell | None = None  # what a former life of the agent told, while that goes on
        self.heard = 0  # serial of the newest word of the agent
        self.arrived = self.waiting = self.admitted = 0.0
        self._edges: list[tuple[float, float]] = []  # instants that are still to come, and the rate from then on

    def usable(self, now: float) -> float:
        """Cost per second that it may use now."""
        return 0.0 if self.tell is None else self.tell.usable(now)

    def lose(self) -> None:
        """Another life of the agent says from now on what it may use."""
        self.heard, self.former = 0, self.tell

    def hear(self, now: float, tell: Tell, claims_at: float) -> None:
        """``claims_at``: before that, this life takes nothing of what a former one had, so that goes on if it is more (H310)."""
        self.catch_up(now)
        if self.former is not None and claims_at > 0 and tell.rate < self.former.usable(now):
            self.prolong(now, claims_at)
            return
        self.tell, self.former = tell, None
        self._edges = [(tell.until, tell.left), (tell.ends_at, 0.0)] if tell.until < tell.ends_at else [(tell.until, 0.0)]
        self._set(now, tell.rate)
        self.catch_up(now)

    def prolong(self, now: float, claims_at: float) -> None:
        """What a former life told, and has not ended, goes on until the present one may claim it."""
        self.catch_up(now)
        if self.former is not None and self._edges:
            self.tell = self.former = self.former._replace(ends_at=max(self.former.ends_at, claims_at))
            at, rate = self._edges.pop()
            self._edges.append((max(at, claims_at), rate))

    def catch_up(self, now: float) -> None:
        """What was told ends at instants, whether the process looks then or later."""
        while self._edges and self._edges[0][0] <= now:
            at, rate = self._edges.pop(0)
            self._set(at, rate)

    def edges(self) -> Iterator[float]:
        return (at for at, _ in self._edges if at < inf)

    def use(self, now: float, take: Callable[[float], None]) -> None:
        """As many requests as may go and are there."""
        self.catch_up(now)
        cost, at = self.appetite.cost, nanos(now)
        whole = cost_micros(cost)
        for _ in range(TAKES_MAX):
            if not (self.appetite.declared or self.waiting >= cost) or not self.bucket.take(at, whole):
                return
            excess = self.watched.admit(max(at, self.bucket.filled_at), whole)
            if excess > 0:
                raise Violation("RL8 bucket", f"{self.name}: {excess / 1e15:.6f} more than rate and depth allow")
            self.waiting -= 0.0 if self.appetite.declared else cost
            self.arrived += cost if self.appetite.declared else 0.0
            self.admitted += cost
            take(cost)
        raise Violation("RL8 bucket", f"{self.name} lets {TAKES_MAX} requests go at once")

    def demand(self, seconds: float) -> None:
        """Requests of so many seconds arrive."""
        if not self.appetite.declared and not self.appetite.called:
            more = self.appetite.rate * seconds
            self.arrived += more
            self.waiting = min(self.waiting + more, PATIENCE * self.appetite.rate)

    def _set(self, now: float, rate: float) -> None:
        assert self.tell is not None
        share = rate / self.tell.rate if self.tell.rate > 0 else 0.0
        whole, depth = micros(rate), max(DEPTH_MIN, micros(self.tell.depth * share))
        at = max(nanos(now), self.bucket.filled_at)
        self.bucket.set(at, whole, depth)
        self.watched.change(at, whole, depth)


class Line:
    """A connection between a process and one life of the agent. What is sent arrives in order; a life that is over reads nothing."""

    def __init__(self, crew: Crew, desk: Desk, number: int) -> None:
        self.desk, self.number = desk, number
        self._crew, self._random, self._world = crew, crew.random, crew.world
        self._up_at = self._down_at = 0.0

    def up(self, action: Callable[[], None], delay: Uniform = LOCAL) -> None:
        host = self.desk.host
        self._up_at = max(self._up_at, host.now + self._random.uniform(delay.low, delay.high))
        host.at(self._up_at, action)

    def down(self, action: Callable[[], None]) -> None:
        self._down_at = max(self._down_at, self._world.now + self._random.uniform(LOCAL.low, LOCAL.high))
        self._world.at(self._down_at, action)


class Process:
    """One worker process."""

    def __init__(self, crew: Crew, place: int, number: int) -> None:
        self.crew, self.place, self.number = crew, place, number
        self.running = True  # False: stopped, or dead
        self.dead = False
        now = crew.now
        self.parts = {limit: Part(limit, appetite, now) for limit, appetite in crew.appetites[place].items()}
        self.line: Line | None = None
        self._inbox: list[Callable[[], None]] = []
        self._looked_at = now
        self._tick(number)

    @property
    def alone(self) -> bool:
        """Its agent is gone."""
        return self.line is None

    def usable(self, limit: str) -> float:
        """What it may use now: nothing while it is stopped, whatever it was told."""
        return self.parts[limit].usable(self.crew.now) if self.running else 0.0

    def heard(self, limit: str) -> bool:
        """The present life of the agent told it what it may use, and it goes by that."""
        part = self.parts[limit]
        return part.heard > 0 and part.former is None

    def look(self) -> None:
        """The program runs for a moment: requests arrive, and what may go goes."""
        now = self.crew.now
        for part in self.parts.values():
            part.demand(now - self._looked_at)
            part.use(now, partial(self.crew.on_admitted, part.name))
        self._looked_at = now
        self.crew.on_look(self)

    def receive(self, action: Callable[[], None]) -> None:
        """Something of the agent arrived; a stopped process reads it later."""
        if self.dead:
            return
        if not self.running:
            self._inbox.append(action)
            return
        self.look()
        action()
        self.look()

    def hear(self, line: Line, limit: str, tell: Tell, claims_at: float) -> None:
        part = self.parts[limit]
        part.hear(self.crew.now, tell, claims_at)
        part.heard = tell.serial
        self._watch_edges(part)
        if line is self.line:
            self._report(limit)

    def prolong(self, limit: str, claims_at: float) -> None:
        """The present life of the agent may not claim this part yet."""
        part = self.parts[limit]
        if part.former is not None:
            part.prolong(self.crew.now, claims_at)
            self._watch_edges(part)

    def _watch_edges(self, part: Part) -> None:
        for edge in part.edges():
            self.crew.at_clock(edge, self._on_edge)

    def stop(self) -> None:
        self.running = False
        self._looked_at = inf

    def resume(self) -> None:
        """The program runs before it reads what its agent said meanwhile."""
        if self.dead or self.running:
            return
        self.running = True
        self._looked_at = self.crew.now
        self.look()
        inbox, self._inbox = self._inbox, []
        for action in inbox:
            self.receive(action)
        self.crew.on_change()

    def die(self) -> None:
        self.dead, self.running = True, False
        if self.line is not None:
            desk, number = self.line.desk, self.line.number
            self.line.up(lambda: desk.detach(number), NOTICED)
        self.crew.on_change()

    def _tick(self, phase: int) -> None:
        """Twice an epoch it looks, and says what it wants."""
        period = self.crew.period
        delay = period * self.crew.random.random() if phase else period
        self.crew.world.at(self.crew.world.now + delay, self._on_tick)

    def _on_tick(self) -> None:
        if self.dead:
            return
        if self.running:
            self.look()
            self._keep_line()
            if self.line is not None:
                for limit in self.parts:
                    self._report(limit)
        self._tick(0)

    def _on_edge(self) -> None:
        """What it was told ends now."""
        if self.running:
            self.look()
            self.crew.on_change()

    def _keep_line(self) -> None:
        desk = self.crew.desk
        if self.line is not None and self.line.desk.host.dead:
            self.line = None
        if self.line is None and desk is not None and not desk.host.dead:
            line = self.line = Line(self.crew, desk, self.crew.next_number())
            weights = {limit: part.appetite.weight for limit, part in self.parts.items()}
            for part in self.parts.values():
                part.lose()
            line.up(lambda: desk.attach(line, self, weights))

    def _report(self, limit: str) -> None:
        part, line = self.parts[limit], self.line
        assert line is not None
        arrived, part.arrived = part.arrived, 0.0
        user = part.appetite.rate if part.appetite.declared else None
        line.up(partial(line.desk.report, line.number, limit, part.heard, arrived, part.waiting, user))


class Outlet(Workers):
    """Says when what the agent may use has changed."""

    def __init__(self, host: Host, crew: Crew, tell: Callable[[int, Tell], None]) -> None:
        super().__init__(lambda: host.now, tell)
        self._crew = crew
        self.allotted = NOTHING

    def allot(self, allotment: Allotment) -> None:
        self.allotted = allotment
        super().allot(allotment)
        self._crew.on_change()


class Desk:
    """What one life of an agent knows of the processes: one ``Workers`` for each limit. A machine, so it lives as long as the others."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, host: Host, crew: Crew, open_limit: Callable[[str, Outlet], None]) -> None:
        assert isinstance(host, LabHost)
        self.host, self._crew, self._open = host, crew, open_limit
        self.outlets = {limit: Outlet(host, crew, partial(self._tell, limit)) for limit in crew.limits}
        self._lines: dict[int, tuple[Line, Process]] = {}

    def start(self) -> None:
        self._crew.desk = self
        for limit, outlet in self.outlets.items():
            self._open(limit, outlet)

    def on_message(self, source: NodeId, message: Message) -> None:
        """It has none."""

    def on_away(self, seconds: float) -> None:
        """Times that passed are seen when they are compared."""

    def stop(self) -> None:
        """Processes notice."""

    def attach(self, line: Line, process: Process, weights: Mapping[str, float]) -> None:
        self._lines[line.number] = line, process
        for limit, outlet in self.outlets.items():
            self._tell_claim(limit, line.number)
            outlet.attach(line.number, weights[limit])

    def report(self, number: int, limit: str, confirmed: int, arrived: float, waiting: float, user: float | None) -> None:
        if number in self._lines:
            self.outlets[limit].report(number, confirmed, arrived, waiting, user)
            self._tell_claim(limit, number)

    def detach(self, number: int) -> None:
        if self._lines.pop(number, None) is not None:
            for outlet in self.outlets.values():
                outlet.detach(number)

    def _tell(self, limit: str, number: int, tell: Tell) -> None:
        if number in self._lines:
            line, process = self._lines[number]
            claims_at = self.host.node.use(Limiter).allocator.claims_at(limit)
            line.down(lambda: process.receive(lambda: self._said(line, process, limit, tell, claims_at)))

    def _tell_claim(self, limit: str, number: int) -> None:
        """A process that was told by a former life hears from when on this one may claim the part, and each time that this has changed."""
        line, process = self._lines[number]
        claims_at = self.host.node.use(Limiter).allocator.claims_at(limit)
        if claims_at and process.parts[limit].former is not None:
            line.down(lambda: process.receive(lambda: self._prolong(line, process, limit, claims_at)))

    def _prolong(self, line: Line, process: Process, limit: str, claims_at: float) -> None:
        if line is process.line:
            process.prolong(limit, claims_at)
            self._crew.on_change()

    def _said(self, line: Line, process: Process, limit: str, tell: Tell, claims_at: float) -> None:
        if line is process.line:  # What a former life said before it died says less than what the present one will.
            process.hear(line, limit, tell, claims_at)
            self._crew.on_change()


class Crew:
    """All processes of one machine."""

    def __init__(self, world: World, name: str, appetites: Sequence[Mapping[str, Appetite]], *, period: float = 0.25) -> None:
        """``appetites``: of each process, by limit."""
        self.world, self.name, self.period = world, name, period
        self.random = Random(f"{world.seed}/crew/{name}")
        self.appetites = list(appetites)
        self.limits = tuple(appetites[0]) if appetites else ()
        self.desk: Desk | None = None  # of the newest life of the agent
        self.listener: Callable[[Crew], None] = _nothing  # what processes may use has changed
        self.on_admission: Callable[[str, float], None] = lambda limit, cost: None
        self.on_look: Callable[[Process], None] = lambda process: None  # a process has looked at what it may do
        self._numbers = 0
        self.processes: list[Process] = []

    @property
    def now(self) -> float:
        """The machine's clock, whatever lives on it."""
        return self.world.nodes[self.name].now

    @property
    def agent(self) -> LabHost:
        return self.world.nodes[self.name]

    def begin(self) -> None:
        self.processes = [Process(self, place, self.next_number()) for place in range(len(self.appetites))]

    def kill(self, place: int, back_after: float) -> None:
        """One process dies by kill -9; another one takes its place."""
        process = self.processes[place]
        if not process.dead:
            process.die()
            self.world.at(self.world.now + back_after, lambda: self._start(place))

    def hang(self, place: int, seconds: float) -> None:
        process = self.processes[place]
        if process.running:
            process.stop()
            self.on_change()
            self.world.at(self.world.now + seconds, process.resume)

    def rest(self) -> None:
        """The faults are over."""
        for place, process in enumerate(self.processes):
            if process.dead:
                self._start(place)
            else:
                process.resume()

    def usable(self, limit: str) -> float:
        """What the processes may use together, cost per second."""
        return sum(process.usable(limit) for process in self.processes)

    def wanted(self, limit: str) -> float:
        return sum(process.parts[limit].appetite.rate for process in self.processes if not process.dead)

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def at_clock(self, when: float, action: Callable[[], None]) -> None:
        """At an instant of the machine's clock."""
        self.world.at(self.world.now + max(0.0, when - self.now) / self.agent.rate, action)

    def on_change(self) -> None:
        self.listener(self)

    def on_admitted(self, limit: str, cost: float) -> None:
        self.on_admission(limit, cost)

    def _start(self, place: int) -> None:
        if self.processes[place].dead:
            self.processes[place] = Process(self, place, self.next_number())


def _nothing(crew: Crew) -> None:
    """No checker looks on."""
