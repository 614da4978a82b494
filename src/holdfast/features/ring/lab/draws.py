"""What the ring scenarios draw: numbers and switches, who comes and goes, what goes wrong, and ambushes.  Spec: ring 11."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

from holdfast.events import Event
from holdfast.features.ring.protocol.facts import BecameMember, GroupProposed, JoinStarted, PhaseReached, Suspicion, Won
from holdfast.features.ring.protocol.ids import RingId, position_of
from holdfast.lab.faults import Crash, Cut, Fault, Menu, Pause, Plan, draw_plan
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.world import World

LEASE = 1.0  # T_l
DRIFT = 0.02
DRIFT_SHARE = 0.3
TOGETHER = (2, 3)  # processes that crash at once
TAILS = (1.0, 3.0, 3.0, 8.0)  # seconds: messages that come when a wait or a lock is long over
AMBUSHED = (PhaseReached, BecameMember, Suspicion, Won, GroupProposed)

Parameters = dict[str, float | str]


def draw_parameters(random: Random, names: Sequence[str], seconds: float) -> Parameters:
    """The numbers of the ring, its switches, and who joins late, leaves or comes back."""
    seeds = min(len(names), random.choice((1, 3, 3, 3, 3, 5)))
    practice = random.random() < 0.4
    drift = random.random() < DRIFT_SHARE
    parameters: Parameters = {
        "k": float(random.choice((1, 2, 2, 3, 3, 3, 4))),
        "seeds": float(seeds),
        "founding": random.choice(("found", "seeds")),
        "rho": DRIFT if drift else 0.001,
        "drift": float(drift),
        "retry": random.choice((0.125, 0.125, 0.125, 0.25)),
        "paced": float(random.random() < 0.1),
        "sole_life": float(random.random() < 0.5),
        "indirect": float(not (practice and random.random() < 0.6)),  # on by default
        "patient": float(practice and random.random() < 0.6),
        "here": float(practice and random.random() < 0.6),
        "early_news": float(random.random() < 0.8),
        "ambushes": random.choice((0.0, 0.0, 0.02, 0.1)),
    }
    others = names[seeds:]
    if others and random.random() < 0.1:
        parameters["odd"] = random.choice(others)
    return parameters | draw_wishes(random, names, seeds, seconds)


def draw_wishes(random: Random, names: Sequence[str], seeds: int, seconds: float) -> Parameters:
    """``join:NAME``, ``leave:NAME``, ``return:NAME``: when its user wants that. Seeds always come back."""
    wishes: Parameters = {}
    others = names[seeds:]
    for name in others:
        if random.random() < 0.3:
            wishes[f"join:{name}"] = round(random.uniform(2.0, seconds * 0.8), 3)
    if len(others) > 1 and random.random() < 0.3:
        burst = round(random.uniform(5.0, seconds * 0.6), 3)
        for name in random.sample(others, random.randint(2, len(others))):
            wishes[f"join:{name}"] = round(burst + random.uniform(0.0, 0.5), 3)
    if random.random() < 0.4:
        for name in random.sample(names, random.randint(1, max(1, len(names) // 4))):
            left = round(random.uniform(8.0, seconds * 0.8), 3)
            wishes[f"leave:{name}"] = left
            if name in names[:seeds] or random.random() < 0.6:
                wishes[f"return:{name}"] = round(left + random.uniform(0.1, 10.0), 3)
    return wishes


def draw_faults(random: Random, names: Sequence[str], seconds: float, drift: float) -> Plan:
    """Each kind of fault in about half of the runs, more or less of it."""

    def some(mean: float) -> float:
        return mean * random.choice((0.3, 0.6, 1.0, 1.5)) if random.random() < 0.55 else 0.0

    menu = Menu(
        crashes=some(0.4),
        crash_forever=0.3,
        pauses=some(0.8),
        pause_seconds=10 * LEASE,
        cuts=some(2.0),
        partitions=some(1.0),
        cut_seconds=15 * LEASE,
        weather=some(1.5),
        loss=0.3,
        duplicate=0.1,
        delay=Uniform(0.001, 0.2 * LEASE),
        tail_seconds=random.choice(TAILS) * LEASE,
        drift=drift,
    )
    faults: list[Fault] = list(draw_plan(random, names, seconds, menu).faults)
    if len(names) > 2 and random.random() < 0.4:
        faults += crash_together(random, names, round(random.uniform(5.0, seconds), 3), random.choice(TOGETHER))
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


def crash_together(random: Random, names: Sequence[str], at: float, count: int) -> list[Fault]:
    """Some at once, half of the time neighbours on the ring."""
    count = min(count, len(names))
    chosen = random.sample(names, count)
    if random.random() < 0.5:
        around, first = around_the_ring(names), random.randrange(len(names))
        chosen = [around[(first + i) % len(around)] for i in range(count)]
    return [Crash(at, name, None if random.random() < 0.3 else round(random.uniform(0.0, 15.0), 3)) for name in chosen]


def around_the_ring(names: Sequence[str]) -> list[str]:
    """In the order of their positions."""
    return sorted(names, key=position_of)


def draw_link(random: Random) -> Link:
    """Good weather: up to a twentieth of T_l, in some runs with a little loss."""
    return Link(Uniform(0.001, random.choice((0.005, 0.02, 0.05)) * LEASE), loss=random.choice((0.0, 0.0, 0.0, 0.02)))


class Ambush:
    """Faults that follow what members do: a pause, a crash or a cut around the moment in which a process becomes a member, wins or
    regroups.

    Faults that come at any time seldom hit a window of two delays.
    """

    def __init__(self, world: World, share: float, until: float) -> None:
        self._world, self._share, self._until = world, share, until
        self._random = Random(f"{world.seed}/ambush")
        self._names: dict[RingId, str] = {}
        world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, BecameMember | JoinStarted):
            self._names[event.id] = host.me.name
        if isinstance(event, AMBUSHED) and self._world.now < self._until and self._random.random() < self._share:
            other = self._names.get(event.peer) if isinstance(event, Suspicion | Won | GroupProposed) else None
            at = self._world.now + self._random.choice((0.0, 0.01, 0.05, 0.3)) * self._random.random() * LEASE
            self._world.at(at, partial(self._begin, host.me.name, other or self._random.choice(sorted(self._names.values()))))

    def _begin(self, name: str, other: str) -> None:
        random, world = self._random, self._world
        if world.now >= self._until:
            return
        seconds = random.choice((0.3, 1.0, 2.0, 4.0, 8.0)) * random.random() * LEASE
        victim = random.choice((name, other))
        fault: Fault = random.choice((
            Pause(world.now, victim, seconds, "shuffled" if random.random() < 0.3 else "host"),
            Crash(world.now, victim, seconds),
            Cut(world.now, seconds, (name,), (other,)),
            Cut(world.now, seconds, (other,), (name,)),
            Cut(world.now, seconds, (victim,), tuple(world.nodes)),
        ))  # fmt: skip
        fault.begin(world)
