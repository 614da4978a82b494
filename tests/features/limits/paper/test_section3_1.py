"""Paper 003, section 3.1 (partitions) and Figure 1: each group works with its part of the limit, also where lists of members overlap."""

from __future__ import annotations

import pytest

from holdfast.features.limits.protocol.policy import whole
from tests.features.limits.stand import EPOCH, Group


def test_the_limit_of_a_partition() -> None:
    """3.1: the limit of a component is the global one times |v_i| / n."""
    assert [whole(6.0, size, 3) for size in (1, 2, 3)] == [2.0, 4.0, 6.0]


def test_both_sides_go_on() -> None:
    """3.1: the sides of a partition operate independently, and together they stay within the limit."""
    group = Group(6)
    group.limit(600.0, arrives=[600.0] * 6, fleet=6, share="demand")
    group.install(5)
    group.run(10.0)
    group.install(6, 0, 1)
    group.install(7, 2, 3, 4, 5)
    group.run(10.0)
    assert sum(group.shares[:2]) == pytest.approx(200.0, rel=0.01)
    assert sum(group.shares[2:]) == pytest.approx(400.0, rel=0.01)


def test_a_member_that_failed_leaves_its_part() -> None:
    """3.1: the bound holds whether limiters failed or are only partitioned away."""
    group = Group(3)
    group.limit(600.0, arrives=[600.0] * 3, fleet=3, share="demand")
    group.install(5)
    group.run(10.0)
    group[2].limiter.stop()
    group.install(6, 0, 1)
    group.run(10.0)
    assert group[0].used + group[1].used == pytest.approx(400.0, rel=0.01)


def figure_1(*, agreed: bool) -> float:
    """Limiters a and b do not reach each other, c is idle and reaches both: the sum of shares, by the limit. Without agreed views c is a
    member of two lists, and takes part in both as if it were two (m02 and m03)."""
    group = Group(3 if agreed else 4)
    group.limit(600.0, arrives=[600.0, 600.0, 0.0, 0.0][: len(group.stands)], fleet=3, share="demand", reserve=0.0)
    if agreed:
        group.install(5)
    else:
        group.install(5, 0, 2)
        group.install(6, 1, 3)
    group.cut = {("m00", "m01"), ("m01", "m00")}
    group.run(20.0)
    peak = 0.0
    for _ in range(20):
        group.run(EPOCH)
        peak = max(peak, group.total / 600.0)
    return peak


def test_local_lists_exceed_the_limit() -> None:
    """3.2, Figure 1, right: a and b both believe that they are with c alone, and each takes two thirds."""
    assert figure_1(agreed=False) > 1.3


def test_one_group_for_each_does_not() -> None:
    """3.2, Figure 1: every node belongs to exactly one group; a cut inside it goes over the overlay."""
    assert figure_1(agreed=True) < 1.05
