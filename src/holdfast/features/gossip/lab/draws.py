"""What the scenarios of gossip draw: profile and numbers, who comes, goes and changes its rows, what goes wrong.  Spec: gossip 7; issue 17.

All times are in periods of the profile that was drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from holdfast.events import Event, Suspected
from holdfast.features.gossip.protocol.facts import LastCall
from holdfast.host import NodeId
from holdfast.lab.faults import Crash, Cut, Fault, LostJournal, Menu, Partition, Pause, Plan, draw_plan
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.world import World

SIZES = ((1, 1), (2, 2), (3, 3), (3, 5), (3, 5), (4, 7), (4, 7), (6, 9), (6, 9), (8, 12), (8, 12), (10, 16), (12, 20))
LARGE = (24, 32, 48, 64)
LARGE_SHARE = 0.02
PROFILES = ("lan", "lan", "lan", "local", "local", "wan", "swim", "lifeguard", "paper")
TARGETS = ("shuffle", "shuffle", "bag", "spatial")
LOSS_MAX = 0.25
PAUSE_MIN, PAUSE_MAX = 0.3, 20.0  # T
CALM_SHARE = 0.12  # of the runs have no faults of links and processes: G5 is judged there
CLONES_SHARE = 0.12
DRIFT = 0.02
MEADOW = 1000.0  # metres: members are anywhere in a square of that size

Parameters = dict[str, float | str]


def draw_size(random: Random) -> int:
    return random.choice(LARGE) if random.random() < LARGE_SHARE else random.randint(*random.choice(SIZES))


def draw_parameters(random: Random, names: Sequence[str], period: float, seconds: float) -> Parameters:
    """The switches of the group, and what its users want."""
    calm = random.random() < CALM_SHARE
    seeds = min(len(names), random.choice((1, 2, 3, 3, 3)))
    parameters: Parameters = {
        "calm": float(calm),
        "target": random.choice(TARGETS),
        "seeds": float(seeds),
        "positions": float(random.random() < 0.4),
        "odd": float(random.random() < 0.1),  # some members have another T
        "ambushes": random.choice((0.0, 0.0, 0.1, 0.3)),
        "rows": random.choice((0.0, 2.0, 10.0)),  # changes per member, on average
    }
    others = names[seeds:]
    if others and not calm and random.random() < CLONES_SHARE:
        parameters[f"clone:{random.choice(others)}"] = random.choice(names[:seeds])
    return parameters | draw_wishes(random, names, seeds, period, seconds)


def draw_wishes(random: Random, names: Sequence[str], seeds: int, period: float, seconds: float) -> Parameters:
    """``join:NAME``, ``leave:NAME``, ``return:NAME``: when its user wants that. The first seed stays."""
    wishes: Parameters = {}
    for name in names[seeds:]:
        if random.random() < 0.25:
            wishes[f"join:{name}"] = round(random.uniform(0.0, seconds * 0.7), 3)
    if len(names) > 1 and random.random() < 0.5:
        for name in random.sample(names[1:], random.randint(1, max(1, len(names) // 4))):
            left = round(random.uniform(5 * period, seconds * 0.8), 3)
            wishes[f"leave:{name}"] = left
            if name in names[:seeds] or random.random() < 0.5:
                wishes[f"return:{name}"] = round(left + random.uniform(0.1, 10.0) * period, 3)
    return wishes


def draw_faults(random: Random, names: Sequence[str], period: float, seconds: float) -> Plan:
    """Each kind of fault in about half of the runs, more or less of it."""

    def some(mean: float) -> float:
        return mean * random.choice((0.3, 0.6, 1.0, 1.5)) if random.random() < 0.55 else 0.0

    few = min(1.0, 12 / len(names))
    menu = Menu(
        crashes=some(0.5) * few,
        crash_forever=0.4,
        pauses=some(0.4) * few,
        pause_seconds=PAUSE_MAX * period,
        cuts=some(2.0),
        partitions=some(1.0),
        cut_seconds=20 * period,
        weather=some(1.5),
        loss=LOSS_MAX,
        duplicate=0.1,
        delay=Uniform(0.001 * period, 0.3 * period),
        tail_seconds=random.choice((1.0, 3.0, 10.0)) * period,
        drift=DRIFT if random.random() < 0.3 else 0.0,
    )
    faults: list[Fault] = list(draw_plan(random, names, seconds, menu).faults)
    for name in names:
        if random.random() < 0.5 * few * menu.pauses:
            span = round(random.uniform(PAUSE_MIN, PAUSE_MAX) * period, 3)
            faults.append(Pause(round(random.uniform(0.0, seconds), 3), name, span, random.choice(("host", "host", "shuffled"))))
        if random.random() < 0.5 * few * menu.crashes:
            faults.append(LostJournal(round(random.uniform(0.0, seconds), 3), name, round(random.uniform(0.0, 10.0) * period, 3)))
    if len(names) > 1 and random.random() < 0.2:
        faults.append(split(random, names, period, seconds))
    if len(names) > 2 and random.random() < 0.3:
        faults += crash_together(random, names, period, seconds)
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


def split(random: Random, names: Sequence[str], period: float, seconds: float) -> Fault:
    """Two sides for so long that each may bury the other one."""
    at = round(random.uniform(0.0, seconds / 3), 3)
    shuffled = random.sample(names, len(names))
    middle = random.randint(1, len(names) - 1)
    return Partition(at, round(seconds - at, 3), (tuple(shuffled[:middle]), tuple(shuffled[middle:])))


def crash_together(random: Random, names: Sequence[str], period: float, seconds: float) -> list[Fault]:
    """Several at once: all seeds among them now and then."""
    at = round(random.uniform(3 * period, seconds), 3)
    chosen = random.sample(names, random.randint(2, max(2, len(names) // 2))) if random.random() < 0.7 else list(names[:3])
    return [Crash(at, name, None if random.random() < 0.3 else round(random.uniform(0.0, 15.0) * period, 3)) for name in chosen]


def draw_link(random: Random, period: float) -> Link:
    """Good weather: at most a quarter of the probe timeout, in some runs with a little loss or duplicates."""
    longest = random.choice((0.01, 0.05, 0.099)) * period
    loss, duplicate = random.choice(((0.0, 0.0), (0.0, 0.0), (0.0, 0.05), (0.02, 0.0)))
    return Link(Uniform(0.001 * period, longest), loss=loss, duplicate=duplicate)


class Ambush:
    """Faults that follow what members do: a pause, a crash or a cut around the moment in which one suspects another, or asks it once more.

    Faults that come at any time seldom hit the few periods of a suspicion.
    """

    def __init__(self, world: World, share: float, period: float, until: float) -> None:
        self._world, self._share, self._period, self._until = world, share, period, until
        self._random = Random(f"{world.seed}/ambush")
        world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if not isinstance(event, Suspected | LastCall) or self._world.now >= self._until or self._random.random() >= self._share:
            return
        subject = event.target if isinstance(event, LastCall) else event.member.id
        at = self._world.now + self._random.choice((0.0, 0.1, 1.0, 3.0)) * self._random.random() * self._period
        self._world.at(at, partial(self._begin, host.endpoint.name, subject))

    def _begin(self, one: str, subject: NodeId) -> None:
        random, world = self._random, self._world
        other = next((place for place, host in world.nodes.items() if host.me == subject), one)
        if world.now >= self._until:
            return
        seconds = random.choice((0.5, 2.5, 4.0, 8.0, 20.0)) * random.random() * self._period
        fault: Fault = random.choice((
            Pause(world.now, one, seconds + 2 * self._period, "shuffled" if random.random() < 0.3 else "host"),
            Pause(world.now, other, seconds, "host"),
            Crash(world.now, random.choice((one, other)), seconds),
            Cut(world.now, seconds, (one,), (other,)),
            Cut(world.now, seconds, (other,), tuple(world.nodes)),
        ))  # fmt: skip
        fault.begin(world)
