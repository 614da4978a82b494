"""Small rings for golden traces: a founds, the others knock at a. Places follow names: b is at 2000, c at 3000, bc half way between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, Setup

APART = 1000


def position(name: str) -> int:
    """The mean of its letters' places."""
    return sum(APART * (ord(letter) - ord("a") + 1) for letter in name) // len(name)


class SmallRing(Scenario):
    """T_l is one second; one neighbour per side, or as many as the script says."""

    name = "ring/small"
    title = "A ring of a few members, told step by step"

    def setup(self, random: Random) -> Setup:
        return Setup(("a", "b", "c"), seconds=1.0, settle=1.0, parameters={"k": random.choice((1, 2, 3)), "indirect": 0.0})

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        first = host.me.name == "a" and host.me.boot == 1
        seeds = () if first else (Address("a", PORT),)
        config = RingConfig(
            k=int(setup.parameters["k"]),
            found=first,
            seeds=seeds,
            position=position(host.me.name),
            indirect=bool(setup.parameters["indirect"]),  # off: a cut link is then a dispute, as in the paper
            early_news=False,
        )
        return standalone(host, config, sole_life=True)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return []


SCENARIO = SmallRing()
