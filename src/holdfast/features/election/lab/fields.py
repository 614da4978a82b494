"""Fields of radios, as in paper 004: nodes that relay for each other, of which the best-ranked lose most.  Spec: election 8.

Our choices where the paper is silent: a datagram is lost end to end, by who sends and who receives, and per link in a flood; the node of
hash rank i drops d (1 + 1.5 / 2^i) of what it sends and gets; the hash has nothing to do with the place.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from random import Random

from holdfast.features.election.lab.paper import CLUSTERS, DENSITY, HOP_DELAY_MAX, REACH
from holdfast.lab.links import Link, Uniform
from holdfast.lab.topology import Topology, clustered, grid, scattered

HOP = Link(Uniform(0.0, HOP_DELAY_MAX))
LOSS_FACTOR = 1.5


def field(kind: str, names: Sequence[str], random: Random) -> Topology:
    """A connected placement; who stands where is drawn."""
    side = (len(names) / DENSITY) ** 0.5
    shuffled = random.sample(list(names), len(names))
    if kind == "grid":
        columns = max(1, round(len(names) ** 0.5))
        return grid(shuffled, pitch=side / max(1, columns - 1), reach=REACH)
    if kind == "cluster":
        return clustered(shuffled, random, side=side, reach=REACH, sizes=cluster_sizes(len(names)))
    assert kind == "random"
    return scattered(shuffled, random, side=side, reach=REACH)


def cluster_sizes(members: int) -> tuple[int, ...]:
    """The paper's five clusters, with as many nodes as there are here."""
    sizes = [members * size // sum(CLUSTERS) for size in CLUSTERS]
    sizes[-1] += members - sum(sizes)
    return tuple(sizes)


class Drops:
    """How often what two nodes say to each other is lost."""

    def __init__(self, drop: float, by_rank: Sequence[str]) -> None:
        """``by_rank``: names, the best-ranked first."""
        self.drop = drop
        self.of = {name: min(1.0, drop * (1 + LOSS_FACTOR * 2.0**-rank)) for rank, name in enumerate(by_rank)}

    def pair(self, one: str, other: str) -> float:
        return 1.0 - sqrt((1.0 - self.of[one]) * (1.0 - self.of[other]))
