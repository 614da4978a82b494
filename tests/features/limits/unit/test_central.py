"""Centralized aggregation, and choke points.  Spec: limits 5.8, 5.9, H271; paper 003, 7.2.1 and 6.3."""

from __future__ import annotations

import pytest

from holdfast.events import ChokePoint
from holdfast.features.limits.protocol.choke import LOOK_INTERVAL
from holdfast.features.limits.protocol.config import UNIT, LimitsConfig, key_of
from holdfast.features.limits.protocol.messages import Cuts, Demand, Gossip, Sum
from holdfast.host import NodeId, ViewId
from tests.features.limits.stand import API, EPOCH, KEY, SERVER, A, B, C, Group, Stand, view_of

INST = ViewId(5, SERVER.name, SERVER.boot)


@pytest.fixture
def group() -> Group:
    group = Group(5)
    group.limit(500.0, arrives=[300.0, 40.0, 40.0, 40.0, 40.0], share="demand", aggregate="central")
    group.install(5)
    group.run(8.0)
    return group


def test_one_member_adds_up(group: Group) -> None:
    """Limits 5.8: the smallest member is the collector; all get the sum of all, with 2|V| messages an epoch and no gossip of it."""
    assert [stand.of().aggregates[KEY] for stand in group] == pytest.approx([460.0] * 5, rel=0.01)
    group.sent.clear()
    group.run(10 * EPOCH)
    demands = [(source, to) for source, to, message in group.sent if isinstance(message, Demand)]
    assert {to for _, to in demands} == {"m00"}
    assert 38 <= len(demands) <= 42
    assert len([message for _, _, message in group.sent if isinstance(message, Sum)]) in range(37, 43)
    assert all(KEY not in message.p for _, _, message in group.sent if isinstance(message, Gossip))


def test_a_change_is_known_after_two_epochs(group: Group) -> None:
    """Limits 5.8: one to tell it, one to hear of it."""
    group[3].users[API].arrives = 240.0
    group.run(20.0)
    group[3].users[API].arrives = 140.0
    before = group[3].of().want
    group.run(4 * EPOCH)
    assert before == pytest.approx(240.0, rel=0.01)
    assert group[1].of().aggregates[KEY] == pytest.approx(sum(stand.of().want for stand in group), rel=0.1)


def test_a_new_collector_counts_who_was_not_heard(group: Group) -> None:
    """Limits 5.8: a member that was not heard in this instance counts as its share of the last sum; until then A is held."""
    group.install(6, 1, 2, 3, 4)
    assert group[2].limiter.central.collector == group[1].me
    lowest = 1000.0
    for _ in range(20):
        group.run(EPOCH / 5)
        lowest = min(lowest, *(group[at].limiter.central.estimate(KEY) for at in (1, 2, 3, 4)))
    assert lowest > 155.0
    group.run(5.0)
    assert group[2].of().aggregates[KEY] == pytest.approx(160.0, rel=0.01)


def test_a_cut_way_goes_round(group: Group) -> None:
    """Limits 5.8, paper 003, 7.2.1: over the overlay in every epoch, until a direct probe works."""
    group.cut = {("m02", "m00"), ("m00", "m02")}
    group.run(10 * EPOCH)
    assert group[2].limiter.central.is_round
    group[1].users[API].arrives = 140.0
    group.run(12 * EPOCH)
    assert group[2].of().aggregates[KEY] == pytest.approx(560.0, rel=0.02)
    group.cut = set()
    group.run(6.0)
    assert not group[2].limiter.central.is_round


def test_sums_of_the_past_and_of_others() -> None:
    """Limits 5.8: only the collector's word counts, only for a demand that was sent, and a late one replaces no newer one."""
    stand = Stand(B)
    stand.limit(500.0, arrives=40.0, share="demand", aggregate="central")
    stand.views.install(view_of(5, (A, B, C)))
    stand.epochs(4)
    newest = max(message.seq for _, message in stand.sent(Demand))
    stand.hear(A, Sum(INST, newest, {KEY: 300 * UNIT}, 3, False))
    stand.hear(A, Sum(INST, newest - 1, {KEY: 900 * UNIT}, 3, False))
    stand.hear(A, Sum(INST, newest + 1, {KEY: 900 * UNIT}, 3, False))
    stand.hear(C, Sum(INST, newest, {KEY: 900 * UNIT}, 3, False))
    assert stand.limiter.central.estimate(KEY) == 300.0
    assert stand.count("not_collector") == 2
    stand.views.lose()
    assert stand.limiter.central.sums == {}


def test_a_demand_that_was_overtaken() -> None:
    """Limits 5.8: the newest counts."""
    stand = Stand(A)
    stand.limit(500.0, share="demand", aggregate="central")
    stand.views.install(view_of(5, (A, B)))
    stand.epochs(1)
    stand.hear(B, Demand(INST, 2, {KEY: 50 * UNIT}, False))
    stand.hear(B, Demand(INST, 1, {KEY: 90 * UNIT}, False))
    assert [message.a for _, message in stand.sent(Sum)] == [{KEY: 50 * UNIT}] * 2


# Choke points.


def test_two_halves_with_few_links_between_them() -> None:
    """Limits 5.9, paper 003, 6.3: the smallest member is told who is cut off from whom, and names the smaller side, once."""
    group = Group(7, config=LimitsConfig(branching=4))
    group.limit(700.0, arrives=[90.0] * 7)
    group.install(5)
    told: list[ChokePoint] = []
    group[0].limiter.subscribe(lambda event: told.append(event) if isinstance(event, ChokePoint) else None)
    left, right = ("m00", "m01", "m02"), ("m03", "m04", "m05", "m06")
    pairs = [(one, other) for one in left for other in right][1:]
    group.cut = {*pairs, *((other, one) for one, other in pairs)}
    for turn in range(100):
        group[1].users[API].arrives = 90.0 + turn % 3
        group[5].users[API].arrives = 90.0 + turn % 2 * 5
        group.run(1.0)
    assert told == [ChokePoint(1, tuple(NodeId(name, 1) for name in left))]
    assert group[0].limiter.chokes.found is not None
    group.cut.clear()
    group.run(2.5 * LOOK_INTERVAL)
    assert group[0].limiter.chokes.found is None


def test_reports_name_places_in_the_view() -> None:
    """H271: all have the same list of members; the report of a member goes by the overlay where its link to the smallest is cut."""
    stand = Stand(B)
    stand.limit(500.0, arrives=40.0)
    stand.views.install(view_of(5, (A, B, C)))
    stand.silent = {A, C}
    stand.epochs(30)
    cuts = [(to, message) for to, message, _ in stand.views.carried if isinstance(message, Cuts)]
    assert cuts[0] == (A, Cuts(INST, (0, 2)))
    stand = Stand(B)
    stand.limit(500.0, arrives=40.0)
    stand.views.install(view_of(5, (A, B, C)))
    stand.silent = {C}
    stand.epochs(30)
    assert stand.sent(Cuts)[0] == (A, Cuts(INST, (2,)))


def test_members_whose_limits_are_all_central_do_not_gossip(group: Group) -> None:
    """Limits 5.8, H363: 2|V| messages an epoch and no other; with a limit by gossip beside it, all that hold a part of it give on."""
    group.sent.clear()
    group.run(10 * EPOCH)
    assert not [message for _, _, message in group.sent if isinstance(message, Gossip)]
    group.limit(500.0, arrives=[100.0], name="other", share="demand")
    group.run(10.0)
    other = key_of("other")
    assert [stand.of("other").aggregates[other] for stand in group] == pytest.approx([100.0] * 5, rel=0.05)
    assert {source for source, _, message in group.sent if isinstance(message, Gossip)} == {stand.me.name for stand in group}
