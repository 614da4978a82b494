"""Messages of limits as bytes: what fits, and what a peer cannot say.  Spec: limits 3, H265; foundation F16."""

from __future__ import annotations

import pytest
from msgspec import msgpack

from holdfast.drops import Drop, Rejected
from holdfast.features.limits.protocol.config import AMOUNT_MAX, LIMITS_MAX, NAME_BYTES_MAX, PORTIONS_MAX, key_of
from holdfast.features.limits.protocol.messages import TYPES, Ask, Cuts, Demand, Give, GiveAck, Gossip, GossipAck, Probe, Reconcile, Sum
from holdfast.host import DATAGRAM_BYTES_MAX, Message, NodeId, ViewId
from holdfast.kit.parcels import PARCEL_BYTES_MAX
from holdfast.wire import Codec

INST = ViewId(1 << 41, "a" * 40, 1_790_000_000_000)
SENDER = NodeId("b" * 40, 1_790_000_000_000)
CODEC = Codec(TYPES, wall=lambda: 1_790_000_000.0)
FULL = {key_of("x" * NAME_BYTES_MAX + str(i)): AMOUNT_MAX for i in range(2 * LIMITS_MAX)}
GOSSIP = Gossip(INST, 3, 0, 1, 1 << 31, {key_of("api", "n"): 5})
SEALED = 60  # bytes of the seal


def travel(message: Message) -> Message:
    return CODEC.decode(CODEC.encode(SENDER, 1, b"", message)).message


@pytest.mark.parametrize(
    "message",
    [
        GOSSIP,
        GossipAck(INST, 4, ViewId(1 << 41, "b", 1)),
        Probe(INST, 3, 77),
        Reconcile(INST, 0, 0, 1, 1, {5: 6}, 1, 0, 1, {7: 8}, 1),
        Ask(INST, key_of("api"), 1 << 31),
        Give(INST, 0, 2, {key_of("api"): 1 << 31}),
        GiveAck(INST, 2),
        Demand(INST, 9, {1: 2}, True),
        Sum(INST, 9, {1: 2}, 6, False),
        Cuts(INST, (0, 3, 17)),
    ],
)
def test_it_arrives_as_it_was(message: Message) -> None:
    """Limits 3: what is written is read."""
    assert travel(message) == message


@pytest.mark.parametrize(
    "message",
    [
        Gossip(INST, 3, 0, 1, -1, {}),
        Gossip(INST, 3, 0, 1, AMOUNT_MAX + 1, {}),
        Gossip(INST, 3, 0, -1, 1, {}),
        Gossip(INST, 3, 0, 1, 1, {5: -1}),
        Gossip(INST, 3, 0, 1, 1, {-5: 1}),
        Gossip(INST, 3, 0, 1, 1, dict.fromkeys(range(PORTIONS_MAX + 1), 1)),
        Gossip(INST, 3, 0, 1, 1, dict.fromkeys(range(100_000), 1)),
        Probe(INST, 4, 1),
        Ask(INST, 1, -1),
        Give(INST, 0, 1, {1: AMOUNT_MAX + 1}),
        Give(INST, 0, 1, dict.fromkeys(range(2 * LIMITS_MAX + 1), 1)),
        Sum(INST, 1, {}, -1, False),
        Cuts(INST, (-1,)),
        Cuts(INST, tuple(range(513))),
    ],
)
def test_what_a_peer_cannot_say(message: Message) -> None:
    """F16: negative amounts, sums beyond 64 bits, numbers of the past, too many limits: a counter, and nothing else."""
    with pytest.raises(Rejected) as caught:
        travel(message)
    assert caught.value.why is Drop.OUT_OF_BOUNDS


def test_thirty_limits_fit_a_datagram() -> None:
    """H265: portions are small whatever limits are called, so a group with thirty limits gossips in datagrams."""
    p = {key_of(f"{'x' * NAME_BYTES_MAX}{i}", part): 1 << 48 for i in range(25) for part in "nu"}
    assert len(CODEC.encode(SENDER, 1 << 47, bytes(8), Gossip(INST, 60, 1 << 20, 1 << 20, 1 << 40, p))) + SEALED <= DATAGRAM_BYTES_MAX


def test_all_limits_of_a_group_fit_a_parcel() -> None:
    """H265: what is stranded on a link goes round as one message, so that it is counted as one."""
    message = Reconcile(INST, 1, 1 << 40, 1 << 40, AMOUNT_MAX, FULL, 1 << 40, 1 << 40, 1 << 40, FULL, 1 << 40)
    assert len(msgpack.encode(message)) <= PARCEL_BYTES_MAX
