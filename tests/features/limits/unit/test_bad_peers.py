"""What a peer may send that no honest one does: a counter each, and nothing of weight, demand or quota moves.

Spec: limits 3, 5.3, 5.5; RL1 to RL4.
"""

from __future__ import annotations

import pytest

from holdfast.features.limits.protocol.config import AMOUNT_MAX, QUOTA, UNIT, WEIGHT
from holdfast.features.limits.protocol.messages import (
    Ask,
    Cuts,
    Demand,
    Give,
    GiveAck,
    Gossip,
    GossipAck,
    OfInstance,
    Probe,
    Reconcile,
    Sum,
)
from holdfast.host import NodeId, ViewId
from tests.features.limits.stand import KEY, SERVER, A, B, C, Stand, view_of

INST = ViewId(5, SERVER.name, SERVER.boot)
OTHER = ViewId(4, SERVER.name, SERVER.boot)
STRANGER = NodeId("z", 1)
MANY_NAMES = dict.fromkeys(range(100_000), 1)


@pytest.fixture
def stand() -> Stand:
    """Settled in view 5, with an exact limit; B gave it a quarter under number 2, and gossip under number 3."""
    stand = Stand()
    stand.limit(600.0, arrives=200.0, policy="exact", fleet=3)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    stand.give(B, 0.25, seq=2)
    stand.hear(B, Gossip(INST, 3, 0, 3, WEIGHT // 4, {KEY: UNIT}))
    stand.limiter.counts.clear()
    return stand


CASES: dict[str, tuple[NodeId, OfInstance, str]] = {
    "negative weight": (B, Gossip(INST, 3, 0, 4, -WEIGHT, {}), "gossip_shrunk"),
    "a negative portion": (B, Gossip(INST, 3, 3, 4, 0, {KEY: -1}), "gossip_shrunk"),
    "less than it said before": (B, Gossip(INST, 3, 0, 4, WEIGHT // 8, {KEY: UNIT}), "gossip_shrunk"),
    "a number of the past": (B, Gossip(INST, 3, 0, 2, WEIGHT, {}), "gossip_past"),
    "a bound that was never acknowledged": (B, Gossip(INST, 3, 2, 4, WEIGHT, {}), "gossip_unknown_bound"),
    "a bound of the future": (B, Gossip(INST, 3, 9, 10, WEIGHT, {}), "gossip_unknown_bound"),
    "a sum beyond 64 bits": (B, Gossip(INST, 3, 3, 4, AMOUNT_MAX, {}), "gossip_no_room"),
    "a portion beyond 64 bits": (B, Gossip(INST, 3, 3, 4, 0, {KEY: AMOUNT_MAX}), "gossip_no_room"),
    "a hundred thousand names": (B, Gossip(INST, 3, 3, 4, 0, MANY_NAMES), "gossip_too_many"),
    "two thousand names": (B, Gossip(INST, 3, 3, 4, 0, dict.fromkeys(range(2000), 1)), "gossip_no_room"),
    "an instance of another view": (B, Gossip(OTHER, 3, 3, 4, WEIGHT, {}), "older"),
    "gossip of a stranger": (STRANGER, Gossip(INST, 3, 0, 1, WEIGHT, {}), "stranger"),
    "an acknowledgement above what was sent": (B, GossipAck(INST, 99), "ack_beyond"),
    "an acknowledgement of another instance": (B, GossipAck(OTHER, 1), "late"),
    "an acknowledgement of a stranger": (STRANGER, GossipAck(INST, 0), "stranger"),
    "quota that was never given": (B, Give(INST, 0, 3, {KEY: 3 * QUOTA}), "quota_no_room"),
    "less quota than before": (B, Give(INST, 0, 3, {KEY: QUOTA // 8}), "quota_shrunk"),
    "negative quota": (B, Give(INST, 2, 3, {KEY: -1}), "quota_shrunk"),
    "quota again": (B, Give(INST, 0, 2, {KEY: QUOTA // 4}), "quota_past"),
    "quota of another instance": (B, Give(OTHER, 0, 3, {KEY: QUOTA}), "no_trade"),
    "quota of a stranger": (STRANGER, Give(INST, 0, 1, {KEY: QUOTA}), "no_trade"),
    "quota of a hundred thousand limits": (B, Give(INST, 2, 3, MANY_NAMES), "quota_too_many"),
    "an acknowledgement of quota above what was given": (B, GiveAck(INST, 9), "ack_beyond"),
    "an acknowledgement of quota of a stranger": (STRANGER, GiveAck(INST, 0), "stranger"),
    "an ask for a limit that no member has": (B, Ask(INST, 12345, QUOTA), "asks_refused"),
    "an ask of a stranger": (STRANGER, Ask(INST, KEY, QUOTA), "no_trade"),
    "a reconciliation that acknowledges too much": (B, Reconcile(INST, 1, 3, 3, 0, {}, 999, 0, 0, {}, 0), "ack_beyond"),
    "one that acknowledges too much quota": (B, Reconcile(INST, 1, 3, 3, 0, {}, 0, 0, 0, {}, 9), "ack_beyond"),
    "one with negative weight": (B, Reconcile(INST, 1, 3, 4, -1, {}, 0, 0, 0, {}, 0), "reconcile_shrunk"),
    "one of a stranger": (STRANGER, Reconcile(INST, 1, 0, 1, 9, {}, 0, 0, 0, {}, 0), "stranger"),
    "one of another view": (B, Reconcile(OTHER, 1, 3, 4, 9, {}, 0, 0, 0, {}, 0), "older"),
    "an answer to no probe": (B, Probe(INST, 2, 1), "late"),
    "a probe of a stranger": (STRANGER, Probe(INST, 1, 1), "stranger"),
    "a sum of no collector": (C, Sum(INST, 1, {KEY: 1}, 3, False), "not_collector"),
    "a demand of a stranger": (STRANGER, Demand(INST, 1, {KEY: 1}, False), "stranger"),
    "cuts of a stranger": (STRANGER, Cuts(INST, (1,)), "stranger"),
    "cuts that name no member": (B, Cuts(INST, (77,)), "not_collector"),
}


def state(stand: Stand) -> tuple[object, ...]:
    limiter = stand.limiter
    assert limiter.sums is not None
    holding = stand.holding
    standing = limiter.standing
    return (
        limiter.sums.w,
        dict(limiter.sums.p),
        limiter.sums.rep.get(KEY, 0),
        holding.q,
        standing.inst,
        stand.used,
    )


@pytest.mark.parametrize("case", CASES)
def test_it_costs_a_counter(stand: Stand, case: str) -> None:
    """Limits 3, 5.3, 5.5; RL1-RL4: it is counted, and nothing is taken or given for it; the limiter goes on."""
    source, message, counter = CASES[case]
    before = state(stand)
    stand.hear(source, message)
    assert state(stand) == before
    assert stand.count(counter) == 1, stand.limiter.counts
    stand.epochs(4)
    assert stand.limiter.epochs > 4


def test_a_demand_to_a_member_that_collects_nothing() -> None:
    """Limits 5.8: only the smallest member of the view adds up."""
    stand = Stand(C)
    stand.limit(600.0, aggregate="central")
    stand.views.install(view_of(5, (A, B, C)))
    stand.hear(B, Demand(INST, 1, {KEY: 1}, False))
    assert stand.count("not_collector") == 1


def test_a_lie_about_the_size_ends_with_the_view(stand: Stand) -> None:
    """Limits 5.6: a provisional instance has the size that a peer says, the delivered one that of the view."""
    stand.gossip(9, B, size=60_000)
    assert stand.limiter.standing.size == 60_000
    stand.views.install(view_of(9, (A, B)))
    assert stand.limiter.standing.size == 2


def test_a_flood_of_newer_instances(stand: Stand) -> None:
    """Limits 5.6: each is a new instance in which this member has no more than it had; it never grows by that."""
    for number in range(10, 200):
        stand.gossip(number, B)
        assert stand.q <= 1.0
    stand.epochs(4)
    assert stand.q <= 1.0
