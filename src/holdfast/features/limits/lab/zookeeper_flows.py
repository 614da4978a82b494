"""Members that limit flows of traffic on views from a real ensemble of ZooKeeper, in real time: F7 and T1.  Spec: limits 8; views 5Z.

The ensemble is processes; the members are machines of one loop. What they say to each other directly passes lines of that loop, which can
be cut as the servers can; what goes over the overlay goes through the ensemble.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from holdfast.features.limits.lab.flows import FLOWS, MEMBERS, SERVERS, Opener, Recorded, limited
from holdfast.features.limits.lab.terms import Policy
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.views.lab.ensemble import Ensemble, missing
from holdfast.features.views.lab.experiments.table1_failures import CUTS, MISSING, REAL_FORMED_BY, cut_real
from holdfast.features.views.lab.groups import DELAY, STEP
from holdfast.features.views.lab.wires import Wires
from holdfast.features.views.lab.zookeeper_members import LoopHost, ZooKeeperMembers
from holdfast.host import Address, Machine, Member, Message, Views
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.experiment import Cell, Measured
from holdfast.lab.listed_members import ListedMembers

WARM = 20.0  # seconds: the first views, the first gossip


class Lines:
    """What members say to each other directly arrives a moment later, unless the two are cut apart by then."""

    def __init__(self) -> None:
        self._hosts: dict[str, LoopHost] = {}
        self._cut: set[frozenset[str]] = set()
        self._random = Random("lines")

    def join(self, host: LoopHost) -> None:
        host.transmit = partial(self._send, host)
        self._hosts[host.me.name] = host

    def cut(self, one: Iterable[str], other: Iterable[str]) -> None:
        other = tuple(other)
        self._cut |= {frozenset((a, b)) for a in one for b in other}

    def heal(self) -> None:
        self._cut.clear()

    def _send(self, source: LoopHost, to: Address, life: int, fingerprint: bytes, message: Message) -> None:
        delay = self._random.uniform(DELAY.low, DELAY.high)
        source.after(delay, partial(self._arrive, source, to, life, fingerprint, message))

    def _arrive(self, source: LoopHost, to: Address, life: int, fingerprint: bytes, message: Message) -> None:
        if frozenset((source.me.name, to.host)) not in self._cut:
            self._hosts[to.host].node.receive(source.address, source.me, life, fingerprint, message)


class ZooKeeperFlows:
    """Three servers with two members each, which do not fail over, as ``FlowGroup`` has them."""

    def __init__(self, ensemble: Ensemble, config: LimitsConfig, *, policy: Policy = "fair") -> None:
        self.recorded = Recorded(FLOWS)
        self._ensemble, self._config, self._policy = ensemble, config, policy
        self._lines = Lines()
        self.members = ZooKeeperMembers(ensemble, lambda at, name, event: None, more=self._build)
        self._began = 0.0

    async def start(self) -> None:
        """Run until all are in one view, and for a while; the clock of the figure begins then."""
        await self.members.start([number % SERVERS for number in range(MEMBERS)])
        hosts = [member.host for member in self.members.all]
        everyone = {host.me.name: Member(host.me, host.address, {}) for host in hosts}
        for host in hosts:
            host.node.use(ListedMembers).show(everyone)
        assert await self.members.until(self.members.is_one, REAL_FORMED_BY), f"there is no view of all: {self.members.views()}"
        await asyncio.sleep(WARM)
        self._began = asyncio.get_running_loop().time()

    async def record(self, until: float) -> None:
        """Run, and write down what all may use."""
        loop = asyncio.get_running_loop()
        while (at := loop.time() - self._began) < until:
            self.recorded.note(at, {member.name: member.host.node.use(Opener).traffic.told for member in self.members.all})
            await asyncio.sleep(STEP)

    async def cut(self, case: int) -> None:
        self._lines.cut(*CUTS[case])
        await asyncio.to_thread(cut_real, self._ensemble, case)

    async def heal(self) -> None:
        self._lines.heal()
        await asyncio.to_thread(self._ensemble.heal_all)

    def _build(self, host: LoopHost, views: Views) -> Sequence[Machine]:
        self._lines.join(host)
        members = ListedMembers(host)
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast)
        name = host.me.name
        machines = limited(host, views, exchange, self._config, flows=FLOWS.get(name, 0), policy=self._policy, fleet=MEMBERS)
        return [members, broadcast, exchange, *machines]


def on_zookeeper(cell: Cell, play: Callable[[ZooKeeperFlows], Coroutine[Any, Any, Measured]], policy: Policy = "fair") -> Measured:
    """What ``play`` finds on a real ensemble; or why that cannot be."""
    why = missing()
    if why:
        return {**cell, MISSING: why}

    async def run(ensemble: Ensemble) -> Measured:
        flows = ZooKeeperFlows(ensemble, LimitsConfig(), policy=policy)
        try:
            await flows.start()
            return await play(flows)
        finally:
            await flows.members.end()

    with TemporaryDirectory() as folder, Wires() as wires, Ensemble(Path(folder), wires, leader=cell["leader"]) as ensemble:
        return asyncio.run(run(ensemble))
