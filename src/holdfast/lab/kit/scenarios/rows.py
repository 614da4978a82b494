"""Rows under mixed faults: values only grow, nothing is invented, and when the faults stop all tables become equal.

Spec: foundation 4 (Rows), tickets 5.9 (Cview: G6).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from random import Random

from holdfast.host import Address, Host, Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.roster import Roster, listed
from holdfast.kit.rows import Merge
from holdfast.kit.versioned import Versioned, gone, newest, read, valid
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.kit.checkers.rows import DigestsTrue, NeverBack, NothingInvented, RowChanged, RowSet
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

TOPIC = "cview"
SECONDS = 12.0  # of faults
SET_INTERVAL = 0.3  # mean, for the whole group
GONE_SHARE = 0.2  # of what is set
KEYS = 6
HELLO_PERIOD = AE_PERIOD = 0.5
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
# Each member compares with one random other per period, and both learn. A member of 8 that misses the others' news for 40 periods drew
# the one equally ignorant peer, if there was one, every time: less than (1/2)^40.
SETTLE = STRAY_SECONDS + HELLO_PERIOD * 4 + AE_PERIOD * 40
MENU = Menu(drift=0.01)
SPARED_SECONDS = 1.0  # two members always come back, after so long: one alone agrees with itself
CALM_KEY = "calm"


class RowsScenario(Scenario):
    """Two to eight members of a fixed list, each sets and removes values of a few keys."""

    name = "kit/rows"
    title = "One table shared by rumours and anti-entropy, under mixed faults"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(2, 8)))
        plan = draw_plan(random, names, SECONDS, MENU).sparing(random.sample(names, 2), SPARED_SECONDS)
        return Setup(names, SECONDS, SETTLE, plan, Link(Uniform(0.001, 0.05), loss=0.1))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        addresses = {name: Address(name, PORT) for name in setup.names}
        roster = Roster(host, listed(addresses), hello_period=HELLO_PERIOD)
        cast = Broadcast(host, roster)
        exchange = self.make(host, cast)
        table = exchange.rows(TOPIC, self.merge(), gone=gone, valid=valid, tombstone_ttl=1000.0)  # longer than any run
        table.on_change(lambda key, before, value: host.emit(RowChanged(key, before, value)))
        return [roster, cast, exchange]

    def make(self, host: Host, broadcast: Broadcast) -> Exchange:
        return Exchange(host, broadcast, ae_period=AE_PERIOD)

    def merge(self) -> Merge:
        return newest

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [NothingInvented(), NeverBack(), DigestsTrue(TOPIC)]

    def drive(self, world: World, setup: Setup) -> None:
        random = Random(f"{world.seed}/sets")
        at = 0.0
        while at < setup.seconds:
            at += random.expovariate(1 / SET_INTERVAL)
            key = f"k{random.randrange(KEYS)}"
            body = None if random.random() < GONE_SHARE else random.randbytes(8)
            world.at(at, partial(put, world, random.choice(setup.names), key, body))

    def unsettled(self, world: World, setup: Setup) -> str:
        """All tables are equal, and have a value that was set when the faults had stopped: equal from before proves nothing."""
        living = world.alive
        if living and not living[0].node.use(Exchange).table(TOPIC).read([CALM_KEY]):
            put(world, living[0].me.name, CALM_KEY, b"all is well")
        contents = {str(host.me): dict(host.node.use(Exchange).table(TOPIC).items()) for host in world.alive}
        different = [(a, b) for a, b in pairwise(contents) if contents[a] != contents[b]]
        return "".join(f"{a} and {b} hold different tables" for a, b in different[:1])


def put(world: World, name: str, key: str, body: bytes | None) -> None:
    """A user on that node sets or removes a value, if the process runs: one version above what it knows."""
    host = world.nodes[name]
    if not host.running:
        return
    table = host.node.use(Exchange).table(TOPIC)
    known = table.read([key])
    version = read(known[0].value).version + 1 if known else 1
    value = Versioned(version, str(host.me), body).encode()
    host.emit(RowSet(key, value))
    world.step(host, lambda: table.set(key, value))


SCENARIO = RowsScenario()
