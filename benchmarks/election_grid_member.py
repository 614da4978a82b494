"""One member of `election-grid`: gossip and elections on a real socket: ``python -m benchmarks.election_grid_member``.

The first line of its input is the plan, orders follow; all are lines of JSON, and each is answered by one line. Instants are of the
clock that all processes of a machine share.

    {"do": "join"}
    {"do": "whole", "count": 16, "within": 60}  wait until it lists so many, all settled
    {"do": "rest"}                              the elections end; what was sent in them finds no receiver
    {"do": "stand", "epoch": 1}                 new ones, in which it stands for all four names
    {"do": "ready", "within": 60}               wait until it sees each listed member stand for each of them
    {"do": "elect", "name": "base"}             it begins one; when, or why not
    {"do": "look", "name": "base"}              does one of its own run, and who leads?
    {"do": "told", "name": "base"}              when it learnt of each term, what it multicast, whom it lists

The elections are those that ship, with the profile ``paper`` of the laboratory, which no setting of an agent reaches.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from benchmarks.election_flood import Flood
from holdfast.errors import Unavailable
from holdfast.events import Event, LeaderChanged
from holdfast.features.election.lab.clients import Client
from holdfast.features.election.lab.groups import LENGTH, Mute
from holdfast.features.election.lab.paper import X, Y
from holdfast.features.election.protocol import profiles
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import Elected
from holdfast.features.election.protocol.manner import VARIANTS, manner
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.host import Address, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.net.clock import now
from holdfast.net.host import NetHost
from holdfast.wire.keys import Keyring, parse_key
from holdfast.wire.seal import Sealed

GROUP = "benchmark"
LOOK = 0.05  # seconds between two looks at whether something has come about

T = TypeVar("T")


class GridMember:
    """Its membership lives as long as the process; its elections are made anew for each round."""

    def __init__(self, host: NetHost, plan: Mapping[str, Any]) -> None:
        self.host = host
        found = profiles.paper(c=plan["c"], f=plan["f"])
        self._profile = profiles.Profile(replace(found.config, x=X, y=Y), replace(found.rules, watch=False))
        config = GossipConfig(period=plan["period"], seeds=tuple(map(address, plan["seeds"])))
        broadcast = Broadcast(host)
        exchange = Exchange(host, broadcast, ae_period=config.ae_period)
        self.node = GossipNode(host, config, broadcast, exchange)
        broadcast.over(self.node)
        self.flood = Flood(host, {NodeId(name, plan["boots"][name]): address(place) for name, place in plan["neighbours"].items()})
        for machine in (self.node, broadcast, exchange, self.flood):
            host.node.add(machine)
        self.elections: Elections | None = None
        self.learnt: dict[str, dict[int, float]] = {}  # by name, by term
        host.on_event = self._on_event

    async def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        acts: dict[str, Callable[..., Any]] = {
            "join": self.join, "whole": self.whole, "rest": self.rest, "stand": self.stand, "ready": self.ready, "elect": self.elect,
            "look": self.look, "told": self.told,
        }  # fmt: skip
        found: dict[str, Any] = await acts[order.pop("do")](**order)
        return found

    async def join(self) -> dict[str, Any]:
        await self._in_turn(self.node.join)
        return {}

    async def whole(self, count: int, within: float) -> dict[str, Any]:
        return await self._until(lambda: self._settled() == count, within)

    async def rest(self) -> dict[str, Any]:
        await self._in_turn(self._rest)
        return {}

    async def stand(self, epoch: int) -> dict[str, Any]:
        await self._in_turn(lambda: self._stand(epoch))
        return {}

    async def ready(self, within: float) -> dict[str, Any]:
        return await self._until(lambda: all(self._standing(name) == len(self.node.members()) for name in VARIANTS), within)

    async def elect(self, name: str) -> dict[str, Any]:
        def begin() -> dict[str, Any]:
            begun = self.host.now
            try:
                self._elections.elect(name)
            except Unavailable as error:
                return {"at": None, "why": str(error)}
            return {"at": begun}

        return await self._in_turn(begin)

    async def look(self, name: str) -> dict[str, Any]:
        state = self._elections.state(name)
        assert state is not None
        return {"running": state.running, "active": None if state.active is None else [state.active[0], state.active[1].name]}

    async def told(self, name: str) -> dict[str, Any]:
        casts = [[at, self.host.me.name] for at, of, _ in self.flood.casts if of == name]
        learnt = {str(term): at for term, at in self.learnt.get(name, {}).items()}
        return {"learnt": learnt, "casts": casts, "listed": [member.id.name for member in self.node.members()]}

    # How it is done.

    @property
    def _elections(self) -> Elections:
        assert self.elections is not None
        return self.elections

    def _settled(self) -> int:
        return sum(self.node.settled(member.id) for member in self.node.members()) if self.node.is_member else 0

    def _standing(self, name: str) -> int:
        return len(self._elections.candidates(name))

    def _rest(self) -> None:
        if self.elections is not None:
            self.host.node.remove(self.elections)
            self.elections = None

    def _stand(self, epoch: int) -> None:
        assert self.elections is None
        self.learnt = {}
        exchange = Exchange(self.host, Mute(self.host, self.node))  # The table tells no other: it would spread what is measured.
        elections = self.elections = Elections(
            self.host, self.node, exchange, None, self._profile.config, rules=self._profile.rules, multicast=self.flood
        )
        self.flood.begin(epoch, elections.on_message)
        self.host.node.add(elections)
        for variant in VARIANTS:
            elections.campaign(variant, LENGTH, Client(self.host, variant, LENGTH), manner=manner(variant))

    def _on_event(self, event: Event) -> None:
        if isinstance(event, LeaderChanged) and event.leader is not None:
            self.learnt.setdefault(event.name, {}).setdefault(event.token, self.host.now)
        elif isinstance(event, Elected):
            self.learnt.setdefault(event.name, {}).setdefault(event.term, self.host.now)

    async def _in_turn(self, act: Callable[[], T]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.host.post(lambda: done.set_result(act()))
        return await done

    async def _until(self, holds: Callable[[], bool], within: float) -> dict[str, Any]:
        end_at = now() + within
        while not holds():
            if now() >= end_at:
                standing = {} if self.elections is None else {name: self._standing(name) for name in VARIANTS}
                return {"at": None, "why": f"{len(self.node.members())} listed, {self._settled()} settled, standing: {standing}"}
            await asyncio.sleep(LOOK)
        return {"at": now()}


def address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host, int(port))


async def serve(plan: Mapping[str, Any]) -> None:
    """``neighbours``, ``seeds`` and ``advertise`` are addresses of the field, behind which all members are."""
    me = NodeId(plan["name"], plan["boots"][plan["name"]])
    sealed = Sealed(GROUP, Keyring(parse_key(plan["key"])))
    host = await NetHost.open(me, address(plan["bind"]), sealed, advertise=address(plan["advertise"]))
    member = GridMember(host, plan)
    host.start()
    loop = asyncio.get_running_loop()
    print(json.dumps({"bound": str(host.bound)}), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await member.obey(json.loads(line))), flush=True)
    await host.close()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.stdin.readline())))
