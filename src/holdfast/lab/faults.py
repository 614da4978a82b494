"""Faults as data: written by hand or drawn from a seed, saved as JSON, removed one by one by the shrinker.

Every fault carries its own end, so that any subset of a plan is a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from holdfast.errors import ConfigError
from holdfast.lab.links import Delay, Link, Uniform

if TYPE_CHECKING:
    from holdfast.lab.world import World

Order = Literal["host", "shuffled"]


class Crash(Struct, frozen=True, tag="crash"):
    """The process dies; the next life starts ``down`` seconds later, or never (None)."""

    at: float
    node: str
    down: float | None = None

    def begin(self, world: World) -> None:
        if not world.nodes[self.node].dead:
            world.crash(self.node)
            if self.down is not None:
                world.at(world.now + self.down, lambda: _revive(world, self.node))


class CrashInSave(Struct, frozen=True, tag="crash-in-save"):
    """The process dies at its next write point, between the write and its confirmation."""

    at: float
    node: str
    down: float = 1.0

    def begin(self, world: World) -> None:
        disk = world.disks[self.node]
        disk.crash_at_save = disk.saves + 1
        disk.after_crash = lambda: world.at(world.now + self.down, lambda: _revive(world, self.node))


class Pause(Struct, frozen=True, tag="pause"):
    """SIGSTOP and SIGCONT. ``shuffled`` serves what waited in any interleaving instead of F10's order."""

    at: float
    node: str
    seconds: float
    order: Order = "host"

    def begin(self, world: World) -> None:
        host = world.nodes[self.node]
        if host.running:
            world.stop(self.node)
            world.at(world.now + self.seconds, lambda: None if host.dead else world.resume(self.node, self.order))


class Cut(Struct, frozen=True, tag="cut"):
    """One direction of some links is silent."""

    at: float
    seconds: float
    source: tuple[str, ...]
    target: tuple[str, ...]

    def begin(self, world: World) -> None:
        world.network.cut(self, self.source, self.target)
        world.at(world.now + self.seconds, lambda: world.network.heal(self))


class Partition(Struct, frozen=True, tag="partition"):
    """Nothing passes between the sides."""

    at: float
    seconds: float
    sides: tuple[tuple[str, ...], ...]

    def begin(self, world: World) -> None:
        world.network.partition(self, self.sides)
        world.at(world.now + self.seconds, lambda: world.network.heal(self))


class Weather(Struct, frozen=True, tag="weather"):
    """All links are worse for a while."""

    at: float
    seconds: float
    link: Link

    def begin(self, world: World) -> None:
        world.network.set_weather(self, self.link)
        world.at(world.now + self.seconds, lambda: world.network.set_weather(self, None))


class DiskFull(Struct, frozen=True, tag="disk-full"):
    """Writes fail for a while; a life that met it stays silent (foundation 3)."""

    at: float
    seconds: float
    node: str

    def begin(self, world: World) -> None:
        disk = world.disks[self.node]
        disk.full = True
        world.at(world.now + self.seconds, lambda: setattr(disk, "full", False))


class Drift(Struct, frozen=True, tag="drift"):
    """This node's clock runs at another rate, from its next start on (``at`` 0: from the beginning)."""

    at: float
    node: str
    rate: float

    def begin(self, world: World) -> None:
        world.drift[self.node] = self.rate


Fault = Crash | CrashInSave | Pause | Cut | Partition | Weather | DiskFull | Drift


class Plan(Struct, frozen=True):
    """Everything that goes wrong in a run."""

    faults: tuple[Fault, ...] = ()

    def schedule(self, world: World) -> None:
        for fault in self.faults:
            world.at(fault.at, partial(_begin, fault, world))

    def prepare(self, world: World) -> None:
        """What must be known before the first process starts."""
        for fault in self.faults:
            if isinstance(fault, Drift) and fault.at == 0:
                fault.begin(world)

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self), indent=2) + b"\n"


def read_plan(path: Path) -> Plan:
    """A plan from a file; raises ConfigError naming the field."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise ConfigError(f"plan: cannot read {path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"plan: {path}: {error}; accepted faults are {', '.join(FAULT_NAMES)}") from None


class Menu(Struct, frozen=True):
    """How often each kind of fault is drawn in a run of ``seconds``; mean numbers per node or per group."""

    crashes: float = 0.5  # per node
    crash_forever: float = 0.3  # share of the crashes after which nobody comes back
    crashes_in_save: float = 0.0  # per node
    pauses: float = 0.7  # per node
    pause_seconds: float = 4.0  # longest
    cuts: float = 1.0  # per group
    partitions: float = 0.7  # per group
    cut_seconds: float = 8.0  # longest cut or partition
    weather: float = 1.0  # per group
    loss: float = 0.3  # worst
    duplicate: float = 0.1
    delay: Delay = Uniform(0.001, 0.2)
    tail_seconds: float = 3.0
    drift: float = 0.0  # largest rate error
    disks_full: float = 0.0  # per node


def draw_plan(random: Random, names: Sequence[str], seconds: float, menu: Menu) -> Plan:
    """A plan of mixed faults; the same random, the same plan."""
    draw = _Draw(random, names, seconds, menu)
    faults: list[Fault] = []
    for make, mean in draw.kinds():
        faults.extend(make() for _ in range(_poisson(random, mean)))
    if menu.drift:
        faults.extend(Drift(0.0, name, 1.0 + random.uniform(-menu.drift, menu.drift)) for name in names)
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


class _Draw:
    def __init__(self, random: Random, names: Sequence[str], seconds: float, menu: Menu) -> None:
        self.random, self.names, self.seconds, self.menu = random, list(names), seconds, menu

    def kinds(self) -> list[tuple[Callable[[], Fault], float]]:
        menu, nodes = self.menu, len(self.names)
        return [
            (self.crash, menu.crashes * nodes),
            (self.crash_in_save, menu.crashes_in_save * nodes),
            (self.pause, menu.pauses * nodes),
            (self.disk_full, menu.disks_full * nodes),
            (self.cut, menu.cuts),
            (self.partition, menu.partitions if nodes > 1 else 0.0),
            (self.weather, menu.weather),
        ]

    def when(self) -> float:
        return round(self.random.uniform(0.0, self.seconds), 3)

    def span(self, longest: float) -> float:
        return round(longest * self.random.random() ** 2 + 0.001, 3)  # short ones are more interesting than long ones

    def node(self) -> str:
        return self.random.choice(self.names)

    def crash(self) -> Fault:
        forever = self.random.random() < self.menu.crash_forever
        return Crash(self.when(), self.node(), None if forever else self.span(self.seconds / 3))

    def crash_in_save(self) -> Fault:
        return CrashInSave(self.when(), self.node(), self.span(self.seconds / 3))

    def pause(self) -> Fault:
        order: Order = "shuffled" if self.random.random() < 0.3 else "host"
        return Pause(self.when(), self.node(), self.span(self.menu.pause_seconds), order)

    def disk_full(self) -> Fault:
        return DiskFull(self.when(), self.span(self.seconds / 3), self.node())

    def cut(self) -> Fault:
        source = tuple(self.random.sample(self.names, self.random.randint(1, max(1, len(self.names) // 2))))
        target = tuple(self.random.sample(self.names, self.random.randint(1, len(self.names))))
        return Cut(self.when(), self.span(self.menu.cut_seconds), source, target)

    def partition(self) -> Fault:
        shuffled = self.random.sample(self.names, len(self.names))
        middle = self.random.randint(1, len(shuffled) - 1)
        return Partition(self.when(), self.span(self.menu.cut_seconds), (tuple(shuffled[:middle]), tuple(shuffled[middle:])))

    def weather(self) -> Fault:
        menu, chance = self.menu, self.random.random
        link = Link(
            menu.delay, round(menu.loss * chance(), 3), round(menu.duplicate * chance(), 3), round(0.1 * chance(), 3), menu.tail_seconds
        )
        return Weather(self.when(), self.span(self.seconds / 2), link)


def _poisson(random: Random, mean: float) -> int:
    """Number of arrivals of rate 1 in ``mean`` seconds."""
    count, waited = 0, random.expovariate(1.0)
    while waited < mean:
        count, waited = count + 1, waited + random.expovariate(1.0)
    return count


def _begin(fault: Fault, world: World) -> None:
    if world.trace is not None:
        world.trace.record(world.now, "* {}", fault)
    fault.begin(world)


def _revive(world: World, name: str) -> None:
    if world.nodes[name].dead:
        world.start(name)


FAULT_NAMES = ("crash", "crash-in-save", "pause", "cut", "partition", "weather", "disk-full", "drift")
