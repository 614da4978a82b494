"""One simulated group: virtual time, the queue of what happens next, and the people it happens to.

Same seed, same bytes: chance comes from ``Random`` objects seeded by text, and equal times are served in the order
they were asked for. The loop exists twice: bare, and with checkers and a trace looking on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from holdfast.events import Event
from holdfast.host import FANOUT_MAX, Host, Machine, NodeId
from holdfast.lab.agenda import Agenda, Clock
from holdfast.lab.disk import LabDisk
from holdfast.lab.host import LabHost, LabTimer, WatchedHost
from holdfast.lab.links import Link
from holdfast.lab.network import Endpoint, Network
from holdfast.lab.topology import Topology
from holdfast.lab.trace import Trace
from holdfast.lab.violation import Violation, found_bug

Build = Callable[[Host], Iterable[Machine]]
Life = Callable[[str, NodeId | None], NodeId]  # of a place, after the former one there


def next_life(place: str, former: NodeId | None) -> NodeId:
    """Every place has a process of its own name, and counts its lives."""
    return NodeId(place, 1 if former is None else former.boot + 1)


class Onlooker:
    """What a watched run is shown to. It changes nothing of it, and may end it by a ``Violation``."""

    def after(self, world: World, host: LabHost | None) -> None:
        """After every event. ``host`` is the node it touched, None if the event was a fault or a scenario's own step."""

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        """A node emitted a fact."""


class World:
    """A group in virtual time. ``build`` makes the machines of a life; it is called again after a restart."""

    def __init__(
        self,
        seed: int,
        build: Build,
        *,
        names: Iterable[str] = (),
        link: Link | None = None,
        topology: Topology | None = None,
        checkers: Sequence[Onlooker] = (),
        trace: Trace | None = None,
        life: Life = next_life,
    ) -> None:
        self.seed = seed
        self.clock = Clock()
        self.agenda = Agenda()
        self.random = Random(f"{seed}/world")
        self.network = Network(seed, self.clock, self.agenda.push, link or Link())
        self.network.topology, self.network.trace = topology, trace
        self.network.watch()
        self.nodes: dict[str, LabHost] = {}  # the present life of each name; the last one of those that are down
        self.disks: dict[str, LabDisk] = {}
        self.drift: dict[str, float] = {}  # rates of clocks that are not exact
        self.buried: set[str] = set()  # who is down for good
        self._revivals: dict[str, LabTimer] = {}  # the next life of those who are down for a while
        self.checkers = list(checkers)
        self.trace = trace
        self.listeners: list[Callable[[LabHost, Event], None]] = []
        self.shared: dict[type[Any], Any] = {}  # by its type, what a laboratory keeps once for all members; it ends with the world
        self.events = 0  # messages delivered and timers run
        self.turns_of_fate = 0  # how often a process was started, killed, stopped or set going: onlookers look at all only then
        self._build, self._life = build, life
        for name in names:
            self.start(name)

    @property
    def now(self) -> float:
        return self.clock.now

    @property
    def watched(self) -> bool:
        return bool(self.checkers) or self.trace is not None

    @property
    def alive(self) -> list[LabHost]:
        """Every life that is not dead, stopped ones included, in order of first appearance."""
        return [host for host in self.nodes.values() if not host.dead]

    def start(self, name: str) -> LabHost:
        """A process starts: the first life of a name, or the next one."""
        former = self.nodes.get(name)
        assert former is None or former.dead
        me = self._life(name, None if former is None else former.me)
        if name not in self.disks:
            self.disks[name] = LabDisk(Random(f"{self.seed}/disk/{name}"))
        offset = Random(f"{self.seed}/clock/{name}").uniform(0, 1e5)
        endpoint = self.network.endpoint(name)
        kind = WatchedHost if self.watched else LabHost
        host = kind(self, endpoint, me, self.disks[name], rate=self.drift.get(name, 1.0), offset=offset)
        self.nodes[name] = host
        self.turns_of_fate += 1
        endpoint.open(host.node)
        self._note("* start {}", me)
        for machine in self._build(host):
            host.node.add(machine)
        self.step(host, host.node.start)
        return host

    def crash(self, name: str) -> None:
        """The kernel's kill -9: volatile state is lost, the disk keeps what was confirmed."""
        host = self.nodes[name]
        if not host.dead:
            self._note("* crash {}", host.me)
            self.turns_of_fate += 1
            host.die()
            self.step(None, _nothing)

    def revive_after(self, seconds: float, name: str) -> None:
        """The next life of a process that has just died."""
        self._forget_revival(name)
        self._revivals[name] = self.at(self.now + seconds, lambda: self._revive(name))

    def bury(self, name: str) -> None:
        """This process stays down, also if its next life had been planned."""
        assert self.nodes[name].dead
        self.buried.add(name)
        self._forget_revival(name)

    def end_faults(self) -> None:
        """Links and disks are whole, the stopped go on, the dead are back except those that are buried. None comes later.

        A life that met a full disk stays silent, so it is restarted, as an operator who makes room on a disk does.
        """
        self.network.clear()
        for name, host in list(self.nodes.items()):
            self._forget_revival(name)
            if self.disks[name].mend():
                self.crash(name)
            if not host.dead:
                self.resume(name)
            elif name not in self.buried:
                self.start(name)

    def stop(self, name: str) -> None:
        """SIGSTOP."""
        host = self.nodes[name]
        if host.running:
            self._note("* stop {}", host.me)
            self.turns_of_fate += 1
            host.stop()

    def resume(self, name: str, order: str = "host") -> None:
        """SIGCONT; ``order`` "host" is F10's, "shuffled" is any interleaving of datagrams and timers."""
        host = self.nodes[name]
        if not host.running and not host.dead:
            self._note("* resume {}", host.me)
            self.turns_of_fate += 1
            host.resume(order)

    def at(self, when: float, callback: Callable[[], None]) -> LabTimer:
        """A step of the scenario itself, in true time."""
        timer = LabTimer(None, when, callback)
        self.agenda.push((max(when, self.clock.now), None, timer))
        return timer

    def soon(self, callback: Callable[[], None]) -> None:
        self.at(self.clock.now, callback)

    def run(self, until: float) -> None:
        """Serve everything that is due until then."""
        self.network.trace = self.trace
        if self.watched:
            self._run_watched(until)
        else:
            self._run_bare(until)
            for host in self.nodes.values():
                host.turn.clear()  # The ends of callbacks were not noted (F17): what was noted is of many.
        self.clock.now = max(self.clock.now, until)

    def step(self, host: LabHost | None, action: Callable[[], None]) -> None:
        """Something happens to a node outside the agenda: checkers look after it, and a bug in it is a violation."""
        if host is not None and not self.watched:
            host.turn.clear()  # It was watched once: what it noted since then is of many callbacks.
        try:
            action()
            for checker in self.checkers:
                checker.after(self, host)
            if host is not None:
                host.check_turn()
                host.turn.clear()
        except Violation as violation:
            self._placed(violation, host)
            raise
        except Exception as bug:
            raise self._placed(found_bug(bug), host) from bug

    def on_emit(self, host: LabHost, event: Event) -> None:
        self._note("{} ! {}", host.me, event)
        for listener in self.listeners:
            listener(host, event)
        for checker in self.checkers:
            checker.on_event(self, host, event)

    def _run_bare(self, until: float) -> None:
        agenda, today, clock = self.agenda, self.agenda.today, self.clock
        host: LabHost | None = None
        target: Any = None
        try:
            while agenda.next_due() <= until:
                idle = 0
                for due, target, item in today:
                    if due > until:
                        break
                    clock.now = due
                    if target is not None:
                        handler = target.handlers.get(type(item))
                        if handler is not None:
                            handler(target.sender, item)
                        else:
                            target.deliver(item)
                        continue
                    callback = item.callback
                    if callback is None:
                        idle += 1
                        continue
                    host = item.host
                    if host is None or host.running:
                        callback()
                    else:
                        host.hold_timer(item)
                served = agenda.served(until)
                agenda.forget(served)
                self.events += served - idle
        except Violation:
            raise
        except Exception as bug:
            raise self._placed(found_bug(bug), host if target is None else self.nodes[target.name]) from bug

    def _run_watched(self, until: float) -> None:
        agenda, today, clock, nodes, trace = self.agenda, self.agenda.today, self.clock, self.nodes, self.trace
        afters = [checker.after for checker in self.checkers if type(checker).after is not Onlooker.after]
        host: LabHost | None = None
        try:
            while agenda.next_due() <= until:
                idle = 0
                for due, target, item in today:
                    if due > until:
                        break
                    clock.now = due
                    if target is not None:
                        host = nodes[target.name]
                        handler = target.handlers.get(type(item))
                        if handler is not None:
                            handler(target.sender, item)
                        else:
                            if trace is not None:
                                self._note_delivery(target, item)
                            target.deliver(item)
                    elif item.callback is None:
                        idle += 1
                        continue
                    else:
                        host = item.host
                        if host is None or host.running:
                            item.callback()
                        else:
                            host.hold_timer(item)
                    if host is not None and host.turn:
                        if len(host.turn) > FANOUT_MAX:
                            host.check_turn()
                        host.turn.clear()
                    for after in afters:
                        after(self, host)
                served = agenda.served(until)
                agenda.forget(served)
                self.events += served - idle
        except Violation as violation:
            self._placed(violation, host)
            raise
        except Exception as bug:
            raise self._placed(found_bug(bug), host) from bug

    def _revive(self, name: str) -> None:
        del self._revivals[name]
        if self.nodes[name].dead:
            self.start(name)

    def _forget_revival(self, name: str) -> None:
        revival = self._revivals.pop(name, None)
        if revival is not None:
            revival.cancel()

    def _placed(self, violation: Violation, host: LabHost | None) -> Violation:
        violation.at = self.clock.now
        if host is not None and not violation.node:  # A step inside a step knows better whom it touched.
            violation.node = str(host.me)
        return violation

    def _note(self, form: str, *parts: object) -> None:
        if self.trace is not None:
            self.trace.record(self.clock.now, form, *parts)

    def _note_delivery(self, target: object, packet: Any) -> None:
        if self.trace is not None and isinstance(target, Endpoint) and target.up:  # a sealed packet notes itself when it is opened
            self.trace.record(self.clock.now, "{} -> {}  {}", packet[1].name, target.name, packet[4])


def _nothing() -> None:
    """A step in which no node did anything."""
