"""From estimates of what all want to what one member may use.  Spec: limits 5.2, 5.3 step 6, D7, D21; paper 003, 3.1."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.features.limits.protocol.shares import (
    NONE_SATURATED,
    WEIGHT_MAX,
    WEIGHT_MIN,
    demand_target,
    is_saturated,
    level,
    maxmin_target,
    small_want,
)

HEADROOM, RESERVE = 0.02, 0.05


def settle(whole: float, wants: Sequence[float], weights: Sequence[float] | None = None, rounds: int = 200) -> list[float]:
    """Members that know the aggregates exactly decide again and again, each from the last aggregates, one after another."""
    weights = weights or [1.0] * len(wants)
    size = len(wants)
    portions = [(small_want(whole, size, want, headroom=HEADROOM, reserve=RESERVE), 0.0) for want in wants]
    targets = [0.0] * size
    for turn in range(rounds * size):
        at = turn % size
        small, saturated = sum(one[0] for one in portions), sum(one[1] for one in portions)
        mine = level(whole, size, small, saturated, weights[at])
        if is_saturated(wants[at], HEADROOM, mine):
            portions[at] = (0.0, weights[at])
        else:
            portions[at] = (small_want(whole, size, wants[at], headroom=HEADROOM, reserve=RESERVE), 0.0)
        small, saturated = sum(one[0] for one in portions), sum(one[1] for one in portions)
        mine = level(whole, size, small, saturated, weights[at])
        targets[at] = maxmin_target(whole, size, wants[at], mine, small, saturated, headroom=HEADROOM, reserve=RESERVE)
    return targets


def poured(whole: float, wants: list[float], weights: list[float]) -> list[float]:
    """Water-filling, the textbook's way: raise one level until the whole is used."""
    floor = RESERVE * whole / len(wants)
    wants = [max(want * (1 + HEADROOM), floor) for want in wants]
    low, high = 0.0, whole / WEIGHT_MIN
    for _ in range(200):
        middle = (low + high) / 2
        if sum(min(want, middle * weight) for want, weight in zip(wants, weights, strict=True)) > whole:
            high = middle
        else:
            low = middle
    return [min(want, low * weight) for want, weight in zip(wants, weights, strict=True)]


def test_one_that_wants_much_gets_what_seven_small_ones_leave() -> None:
    """D21: 900 and 7 x 50 over 1000: the small ones get what they want and a little, the large one gets the rest."""
    shares = settle(1000, [900] + [50] * 7)
    assert shares[1:] == pytest.approx([51] * 7)
    assert shares[0] == pytest.approx(1000 - 7 * 51)


def test_in_proportion_to_demand_the_small_ones_are_starved() -> None:
    """D21: the paper's rule gives 50 / 1250 of the limit to one that asks for 50: less than it wants, for ever."""
    assert demand_target(1000, 8, 50, 1250, 0.0) == pytest.approx(40)


def test_members_that_all_want_more_split_evenly() -> None:
    """Limits 5.2: N = |V|, U = 0."""
    assert settle(600, [1000, 500, 300]) == pytest.approx([200, 200, 200])


def test_what_is_free_is_spread_while_no_member_is_saturated() -> None:
    """Limits 5.2: plus (G - U) / |V| while N < 1/20 (H276); in sum the whole."""
    shares = settle(1000, [100, 50, 0])
    assert sum(shares) == pytest.approx(1000)
    assert shares[0] > shares[1] > shares[2] > 1000 / 4


def test_an_idle_member_keeps_a_floor() -> None:
    """D7: reserve * G / |V|, so that its first request need not wait for gossip."""
    shares = settle(1000, [5000, 0, 0, 0])
    assert shares[1:] == pytest.approx([12.5] * 3)
    assert sum(shares) == pytest.approx(1000)


def test_a_saturated_member_never_gets_less_than_an_even_split() -> None:
    """Limits 5.2: the level is at least G / |V|, also while the estimates of U and N are too large."""
    assert level(1000, 4, 5000, 3, 1.0) == 250
    assert level(1000, 4, 0, 40, 1.0) == 250


def test_a_lone_saturated_member_gets_the_rest_whatever_its_weight() -> None:
    """H276: weights are compared among saturated members; with one of them there is nothing to compare."""
    assert settle(1000, [5000, 100], [WEIGHT_MIN, 1.0]) == pytest.approx([898, 102])


def test_weights_share_what_saturated_members_get() -> None:
    """Limits 5.2: lambda is multiplied with the weight."""
    assert settle(900, [5000, 5000], [0.5, 1.0]) == pytest.approx([300, 600])


def test_the_smallest_weight_alone_is_taken_for_a_saturated_member() -> None:
    """H276: what is free is spread only if N is below what one member of the smallest weight adds."""
    assert NONE_SATURATED < WEIGHT_MIN
    free = maxmin_target(1000, 2, 10, 500, 100, 0.0, headroom=HEADROOM, reserve=RESERVE)
    assert maxmin_target(1000, 2, 10, 500, 100, WEIGHT_MIN, headroom=HEADROOM, reserve=RESERVE) < free


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 3000), st.floats(WEIGHT_MIN, WEIGHT_MAX)), min_size=1, max_size=12),
    st.floats(10, 2000),
)
def test_the_rule_pours_water(members: list[tuple[float, float]], whole: float) -> None:
    """D21: where the whole is wanted, the fixed point is that of water-filling; in sum it never exceeds the whole."""
    wants, weights = [want for want, _ in members], [weight for _, weight in members]
    shares, expected = settle(whole, wants, weights), poured(whole, wants, weights)
    assert sum(shares) <= whole * (1 + 1e-6)
    if sum(expected) >= whole * (1 - 1e-6):
        assert shares == pytest.approx(expected, rel=1e-3, abs=1e-3 * whole)
    else:
        assert all(share >= want * (1 - 1e-6) for share, want in zip(shares, expected, strict=True))


def test_shares_follow_demand_in_the_papers_rule() -> None:
    """Limits 5.3 step 6, D17: 20 of 60 flows get a third of the limit, 40 get two thirds."""
    assert demand_target(6.0, 6, 20, 60, 0.0) == pytest.approx(2.0)
    assert demand_target(6.0, 6, 40, 60, 0.0) == pytest.approx(4.0)


def test_idle_members_split_evenly_and_an_estimate_that_is_too_small_gives_no_more_than_all() -> None:
    """Limits 5.3 step 6: A below 0.001 |V|: T = G / |V|; the share is clipped to [0, 1]."""
    assert demand_target(6.0, 6, 0.001, 0.0059, 0.05) == 1.0
    assert demand_target(6.0, 6, 40, 20, 0.05) == pytest.approx(0.05 + 0.95 * 6)
    assert demand_target(6.0, 6, -1, 20, 0.05) == pytest.approx(0.05)
