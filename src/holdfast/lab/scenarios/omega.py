"""Omega under mixed faults: rounds only grow, nobody is named who did not stand, and in the end all agree.

Spec: fast-detection 5 (reference reconstruction of Fig. 3), 7 (I4, I9).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from holdfast.host import Address, Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.checkers.omega import LeaderConsented, RoundsGrow
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World
from holdfast.protocols.detection.omega import Omega

MENU = Menu(drift=0.02)


class OmegaScenario(Scenario):
    """One to nine members, everything goes wrong for 30 s."""

    name = "detection/omega"
    title = "Stable leader election (Aguilera) under mixed faults"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(1, 9)))
        alpha = random.choice((0.2, 0.5, 1.0))
        plan = draw_plan(random, names, 30.0, MENU)
        # Each silent candidate costs 2 alpha of silence; its successor needs two ticks. In the worst case all but one stay down,
        # members are a round apart, and a round is skipped because two members time out together: twice round the list.
        settle = (2 * len(names) + 2) * 5 * alpha
        return Setup(names, 30.0, settle, plan, Link(Uniform(0.001, 0.02)), {"alpha": alpha})

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        return [self.make(host, {name: Address(name, PORT) for name in setup.names}, float(setup.parameters["alpha"]))]

    def make(self, host: Host, members: dict[str, Address], alpha: float) -> Omega:
        return Omega(host, members, alpha=alpha)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [RoundsGrow(), LeaderConsented()]

    def unsettled(self, world: World, setup: Setup) -> str:
        """I9: the living agree on one living leader and its round."""
        views = {(omega.leader, omega.round) for omega in (host.node.use(Omega) for host in world.alive)}
        if len(views) > 1:
            return f"members disagree: {sorted((str(leader), number) for leader, number in views)}"
        for leader, _ in views:
            if leader is None or world.nodes[leader.name].dead or world.nodes[leader.name].me != leader:
                return f"the leader is {leader}"
        return ""


SCENARIO = OmegaScenario()
