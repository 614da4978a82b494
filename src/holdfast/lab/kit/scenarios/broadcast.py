"""Broadcast under mixed faults: at most once, nothing invented, messages bounded; in calm all are reached.

Spec: tickets 5.9 and 4 (PrCast), foundation 4 (Broadcast).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from holdfast.host import Address, Host, Machine, Membership
from holdfast.kit.broadcast import Broadcast, RumourId
from holdfast.kit.roster import Roster, listed
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.kit.checkers.broadcast import AtMostOnce, CalmReachesAll, InfectAndDie, NothingInvented, RumourCast, RumourHeard
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

TOPIC = "news"
SECONDS = 12.0  # of faults
CAST_INTERVAL = 0.4  # mean, for the whole group
HELLO_PERIOD = 0.5
DELAY_MAX = 0.05
SETTLE = 20.0
MENU = Menu(drift=0.01, duplicate=0.3)
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
SPARED_SECONDS = 1.0  # two members always come back, after so long: no member is alone
LAST_WORD = b"all is well"


class BroadcastScenario(Scenario):
    """Two to twelve members of a fixed list, one of them has news every now and then."""

    name = "kit/broadcast"
    title = "PrCast under mixed faults"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i:02}" for i in range(random.randint(2, 12)))
        plan = draw_plan(random, names, SECONDS, MENU).sparing(random.sample(names, 2), SPARED_SECONDS)
        return Setup(names, SECONDS, SETTLE, plan, Link(Uniform(0.001, DELAY_MAX)))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        addresses = {name: Address(name, PORT) for name in setup.names}
        roster = Roster(host, listed(addresses), hello_period=HELLO_PERIOD)
        cast = self.make(host, roster)

        def heard(rumour: RumourId, payload: bytes) -> None:
            host.emit(RumourHeard(rumour, payload))

        cast.on_rumour(TOPIC, heard)
        return [roster, cast]

    def make(self, host: Host, membership: Membership) -> Broadcast:
        return Broadcast(host, membership)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        members = len(setup.names)
        calm = Calm()
        # Four greetings and all know every life; a rumour then takes one hop, and a clock that runs 1 % wrong adds little.
        certain = CalmReachesAll(calm, members, calm_for=4 * HELLO_PERIOD, within=2 * DELAY_MAX)
        return [calm, NothingInvented(), AtMostOnce(), InfectAndDie(members), certain]

    def drive(self, world: World, setup: Setup) -> None:
        random = Random(f"{world.seed}/news")
        at, number = 0.0, 0
        while at < setup.seconds:
            at += random.expovariate(1 / CAST_INTERVAL)
            number += 1
            world.at(at, partial(tell, world, random.choice(setup.names), f"news {number}".encode()))

    def unsettled(self, world: World, setup: Setup) -> str:
        """One cast reaches all members only with high probability, so it is repeated until each of the living heard one in calm."""
        told = next(checker for checker in world.checkers if isinstance(checker, AtMostOnce))
        deaf = [host for host in world.alive[1:] if told.last_heard_at(host.me) < setup.seconds + STRAY_SECONDS]
        if deaf:
            tell(world, world.alive[0].me.name, LAST_WORD)
        return f"heard nothing: {', '.join(str(host.me) for host in deaf)}" if deaf else ""


def tell(world: World, name: str, payload: bytes) -> None:
    """A user on that node casts, if the process runs."""
    host = world.nodes[name]
    if host.running:
        world.step(host, lambda: host.emit(RumourCast(host.node.use(Broadcast).cast(TOPIC, payload), payload)))


SCENARIO = BroadcastScenario()
