"""Phases under mixed faults: a ballot has one winner, every question ends once, and in calm a majority decides.

Spec: foundation 4 (Call / Phase, Quorum), ring 5 (weighted quorums), tickets D18 (answers to a former life).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

from msgspec.structs import replace

from holdfast.host import Address, Host, Machine
from holdfast.kit.phase import Quorum, joint, majority, weighted
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.kit.ballots import ASK_TIMEOUT, Ballots
from holdfast.lab.kit.checkers.phase import EndsOnce, OneWinner, VotesAreDurable
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World

SECONDS = 12.0  # of faults
OPEN_INTERVAL = 0.25  # mean, for the whole group
ASKERS = 3  # about so many want the same ballot
MENU = Menu(drift=0.02, crashes_in_save=0.5, duplicate=0.3, disks_full=0.15)
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
SETTLE = STRAY_SECONDS + 4 * ASK_TIMEOUT
FIRST_CALM_BALLOT = 10_000
SPARED_SECONDS = 1.0  # after which survivors come back


class PhaseScenario(Scenario):
    """One to seven members; several ask for the same ballots at about the same time."""

    name = "kit/phase"
    title = "Ballots by phases and quorums, under mixed faults"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(1, 7)))
        rule = random.choice(("majority", "weighted", "joint"))
        plan = draw_plan(random, names, SECONDS, MENU)
        setup = Setup(names, SECONDS, SETTLE, plan, Link(Uniform(0.001, 0.1)), {"rule": rule})
        return replace(setup, plan=plan.sparing(self.survivors(setup, random), SPARED_SECONDS))

    def survivors(self, setup: Setup, random: Random) -> list[str]:
        """Who always comes back: a quorum, or in calm no claimant could win."""
        names = random.sample(setup.names, len(setup.names))
        return next(names[:size] for size in range(1, len(names) + 1) if self.quorum(setup).enough(set(names[:size])))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        return [self.make(host, {name: Address(name, PORT) for name in setup.names}, self.quorum(setup))]

    def make(self, host: Host, members: dict[str, Address], quorum: Quorum[str]) -> Ballots:
        return Ballots(host, members, quorum)

    def quorum(self, setup: Setup) -> Quorum[str]:
        names = setup.names
        if setup.parameters["rule"] == "joint":
            return joint(weighted(names), majority(names[len(names) // 2 :]))
        return majority(names) if setup.parameters["rule"] == "majority" else weighted(names)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [OneWinner(), VotesAreDurable(), EndsOnce(MENU.pause_seconds + 0.1)]

    def drive(self, world: World, setup: Setup) -> None:
        random = Random(f"{world.seed}/ballots")
        at, number = 0.0, 0
        while at < setup.seconds:
            at += random.expovariate(1 / OPEN_INTERVAL)
            number += 1
            world.at(at, partial(want, world, random.choice(setup.names), 1 + number // ASKERS))

    def unsettled(self, world: World, setup: Setup) -> str:
        """One member alone asks for a new ballot; a quorum that is up gives it to it. Only a plan by hand leaves none."""
        alive = {host.me.name for host in world.alive}
        if not self.quorum(setup).enough(alive):
            return ""
        winners = next(each for each in world.checkers if isinstance(each, OneWinner)).winners
        if any(ballot >= FIRST_CALM_BALLOT for ballot in winners):
            return ""
        want(world, min(alive), FIRST_CALM_BALLOT + int(world.now / ASK_TIMEOUT))
        return f"{len(alive)} of {len(setup.names)} are up and {min(alive)} wins no ballot"


def want(world: World, name: str, ballot: int) -> None:
    """A user on that node wants a ballot, if the process runs."""
    host = world.nodes[name]
    if host.running:
        world.step(host, lambda: host.node.use(Ballots).open(ballot))


SCENARIO = PhaseScenario()
