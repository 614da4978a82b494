"""Paper 003, section 6.1: push-sum gossip and what it needs."""

from __future__ import annotations

import pytest

from holdfast.features.limits.lab.mutations import plain_push_sum, without
from holdfast.features.limits.protocol.config import UNIT, WEIGHT, LimitsConfig
from holdfast.features.limits.protocol.messages import Gossip
from holdfast.features.limits.protocol.pushsum import PushSum
from tests.features.limits.stand import API, EPOCH, KEY, LIVES, Group, residue, view_of


def test_it_begins_with_the_own_demand_and_weight_one() -> None:
    """6.1: p is the locally observed demand, w is one."""
    it = PushSum(view_of(1, LIVES).id, 8, {KEY: 7 * UNIT})
    assert (it.p[KEY], it.w) == (7 * UNIT, WEIGHT)


def test_it_divides_by_b_and_one() -> None:
    """6.1: portion and weight are divided by b + 1; equal amounts go to the selected peers, and one share stays."""
    it = PushSum(view_of(1, LIVES).id, 8, {KEY: 8 * UNIT})
    it.spread(LIVES[1:4])
    assert (it.p[KEY], it.w) == (2 * UNIT, WEIGHT // 4)
    assert [it.ledger(peer).outstanding[KEY] for peer in LIVES[1:4]] == [2 * UNIT] * 3


def test_the_estimate() -> None:
    """6.1: p / w * n; the first one is n * D_i."""
    it = PushSum(view_of(1, LIVES).id, 8, {KEY: 7 * UNIT})
    assert it.estimate(KEY) == 56.0
    it.w, it.p[KEY] = WEIGHT // 2, 2 * UNIT
    assert it.estimate(KEY) == 32.0


def test_the_first_allocation_is_an_nth() -> None:
    """6.1: when gossip starts, before anything of others is known, local allocations are at most 1/n of the total limit."""
    group = Group(8)
    group.limit(800.0, arrives=[800.0, *([0.0] * 7)], share="demand", reserve=0.0)
    for stand in group:
        stand.users[API].user = 0.001
    group[0].users[API].user = 60.0
    group.install(5)
    group.loss = 1.0
    group.run(2 * EPOCH)
    assert group[0].used == pytest.approx(100.0, rel=0.001)


def rounds_to_converge(size: int) -> float:
    """Epochs until all estimates are within 5 %, with b = 2."""
    group = Group(size, config=LimitsConfig(branching=2))
    group.limit(1e6, arrives=[0.0] * size, share="demand")
    for number, stand in enumerate(group):
        stand.users[API].user = 10.0 if number % 3 else 40.0
    total = sum(stand.users[API].user or 0.0 for stand in group)
    group.install(5)
    begun = group.now
    while True:
        group.run(EPOCH / 2)
        if all(abs(stand.limiter.sums.estimate(KEY) / total - 1) < 0.05 for stand in group if stand.limiter.sums):
            return (group.now - begun) / EPOCH


def test_it_converges_in_log_n_rounds() -> None:
    """6.1: to the true aggregate in O(log n) messaging rounds."""
    assert rounds_to_converge(16) <= 10
    assert rounds_to_converge(64) <= 13


def test_messages_of_a_round() -> None:
    """6.1: n log n of them: each node speaks to b peers."""
    group = Group(16)
    group.limit(800.0, arrives=[10.0] * 16, share="demand")
    group.install(5)
    group.run(1.01)
    group.sent.clear()
    group.run(2 * EPOCH)
    assert sum(isinstance(message, Gossip) for _, _, message in group.sent) == pytest.approx(2 * 16 * 4, rel=0.1)


def changed_under_loss() -> float:
    """5 % of all messages are lost, and then a value changes: the mean error of the aggregate, relative."""
    group = Group(6)
    group.limit(1e6, arrives=[0.0] * 6, share="demand")
    for stand in group:
        stand.users[API].user = 1.0
    group.install(5)
    group.loss = 0.05
    for turn in range(60):
        group[0].users[API].user = 1.0 + turn % 2  # so that no member is quiet
        group.run(1.0)
    for stand in group:
        stand.users[API].user = 10.0
    group.run(10.0)
    group[0].users[API].user = 10.0
    errors = [abs(stand.limiter.sums.estimate(KEY) / 60.0 - 1) for stand in group if stand.limiter.sums]
    return sum(errors) / len(errors)


def test_weight_has_to_be_conserved() -> None:
    """6.1: a message that is lost takes weight with it, and when demand changes the aggregate diverges; acknowledged, it does not."""
    assert changed_under_loss() < 0.02
    with without(plain_push_sum):
        assert changed_under_loss() > 1.0


def test_nothing_is_lost_in_a_group_that_loses_messages() -> None:
    """6.1: the total weight is the number of limiters."""
    group = Group(6)
    group.limit(600.0, arrives=[90.0] * 6, share="demand")
    group.install(5)
    group.loss = 0.25
    group.run(15.0)
    assert residue(group) == (0, 0)
