"""Quota of exact limits: asked for, given, raised, held back.  Spec: limits 5.5, D3, D11, D19, D22, H267; RL4."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.events import FleetExceeded
from holdfast.features.limits.protocol.config import ASKS_MAX, QUOTA, key_of
from holdfast.features.limits.protocol.facts import QuotaGiven, QuotaTaken
from holdfast.features.limits.protocol.messages import Ask, Give, GiveAck
from holdfast.features.limits.protocol.quota import GIVE_ABOVE, HOLDINGS_MAX, Holding, Quotas
from holdfast.features.limits.protocol.specs import make
from holdfast.host import NodeId
from holdfast.kit.ledger import Batch, Refusal
from tests.features.limits.stand import KEY, A, B, C, D, Group, Stand, view_of

EXACT: dict[str, Any] = {"policy": "exact", "fleet": 3}


@pytest.fixture
def stand() -> Stand:
    """Wants 20 of its 200, the two others more than there is."""
    stand = Stand()
    stand.limit(600.0, arrives=20.0, **EXACT)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    stand.epochs(8)
    stand.know(busy=2)
    stand.epochs()
    stand.sent(Give)
    return stand


def test_it_asks_for_half_of_what_is_missing() -> None:
    """Limits 5.5: need = (target - q)/2 + 1, to a few peers at random."""
    stand = Stand()
    stand.limit(600.0, arrives=590.0, **EXACT)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    stand.epochs(8)
    stand.know(busy=0)
    stand.epochs()
    stand.sent(Ask)
    stand.know(busy=0)
    stand.epochs()
    asks = stand.sent(Ask)
    target = stand.limiter.allocator.quota_target(stand.of())
    assert target > 2.5 * QUOTA
    assert {to for to, _ in asks} == {B, C}
    assert {ask.need for _, ask in asks} == {(target - QUOTA) // 2 + 1}


def test_it_does_not_ask_for_little(stand: Stand) -> None:
    """Limits 5.5: within Q/50 of the target nothing is asked for, or members that have their share would never rest."""
    holding = stand.holding
    stand.sent(Ask)
    target = stand.limiter.allocator.quota_target(stand.of())
    holding.q = target - QUOTA // 100
    stand.epochs()
    assert stand.sent(Ask) == []
    holding.q = target - QUOTA // 20
    stand.epochs()
    assert stand.sent(Ask) != []


def test_it_gives_what_it_does_not_want(stand: Stand) -> None:
    """Limits 5.5: min(surplus, need), subtracted at once; what is left is what it uses."""
    stand.ask(B, 0.5)
    stand.epochs()
    assert stand.sent(Give)[0] == (B, Give(stand.limiter.standing.inst, 0, 1, {KEY: QUOTA // 2}))  # type: ignore[arg-type]
    assert (stand.q, stand.used) == pytest.approx((0.5, 100.0))
    assert stand.host.events(QuotaGiven) == [QuotaGiven(KEY, B, QUOTA // 2)]


def test_the_largest_need_first(stand: Stand) -> None:
    """Limits 5.5: and no member gets what is needed here."""
    stand.ask(B, 0.3)
    stand.ask(C, 2.0)
    stand.epochs()
    gives = dict(stand.sent(Give))
    target = stand.limiter.allocator.quota_target(stand.of())
    assert gives.keys() == {C}
    assert stand.holding.q == target


def test_who_has_little_too_much_gives_nothing(stand: Stand) -> None:
    """Limits 5.5: within Q/100 of the target everything is kept."""
    stand.holding.q = stand.limiter.allocator.quota_target(stand.of()) + GIVE_ABOVE
    stand.ask(B, 0.5)
    stand.epochs()
    assert stand.sent(Give) == []


def test_a_give_is_repeated_until_it_is_acknowledged(stand: Stand) -> None:
    """Limits 5.5: every epoch, with the same number, and with what came to it."""
    stand.peers_answer = False
    stand.ask(B, 0.25)
    stand.epochs()
    stand.ask(B, 0.25)
    stand.epochs(2)
    gives = [give for _, give in stand.sent(Give)]
    assert [(give.lb, give.seq, give.q[KEY]) for give in gives] == [(0, 1, QUOTA // 4), (0, 2, QUOTA // 2), (0, 2, QUOTA // 2)]
    assert stand.limiter.standing.inst is not None
    stand.hear(B, GiveAck(stand.limiter.standing.inst, 2))
    stand.epochs(2)
    assert stand.sent(Give) == []


def test_what_is_taken_counts_at_once(stand: Stand) -> None:
    """Limits 5.5: and is acknowledged; the same again brings nothing."""
    stand.give(B, 0.25)
    stand.give(B, 0.25)
    stand.give(B, 0.75, seq=2)
    assert (stand.q, stand.used) == pytest.approx((1.75, 350.0))
    assert [ack.seq for _, ack in stand.sent(GiveAck)] == [1, 1, 2]
    assert [event.amount for event in stand.host.events(QuotaTaken)] == [QUOTA // 4, QUOTA // 2]


def test_workers_have_to_know_first(stand: Stand) -> None:
    """D22: the share falls at once; the message leaves when the workers are known to use no more than what is left."""
    users = stand.users["api"]
    users.slow = True
    stand.ask(B, 0.5)
    stand.epochs(3)
    assert stand.sent(Give) == []
    assert (stand.q, users.usable, users.told) == pytest.approx((0.5, 100.0, 200.0))
    users.confirm()
    assert [give.q[KEY] for _, give in stand.sent(Give)] == []  # It goes by the outbox, in a callback of its own.
    stand.host.pass_time(0)
    assert [give.q[KEY] for _, give in stand.sent(Give)] == [QUOTA // 2]


def test_their_time_passes(stand: Stand) -> None:
    """D22, F9: a worker that says nothing may use what it was told until its time is over; then the message leaves, too."""
    users = stand.users["api"]
    stand.views.leased_until = stand.host.now + 1.5
    stand.epochs()
    users.slow = True
    stand.ask(B, 0.9)
    stand.epochs()
    stand.views.leased_until = stand.host.now + 100.0
    assert stand.sent(Give) == []
    stand.host.clock += 0.4
    stand.epochs(3)
    assert len(stand.limiter.quotas.promises) + len(stand.sent(Give)) == 1


@pytest.mark.parametrize("how", ["panic", "new instance"])
def test_a_promise_that_has_not_left_comes_back(stand: Stand, how: str) -> None:
    """Limits 5.5: at the end of the lease and in a new instance what was promised and not sent belongs to this member."""
    stand.users["api"].slow = True
    stand.ask(B, 0.5)
    stand.epochs()
    before = stand.q
    if how == "panic":
        stand.views.lose()
    else:
        stand.views.install(view_of(6, (A, B, C)))
    assert (before, stand.q, stand.limiter.quotas.promises) == (0.5, 1.0, [])
    stand.users["api"].confirm()
    stand.epochs(2)
    assert stand.sent(Give) == []


@pytest.mark.parametrize("how", ["provisional", "panic", "lower"])
def test_who_does_not_count_neither_gives_nor_takes(stand: Stand, how: str) -> None:
    """Limits 5.5: provisional members, members without a lease, and members whose lease is on another view."""
    if how == "panic":
        stand.views.lose()
    else:
        stand.gossip(9)
        if how == "lower":
            stand.views.install(view_of(8, (A, B, C)))
    before = stand.q
    stand.ask(B, 0.5)
    stand.give(B, 0.5)
    stand.epochs()
    assert (stand.q, stand.sent(Give), stand.sent(GiveAck)) == (before, [], [])
    assert stand.count("no_trade") == 2


def test_changing_stops_raises_and_asks() -> None:
    """Limits 5.5, 5.6: while a change is under way nothing is raised, and nothing is asked for."""
    stand = Stand()
    stand.limit(600.0, arrives=600.0, **EXACT)
    stand.views.install(view_of(5, (A, B, C)))
    stand.views.change()
    stand.settle()
    stand.epochs(3)
    assert (stand.q, stand.sent(Ask)) == (0.0, [])
    stand.views.changing = False
    stand.epochs()
    assert stand.q == 1.0


def test_a_new_instance_goes_down_to_the_own_part(stand: Stand) -> None:
    """D19: no member can know which views the others passed through, so every share begins again at no more than 1/n."""
    stand.give(B, 0.75)
    assert stand.q == 1.75
    stand.views.install(view_of(6, (A, B, C)))
    assert (stand.q, stand.used) == pytest.approx((1.0, 200.0))
    stand.settle()
    assert stand.q == 1.0


def test_the_raise_brings_back_what_was_given_before() -> None:
    """Limits 5.5: q += Q - entry, once; what is given in this instance is not brought back."""
    quotas = Quotas()
    quotas.holdings[KEY] = Holding(QUOTA // 4)
    quotas.begin({KEY: 3})
    holding = quotas.holdings[KEY]
    assert (holding.q, holding.entry) == (QUOTA // 4, QUOTA // 4)
    assert quotas.ask(KEY, B, QUOTA)
    assert quotas.promise(KEY, 0, lambda peer: True)
    assert quotas.hand_over(lambda key: True)
    assert holding.raise_() == QUOTA * 3 // 4
    assert holding.q == QUOTA * 3 // 4


def test_more_members_than_the_limit_is_divided_for() -> None:
    """D3: those above n by id get nothing and no raise, and say so; G stays R."""
    stand = Stand(D)
    stand.limit(600.0, arrives=200.0, **EXACT)
    stand.views.install(view_of(5, (A, B, C, D)))
    stand.settle()
    stand.epochs(4)
    assert (stand.q, stand.used, stand.sent(Ask)) == (0.0, 0.0, [])
    assert stand.host.events(FleetExceeded) == [FleetExceeded("api", 3, 4)]
    stand.views.lose(leave=True)
    stand.settle()
    stand.epochs()
    assert stand.used == 0.0
    stand.views.install(view_of(6, (B, C, D)))
    stand.settle()
    assert stand.q == 1.0


def test_a_larger_fleet_counts_at_once(stand: Stand) -> None:
    """Limits 5.10, H267: each part is worth less, so the sum cannot grow."""
    stand.specs.change("api", fleet=6)
    stand.epochs()
    assert (stand.q, stand.used) == pytest.approx((1.0, 100.0))


def test_a_smaller_fleet_counts_from_the_next_instance_on(stand: Stand) -> None:
    """Limits 5.10, H267: parts are worth more only where all begin anew with the new number; who sets it brings that about."""
    stand.specs.change("api", fleet=2)
    assert len(stand.views.trips) == 1
    stand.views.restore()
    stand.epochs()
    assert stand.used == pytest.approx(200.0)
    stand.views.install(view_of(6, (A, B)))
    assert stand.used == pytest.approx(300.0)


def test_a_limit_that_is_removed_and_made_again(stand: Stand) -> None:
    """Limits 5.10: in one instance it is raised once, also if it was gone meanwhile: others may hold what was given."""
    stand.ask(B, 0.5)
    stand.epochs()
    stand.specs.remove("api")
    stand.epochs(2)
    assert stand.used == 0.0
    stand.specs.set("api", make(600.0, 10.0, policy="exact", fleet=3))
    stand.epochs(3)
    assert stand.q == 0.5


def test_a_limit_that_comes_later_is_raised_at_once(stand: Stand) -> None:
    """Limits 5.5: this life has given nothing of it, and what former lives gave is over ``settle`` after the start."""
    stand.specs.set("other", make(300.0, 10.0, policy="exact", fleet=3))
    users = stand.use("other")
    stand.epochs(2)
    assert users.usable == pytest.approx(100.0)


def test_quota_of_a_limit_that_is_not_known_here_is_held(stand: Stand) -> None:
    """Limits 5.10: it counts when the limit is known, and is raised by what is missing to a whole part."""
    key = key_of("later")
    assert stand.limiter.standing.inst is not None
    stand.hear(B, Give(stand.limiter.standing.inst, 0, 1, {key: QUOTA // 2}))
    stand.specs.set("later", make(300.0, 10.0, policy="exact", fleet=3))
    users = stand.use("later")
    stand.epochs(2)
    assert users.usable == pytest.approx(150.0)


def test_bounds_of_quota() -> None:
    """F17, RL4: a peer cannot give more than all members have, of more limits than there can be; too many asks are refused."""
    quotas = Quotas()
    assert quotas.take(B, Batch(0, 1, {KEY: 3 * QUOTA + 1}), 3 * QUOTA) is Refusal.NO_ROOM
    assert quotas.take(B, Batch(0, 1, dict.fromkeys(range(HOLDINGS_MAX + 1), 1)), 3 * QUOTA) is Refusal.NO_ROOM
    assert not quotas.ask(KEY, B, 1)
    quotas.know(KEY, 3)
    assert all(quotas.ask(KEY, NodeId(f"m{i}", 1), 1) for i in range(ASKS_MAX))
    assert not quotas.ask(KEY, B, 1)
    assert quotas.ask(KEY, NodeId("m0", 1), 2)


def test_a_ledger_that_is_full_gives_it_back() -> None:
    """F17: what cannot be put down as given stays here."""
    quotas = Quotas()
    holding = quotas.know(KEY, 3)
    for _ in range(65):
        holding.q = QUOTA
        quotas.ask(KEY, B, QUOTA)
        quotas.promise(KEY, 0, lambda peer: True)
        handed = quotas.hand_over(lambda key: True)
    assert (handed, holding.q) == ([], QUOTA)


def test_no_callback_reaches_too_many() -> None:
    """F17: where a hundred members ask one for what it has, gives leave in callbacks of their own (the group of the test counts)."""
    group = Group(100)
    group.limit(6000.0, arrives=[0.0] * 20 + [600.0] * 80, policy="exact", fleet=100)
    group.install(5)
    group.run(10.0)
    assert sum(isinstance(message, Give) for _, _, message in group.sent) > 20
    assert sum(stand.holding.q for stand in group) <= 100 * QUOTA
