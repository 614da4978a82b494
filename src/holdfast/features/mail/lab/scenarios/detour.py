"""Letters round cuts: by an overlay that is rough, to members of a list that empties or of views that differ; in calm everything arrives.

Spec: views D30, D31; foundation F3; docs/mail.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random

from holdfast.features.mail.lab.checkers import CALM, CalmLetters
from holdfast.features.mail.lab.scenarios.mail import (
    BURST_MAX,
    CALM_TIMEOUT,
    HELLO_PERIOD,
    PAUSE_MAX,
    SECONDS,
    SETTLE,
    SPARED_SECONDS,
    STRAY_SECONDS,
    MailScenario,
    post,
    receive,
)
from holdfast.features.mail.lab.ways import LOOK_PERIOD, EmptyingRoster, RoughViews
from holdfast.host import Address, Host, Machine
from holdfast.kit.overlay import Overlay
from holdfast.kit.roster import listed
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World

MENU = Menu(drift=0.01, duplicate=0.3, pause_seconds=PAUSE_MAX, cuts=6.0, partitions=1.5)
EMPTY_INTERVAL = 1.5  # mean, for the whole group
EMPTY_SECONDS = (0.2, 3.0)


class DetourScenario(MailScenario):
    """As ``mail/pairs``, with many more cuts, and with a way round them."""

    name = "mail/detour"
    title = "Letters round cuts, by an overlay and to members of a view: one number, at most once and in order by both ways"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(2, 5)))
        plan = draw_plan(random, names, SECONDS, MENU).sparing(random.sample(names, 2), SPARED_SECONDS)
        return Setup(names, SECONDS, SETTLE, plan, Link(Uniform(0.001, 0.05), loss=0.05))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        assert isinstance(host, LabHost)
        addresses = {name: Address(name, PORT) for name in setup.names}
        roster = EmptyingRoster(host, listed(addresses), hello_period=HELLO_PERIOD)
        overlay = Overlay()
        overlay.views = views = RoughViews(host, setup.seconds)
        return [roster, views, self.make(host, roster, partial(receive, host), overlay)]

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        random = Random(f"{world.seed}/lists")
        at = 0.0
        while at < setup.seconds:
            at += random.expovariate(1 / EMPTY_INTERVAL)
            name, seconds = random.choice(setup.names), random.uniform(*EMPTY_SECONDS)
            world.at(at, partial(empty, world, name))
            world.at(min(at + seconds, setup.seconds), partial(fill, world, name))

    def unsettled(self, world: World, setup: Setup) -> str:
        """Half of the links are cut, one way or both. A burst is sent each way, then one list empties, then another burst is sent."""
        if world.now < setup.seconds + STRAY_SECONDS + 4 * HELLO_PERIOD + 2 * LOOK_PERIOD:
            return "the last strays are still on the road"
        calm = next(checker for checker in world.checkers if isinstance(checker, CalmLetters))
        if not calm.posted:
            self._cut(world, Random(f"{world.seed}/cuts"))
            self._burst(world, "before")
            empty(world, world.alive[0].me.name)
            self._burst(world, "after")
        return calm.missing()

    def _cut(self, world: World, random: Random) -> None:
        for source in world.alive:
            for target in world.alive:
                if source is not target and random.random() < 0.5:
                    world.network.cut((source.me, target.me), [source.me.name], [target.me.name])

    def _burst(self, world: World, when: str) -> None:
        for sender in world.alive:
            for receiver in world.alive:
                if sender is not receiver:
                    for number in range(BURST_MAX):
                        payload = CALM + f" {when} {sender.me} {receiver.me} {number}".encode()
                        post(world, sender.me.name, receiver.me, payload, CALM_TIMEOUT)


def empty(world: World, name: str) -> None:
    host = world.nodes[name]
    if host.running:
        world.step(host, host.node.use(EmptyingRoster).empty)


def fill(world: World, name: str) -> None:
    """The next life of that name begins with a full list; a process that is stopped is told when it goes on."""
    host = world.nodes[name]
    if host.dead or not host.node.use(EmptyingRoster).emptied:
        return
    if host.running:
        world.step(host, host.node.use(EmptyingRoster).fill)
    else:
        world.at(world.now + LOOK_PERIOD, partial(fill, world, name))


SCENARIO = DetourScenario()
