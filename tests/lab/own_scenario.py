"""A scenario as a user writes one, in a file of their own: members count pings, and one seed in five fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, Pause, Plan
from holdfast.lab.scenario import Scenario, Setup
from holdfast.lab.world import World
from tests.lab.machines import Quiet


class OwnScenario(Scenario):
    """Three quiet members; every fifth seed never settles while its plan has a crash."""

    name = "own/fifth"
    title = "Every fifth seed fails"

    def setup(self, random: Random) -> Setup:
        plan = Plan((Pause(1.0, "a", 0.5), Crash(2.0, "b", 0.5), Pause(3.0, "c", 0.5)))
        return Setup(("a", "b", "c"), 5.0, 1.0, plan, parameters={"weight": 1.5, "mood": "calm"})

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        return [Quiet(host)]

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return []

    def unsettled(self, world: World, setup: Setup) -> str:
        return "every fifth" if world.seed % 5 == 2 and world.nodes["b"].me.boot > 1 else ""


SCENARIO = OwnScenario()
