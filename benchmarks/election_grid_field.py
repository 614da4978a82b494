"""The field of one group of `election-grid`: ``python -m benchmarks.election_grid_field``.

Sixteen devices stand on a grid and hear those that are near; what goes further is passed on by others, on the shortest way. Here every
datagram between two members passes this process, which has a link for each ordered pair: it waits a delay for each hop of the way, and may
be lost, end to end, as in the laboratory. TCP is delayed for each hop, and loses nothing.

The first line of its input is the plan, orders follow, and each is answered by one line.

    {"do": "attach", "bound": {"n1": "127.0.1.1:9", ...}}   where the members listen
    {"do": "drop", "drop": 0.05}                            from now on; what was counted before is forgotten
    {"do": "counts"}                                        what was lost, and what should have been
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any

from benchmarks.election_grid_member import address
from holdfast.features.election.lab.fields import Drops
from holdfast.features.election.lab.paper import HOP_DELAY_MAX
from holdfast.lab.topology import Topology
from tests.support.forwarder import Link, Mesh


class Field:
    """Links of one group. The members are in the order of their hash ranks, the best first."""

    def __init__(self, mesh: Mesh, places: Mapping[str, tuple[float, float]], reach: float) -> None:
        self._mesh = mesh
        self._topology = Topology(places, reach)
        self._drops = Drops(0.0, mesh.names)
        for one in mesh.names:
            for other in mesh.names:
                if one != other:
                    self._link(one, other).delay = partial(delay, hops=len(self._topology.path(one, other) or ()))

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        acts: dict[str, Callable[..., dict[str, Any]]] = {"attach": self.attach, "drop": self.drop, "counts": self.counts}
        return acts[order.pop("do")](**order)

    def attach(self, bound: Mapping[str, str]) -> dict[str, Any]:
        for name, place in bound.items():
            self._mesh.attach(name, address(place))
        return {}

    def drop(self, drop: float) -> dict[str, Any]:
        self._drops = Drops(drop, self._mesh.names)
        for (one, other), link in self._links().items():
            link.loss = self._drops.pair(one, other)
            link.passed = link.lost = 0
        return {}

    def counts(self) -> dict[str, Any]:
        links = self._links()
        datagrams = sum(link.passed + link.lost for link in links.values())
        asked = sum((link.passed + link.lost) * link.loss for link in links.values())
        lost = sum(link.lost for link in links.values())
        return {"datagrams": datagrams, "asked": asked / max(1, datagrams), "found": lost / max(1, datagrams)}

    def _link(self, one: str, other: str) -> Link:
        return self._mesh.link(one, other)

    def _links(self) -> dict[tuple[str, str], Link]:
        names = self._mesh.names
        return {(one, other): self._link(one, other) for one in names for other in names if one != other}


def delay(random: Random, hops: int) -> float:
    """Of one datagram over so many hops."""
    return sum(random.uniform(0.0, HOP_DELAY_MAX) for _ in range(hops))


async def serve(plan: Mapping[str, Any]) -> None:
    places = {name: (place[0], place[1]) for name, place in plan["places"].items()}
    async with Mesh(list(places), seed=plan["seed"]) as mesh:
        field = Field(mesh, places, plan["reach"])
        loop = asyncio.get_running_loop()
        print(json.dumps({name: [str(mesh.bind(name)), str(mesh.address(name))] for name in places}), flush=True)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            print(json.dumps(field.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.stdin.readline())))
