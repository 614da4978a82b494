"""Many members of gossip in one process, for `gossip`: ``python -m benchmarks.gossip_members``.

The first line of its input is the plan, orders follow; all are lines of JSON, and each is answered by one line. Instants are of the
clock that all processes of a machine share.

    {"do": "join", "names": [...]}              those of them that are here begin to join
    {"do": "sized", "count": 16, "within": 60}  wait until every living member here lists so many; when was that?
    {"do": "halved", "own": ["127.0.1.2", "127.0.1.3"], "within": 60}  the same until it lists the members at its own address and no other
    {"do": "calm", "within": 60}                wait until every living member here is settled and has no rumour left to tell
    {"do": "counts"}                            what they have sent so far, CPU and memory of this process
    {"do": "crash", "names": [...]}             these end without a word, all in one turn of the loop
    {"do": "dead", "names": [...], "within": 60}  wait until every living member here holds these for dead: the first and the last instant
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import process_time
from typing import Any

from holdfast.events import Decided, Event
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.host import Address, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.net.clock import now
from holdfast.net.host import NetHost
from holdfast.wire import Keyring, Sealed, parse_key

LOOK_INTERVAL = 0.05
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
BOOT = 1_800_000_000_000


class CountedHost(NetHost):
    """Counts its turns."""

    turns = 0

    def _guarded(self, step: Callable[[], None]) -> bool:
        self.turns += 1
        return super()._guarded(step)


class Resident:
    """One member."""

    def __init__(self, host: CountedHost, config: GossipConfig) -> None:
        self.host = host
        self.alive = True
        self.decided: dict[str, float] = {}  # when a member was first held for dead, since it was last forgotten
        broadcast = Broadcast(host)
        exchange = Exchange(host, broadcast, ae_period=config.ae_period)
        self.node = GossipNode(host, config, broadcast, exchange)
        broadcast.over(self.node)
        for machine in (self.node, broadcast, exchange):
            host.node.add(machine)
        host.on_event = self._on_event

    @property
    def listed(self) -> int:
        return self.node.core.n if self.node.is_member else 0

    def hosts(self, of: list[str]) -> set[str]:
        """Where the members are that it lists, of these hosts."""
        return {each.address.host for each in self.node.members()} & {*of}

    @property
    def is_busy(self) -> bool:
        """It has news to tell, or will have."""
        return bool(self.node.queue) or self.node.lifecycle.settled_at is None

    async def crash(self) -> None:
        """As if its process had ended: the sockets are gone and nothing was said."""
        self.alive = False
        self.host.streams.abort()
        self.host.datagrams.send = _to_no_one  # type: ignore[method-assign]
        self.host._stop_turns()
        self.host.datagrams.close()

    def _on_event(self, event: Event) -> None:
        if isinstance(event, Decided):
            self.decided.setdefault(event.member.name, now())


class Residents:
    """All members of this process."""

    def __init__(self, members: Mapping[str, Resident]) -> None:
        self._members = members

    @classmethod
    async def open(cls, plan: Mapping[str, Any]) -> Residents:
        seeds = tuple(_address(text) for text in plan["seeds"])
        config = GossipConfig(period=plan["period"], seeds=seeds)
        keyring = Keyring(parse_key(plan["key"]))
        members = {}
        for number, (name, place) in enumerate(plan["members"].items()):
            sealed = Sealed("benchmark", keyring)
            host = await CountedHost.open(NodeId(name, BOOT + number), _address(place), sealed)
            assert isinstance(host, CountedHost)
            members[name] = Resident(host, config)
        for member in members.values():
            member.host.start()
        return cls(members)

    async def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        acts: dict[str, Callable[..., Any]] = {
            "join": self.join, "sized": self.sized, "halved": self.halved, "calm": self.calm, "counts": self.counts,
            "crash": self.crash, "dead": self.dead,
        }  # fmt: skip
        found: dict[str, Any] = await acts[order.pop("do")](**order)
        return found

    async def join(self, names: list[str]) -> dict[str, Any]:
        for member in [self._members[name] for name in names if name in self._members]:
            member.host.post(member.node.join)
        return {"at": now()}

    async def sized(self, count: int, within: float) -> dict[str, Any]:
        end_at = now() + within
        while any(member.listed != count for member in self._living()):
            if now() >= end_at:
                return {"at": None, "sizes": _counted([member.listed for member in self._living()])}
            await asyncio.sleep(LOOK_INTERVAL)
        return {"at": now()}

    async def halved(self, own: list[str], within: float) -> dict[str, Any]:
        end_at = now() + within
        while any(member.hosts(own) != {member.host.address.host} for member in self._living()):
            if now() >= end_at:
                return {"at": None, "both": sum(len(member.hosts(own)) > 1 for member in self._living())}
            await asyncio.sleep(LOOK_INTERVAL)
        return {"at": now()}

    async def calm(self, within: float) -> dict[str, Any]:
        end_at = now() + within
        while any(member.is_busy for member in self._living()):
            if now() >= end_at:
                return {"at": None, "busy": sum(member.is_busy for member in self._living())}
            await asyncio.sleep(LOOK_INTERVAL)
        return {"at": now()}

    async def counts(self) -> dict[str, Any]:
        members = [*self._members.values()]  # what those that crashed had sent counts on
        metrics = [member.node.metrics() for member in members]
        return {
            "at": now(),
            "members": len([*self._living()]),
            "datagrams": sum(member.host.datagrams.sent for member in members),
            "bytes": sum(member.host.datagrams.sent_bytes for member in members),
            "turns": sum(member.host.turns for member in members),
            "probes": sum(each["probes_direct"] + each["probes_indirect"] + each["probes_failed"] for each in metrics),
            "suspicions": sum(each["suspicions"] for each in metrics),
            "cpu": process_time(),
            "rss": rss_bytes(),
        }

    async def crash(self, names: list[str]) -> dict[str, Any]:
        here = [self._members[name] for name in names if name in self._members]
        for member in self._living():
            member.decided.clear()
        at = now()
        for member in here:
            await member.crash()
        return {"at": at}

    async def dead(self, names: list[str], within: float) -> dict[str, Any]:
        end_at = now() + within
        while any(name not in member.decided for member in self._living() for name in names):
            if now() >= end_at:
                return {"first": None, "last": None}
            await asyncio.sleep(LOOK_INTERVAL)
        instants = [member.decided[name] for member in self._living() for name in names]
        others = {name for member in self._living() for name in member.decided} - {*names}
        return {"first": min(instants), "last": max(instants), "false": sorted(others)}

    async def end(self) -> None:
        for member in self._living():
            await member.crash()

    def _living(self) -> Iterator[Resident]:
        return (member for member in self._members.values() if member.alive)


def _counted(sizes: list[int]) -> dict[str, int]:
    return {str(size): sizes.count(size) for size in sorted({*sizes})}


def rss_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return Address(host, int(port))


def _to_no_one(data: bytes, to: Address) -> None:
    """A member that crashed says nothing."""


def _allow_sockets() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def serve(plan: Mapping[str, Any]) -> None:
    before = rss_bytes()
    residents = await Residents.open(plan)
    loop = asyncio.get_running_loop()
    print(json.dumps({"rss": before}), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await residents.obey(json.loads(line))), flush=True)
    await residents.end()


if __name__ == "__main__":
    _allow_sockets()
    asyncio.run(serve(json.loads(sys.stdin.readline())))
