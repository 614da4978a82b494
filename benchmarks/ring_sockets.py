"""CPU per lease message on real sockets: several members in one process, as many echoes at the same pace, or two in a hurry.

Every message is sealed, sent, received, opened, decoded, routed and handled in this process, so its CPU time divided by the
number of messages is the cost of one at both ends, the kernel's share included. Members and paced echoes are in no hurry: as in a
real fleet most wake-ups of the loop are for one message or one timer. `ring` runs each kind in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.echo import LOOPBACK, Answer, Cost, Question, sealer_for
from benchmarks.ring_lab import names_of
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ids import RingId
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.standalone import standalone
from holdfast.host import Address, Host, Message, NodeId
from holdfast.net.host import NetHost

KEY = bytes(range(32)).hex()
K = 3
NOTE = bytes(40)  # a lease request is about as large
FORMED_WITHIN = 30.0  # seconds; it takes about one
POLL = 0.05
WINDOW = 64  # questions of the hurried echo on their way


class PacedEcho:
    """Asks each of some peers once per T_l, at points of its own, and answers. What leases are without what they mean."""

    hurried = False  # True: a client that gets an answer asks again at once

    handles = (Question, Answer)
    fingerprint = b""

    def __init__(self, host: Host, lease: float) -> None:
        self.host, self._lease = host, lease
        self.asked = 0

    def ask(self, peers: list[tuple[NodeId, Address]]) -> None:
        for node, address in peers:
            self.host.meet(node, address)
            self._schedule(node, self.host.now + self._lease * self.host.random.random())

    def _schedule(self, peer: NodeId, due: float) -> None:
        self.host.at(due, partial(self._on_turn, peer, due))

    def _on_turn(self, peer: NodeId, due: float) -> None:
        self._schedule(peer, due + self._lease)
        self.question(peer)

    def question(self, peer: NodeId) -> None:
        self.asked += 1
        self.host.send(peer, Question(self.asked, self.host.now, NOTE))

    def start(self) -> None:
        """It is told whom to ask."""

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, Question):
            self.host.send(source, Answer(message.number, message.sent_at, message.note))
        elif self.hurried:
            self.question(source)

    def on_away(self, seconds: float) -> None:
        """Nothing depends on time here."""

    def stop(self) -> None:
        """Nothing to hand over."""


async def open_hosts(count: int) -> list[NetHost]:
    return [await NetHost.open(NodeId(name, 1), LOOPBACK, sealer_for(KEY), seed=i) for i, name in enumerate(names_of(count))]


async def ring(count: int, lease: float, seconds: float) -> dict[str, Any]:
    """Members that joined by themselves; counted when all have their pairs."""
    hosts, members = await open_hosts(count), []
    for host in hosts:
        first = host is hosts[0]
        config = RingConfig(lease=lease, k=K, found=first, seeds=() if first else (hosts[0].address,))
        machines = standalone(host, config)
        members.append(machines.ring)
        for machine in machines:
            host.node.add(machine)
        host.start()
    for _ in range(round(FORMED_WITHIN / POLL)):
        if all(_formed(member, count) for member in members):
            break
        await asyncio.sleep(POLL)
    before = _ids(members)
    found = await _measured(hosts, partial(_requests, members), seconds)
    if _ids(members) != before or None in before:
        found["problems"].append("sockets: not all were members all the time; is the machine too busy?")
    return {**found, "retries": sum(member.counts["lease_retries"] for member in members)}


async def echo(count: int, lease: float, seconds: float) -> dict[str, Any]:
    hosts, echoes = await _open_echoes(count, lease)
    for at, each in enumerate(echoes):
        peers = [hosts[(at + step) % count] for step in range(1, 1 + min(2 * K, count - 1))]
        each.ask([(peer.me, peer.address) for peer in peers])
    await asyncio.sleep(lease)
    return await _measured(hosts, lambda: sum(each.asked for each in echoes), seconds)


async def hurried(count: int, lease: float, seconds: float) -> dict[str, Any]:
    """Two of them, whatever ``count`` says, that never wait: the sockets are rarely empty, and a wake-up serves many messages."""
    del count
    hosts, (asker, answerer) = await _open_echoes(2, lease)
    asker.hurried = True
    asker.host.meet(answerer.host.me, answerer.host.address)
    for _ in range(WINDOW):
        asker.question(answerer.host.me)
    await asyncio.sleep(lease)
    return await _measured(hosts, lambda: asker.asked, seconds)


async def _open_echoes(count: int, lease: float) -> tuple[list[NetHost], list[PacedEcho]]:
    hosts = await open_hosts(count)
    echoes = [PacedEcho(host, lease) for host in hosts]
    for host, each in zip(hosts, echoes, strict=True):
        host.node.add(each)
        host.start()
    return hosts, echoes


async def _measured(hosts: list[NetHost], asked: Callable[[], int], seconds: float) -> dict[str, Any]:
    """Each request has its answer: two messages."""
    began, before = Cost.so_far(), asked()
    await asyncio.sleep(seconds)
    cost, requests = Cost.so_far().since(began), asked() - before
    dropped = sum(host.drops.total() for host in hosts)
    return {"cpu_seconds": cost.seconds, "messages": 2 * requests, "dropped": dropped, "problems": []}


def _formed(member: RingNode, count: int) -> bool:
    pairs = member.pairs.values()
    return member.is_member and len(member.list) == count and len(pairs) == min(2 * K, count - 1) and all(p.entitled for p in pairs)


def _ids(members: list[RingNode]) -> list[RingId | None]:
    return [member.id if member.is_member else None for member in members]


def _requests(members: list[RingNode]) -> int:
    """Lease requests sent so far by the pairs there are: one per session, and those that were repeated."""
    return sum(member.counts["lease_retries"] + sum(pair.n for pair in member.pairs.values()) for member in members)


if __name__ == "__main__":
    kind, *size = json.loads(sys.argv[1])
    print(json.dumps(asyncio.run({"ring": ring, "echo": echo, "hurried": hurried}[kind](*size))))
