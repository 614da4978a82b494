"""Paper 003, section 6.3: managing constant change."""

from __future__ import annotations

import pytest

from holdfast.features.limits.lab.mutations import without
from holdfast.features.limits.protocol.choke import find_choke
from holdfast.features.limits.protocol.config import UNIT, WEIGHT
from holdfast.features.limits.protocol.messages import Gossip
from tests.features.limits import ablations
from tests.features.limits.stand import API, EPOCH, KEY, LIVES, A, B, C, D, E, F, Group, Stand, view_of


def test_gossip_restarts_in_each_view() -> None:
    """6.3: what was received at a limiter that is gone cannot be known, so portions and weight begin anew."""
    stand = Stand()
    stand.limit(600.0, arrives=60.0, share="demand")
    stand.views.install(view_of(5, (A, B, C)))
    stand.epochs(6)
    stand.views.install(view_of(6, (A, B)))
    sums = stand.limiter.sums
    assert sums is not None
    assert (sums.w, sums.ledgers, sums.p) == (WEIGHT, {}, stand.of().values)


def test_the_former_aggregate_is_blended_with_the_new_one() -> None:
    """6.3, efficient restart: for as many rounds as it takes to converge. Not a moving average (D9): after k of n rounds (k/n)^2."""
    stand = Stand()
    stand.limit(600.0, arrives=0.0, share="demand")
    stand.users[API].user = 10.0
    stand.views.install(view_of(5, (A, B, C, D)))
    stand.epochs(2)
    limit = stand.of()
    limit.aggregates[KEY] = 100.0
    stand.views.install(view_of(6, (A, B, C, D)))
    rounds = stand.limiter.config.blends(4)
    seen = [limit.aggregates[KEY]]
    for _ in range(rounds):
        limit.estimate(lambda key: 20.0)
        seen.append(limit.aggregates[KEY])
    assert seen == pytest.approx([100.0 - 80.0 * (k / rounds) ** 2 for k in range(rounds)] + [20.0])


def lost(*, blended: bool) -> float:
    """A harmless view change at 24 limiters: what the busy one could not use, in seconds of its share."""
    group = Group(24)
    group.limit(2400.0, arrives=[1600.0, *([20.0] * 23)], share="demand")
    group.install(5)
    group.run(20.0)
    before, lost = group[0].used, 0.0
    with without(ablations.no_blending if not blended else lambda stack: None):
        group.install(6)
        for _ in range(120):
            group.run(0.05)
            lost += max(0.0, before - group[0].used) * 0.05
    return lost / before


def test_blending_lessens_the_impact_of_a_view_change() -> None:
    """6.3: without it limiters with additional demand drop what they could have let through."""
    assert lost(blended=True) < 0.3
    assert lost(blended=False) > 1.0


def test_views_are_learnt_from_peers() -> None:
    """6.3, fast view propagation: gossip with a higher instance ends participation in the own one; it gossips with the source, and with
    others heard in the new one; then the circuit breaker says who else is there."""
    group = Group(4)
    group.limit(400.0, arrives=[50.0] * 4, share="demand")
    group.install(5)
    group.run(5.0)
    view = view_of(6, [stand.me for stand in group])
    for at in (0, 1):
        group[at].views.install(view)
    group[0].users[API].arrives = 60.0
    group.run(2 * EPOCH)
    for at in (2, 3):
        standing = group[at].limiter.standing
        assert (standing.inst, standing.provisional) == (view.id, True)
        assert group[at].views.hurries >= 1
    group.sent.clear()
    group[3].users[API].arrives = 60.0
    group.run(EPOCH)
    heard = {str(peer) for peer in group[3].limiter.standing.peers}
    assert {f"{to}#1" for source, to, message in group.sent if source == "m03" and isinstance(message, Gossip)} <= heard
    for at in (2, 3):
        group[at].views.install(view)
    assert group[3].limiter.standing.peers == tuple(stand.me for stand in list(group)[:3])
    group.run(10.0)
    assert [stand.limiter.standing.inst for stand in group] == [view.id] * 4


def test_a_limiter_of_an_older_view_is_told() -> None:
    """6.3: a higher instance number indicates a restart; nothing of the lower one is taken."""
    stand = Stand()
    stand.limit(600.0, arrives=60.0)
    stand.views.install(view_of(6, (A, B, C)))
    before = stand.limiter.sums.w if stand.limiter.sums else 0
    stand.gossip(5, B, w=WEIGHT, p={KEY: UNIT})
    assert stand.limiter.sums is not None
    assert stand.limiter.sums.w == before


def test_choke_points() -> None:
    """6.3: a cut of few links between two components of a view; conjectured in the paper, advice here (5.9)."""
    halves = [(one, other) for one in (A, B, C) for other in (D, E, F)]
    found = find_choke(LIVES[:6], halves[1:], 2.0)
    assert found is not None
    assert (found.cut, set(found.smaller_side)) == (1, {A, B, C})
    assert find_choke(LIVES[:6], halves[3:], 2.0) is None
