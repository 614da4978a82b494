"""A multicast as radios do it: who hears a message for the first time passes it on to its neighbours, and what links lose is repaired.

Every ``repair`` seconds each node that has the message sends it again over those of its links at whose other end it is missing. A real
repair compares digests first; those are not counted. A message is over when no neighbour of a holder lacks it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from holdfast.host import Message, NodeId
from holdfast.lab.host import LabHost
from holdfast.lab.links import Delay
from holdfast.lab.network import PairLoss
from holdfast.lab.topology import Topology
from holdfast.lab.world import World
from holdfast.node import life_of

REPAIRS_MAX = 1000  # rounds; a component that is cut off for longer is not waited for


class Flood:
    """Carries messages to all nodes that its topology connects."""

    def __init__(
        self,
        world: World,
        topology: Topology,
        *,
        delay: Delay,
        loss: PairLoss,
        repair: float,
        counted: Callable[[Message, str], None] = lambda message, source: None,
    ) -> None:
        """``loss`` is asked per link; ``counted`` hears of each transmission, which all neighbours of a node may hear."""
        assert repair > 0
        self._world, self._topology, self._loss, self._repair, self._counted = world, topology, loss, repair, counted
        self._random = Random(f"{world.seed}/flood")
        self._delay = delay.draw(self._random)

    def cast(self, source: LabHost, message: Message) -> None:
        """To all others; the sender has it already."""
        have = {source.endpoint.name}
        self._pass_on(source, message, source.endpoint.name, have)
        self._world.at(self._world.now + self._repair, partial(self._on_repair, source, message, have, REPAIRS_MAX))

    def _pass_on(self, source: LabHost, message: Message, here: str, have: set[str]) -> None:
        self._counted(message, here)
        for there in self._topology.neighbours[here]:
            self._send(source, message, here, there, have)

    def _send(self, source: LabHost, message: Message, here: str, there: str, have: set[str]) -> None:
        if self._random.random() >= self._loss(here, there):
            self._world.at(self._world.now + self._delay(), partial(self._arrive, source, message, there, have))

    def _arrive(self, source: LabHost, message: Message, here: str, have: set[str]) -> None:
        host = self._world.nodes.get(here)
        if here in have or host is None or not host.running:
            return
        have.add(here)
        self._world.step(host, partial(_hear, host, source, message))
        self._pass_on(source, message, here, have)

    def _on_repair(self, source: LabHost, message: Message, have: set[str], rounds: int) -> None:
        left = [
            (here, there)
            for here in sorted(have)
            if self._world.nodes[here].running
            for there in self._topology.neighbours[here]
            if there not in have and there in self._world.nodes and self._world.nodes[there].running
        ]
        for here in dict.fromkeys(here for here, _ in left):
            self._counted(message, here)
        for here, there in left:
            self._send(source, message, here, there, have)
        if left and rounds:
            self._world.at(self._world.now + self._repair, partial(self._on_repair, source, message, have, rounds - 1))


def _hear(host: LabHost, source: LabHost, message: Message) -> None:
    me: NodeId = host.me
    host.node.receive(source.address, source.me, life_of(me), host.node.digests.get(type(message), b""), message)
