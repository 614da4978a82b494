"""Faults as data: written by hand or drawn from a seed, saved as JSON, removed one by one by the shrinker.

Every fault carries its own end, so that any subset of a plan is a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from holdfast.errors import ConfigError
from holdfast.host import Message
from holdfast.lab.accounting import sealed_bytes
from holdfast.lab.disk import Copy
from holdfast.lab.links import SECONDS_MAX, Delay, Link, Uniform

if TYPE_CHECKING:
    from holdfast.lab.world import World

Order = Literal["host", "shuffled"]
Seconds = Annotated[float, Meta(ge=0.0, le=SECONDS_MAX)]
Side = Annotated[tuple[str, ...], Meta(min_length=1)]
RATE_MIN, RATE_MAX = 0.01, 100.0  # of a clock; outside, its timers would be due beyond the end of any run, or all at once


class Crash(Struct, frozen=True, forbid_unknown_fields=True, tag="crash"):
    """The process dies; the next life starts ``down`` seconds later, or never (None).

    Never is the last word: a process that is dead already when such a crash comes does not come back either.
    """

    at: Seconds
    node: str
    down: Seconds | None = None

    def begin(self, world: World) -> None:
        if self.down is None:
            world.crash(self.node)
            world.bury(self.node)
        elif not world.nodes[self.node].dead:
            world.crash(self.node)
            world.revive_after(self.down, self.node)


class CrashInSave(Struct, frozen=True, forbid_unknown_fields=True, tag="crash-in-save"):
    """The process dies at its next write point, between the write and its confirmation."""

    at: Seconds
    node: str
    down: Seconds = 1.0

    def begin(self, world: World) -> None:
        disk = world.disks[self.node]
        disk.crash_at_save = disk.saves + 1
        disk.after_crash = lambda: world.revive_after(self.down, self.node)


class Pause(Struct, frozen=True, forbid_unknown_fields=True, tag="pause"):
    """SIGSTOP and SIGCONT. ``shuffled`` serves what waited in any interleaving instead of F10's order."""

    at: Seconds
    node: str
    seconds: Seconds
    order: Order = "host"

    def begin(self, world: World) -> None:
        host = world.nodes[self.node]
        if host.running:
            world.stop(self.node)
            world.at(world.now + self.seconds, lambda: None if host.dead else world.resume(self.node, self.order))


class Cut(Struct, frozen=True, forbid_unknown_fields=True, tag="cut"):
    """One direction of some links is silent."""

    at: Seconds
    seconds: Seconds
    source: Side
    target: Side

    def begin(self, world: World) -> None:
        world.network.cut(self, self.source, self.target)
        world.at(world.now + self.seconds, lambda: world.network.heal(self))


class Partition(Struct, frozen=True, forbid_unknown_fields=True, tag="partition"):
    """Nothing passes between the sides."""

    at: Seconds
    seconds: Seconds
    sides: Annotated[tuple[Side, ...], Meta(min_length=2)]

    def begin(self, world: World) -> None:
        world.network.partition(self, self.sides)
        world.at(world.now + self.seconds, lambda: world.network.heal(self))


class Hole(Struct, frozen=True, forbid_unknown_fields=True, tag="hole"):
    """Some messages of one direction vanish, and all others pass: those of some types, or those of more than so many sealed bytes.

    A path that drops large packets, or a stream that is stuck while datagrams pass.
    """

    at: Seconds
    seconds: Seconds
    source: Side
    target: Side
    kinds: tuple[str, ...] = ()  # names of message types
    larger: Annotated[int, Meta(ge=0)] | None = None  # in bytes, as ``sealed_bytes`` has it

    def __post_init__(self) -> None:
        if not self.kinds and self.larger is None:
            raise ConfigError("a hole that takes nothing; say which kinds, or what is larger than how many bytes")

    def begin(self, world: World) -> None:
        world.network.lose_if(self._takes, self)
        world.at(world.now + self.seconds, lambda: world.network.let_pass(self))

    def _takes(self, source: str, target: str, message: Message) -> bool:
        if source not in self.source or target not in self.target:
            return False
        if type(message).__name__ in self.kinds:
            return True
        return self.larger is not None and sealed_bytes(source, message) > self.larger


class Weather(Struct, frozen=True, forbid_unknown_fields=True, tag="weather"):
    """All links are worse for a while."""

    at: Seconds
    seconds: Seconds
    link: Link

    def begin(self, world: World) -> None:
        world.network.set_weather(self, self.link)
        world.at(world.now + self.seconds, lambda: world.network.set_weather(self, None))


class DiskFull(Struct, frozen=True, forbid_unknown_fields=True, tag="disk-full"):
    """Writes fail for a while; a life that met it stays silent (foundation 3)."""

    at: Seconds
    seconds: Seconds
    node: str

    def begin(self, world: World) -> None:
        disk = world.disks[self.node]
        disk.full = True
        world.at(world.now + self.seconds, lambda: setattr(disk, "full", False))


class LostJournal(Struct, frozen=True, forbid_unknown_fields=True, tag="lost-journal"):
    """The machine is replaced: same name, same address, an empty disk. The next life starts ``down`` seconds later.

    A process that is dead already loses its disk all the same, and comes back when it would have.
    """

    at: Seconds
    node: str
    down: Seconds = 0.0

    def begin(self, world: World) -> None:
        if not world.nodes[self.node].dead:
            world.crash(self.node)
            world.revive_after(self.down, self.node)
        world.disks[self.node].wipe()


class RestoredJournal(Struct, frozen=True, forbid_unknown_fields=True, tag="restored-journal"):
    """A copy of the disk is taken, and put back ``seconds`` later; the next life starts ``down`` seconds after that.

    A process that is dead by then finds the copy as well, and comes back when it would have.
    """

    at: Seconds
    seconds: Seconds
    node: str
    down: Seconds = 0.0

    def begin(self, world: World) -> None:
        copy = world.disks[self.node].copy()
        world.at(world.now + self.seconds, lambda: self._restore(world, copy))

    def _restore(self, world: World, copy: Copy) -> None:
        if not world.nodes[self.node].dead:
            world.crash(self.node)
            world.revive_after(self.down, self.node)
        world.disks[self.node].restore(copy)


class Drift(Struct, frozen=True, forbid_unknown_fields=True, tag="drift"):
    """This node's clock runs at another rate, in all of its lives.

    Only from the beginning: what waits for a due time on that clock was sorted by its rate.
    """

    at: float
    node: str
    rate: float

    def __post_init__(self) -> None:
        if self.at != 0:
            raise ConfigError(f"at {self.at:g}: a clock has one rate for the whole run; accepted: 0")
        if not RATE_MIN <= self.rate <= RATE_MAX:
            raise ConfigError(f"rate {self.rate:g} is no clock; accepted: {RATE_MIN:g} to {RATE_MAX:g}, 1 is exact")

    def begin(self, world: World) -> None:
        world.drift[self.node] = self.rate


Fault = Crash | CrashInSave | Pause | Cut | Partition | Hole | Weather | DiskFull | LostJournal | RestoredJournal | Drift


class Plan(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that goes wrong in a run."""

    faults: tuple[Fault, ...] = ()

    def schedule(self, world: World) -> None:
        for fault in self.faults:
            world.at(fault.at, partial(_begin, fault, world))

    def prepare(self, world: World) -> None:
        """What must be known before the first process starts."""
        for fault in self.faults:
            if isinstance(fault, Drift):
                fault.begin(world)

    def sparing(self, names: Collection[str], down: float) -> Plan:
        """The same plan, but these come back ``down`` seconds after a crash that would have been their last."""
        return Plan(tuple(_spared(fault, down) if isinstance(fault, Crash) and fault.node in names else fault for fault in self.faults))

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
    crash_forever: float = 0.3  # share of the crashes after which the process does not come back
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
    holes: float = 0.0  # per group
    hole_kinds: tuple[str, ...] = ()  # each hole takes one of these, or what is larger than ``hole_bytes``
    hole_bytes: int | None = None


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
        kinds: list[tuple[Callable[[], Fault], float]] = [
            (self.crash, menu.crashes * nodes),
            (self.crash_in_save, menu.crashes_in_save * nodes),
            (self.pause, menu.pauses * nodes),
            (self.disk_full, menu.disks_full * nodes),
            (self.cut, menu.cuts),
            (self.partition, menu.partitions if nodes > 1 else 0.0),
            (self.weather, menu.weather),
        ]
        # Not even asked for otherwise, because asking draws: the plans of menus without holes stay what they are.
        return [*kinds, (self.hole, menu.holes)] if menu.holes else kinds

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

    def hole(self) -> Fault:
        menu = self.menu
        taken: list[str | int] = [*menu.hole_kinds]
        if menu.hole_bytes is not None:
            taken.append(menu.hole_bytes)
        chosen = self.random.choice(taken)
        source, target = self.random.sample(self.names, 2)
        when, span = self.when(), self.span(menu.cut_seconds)
        if isinstance(chosen, str):
            return Hole(when, span, (source,), (target,), kinds=(chosen,))
        return Hole(when, span, (source,), (target,), larger=chosen)

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


def _spared(fault: Crash, down: float) -> Crash:
    return replace(fault, down=down) if fault.down is None else fault


FAULT_NAMES = (
    "crash", "crash-in-save", "pause", "cut", "partition", "hole", "weather", "disk-full", "lost-journal", "restored-journal", "drift",
)  # fmt: skip
