"""The ring scenarios with one decision switched off each: what the checkers must catch.  Spec: ring 6, 11.  No configuration reaches these.

Where faults that come at any time seldom hit what a decision is for, a scenario of its own makes the occasion more frequent; with
the decision it has nothing to show.
"""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from holdfast.features.ring.lab.draws import around_the_ring
from holdfast.features.ring.lab.scenarios.ring import RingScenario
from holdfast.lab.faults import Cut, Fault, Pause, Plan, Weather
from holdfast.lab.links import Link, Uniform
from holdfast.lab.scenario import Setup


class DirectScenario(RingScenario):
    """P1 off throughout: seeds that failed before it became the default are still the same runs."""

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        return replace(setup, parameters={**setup.parameters, "indirect": 0.0})


class OddScenario(RingScenario):
    """F4: one process counts with five times the T_l, and is now and then out of everybody's sight."""

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        names = tuple(f"n{i}" for i in range(6))
        odd = names[-1]
        cuts: list[Fault] = []
        for at in (15.0, 35.0):
            cuts += [Cut(at, 8.0, (odd,), names), Cut(at, 8.0, names, (odd,))]
        parameters = {key: value for key, value in setup.parameters.items() if ":" not in key}
        parameters |= {"odd": odd, "seeds": 3.0, "k": 2.0, "ambushes": 0.0}
        return replace(setup, names=names, plan=Plan(tuple(cuts)), parameters=parameters)


class RegroupScenario(RingScenario):
    """D14: small groups that change all the time, and whose pairs lose sight of each other while they do."""

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        names = tuple(f"n{i}" for i in range(random.randint(4, 6)))
        around = around_the_ring(names)
        cuts: list[Fault] = []
        for i in range(12):
            at, first = 5.0 + 3.0 * i, random.randrange(len(around))
            one, other = around[first], around[first - 1]
            cuts += [Cut(at, 2.5, (one,), (other,)), Cut(at, 2.5, (other,), (one,))]
        parameters = {key: value for key, value in setup.parameters.items() if ":" not in key and key != "odd"}
        parameters |= {"seeds": 3.0, "k": 1.0, "ambushes": 0.3}
        for name in names[3:]:
            parameters[f"join:{name}"] = round(random.uniform(2.0, 30.0), 3)
        return replace(setup, names=names, plan=Plan(tuple(cuts)), parameters=parameters)


class BurstScenario(RingScenario):
    """D8: many join at once, and what they are told is old when it comes."""

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        names = tuple(f"n{i}" for i in range(random.randint(8, 12)))
        weather = Weather(0.0, 40.0, Link(Uniform(0.001, 0.1), tail=0.3, tail_seconds=1.0))
        parameters = {key: value for key, value in setup.parameters.items() if ":" not in key and key != "odd"}
        parameters |= {"seeds": 3.0, "k": 1.0, "ambushes": 0.0, "paced": 0.0}
        for name in names[3:]:
            parameters[f"join:{name}"] = round(random.uniform(5.0, 6.0), 3)
        return replace(setup, names=names, plan=Plan((weather,)), parameters=parameters)


class StallScenario(RingScenario):
    """H380: members stand still for about as long as they take to win against some and lose to others."""

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        names = tuple(f"n{i}" for i in range(random.randint(5, 9)))
        stalls = [
            Pause(round(6.0 + 4.0 * i + random.random(), 3), random.choice(names), round(random.uniform(1.1, 1.75), 3)) for i in range(9)
        ]
        parameters = {key: value for key, value in setup.parameters.items() if ":" not in key and key != "odd"}
        parameters |= {"seeds": 3.0, "k": 3.0, "ambushes": 0.0, "early_news": 1.0}
        return replace(setup, names=names, plan=Plan(tuple(stalls)), parameters=parameters)


SCENARIOS: dict[str, type[RingScenario]] = {
    "mixed": RingScenario,
    "direct": DirectScenario,
    "odd": OddScenario,
    "regroup": RegroupScenario,
    "burst": BurstScenario,
    "stall": StallScenario,
}
