"""Rings of one to three members: ties, the last of a ring, founding again and again.  Spec: ring D5, D20, E11."""

from __future__ import annotations

from random import Random

from holdfast.features.ring.lab.draws import LEASE, draw_link, draw_parameters
from holdfast.features.ring.lab.scenarios.ring import SETTLE, SPARED_SECONDS, RingScenario
from holdfast.lab.faults import Menu, draw_plan
from holdfast.lab.links import Uniform
from holdfast.lab.scenario import Setup

SECONDS = 60.0


class TinyScenario(RingScenario):
    """One to three processes, all of them seeds mostly."""

    name = "ring/tiny"
    title = "Ring membership of one to three, under mixed faults"

    def setup(self, random: Random) -> Setup:
        names = tuple(f"n{i}" for i in range(random.randint(1, 3)))
        parameters = draw_parameters(random, names, SECONDS)
        drift = float(parameters["rho"]) if parameters["drift"] else 0.0
        menu = Menu(
            crashes=random.choice((0.0, 1.0, 2.0)),
            crash_forever=0.2,
            pauses=random.choice((0.0, 1.0, 3.0)),
            pause_seconds=10 * LEASE,
            cuts=random.choice((0.0, 2.0, 5.0)),
            partitions=random.choice((0.0, 1.0, 3.0)),
            cut_seconds=12 * LEASE,
            weather=random.choice((0.0, 1.0, 3.0)),
            delay=Uniform(0.001, 0.2 * LEASE),
            tail_seconds=3 * LEASE,
            drift=drift,
        )
        seeds = names[: int(parameters["seeds"])]
        plan = draw_plan(random, names, SECONDS, menu).sparing(random.sample(seeds, len(seeds) // 2 + 1), SPARED_SECONDS)
        return Setup(names, SECONDS, SETTLE, plan, draw_link(random), parameters)


SCENARIO = TinyScenario()
