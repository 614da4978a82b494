"""Omega under mixed faults: rounds only grow, no member is named that did not stand, and in the end all agree.

Spec: fast-detection 5 (reference reconstruction of Fig. 3), 7 (I4, I9, I10 in calm).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from holdfast.host import Address, Host, Machine
from holdfast.lab.calm import Calm
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.links import Link, Uniform
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World
from holdfast.papers.detection.lab.checkers.omega import (
    Agreed,
    LeaderConsented,
    PausedJudgeNobody,
    RoundsGrow,
    SecondOk,
    Stable,
    disagreement,
)
from holdfast.papers.detection.protocol.omega import PATIENCE, Omega

SECONDS = 20.0  # of faults
MENU = Menu(drift=0.02, delay=Uniform(0.001, 0.2), tail_seconds=3.0)
LINK = Link(Uniform(0.001, 0.02))
STRAY_SECONDS = 3.2  # the longest a message of bad weather is on the road
WATCHED_ALPHAS = 6.0  # how long an agreement is watched: three times what it takes to lose it by silence


class OmegaScenario(Scenario):
    """One to nine members, everything goes wrong for a while."""

    name = "detection/omega"
    title = "Stable leader election (Aguilera) under mixed faults"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(1, 9)))
        alpha = random.choice((0.2, 0.5, 1.0))
        plan = draw_plan(random, names, SECONDS, MENU)
        settle = agree_timeout(len(names), alpha) + WATCHED_ALPHAS * alpha
        return Setup(names, SECONDS, settle, plan, LINK, {"alpha": alpha})

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        return [self.make(host, {name: Address(name, PORT) for name in setup.names}, float(setup.parameters["alpha"]))]

    def make(self, host: Host, members: dict[str, Address], alpha: float) -> Omega:
        return Omega(host, members, alpha=alpha)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        alpha = float(setup.parameters["alpha"])
        calm, settle = Calm(), agree_timeout(len(setup.names), alpha)
        return [
            calm,
            RoundsGrow(),
            LeaderConsented(setup.names),
            SecondOk(alpha),
            PausedJudgeNobody(PATIENCE * alpha),
            Stable(calm, settle),
            Agreed(calm, settle),
        ]

    def unsettled(self, world: World, setup: Setup) -> str:
        """I9 itself is a checker; here the agreement is watched for a while, so that it can be lost."""
        return disagreement(world) or ("" if world.now >= setup.seconds + setup.settle else "they agree, and are watched")


def agree_timeout(members: int, alpha: float) -> float:
    """How long after the last fault all living members name one living leader.

    Messages of the bad time are on the road for ``STRAY_SECONDS``, and each may move the rounds on. Then a member in the highest
    round hears its candidate or starts the next round after 2 alpha, which all are told. At most all but one candidates in a
    row are dead and cost 2 alpha each. The living one says OK at once and again an alpha later. An alpha and 5 % are added for
    delays (at most 20 ms each) and clocks (2 %).
    """
    return STRAY_SECONDS + 1.05 * alpha * (PATIENCE * members + 2)


SCENARIO = OmegaScenario()
