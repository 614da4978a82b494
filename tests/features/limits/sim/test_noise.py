"""Demand that is never the same does not spoil what members know.  Spec: limits 5.3, D8, D26."""

from __future__ import annotations

from statistics import fmean

from holdfast.features.limits.lab.many_flows import ManyFlows
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.config import WEIGHT, LimitsConfig
from holdfast.lab.links import Link

RATE = 6.0


def test_noise_of_the_own_demand_takes_nothing_from_the_limit() -> None:
    """H305: with flows whose rates vary by 5 % the limits of all members come to the whole limit, in the mean."""
    group = ManyFlows(1, 24, LimitsConfig(branching=5), link=Link(), rate=RATE, reserve=0.0)
    group.install()
    users = [group.user(name) for name in group.names]
    for user in users[::4]:
        user.traffic.flows = 10
    group.run(20.0)
    sums = []
    for _ in range(80):
        group.run(0.25)
        sums.append(sum(user.traffic.told for user in users))
    assert abs(fmean(sums) - RATE) < 0.005 * RATE


def test_a_member_that_is_never_quiet_keeps_weight_among_members_that_rest() -> None:
    """H306: what it gives away in every epoch is given back, though nothing moves for the others."""
    members = 16
    group = SumGroup(0, members, LimitsConfig(branching=4), link=Link(), checked=True)
    group.install()
    group.set_all(10.0)
    group.run(20.0)
    least, worst, resting = WEIGHT, 0.0, 0
    for number in range(80):
        group.set(group.names[0], 10.0 + 0.5 * (number % 2))
        group.run(0.5)
        least = min(least, *(sums.w for name in group.names if (sums := group.limiter(name).sums) is not None))
        worst = max(worst, *group.errors(10.0 * members))
        resting += sum(group.limiter(name).pace.is_quiet for name in group.names)
    assert resting > 0.5 * 80 * members, "nothing was at rest"
    assert least > WEIGHT / 200
    assert worst < 0.5
