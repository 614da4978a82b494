"""The lab's Host: virtual time, the simulated network, a clock that drifts, a process that can be stopped.

Spec: foundation 3 (Host), F7 (clock), F10 (order after a pause). Everything above it is what runs in production.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from holdfast.events import Event
from holdfast.host import AWAY_DATAGRAMS_MAX, FANOUT_MAX, Address, Message, NodeId, Storage
from holdfast.lab.agenda import Agenda, Clock
from holdfast.lab.disk import LabDisk
from holdfast.lab.links import LOST
from holdfast.lab.network import Endpoint, Line, Network, Packet
from holdfast.lab.violation import Violation
from holdfast.node import Node

WALL_AT_START = 1_700_000_000.0  # wall-clock seconds when a run begins
AWAY_AFTER = 0.1  # lateness that counts as a pause, as on real sockets
ROUNDING = 1e-9  # added to due times, so that no timer finds by a rounding error that its time has not come


class LabTimer(Struct):
    """A callback in the world's agenda. Cancelling only empties it: the agenda drops it when it comes up."""

    host: LabHost | None
    due_at: float
    callback: Callable[[], None] | None

    def cancel(self) -> None:
        self.callback = None


class Completion(LabTimer):
    """What the disk has done. No timer of a machine: it is never late, and no sign of a pause (net/host.py)."""


class Around(Protocol):
    """What a host needs of the world that it is in, and what a trial that was given a host finds there."""

    seed: int
    clock: Clock
    agenda: Agenda
    network: Network
    random: Random
    nodes: dict[str, LabHost]
    listeners: list[Callable[[LabHost, Event], None]]
    shared: dict[type[Any], Any]

    @property
    def now(self) -> float: ...
    @property
    def alive(self) -> list[LabHost]: ...
    def step(self, host: LabHost, action: Callable[[], None]) -> None:
        """Something happens to a node outside the agenda."""

    def at(self, when: float, callback: Callable[[], None]) -> LabTimer: ...
    def soon(self, callback: Callable[[], None]) -> None: ...
    def crash(self, name: str) -> None: ...
    def on_emit(self, host: LabHost, event: Event) -> None: ...


class LabHost:
    """One life of one simulated process."""

    # Slots, because in a large group memory that is not in the cache is what a message costs most.
    __slots__ = (
        "_clock", "_disk", "_fates", "_held_timers", "_lines", "_network", "_offset", "_push", "_sent", "address", "dead", "endpoint",
        "late", "me", "node", "random", "rate", "running", "storage", "turn", "world",
    )  # fmt: skip

    def __init__(self, world: Around, endpoint: Endpoint, me: NodeId, disk: LabDisk, *, rate: float, offset: float) -> None:
        self.world = world
        self.endpoint = endpoint
        self.me = me
        self.address: Address = endpoint.address
        self.random = Random(f"{world.seed}/{me}")
        self.rate = rate
        self.late = 0.0
        self.running = True  # False: stopped, or dead
        self.dead = False
        self.node = Node(self, endpoint.transmit)
        self.node.on_machines = endpoint.renew_lines
        self.storage: Storage = disk.attach(self)
        self._disk = disk
        self._clock = world.clock
        self._push = world.agenda.push
        self._offset = offset
        self._held_timers: list[LabTimer] = []
        self._network = world.network
        self._sent = endpoint.sent
        self.turn: list[NodeId | Address] = []  # whom the running callback sent to, if the run is watched
        self._fates = world.network.fates
        self._lines: dict[NodeId | Address, Line] = endpoint.lines

    @property
    def now(self) -> float:
        return self._offset + self._clock.now * self.rate

    def wall(self) -> float:
        return WALL_AT_START + self._clock.now

    def at(self, due: float, callback: Callable[[], None]) -> LabTimer:
        timer = LabTimer(self, due, callback)
        when = (due - self._offset) / self.rate + ROUNDING
        now = self._clock.now
        push = self._push  # a local first: the interpreter's caches know attributes and methods, not callable attributes
        push((when if when > now else now, None, timer))
        return timer

    def after(self, delay: float, callback: Callable[[], None]) -> LabTimer:
        return self.at(self.now + delay, callback)

    def complete_after(self, delay: float, callback: Callable[[], None]) -> None:
        """The disk's way in."""
        due = self.now + delay
        self._push(((due - self._offset) / self.rate + ROUNDING, None, Completion(self, due, callback)))

    def step(self, action: Callable[[], None]) -> None:
        """A callback of its own (F17)."""
        self.world.step(self, action)

    def crash_soon(self, then: Callable[[], None]) -> None:
        """After what runs now, unless this life is over by then."""
        self.world.soon(lambda: self._crash(then))

    def send(self, to: NodeId | Address, message: Message) -> None:
        line = self._lines.get(to)
        if line is None:
            self._send_by_node(to, message)
            return
        self._sent[type(message)] += 1
        fates = self._fates
        delay = fates.pop() if fates else self._network.draw_fates()
        if delay != LOST:
            push = self._push
            push((self._clock.now + delay, line, message))

    def meet(self, peer: NodeId, address: Address) -> None:
        self._lines.pop(peer, None)
        self.node.meet(peer, address)

    def emit(self, event: Event) -> None:
        self.world.on_emit(self, event)

    def check_turn(self) -> None:
        """F17: no callback sends to more than 64 peers. ``turn`` is kept only where the run is watched."""
        reached = set(self.turn)
        if len(reached) > FANOUT_MAX:
            raise Violation("F17", f"a callback of {self.me} sent to {len(reached)} peers; accepted are {FANOUT_MAX}")

    def hold_timer(self, timer: LabTimer) -> None:
        """A timer came due while the process does not run."""
        if not self.dead:
            self._held_timers.append(timer)

    def stop(self) -> None:
        """SIGSTOP: time goes on, datagrams wait in the socket, timers come due and are not served."""
        assert self.running
        self.running = False
        self.endpoint.hold()

    def resume(self, order: str) -> None:
        """SIGCONT: what waited is served, in F10's order or, as a fault, in any interleaving of the two queues."""
        assert not self.running
        self.running = True
        packets = self.endpoint.release(self.node)
        held, self._held_timers = [t for t in self._held_timers if t.callback is not None], []
        completed = [t for t in held if isinstance(t, Completion)]
        timers = sorted((t for t in held if not isinstance(t, Completion)), key=lambda timer: timer.due_at)
        seconds = self.now - timers[0].due_at if timers else 0.0
        if seconds > AWAY_AFTER:
            self.step(lambda: self.node.on_away(seconds))
        steps: list[LabTimer | Packet] = [*packets[:AWAY_DATAGRAMS_MAX], *completed, *timers, *packets[AWAY_DATAGRAMS_MAX:]]
        if order == "shuffled":
            steps = _interleaved([*packets, *completed], timers, self.world.random)
        for step in steps:
            self.step(lambda step=step: self._serve(step))  # type: ignore[misc]
            if self.dead or not self.running:
                return

    def die(self) -> None:
        self.running = False
        self.dead = True
        self._held_timers = []
        self._disk.crash()
        self.endpoint.close()

    def _send_by_node(self, to: NodeId | Address, message: Message) -> None:
        """The way every message takes that has no line, and the place where lines begin."""
        self.node.begin_turn()  # F17 is counted where the run is watched, over lines and long roads alike
        self.node.send(to, message)
        if isinstance(to, NodeId) and to not in self._lines:
            line = self.endpoint.line_to(to, self.node.address_of(to), self.node.digests)
            if line is not None:
                self._lines[to] = line

    def _crash(self, then: Callable[[], None]) -> None:
        if not self.dead:
            self.world.crash(self.endpoint.name)
            then()

    def _serve(self, step: LabTimer | Packet) -> None:
        if not isinstance(step, LabTimer):
            self.endpoint.deliver(step)
        elif step.callback is not None:
            self.late = 0.0 if isinstance(step, Completion) else max(0.0, self.now - step.due_at)
            step.callback()
            self.late = 0.0


class WatchedHost(LabHost):
    """Where the run is watched, it is noted whom a callback sends to."""

    __slots__ = ()

    def send(self, to: NodeId | Address, message: Message) -> None:
        self.turn.append(to)
        LabHost.send(self, to, message)


def _interleaved(arrived: list[LabTimer | Packet], timers: list[LabTimer], random: Random) -> list[LabTimer | Packet]:
    left, right = list(arrived), list(timers)
    steps: list[LabTimer | Packet] = []
    while left or right:
        take_left = bool(left) and (not right or random.random() < len(left) / (len(left) + len(right)))
        steps.append(left.pop(0) if take_left else right.pop(0))
    return steps
