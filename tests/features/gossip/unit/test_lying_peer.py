"""Any field of any message, from a peer that has the key.  Spec: gossip 2 (bounds), 3; foundation F16, F17."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import msgspec
import pytest

from holdfast.features.gossip.protocol import messages as m
from holdfast.features.gossip.protocol.config import TARGETS, GossipConfig
from holdfast.features.gossip.protocol.messages import MemberRows, Named, Observation, Rumour, Status, Wanted
from holdfast.host import FANOUT_MAX, Address, Message, NodeId
from tests.features.gossip.stand import Stand, place

T = TypeVar("T")
MEMBERS_MAX = 16
INPUTS = 1200
NAMES = (*"abcdefgh", *(f"z{i}" for i in range(12)))
INCS = (0, 0, 1, 1, 2, 3, 5, 1 << 16, (1 << 16) + 9, (1 << 32) - 1)
ROWS: tuple[dict[str, bytes], ...] = (
    {},
    {"tag:x": b"1"},
    {"gossip:position": b"x,y"},
    {"gossip:position": b"1,2"},
    {str(i): b"x" * 200 for i in range(40)},
)


class Liar:
    """Draws messages whose fields have their types and bounds, and nothing else."""

    def __init__(self, random: Random, stand: Stand) -> None:
        self._random, self._stand = random, stand
        self._any = random.choice

    def message(self) -> Message:
        kinds: list[Callable[[], Message]] = [
            m.Knock,
            lambda: m.Met(self._some(self._named, 8)),
            lambda: m.Ping(self._seq(), self._some(self._rumour, 6), self._seen()),
            lambda: m.Ack(self._seq(), self._some(self._rumour, 6), self._seen()),
            lambda: m.PingReq(self._seq(), self._life(), self._place(), self._some(self._rumour, 3)),
            lambda: m.Nack(self._seq()),
            lambda: m.Gossip(self._some(self._rumour, 6)),
            lambda: m.SyncDigest(self._seq(), self._any((0, self._stand.node.table.root)), self._hashes(), self._random.random() < 0.5),
            self._sync,
            lambda: m.Want(self._some(lambda: Wanted(self._life(), self._any(INCS)), 5)),
            lambda: m.Rows(self._some(lambda: MemberRows(self._life(), self._any(INCS), self._any(ROWS)), 5)),
            lambda: m.Missed(self._seq(), self._any((0.0, 5.0, 1e9))),
            lambda: m.MissedAck(self._seq()),
        ]
        return self._any(kinds)()

    def source(self) -> NodeId:
        return NodeId(self._any(NAMES), self._any((2, 3) if self._random.random() < 0.2 else (1, 2)))

    def _sync(self) -> m.Sync:
        front = tuple(seen for seen in self._some(self._seen, 4) if seen is not None)
        page, of, buckets = self._any((0, 0, 1, 1023)), self._any((1, 1, 2, 1024)), self._any((0, 5, m.ALL_BUCKETS))
        return m.Sync(self._seq(), page, of, self._some(self._rumour, 20), front, self._random.random() < 0.3, buckets)

    def _some(self, draw: Callable[[], T], most: int) -> tuple[T, ...]:
        return tuple(draw() for _ in range(self._random.randrange(most)))

    def _rumour(self) -> Rumour:
        status, accusers = Status(self._random.randrange(4)), self._some(lambda: self._any(NAMES), 5)
        rows = self._any((None, *ROWS))
        return Rumour(self._life(), self._place(), self._any(INCS), status, accusers, self._any(INCS), rows, self._any((0, 5, 4000)))

    def _life(self) -> NodeId:
        return NodeId(self._any((*NAMES, "")), self._any((0, 1, 1, 1, 2, 3, 1 << 40, 1 << 48)))

    def _place(self) -> Address:
        return Address(self._any(("a", "b", "x", "", "\n")), self._any((0, 1, 9, 65535)))

    def _named(self) -> Named:
        return Named(self._life(), self._place())

    def _seen(self) -> Observation | None:
        return self._any((None, Observation(self._any((0, 1, 5, 8192)), self._any((0.0, 600.0, 1e9)))))

    def _seq(self) -> int:
        probe = self._stand.node.prober.probe
        return self._any((0, 1, 2, 3, (1 << 53) - 1, 0 if probe is None else probe.seq))

    def _hashes(self) -> tuple[int, ...]:
        return tuple(self._random.getrandbits(64) for _ in range(self._any((0, 0, 3, 64))))


def as_sent(messages: Sequence[Message]) -> list[Message]:
    """Through the codec: a value outside of its bounds is found here."""
    return [msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=type(message)) for message in messages]


@pytest.mark.parametrize("seed", range(6))
def test_nothing_a_peer_says_raises_or_grows_without_bound(seed: int) -> None:
    """Gossip 2, 3: every table keeps its size, every message that follows is within the bounds of its fields, the own entry is ours."""
    random = Random(seed)
    config = GossipConfig(target=TARGETS[seed % 3], position=(1.0, 2.0) if seed % 2 else None, seeds=(place("s"),) if seed % 2 else ())
    stand = Stand(*"bcdefgh", config=config, members_max=MEMBERS_MAX)
    liar, node = Liar(random, stand), stand.node
    for _ in range(INPUTS):
        stand.clear()
        (message,) = as_sent([liar.message()])
        node.on_message(liar.source(), message)
        assert len({to for to, _ in stand.host.sent}) <= FANOUT_MAX
        if random.random() < 0.1:
            stand.host.pass_time(random.choice((0.0, 0.01, 0.4, 1.0, 3.0)))
        if random.random() < 0.002:
            stand.host.clock += 5.0
            node.on_away(5.0)
            stand.host.pause(0.0)
        as_sent([message for _, message in stand.host.sent])
        sizes = (node.table.size, len(node.health), len(node.core.heard), len(node.fetch), len(node.queue), len(node.core.accusers))
        assert max(sizes) <= MEMBERS_MAX
        mine = node.entry("a")
        assert mine is not None
        assert (mine.id, mine.address) == (stand.host.me, stand.host.address)
    assert sum(count for name, count in node.counts.items() if name.startswith("refused_")) > INPUTS / 4
