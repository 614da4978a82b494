"""The same ring with static arbitrators, which crash and come back with empty lists.  Spec: ring 5.2 (CA), D24; paper 000, Algorithm 1."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from msgspec.structs import replace

from holdfast.features.ring.lab.draws import draw_faults, draw_link, draw_parameters
from holdfast.features.ring.lab.rings import arbitrators
from holdfast.features.ring.lab.scenarios.ring import SETTLE, SPARED_SECONDS, RingScenario
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.host import Host, Machine
from holdfast.lab.faults import Plan
from holdfast.lab.scenario import Setup
from holdfast.papers.ring.protocol.central import CentralArbitrator

SECONDS = 50.0
SIZES = (2, 9)


class CentralScenario(RingScenario):
    """Two to nine members, one, three or five arbitrators beside them."""

    name = "ring/central"
    title = "Ring membership with static arbitrators, under mixed faults"

    def setup(self, random: Random) -> Setup:
        members = tuple(f"n{i}" for i in range(random.randint(*SIZES)))
        parameters = draw_parameters(random, members, SECONDS)
        arbs = random.choice((1, 3, 3, 5))
        parameters["arbitrators"] = float(arbs)
        names = (*members, *(each.name for each in arbitrators(arbs)))
        drift = float(parameters["rho"]) if parameters["drift"] else 0.0
        plan: Plan = draw_faults(random, names, SECONDS, drift)
        seeds = members[: int(parameters["seeds"])]
        # Most arbitrators come back: without a majority of them no member may stay after the first loss of a lease.
        spared = [*random.sample(seeds, len(seeds) // 2 + 1), *random.sample(names[len(members) :], arbs // 2 + 1)]
        return Setup(names, SECONDS, SETTLE, plan.sparing(spared, SPARED_SECONDS), draw_link(random), parameters)

    def config(self, name: str, boot: int, setup: Setup) -> RingConfig:
        config = super().config(name, boot, setup)
        return replace(config, mode="central", arbitrators=arbitrators(int(setup.parameters["arbitrators"])))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        config = self.config(host.me.name, host.me.boot, setup)
        if host.me.name in {each.name for each in config.arbitrators}:
            return (CentralArbitrator(host, config),)
        return super().build(host, setup)


SCENARIO = CentralScenario()
