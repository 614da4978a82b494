"""Paper 003, section 2.3: distributed rate limiting."""

from __future__ import annotations

import pytest

from holdfast.features.limits.protocol.config import UNIT
from holdfast.features.limits.protocol.shares import demand_target
from tests.features.limits.stand import API, KEY, Group


def flows(group: Group, *counts: float) -> None:
    for stand, count in zip(group, counts, strict=True):
        stand.users[API].user = count


@pytest.fixture
def group() -> Group:
    """Six limiters, 6 Mbps; L2 has forty flows, L6 twenty."""
    group = Group(6)
    group.limit(6.0, arrives=[0.0] * 6, share="demand", reserve=0.0)
    flows(group, 1e-6, 40.0, 1e-6, 1e-6, 1e-6, 20.0)
    group.install(5)
    group.run(15.0)
    return group


def test_the_equation_of_the_share() -> None:
    """2.3: L_i is D_i / sum of all D_j, times L_global."""
    assert [demand_target(6.0, 6, d, 60.0, 0.0) for d in (40.0, 20.0, 0.0)] == pytest.approx([4.0, 2.0, 0.0])


def test_each_limiter_computes_one_number(group: Group) -> None:
    """2.3: every epoch a limiter calculates a single number that represents its demand, and its part of the aggregate."""
    sums = group[1].limiter.sums
    assert sums is not None
    assert sums.rep == {KEY: 40 * UNIT}


def test_accurate(group: Group) -> None:
    """2.3: the sum of all L_i is L_global."""
    assert group.total == pytest.approx(6.0, rel=0.001)


def test_responsive(group: Group) -> None:
    """2.3: L_i is in proportion to D_i / D_total, also after a change."""
    assert (group[1].used, group[5].used) == pytest.approx((4.0, 2.0), rel=0.01)
    flows(group, 1e-6, 20.0, 1e-6, 1e-6, 1e-6, 20.0)
    group.run(15.0)
    assert (group[1].used, group[5].used) == pytest.approx((3.0, 3.0), rel=0.02)


def test_one_site_may_use_the_whole_limit() -> None:
    """2.3: the whole limit for one site while the others are idle, not a fixed n-th."""
    group = Group(6)
    group.limit(6.0, arrives=[0.0] * 6, share="demand", reserve=0.0)
    flows(group, 7.0, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6)
    group.install(5)
    group.run(15.0)
    assert group[0].used == pytest.approx(6.0, rel=0.01)
