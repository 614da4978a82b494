"""What an agent keeps of each member that gossip lists, for `gossip`: told of, and written to and heard.

    python -m benchmarks.gossip_kept listed|met MEMBERS

``listed``: the list itself, with identity, address, place in the rounds and the tuple that users see. ``met``: with the addresses in
node, socket and codec, as they grow when it is written to and heard; cipher and replay windows are measured by ``heard``.
"""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc

from benchmarks.heard import WARM
from holdfast.drops import Drops
from holdfast.events import Event
from holdfast.features.gossip.protocol import messages as m
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.host import Address, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.fake_host import FakeHost
from holdfast.net.bind import bind
from holdfast.net.udp import Datagrams
from holdfast.node import Node, life_of
from holdfast.wire.codec import Codec

PEER = NodeId("peer", 1)
ROWS = {"gossip:settled": b"1", "version": b"1.0.0"}


class Quiet(FakeHost):
    """Keeps nothing of what it is told: that would count as the member's."""

    def meet(self, peer: NodeId, address: Address) -> None: ...
    def emit(self, event: Event) -> None: ...


class Kept:
    """One member, and what it is told."""

    def __init__(self, *, met: bool) -> None:
        host = Quiet("me")
        broadcast = Broadcast(host)
        self._gossip = GossipNode(host, GossipConfig(), broadcast, Exchange(host, broadcast))
        broadcast.over(self._gossip)
        self._gossip.start()
        self._gossip.join()
        self._met = met
        self._node = Node(host, lambda place, life, fingerprint, message: None)
        self._codec = Codec(m.TYPES)
        bound = bind(Address("127.0.0.1", 0))
        bound.tcp.close()
        self._datagrams = Datagrams(bound.udp, Drops())

    def add(self, number: int) -> None:
        life, place = NodeId(f"web-{number:05}", 1_800_000_000_000 + number), Address(f"10.{number >> 8}.{number & 255}.1", 7946)
        rumour = m.Rumour(life, place, 2, m.Status.ALIVE, (), 2, ROWS)
        self._gossip.on_message(PEER, self._heard(PEER, m.Gossip((rumour,))))
        if not self._met:
            return
        member = self._gossip.get(life.name)
        assert member is not None
        self._gossip.core.meet(member)
        self._node.meet(member.id, member.address)
        life_of(member.id)
        self._gossip.on_message(life, self._heard(life, m.Ack(1)))
        self._datagrams._learn_target(member.address)
        self._datagrams._learn_source((place.host.encode().decode(), int(str(place.port))))  # recvfrom makes both anew

    def end(self) -> None:
        self._datagrams.close()
        tracemalloc.stop()

    def settle(self) -> None:
        """Its news was told, and users have the list."""
        self._gossip.rumours.clear()
        self._gossip.members()
        gc.collect()

    @property
    def listed(self) -> int:
        return self._gossip.table.n

    def _heard(self, sender: NodeId, message: Message) -> Message:
        return self._codec.decode(self._codec.encode(sender, 1, b"", message)).message


def measure(what: str, members: int) -> float:
    """Bytes of Python's objects per member, in this process: call it once per process."""
    kept = Kept(met=what == "met")
    tracemalloc.start()
    for number in range(WARM):
        kept.add(number)
    kept.settle()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(WARM, members):
        kept.add(number)
    kept.settle()
    assert kept.listed == members + 1
    found = (tracemalloc.get_traced_memory()[0] - before) / (members - WARM)
    kept.end()
    return found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
