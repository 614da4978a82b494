"""Push-sum at a few members, messages by hand.  Spec: limits 5.3, D1, D2, D8; RL1, RL2."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest

from holdfast.features.limits.protocol import pushsum as module
from holdfast.features.limits.protocol.config import AMOUNT_MAX, PORTIONS_MAX, UNIT, WEIGHT, key_of
from holdfast.features.limits.protocol.pushsum import W_KEY, PushSum, batch_of, portions_of
from holdfast.host import NodeId, ViewId
from holdfast.kit.ledger import Batch, Refusal

INST = ViewId(7, "s0", 1)
A, B, C = (NodeId(name, 1) for name in "abc")
KEY, OTHER = key_of("api"), key_of("other")


def make(demand: float = 0.0, size: int = 3) -> PushSum:
    return PushSum(INST, size, {KEY: round(demand * UNIT)})


def pass_on(sums: dict[NodeId, PushSum], giver: NodeId, taker: NodeId) -> Refusal | None:
    """A message with everything that is outstanding, as it travels, and its acknowledgement."""
    ledger = sums[giver].ledger(taker)
    batch = ledger.message()
    w, p = portions_of(batch)
    found = sums[taker].take(giver, batch_of(batch.lb, batch.seq, w, p))
    assert ledger.ack(sums[taker].ledger(giver).taken)
    return found


def test_it_begins_with_the_own_demand() -> None:
    """Limits 5.6; paper 003, 6.1: w is one, p what is wanted here, so the first estimate is n times that."""
    it = make(40.0, size=6)
    assert it.w == WEIGHT
    assert it.estimate(KEY) == 240.0
    assert it.estimate(OTHER) == 0.0


def test_each_gets_an_equal_part_and_the_remainder_stays() -> None:
    """D1: integers; nothing is lost to a division."""
    it = make()
    it.w, it.p = 11, {KEY: 7}
    assert it.spread((A, B)) == [A, B]
    assert (it.w, it.p) == (5, {KEY: 3})
    assert it.ledger(A).message() == Batch(0, 1, {W_KEY: 3, KEY: 2})
    assert it.outstanding_weight == 6


def test_the_last_bit_of_weight_stays() -> None:
    """D1: a member never has no weight at all."""
    it = make()
    it.w = 1
    it.spread((A, B))
    assert it.w == 1


def test_a_demand_that_grows_counts_at_once() -> None:
    """Limits 5.3 step 2: the own portion grows by as much, and the estimate by more (D8)."""
    it = make(10.0)
    it.w = WEIGHT // 2
    told = it.report(KEY, 15 * UNIT)
    assert (told.before, told.delta) == (60.0, 5.0)
    assert it.p[KEY] == it.rep[KEY] == 15 * UNIT


def test_a_demand_that_falls_takes_half_of_what_is_held() -> None:
    """D8: less is taken out slowly, so that no portion and no estimate is ever negative."""
    it = make(40.0)
    it.p[KEY] = 10 * UNIT
    assert it.report(KEY, 4 * UNIT).delta == -5.0
    assert (it.p[KEY], it.rep[KEY]) == (5 * UNIT, 35 * UNIT)
    it.p[KEY] = 3
    it.report(KEY, 4 * UNIT)
    assert it.p[KEY] == 1
    it.report(KEY, 4 * UNIT)
    assert KEY not in it.p
    assert it.report(KEY, 4 * UNIT).delta == 0.0


def test_what_was_known_stands_until_it_is_mixed() -> None:
    """H273: while nothing comes back from quiet peers, the own decreases alone move what is known; after that the estimate counts."""
    it = PushSum(INST, 6, {KEY: 40 * UNIT}, mixing=3)
    it.w, it.p[KEY] = WEIGHT, 10 * UNIT  # mixed: all six want 60
    first = it.report(KEY, 38 * UNIT, stands=True)
    assert (first.before, first.delta, it.estimate(KEY)) == (60.0, -2.0, 48.0)
    second = it.report(KEY, 36 * UNIT, stands=True)
    assert (second.before, second.delta, it.estimate(KEY)) == pytest.approx((58.0 - 10.0 / 3, -2.0, 36.0))
    seen = [it.report(KEY, 36 * UNIT, stands=True).before for _ in range(12)]
    assert seen == sorted(seen, reverse=True)
    assert seen[0] > 45.0
    assert seen[-1] == 36.0


def test_a_limit_that_is_gone_takes_no_room() -> None:
    """F17: portions of nothing are not kept."""
    it = make(0.000002)
    it.report(KEY, 0)
    it.report(KEY, 0)
    assert (it.p, it.rep) == ({}, {})
    assert list(it.keys) == []


def test_unknown_limits_are_carried_on() -> None:
    """Limits 5.10, D2: a portion of a limit that this member does not know is held and given on."""
    it = make()
    assert it.take(A, Batch(0, 1, {OTHER: 10, W_KEY: 4})) is None
    it.spread((B,))
    assert it.ledger(B).outstanding[OTHER] == 5


def test_a_peer_cannot_overflow_a_sum() -> None:
    """Limits 3: sums beyond 64 bits are refused, and nothing of them is taken."""
    it = make(1.0)
    assert it.take(A, Batch(0, 1, {KEY: AMOUNT_MAX, W_KEY: 1})) is Refusal.NO_ROOM
    assert it.take(A, Batch(0, 1, {W_KEY: AMOUNT_MAX})) is Refusal.NO_ROOM
    assert it.take(A, Batch(0, 1, {W_KEY: -1})) is Refusal.SHRUNK
    assert (it.w, it.p[KEY]) == (WEIGHT, UNIT)


def test_a_peer_cannot_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """F17: no more than ``PORTIONS_MAX`` portions are held; those that are there may grow."""
    monkeypatch.setattr(module, "PORTIONS_MAX", 3)
    it = make(1.0)
    assert it.take(A, Batch(0, 1, dict.fromkeys(range(3), 1))) is Refusal.NO_ROOM
    assert it.take(A, Batch(0, 1, {KEY: 1, 1: 1, 2: 1, W_KEY: 1})) is None
    assert len(it.p) == 3


def test_a_peer_that_takes_no_word_is_given_no_more() -> None:
    """F17: the ledger with a silent peer fills up, and then everything stays home."""
    it = make(1.0)
    rounds = 0
    while it.spread((A,)):
        rounds += 1
    assert rounds == 64
    before = it.w
    assert it.spread((A, B)) == [B]
    assert it.w == before - before // 3


@pytest.mark.parametrize("seed", range(10))
def test_conserved_under_loss_and_change(seed: int) -> None:
    """RL1, RL2: at every step weight and portions, held and not yet taken, are exactly what was brought in; the sum is found."""
    random = Random(seed)
    lives = [NodeId(f"m{i}", 1) for i in range(6)]
    sums = {life: PushSum(INST, len(lives), {KEY: random.randrange(10**9)}) for life in lives}
    for turn in range(60):
        for life in lives:
            it = sums[life]
            if turn < 30 and random.random() < 0.2:
                it.report(KEY, random.randrange(10**9))
            peers = random.sample([other for other in lives if other != life], 3)
            it.spread(peers)
            for peer in lives:
                if peer != life and it.ledger(peer).is_open and random.random() < 0.75:
                    pass_on(sums, life, peer)
            check(sums)
    total = sum(it.rep.get(KEY, 0) for it in sums.values()) / UNIT
    for it in sums.values():
        assert it.estimate(KEY) == pytest.approx(total, rel=0.02)


def check(sums: dict[NodeId, PushSum]) -> None:
    """RL1, RL2."""
    flight = {W_KEY: 0, KEY: 0}

    def count(new: Mapping[int, int]) -> bool:
        for key in flight:
            flight[key] += new.get(key, 0)
        return False  # It is looked at, and not taken.

    for life, it in sums.items():
        for peer, ledger in it.ledgers.items():
            sums[peer].ledger(life).take(ledger.message(), count)
    assert sum(it.w for it in sums.values()) + flight[W_KEY] == len(sums) * WEIGHT
    held = sum(it.p.get(KEY, 0) for it in sums.values())
    assert held + flight[KEY] == sum(it.rep.get(KEY, 0) for it in sums.values())


def test_the_bound_covers_two_portions_of_every_limit() -> None:
    """Limits 10: 256 limits, two portions each, and room for as many that are gone."""
    assert PORTIONS_MAX == 4 * 256
