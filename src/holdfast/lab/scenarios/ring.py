"""A ring under mixed faults: founded, joined, left and joined again, cut, stopped, killed; I1 to I14 at every event.  Spec: ring 7, 11.

T_l is 1 second. Every run draws which kinds of faults it has, so that some runs are about pauses alone and others about everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.checkers.ring import RingWatch
from holdfast.lab.checkers.ring_keys import OneOwner, OnePublisher, TokenOrder, sampled_keys
from holdfast.lab.checkers.ring_pairs import ConfigSkew, OneLock, OneWinner, RightNeedsDuty, UpgradeLag
from holdfast.lab.checkers.ring_settled import unsettled
from holdfast.lab.checkers.ring_time import Declaration, Detection, JoinTime, Lifespan
from holdfast.lab.checkers.ring_views import JoinKnown, NoFalseDeclaration
from holdfast.lab.faults import Crash, Fault, Menu, Plan, draw_plan
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.rings import address_of
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World
from holdfast.protocols.ring.config import RingConfig
from holdfast.protocols.ring.ids import position_of
from holdfast.protocols.ring.ring import RingNode
from holdfast.protocols.ring.rules import Rules

LEASE = 1.0  # T_l
SETTLE = 170.0  # I9
SIZES = ((1, 2), (3, 5), (3, 5), (3, 5), (6, 9), (6, 9), (6, 9), (10, 14), (10, 14), (15, 20))
LARGE = 40
LARGE_SHARE = 0.02  # of the runs
DRIFT = 0.02
DRIFT_SHARE = 0.3
SPARED_SECONDS = 2.0  # after which a seed comes back that the group cannot be founded without
TOGETHER = (2, 3)  # processes that crash at once
ASK_INTERVAL = 0.4  # mean time between two questions of clients who owns a key
RETRY_SECONDS = 0.5  # a user tries again when the process it talks to is stopped

Parameters = dict[str, float | str]


class LateNode(RingNode):
    """A process that waits until its user wants to join."""

    def start(self) -> None:
        """Nothing yet."""


class RingScenario(Scenario):
    """One to forty processes, three seeds mostly, users that come, go and ask."""

    name = "ring/mixed"
    title = "Ring membership with pairwise arbitration, under mixed faults"
    rules = Rules()

    def setup(self, random: Random) -> Setup:
        size = LARGE if random.random() < LARGE_SHARE else random.randint(*random.choice(SIZES))
        names = tuple(f"n{i}" for i in range(size))
        seconds = random.choice((40.0, 50.0, 60.0))
        parameters = draw_parameters(random, names, seconds)
        seeds = names[: int(parameters["seeds"])]
        plan = draw_faults(random, names, seconds, float(parameters["rho"]) if parameters["drift"] else 0.0)
        plan = plan.sparing(random.sample(seeds, len(seeds) // 2 + 1), SPARED_SECONDS)
        return Setup(names, seconds, SETTLE, plan, draw_link(random), parameters)

    def config(self, name: str, boot: int, setup: Setup) -> RingConfig:
        given = setup.parameters
        return RingConfig(
            lease=LEASE * (5.0 if given.get("odd") == name else 1.0),
            k=int(given["k"]),
            rho=float(given["rho"]),
            retry=float(given["retry"]),
            seeds=tuple(address_of(each) for each in setup.names[: int(given["seeds"])]),
            found=given["founding"] == "found" and name == setup.names[0] and boot == 1,
            join_pace=bool(given["paced"]),
            indirect=bool(given["indirect"]),
            patient=bool(given["patient"]),
            here=bool(given["here"]),
            early_news=bool(given["early_news"]),
        )

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        config = self.config(host.me.name, host.me.boot, setup)
        late = host.me.boot == 1 and f"join:{host.me.name}" in setup.parameters
        return (LateNode if late else RingNode)(host, config, rules=self.rules, sole_life=bool(setup.parameters["sole_life"])).machines

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        watch = RingWatch()
        winners = OneWinner(watch)
        return [
            watch,
            winners,
            NoFalseDeclaration(watch),
            RightNeedsDuty(watch, winners),
            ConfigSkew(watch),
            Detection(watch),
            Declaration(watch),
            Lifespan(watch),
            OneOwner(watch),
            JoinKnown(watch),
            OneLock(watch),
            JoinTime(watch, lossless=setup.link.loss == 0),
            TokenOrder(watch, keys_of(setup)),
            UpgradeLag(watch),
            OnePublisher(watch),
        ]

    def drive(self, world: World, setup: Setup) -> None:
        for wish, value in setup.parameters.items():
            verb, _, name = wish.partition(":")
            if name:
                world.at(float(value), partial(tell, world, name, verb))
        random = Random(f"{world.seed}/clients")
        keys, at = keys_of(setup), random.expovariate(1 / ASK_INTERVAL)
        while at < setup.seconds:
            world.at(at, partial(ask, world, random.choice(keys)))
            at += random.expovariate(1 / ASK_INTERVAL)

    def unsettled(self, world: World, setup: Setup) -> str:
        odd = setup.parameters.get("odd")
        return unsettled(watch_of(world), world, keys_of(setup), left_out=(odd,) if isinstance(odd, str) else ())


def draw_parameters(random: Random, names: Sequence[str], seconds: float) -> Parameters:
    """The numbers of the ring, its switches, and who joins late, leaves or comes back."""
    size = len(names)
    seeds = min(size, random.choice((1, 3, 3, 3, 3, 5)))
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
        "indirect": float(practice and random.random() < 0.6),
        "patient": float(practice and random.random() < 0.6),
        "here": float(practice and random.random() < 0.6),
        "early_news": float(random.random() < 0.8),
    }
    others = names[seeds:]
    for name in others:
        if random.random() < 0.3:
            parameters[f"join:{name}"] = round(random.uniform(2.0, seconds * 0.8), 3)
    if len(others) > 1 and random.random() < 0.3:
        burst = round(random.uniform(5.0, seconds * 0.6), 3)
        for name in random.sample(others, random.randint(2, len(others))):
            parameters[f"join:{name}"] = round(burst + random.uniform(0.0, 0.5), 3)
    if random.random() < 0.4:
        for name in random.sample(names, random.randint(1, max(1, size // 4))):
            left = round(random.uniform(8.0, seconds * 0.8), 3)
            parameters[f"leave:{name}"] = left
            if name in names[:seeds] or random.random() < 0.6:
                parameters[f"return:{name}"] = round(left + random.uniform(0.1, 10.0), 3)
    if others and random.random() < 0.1:
        parameters["odd"] = random.choice(others)
    return parameters


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
        tail_seconds=3 * LEASE,
        drift=drift,
    )
    faults: list[Fault] = list(draw_plan(random, names, seconds, menu).faults)
    if len(names) > 2 and random.random() < 0.4:
        faults += crash_together(random, names, round(random.uniform(5.0, seconds), 3))
    return Plan(tuple(sorted(faults, key=lambda fault: fault.at)))


def crash_together(random: Random, names: Sequence[str], at: float) -> list[Fault]:
    """Two or three at once, half of the time neighbours on the ring."""
    count = random.choice(TOGETHER)
    chosen = random.sample(names, min(count, len(names)))
    if random.random() < 0.5:
        around = around_the_ring(names)
        first = random.randrange(len(around))
        chosen = [around[(first + i) % len(around)] for i in range(min(count, len(around)))]
    down = [None if random.random() < 0.3 else round(random.uniform(0.0, 15.0), 3) for _ in chosen]
    return [Crash(at, name, after) for name, after in zip(chosen, down, strict=True)]


def around_the_ring(names: Sequence[str]) -> list[str]:
    """In the order of their positions."""
    return sorted(names, key=position_of)


def draw_link(random: Random) -> Link:
    """Good weather: up to a twentieth of T_l, in some runs with a little loss."""
    return Link(Uniform(0.001, random.choice((0.005, 0.02, 0.05)) * LEASE), loss=random.choice((0.0, 0.0, 0.0, 0.02)))


def keys_of(setup: Setup) -> tuple[int, ...]:
    return sampled_keys(Random(",".join(setup.names)), [position_of(name) for name in setup.names])


def watch_of(world: World) -> RingWatch:
    return next(each for each in world.checkers if isinstance(each, RingWatch))


def tell(world: World, name: str, verb: str) -> None:
    """A user wants this process to join or to leave."""
    host = world.nodes[name]
    if host.dead:
        return  # The next life joins by itself.
    if not host.running:
        world.at(world.now + RETRY_SECONDS, partial(tell, world, name, verb))
        return
    ring = host.node.use(RingNode)
    if verb == "leave":
        world.step(host, ring.leave)
    elif not ring.lifecycle.wanted:
        world.step(host, ring.join)


def ask(world: World, key: int) -> None:
    """Clients of all processes ask whether theirs owns the key."""
    publisher = next(each for each in world.checkers if isinstance(each, OnePublisher))
    for host in running(world):
        life = publisher.watch.lives.get(host)
        if life is not None:
            world.step(host, partial(publisher.ask, world, life, key))


def running(world: World) -> list[LabHost]:
    return [host for host in world.alive if host.running]


SCENARIO = RingScenario()
