"""A ring under mixed faults: founded, joined, left and joined again, cut, stopped, killed; I1 to I15 at every event.  Spec: ring 7, 11.

T_l is 1 second. Every run draws which kinds of faults it has, so that some runs are about pauses alone and others about everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from random import Random

from holdfast.features.ring.lab.checkers.keys import OnePublisher, sampled_keys
from holdfast.features.ring.lab.checkers.ring import RingWatch
from holdfast.features.ring.lab.checkers.settled import unsettled
from holdfast.features.ring.lab.draws import LEASE, Ambush, draw_faults, draw_link, draw_parameters
from holdfast.features.ring.lab.observer import invariants, longest_way
from holdfast.features.ring.lab.rings import address_of
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ids import position_of
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.rules import Rules
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Weather
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SETTLE = 170 * LEASE  # I9
SIZES = ((1, 2), (3, 5), (3, 5), (3, 5), (6, 9), (6, 9), (6, 9), (10, 14), (10, 14), (15, 20))
LARGE = 40
LARGE_SHARE = 0.02  # of the runs
SPARED_SECONDS = 2.0  # after which a seed comes back that the group cannot be founded without
ASK_INTERVAL = 0.4  # mean time between two questions of clients who owns a key
RETRY_SECONDS = 0.5  # a user tries again when the process it talks to is stopped


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
        kind = LateNode if late else RingNode
        return standalone(host, config, rules=self.rules, sole_life=bool(setup.parameters["sole_life"]), kind=kind)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        watch = RingWatch()
        links = [setup.link, *(fault.link for fault in setup.plan.faults if isinstance(fault, Weather))]
        travel = longest_way(len(setup.names), links)
        return [*invariants(watch, keys_of(setup), lossless=setup.link.loss == 0, travel=travel), OnePublisher(watch)]

    def drive(self, world: World, setup: Setup) -> None:
        for wish, value in setup.parameters.items():
            verb, _, name = wish.partition(":")
            if name:
                world.at(float(value), partial(tell, world, name, verb))
        share = float(setup.parameters["ambushes"])
        if share:
            Ambush(world, share, setup.seconds)
        random = Random(f"{world.seed}/clients")
        keys, at = keys_of(setup), random.expovariate(1 / ASK_INTERVAL)
        while at < setup.seconds:
            world.at(at, partial(ask, world, random.choice(keys)))
            at += random.expovariate(1 / ASK_INTERVAL)

    def unsettled(self, world: World, setup: Setup) -> str:
        odd = setup.parameters.get("odd")
        return unsettled(watch_of(world), world, keys_of(setup), left_out=(odd,) if isinstance(odd, str) else ())


def keys_of(setup: Setup) -> tuple[int, ...]:
    return _keys_of(setup.names)


@lru_cache(maxsize=64)
def _keys_of(names: tuple[str, ...]) -> tuple[int, ...]:
    """Asked for at every look at whether the ring is settled."""
    return sampled_keys(Random(",".join(names)), [position_of(name) for name in names])


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
