"""Counters under mixed faults: nothing is invented, nothing shrinks, and when the faults stop all members count the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from random import Random

from holdfast.host import Address, Host, Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.roster import Roster, listed
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World
from tests.toy.counter.lab.checkers import Adding, NeverLess, NothingInvented
from tests.toy.counter.protocol.counters import Counters

SECONDS = 10.0  # of faults
ADD_INTERVAL = 0.2  # mean, for the whole group
ADDED_MAX = 5
NAMES = ("hits", "misses")
HELLO_PERIOD = AE_PERIOD = 0.5
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
SETTLE = STRAY_SECONDS + 4 * HELLO_PERIOD + 40 * AE_PERIOD  # as of kit/rows
SPARED_SECONDS = 1.0  # two members always come back, after so long: one alone agrees with itself


class AddsScenario(Scenario):
    """Two to six members of a fixed list, whose users add to two counters."""

    name = "counter/adds"
    title = "Counters that all members add to, under mixed faults"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(2, 6)))
        plan = draw_plan(random, names, SECONDS, Menu(drift=0.01)).sparing(random.sample(names, 2), SPARED_SECONDS)
        return Setup(names, SECONDS, SETTLE, plan, Link(Uniform(0.001, 0.05), loss=0.1))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        addresses = {name: Address(name, PORT) for name in setup.names}
        roster = Roster(host, listed(addresses), hello_period=HELLO_PERIOD)
        cast = Broadcast(host, roster)
        exchange = Exchange(host, cast, ae_period=AE_PERIOD)
        return [roster, cast, exchange, Counters(host, exchange, limit=len(NAMES))]

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [NothingInvented(), NeverLess()]

    def drive(self, world: World, setup: Setup) -> None:
        random = Random(f"{world.seed}/adds")
        at = 0.0
        while at < setup.seconds:
            at += random.expovariate(1 / ADD_INTERVAL)
            world.at(at, partial(add, world, random.choice(setup.names), random.choice(NAMES), random.randint(1, ADDED_MAX)))

    def unsettled(self, world: World, setup: Setup) -> str:
        """All count the same, and at least what those added that are still alive."""
        values = {host.me: dict(host.node.use(Counters).values) for host in world.alive}
        different = [f"{a} and {b} count differently" for a, b in pairwise(values) if values[a] != values[b]]
        known = next(checker for checker in world.checkers if isinstance(checker, NothingInvented))
        lost = [
            f"{life} counts {counted.get(name, 0)} of {name}, and living members added more"
            for life, counted in values.items()
            for name in NAMES
            if counted.get(name, 0) < known.added_by(name, values)
        ]
        return "".join([*different, *lost][:1])


def add(world: World, node: str, name: str, by: int) -> None:
    """A user on that node adds, if the process runs."""
    host = world.nodes[node]
    if host.running:
        world.step(host, partial(_add, host, name, by))


def _add(host: LabHost, name: str, by: int) -> None:
    host.emit(Adding(name, by))
    host.node.use(Counters).add(name, by)


SCENARIO = AddsScenario()
