"""What the scenarios of elections draw: the size, how names are elected, who stands, what goes wrong.  Spec: election 7; issue 18."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

from msgspec.structs import replace

from holdfast.events import Event
from holdfast.features.election.protocol.config import ElectionConfig
from holdfast.features.election.protocol.facts import Elected, Initiated, Nominated, Tentative, Unsure, Yielded
from holdfast.features.election.protocol.manner import HEALTHS, VARIANTS, VOTERS, Manner, manner
from holdfast.host import Address, NodeId
from holdfast.kit.slots import Slot
from holdfast.lab.faults import Crash, Cut, Fault, LostJournal, Menu, Partition, Pause, Plan, draw_plan
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World

SIZES = ((1, 1), (2, 2), (3, 3), (3, 5), (3, 5), (4, 7), (4, 7), (5, 9), (8, 12), (12, 20))
LARGE, LARGE_SHARE = (24, 32, 40), 0.03
NAMES = ("alpha", "beta", "gamma", "delta")
MODES = ("none", "none", "none", "seats", "seats", "members")
LOSS_MAX, DUPLICATE_MAX = 0.25, 0.2
PAUSE_MAX = 8.0  # seconds
RHO = 0.02
TAIL = 3.0  # seconds: the longest a message of bad weather is on the road
CALM_SHARE = 0.15  # of the runs have no faults and a c that bounds what lists lack: E3 is judged there
FOUNDED_AFTER = 4.5  # F13: fresh seats serve; and of members with promises all have heard of each other
LENGTHS = (1.0, 2.0)  # hold

Parameters = dict[str, float | str]


def draw_size(random: Random) -> int:
    return random.choice(LARGE) if random.random() < LARGE_SHARE else random.randint(*random.choice(SIZES))


def draw_parameters(random: Random, size: int) -> Parameters:
    """How names are elected, and with which numbers."""
    calm = random.random() < CALM_SHARE and size >= 4
    seats = random.choice([count for count in (1, 3, 3, 5) if count <= size])
    names = random.choice((1, 1, 2, 3, 4))
    given: Parameters = {
        "calm": float(calm),
        "mode": random.choice(MODES),
        "seats": float(seats),
        "names": float(names),
        "timeout": random.choice((0.2, 0.2, 0.2, 0.35)),
        "length": random.choice(LENGTHS),
        "sticky": float(not calm and random.random() < 0.7),
        "preempt": float(random.random() < 0.2),
        "tick": random.choice((0.5, 1.0)),
        "clock": float(random.random() < 0.6),  # terms are at least the wall clock's (D21)
        "ambushes": random.choice((0.0, 0.05, 0.2, 0.4)),
        "c": random.choice((-1.0, -1.0, 0.0, 1.0, 2.0, float(size))),
        "f": random.choice((-1.0, -1.0, 0.0, 1.0)),
        "xy": random.choice((1.0, 2.0, 5.0, 5.0)),
    }
    for name in NAMES[:names]:
        given[f"variant:{name}"] = random.choice(VARIANTS[:2] if calm else VARIANTS)
        given[f"rank:{name}"] = "hash" if calm or random.random() < 0.7 else random.choice(("tag:load", "-tag:load"))
        given[f"health:{name}"] = random.choice((*HEALTHS, "tag:load"))
    if calm:
        given["c"], given["f"] = float(random.randint(0, min(4, size - 2))), 0.0
        given["holes"] = random.choice(("none", "static", "moving"))
    if given["mode"] == "members":
        given["clock"] = 1.0  # holes of D9: no term is shared because of them, and that is all that is promised
    return given


def manners_of(setup: Setup) -> dict[str, Manner]:
    given = setup.parameters
    return {
        name: manner(str(given[f"variant:{name}"]), str(given["mode"]), str(given[f"rank:{name}"]), str(given[f"health:{name}"]))
        for name in NAMES[: int(given["names"])]
    }


def config_of(setup: Setup) -> ElectionConfig:
    given = setup.parameters

    def some(key: str) -> int | None:
        return None if float(given[key]) < 0 else int(given[key])

    assert given["mode"] in VOTERS
    return ElectionConfig(
        timeout=float(given["timeout"]),
        x=int(given["xy"]),
        y=int(given["xy"]),
        c=some("c"),
        f=some("f"),
        hold=float(given["length"]),
        sticky=bool(given["sticky"]),
        preempt=bool(given["preempt"]),
        tick=float(given["tick"]),
    )


def slots_of(setup: Setup) -> tuple[Slot, ...]:
    names = setup.names[: int(setup.parameters["seats"])]
    return tuple(Slot(number, name, Address(name, PORT)) for number, name in enumerate(names))


def draw_faults(random: Random, names: Sequence[str], parameters: Parameters, seconds: float) -> Plan:
    """Each kind of fault in about half of the runs, more or less of it, after the founding where there is one."""

    def some(mean: float) -> float:
        return mean * random.choice((0.3, 0.6, 1.0, 1.5)) if random.random() < 0.6 else 0.0

    few = min(1.0, 12 / len(names))
    menu = Menu(
        crashes=some(0.5) * few,
        crash_forever=0.3,
        pauses=some(0.5) * few,
        pause_seconds=PAUSE_MAX,
        cuts=some(2.0),
        partitions=some(1.5),
        cut_seconds=10.0,
        weather=some(1.5),
        loss=LOSS_MAX,
        duplicate=DUPLICATE_MAX,
        delay=Uniform(0.001, 0.15),
        tail_seconds=random.choice((0.3, 1.0, TAIL)),
        drift=RHO if random.random() < 0.4 else 0.0,
        crashes_in_save=some(0.3) * few,
    )
    founded = 0.0 if parameters["mode"] == "none" else FOUNDED_AFTER
    faults: list[Fault] = [
        fault if fault.at == 0 else replace(fault, at=round(fault.at + founded, 3))
        for fault in draw_plan(random, names, max(1.0, seconds - founded), menu).faults
    ]
    if parameters["mode"] == "none":
        late = [name for name in names[1:] if random.random() < 0.15]
        faults += [Crash(0.0, name, round(random.uniform(0.5, seconds), 3)) for name in late]
    if parameters["mode"] != "seats" and random.random() < 0.3 and len(names) > 2:
        # With promises of members: fewer than a majority may be forgetful at once (D9).
        for name in random.sample(list(names), 1 if parameters["mode"] == "members" else max(1, len(names) // 3)):
            at = round(random.uniform(founded, seconds), 3)
            faults.append(LostJournal(at, name, round(random.uniform(0.0, 5.0), 3)))
    if len(names) > 1 and random.random() < 0.3:
        faults.append(_split(random, names, founded, seconds))
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


def spared(random: Random, names: Sequence[str], parameters: Parameters) -> list[str]:
    """Who comes back after each crash: the first, so that a group remains, and a majority of those who vote."""
    if parameters["mode"] == "seats":
        seats = int(parameters["seats"])
        return [names[0], *random.sample(list(names[:seats]), seats // 2 + 1)]
    if parameters["mode"] == "members":
        return list(names[: len(names) // 2 + 1])
    return [names[0]]


def draw_link(random: Random) -> Link:
    loss, duplicate = random.choice(((0.0, 0.0), (0.0, 0.05), (0.02, 0.0)))
    return Link(Uniform(0.0005, random.choice((0.002, 0.01, 0.04))), loss=loss, duplicate=duplicate)


def _split(random: Random, names: Sequence[str], begin: float, seconds: float) -> Fault:
    """Two sides for so long that each may have a leader."""
    at = round(random.uniform(begin, seconds / 2), 3)
    shuffled = random.sample(list(names), len(names))
    middle = random.randint(1, len(names) - 1)
    return Partition(at, round(seconds - at, 3), (tuple(shuffled[:middle]), tuple(shuffled[middle:])))


class Ambush:
    """Faults at the steps of an election: around each fact its initiator, its nominee or some others crash, stop or are cut off.

    Faults that come at any time seldom hit the few hundred milliseconds of an election.
    """

    def __init__(self, world: World, share: float, begin: float, until: float, lasting: Callable[[str], bool]) -> None:
        """``lasting``: who may stay down for good."""
        self._world, self._share, self._begin, self._until, self._lasting = world, share, begin, until, lasting
        self._random = Random(f"{world.seed}/ambush")
        self.struck = 0
        world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if not isinstance(event, Initiated | Nominated | Tentative | Elected | Yielded | Unsure):
            return
        if not self._begin <= self._world.now < self._until or self._random.random() >= self._share:
            return
        victims = [host.me.name]
        if isinstance(event, Nominated):
            victims.append(event.nominee.name)
        elif isinstance(event, Initiated):
            victims += [life.name for life in event.asked[:3]]
        delay = self._random.choice((0.0, 0.0, 0.01, 0.1, 0.5)) * self._random.random()
        self._world.at(self._world.now + delay, partial(self._strike, self._random.choice(victims)))

    def _strike(self, name: str) -> None:
        random, world = self._random, self._world
        if world.now >= self._until or name not in world.nodes or world.nodes[name].dead:
            return
        self.struck += 1
        others = tuple(each for each in world.nodes if each != name) or (name,)
        seconds = random.choice((0.3, 1.0, 3.0, 8.0)) * random.random() + 0.01
        some = tuple(random.sample(others, random.randint(1, len(others))))
        fault: Fault = random.choice((
            Crash(world.now, name, None if self._lasting(name) and random.random() < 0.3 else seconds),
            Crash(world.now, name, seconds),
            Pause(world.now, name, seconds, "shuffled" if random.random() < 0.3 else "host"),
            Cut(world.now, seconds, (name,), some),
            Cut(world.now, seconds, some, (name,)),
        ))  # fmt: skip
        fault.begin(world)
        if random.random() < 0.2:  # f others with it
            for other in random.sample(others, min(len(others), random.randint(1, 2))):
                Crash(world.now, other, seconds).begin(world)


def draw_health(random: Random, viewers: Sequence[NodeId], members: Sequence[NodeId]) -> Mapping[NodeId, dict[NodeId, float]]:
    """How unhealthy members look to each other: mostly not at all, a few to many."""
    bad = {member for member in members if random.random() < 0.3}
    return {
        viewer: {member: round(random.uniform(0.5, 9.0), 2) for member in members if member in bad and random.random() < 0.7}
        for viewer in viewers
    }
