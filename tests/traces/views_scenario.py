"""A few servers and clients of views for golden traces: s0 and s1 serve, and the others take part. Users say nothing by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from holdfast.features.views.lab.groups import machines, slots_of
from holdfast.features.views.lab.users import Habits
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.scenario import Scenario, Setup


class SmallViews(Scenario):
    """One or two servers; a heartbeat is a second, so that a trace is short."""

    name = "views/small"
    title = "Views of a few clients, told step by step"

    def setup(self, random: Random) -> Setup:
        return Setup(("s0", "s1", "c0", "c1"), seconds=1.0, settle=1.0, parameters={"servers": random.choice((1, 2))})

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        habits = Habits(takes_part=host.me.name.startswith("c"), says=0.0)
        return machines(host, ViewsConfig(heartbeat=1.0), slots_of(int(setup.parameters["servers"])), habits)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return []


SCENARIO = SmallViews()
