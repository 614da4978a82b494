"""Bytes of a peer that has the key, through everything that reads them: seal, codec, ``Node``, ``GossipNode``.  Spec: gossip 3; F16."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from holdfast.features.gossip.protocol import messages as m
from holdfast.host import DATAGRAM_BYTES_MAX, Address, Message, NodeId
from holdfast.lab.fake_host import FakeHost
from holdfast.net.incoming import Incoming
from holdfast.node import Node, life_of
from holdfast.wire import Codec, Key, Keyring, Sealed
from tests.features.gossip.stand import Stand, life

ME = life("a", 5)
NOWHERE: tuple[object, object] = (("", 0), ("", 0))  # the shortest entry that there is


class Wire:
    """The member "a" in its fifth life, and bytes that a peer may send to it."""

    def __init__(self) -> None:
        self.stand = Stand(*"bcd", host=FakeHost(*ME)).without_probes()
        self.sent: list[Message] = []
        self.node = Node(self.stand.host, lambda address, to_life, fingerprint, message: self.sent.append(message))
        self.node.add(self.stand.node)
        self.node.start()
        keyring = Keyring(Key(bytes(32)))
        self._peer = Sealed("group", keyring)
        self._codec = Codec(self.node.types, wall=self.stand.host.wall)
        self._incoming = Incoming(self.node, Sealed("group", keyring))
        self._deliver = self._incoming.way_up(self._codec)

    def say(self, kind: type[Message], *fields: Any, sender: tuple[str, int] = ("b", 1), to: NodeId | None = ME) -> None:
        """By datagram, or by stream if it is too long for one."""
        body = [kind.__struct_config__.tag, *fields]
        payload = msgspec.msgpack.encode((sender, 0 if to is None else life_of(to), self.node.digests[kind], body))
        if len(payload) + self._peer.overhead <= DATAGRAM_BYTES_MAX:
            self._deliver(self._peer.seal(payload), Address("x", 1))
        else:
            self._incoming.put(payload, self._codec)
            self._incoming.read(1)

    @property
    def counters(self) -> Counter[str]:
        received = Counter({f"{kind.__name__} received": count for kind, count in self.stand.node.core.received.items()})
        return Counter({str(why): count for why, count in self.node.drops.items()}) + self.stand.node.counts + received

    @property
    def listed(self) -> list[object]:
        return [(each.id, each.address, each.inc, each.status, each.rows) for each in self.stand.node.table.entries()]


def entry(name: str, boot: int = 1, inc: int = 0, status: int = 0, host: str = "x") -> tuple[object, ...]:
    return ((name, boot), (host, 1), inc, status)


PAGE = (7, 0, 1)  # serial, the first page of one
BAD: dict[str, tuple[str, type[Message], tuple[object, ...], dict[str, Any]]] = {
    "a name of 300 bytes": ("out_of_bounds", m.Gossip, ([entry("x" * 300)],), {}),
    "64 letters of 2 bytes": ("refused_id", m.Gossip, ([entry("é" * 64)],), {}),
    "a sender with 300 bytes": ("out_of_bounds", m.Knock, (), {"sender": ("x" * 300, 1)}),
    "an inc of 2^40": ("out_of_bounds", m.Gossip, ([entry("c", inc=1 << 40)],), {}),
    "a leap of the inc": ("refused_inc", m.Gossip, ([entry("c", inc=1 << 31)],), {}),
    "100,000 entries": ("oversized", m.Sync, (*PAGE, [entry(f"member-{number}") for number in range(100_000)]), {}),
    "100,000 short ones": ("out_of_bounds", m.Sync, (*PAGE, [(*NOWHERE, 0, 0)] * 100_000), {}),
    "one entry too many": ("out_of_bounds", m.Sync, (*PAGE, [entry(f"m{number}") for number in range(m.ENTRIES_MAX + 1)]), {}),
    "pages without an end": ("out_of_bounds", m.Sync, (7, 0, 1 << 40, [entry("x")]), {}),
    "a page behind the last": ("refused_page", m.Sync, (7, 5, 5, [entry("x")]), {}),
    "a page far behind it": ("out_of_bounds", m.Sync, (7, 1 << 20, 2, [entry("x")]), {}),
    "a former life of ours is dead": ("refused_former", m.Gossip, ([entry("a", boot=3, inc=2, status=2)],), {}),
    "a former life of ours lives": ("refused_former", m.Ping, (7, [entry("a", boot=4, inc=9)]), {}),
    "a former life of ours left": ("refused_former", m.Sync, (*PAGE, [entry("a", boot=4, inc=9, status=3)]), {}),
    "a stranger's knock": ("Knock received", m.Knock, (), {"sender": ("stranger", 1)}),
    "a knock at no life": ("unbound", m.Knock, (), {"sender": ("stranger", 1), "to": None}),
    "a knock at a former life": ("wrong_life", m.Knock, (), {"sender": ("stranger", 1), "to": life("a", 4)}),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_it_costs_a_counter_and_nothing_else(what: str) -> None:
    """Gossip 3, F16, issue 17 (bad input): it is counted by name, raises nothing, and the list is as before; also an answer is within
    bounds."""
    counter, kind, fields, said = BAD[what]
    wire = Wire()
    before, listed, inc = wire.counters, wire.listed, wire.stand.node.inc
    wire.say(kind, *fields, **said)
    assert wire.counters[counter] == before[counter] + 1
    assert wire.listed == listed
    assert wire.stand.node.inc == inc
    assert wire.stand.names == ["a", "b", "c", "d"]
    assert len(wire.sent) <= 2
    for message in (*wire.sent, *(sent.message for sent in wire.stand.host.sent)):
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message)) == message


def test_the_same_bytes_without_the_fault_are_believed() -> None:
    """Gossip 5.1: so the reader of this file reads; a name, an inc and a page that may be."""
    wire = Wire()
    wire.say(m.Gossip, [entry("e"), entry("c", inc=1)])
    wire.say(m.Sync, *PAGE, [entry(f"m{number}") for number in range(80)])
    assert {"e", "m0", "m79"} <= set(wire.stand.names)
    found = wire.stand.node.entry("c")
    assert found is not None
    assert found.inc == 1
    assert wire.node.drops.total() == 0
