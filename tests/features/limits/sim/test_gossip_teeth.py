"""Rules taken out one by one where a schedule of its own shows it; ``test_sweeps`` and ``test_fuzz`` take out the others.

Spec: limits 7 (teeth), 5.4, D14, D26.
"""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from holdfast.features.limits.lab import mutations
from holdfast.features.limits.lab.mutations import without
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.links import Link, Uniform

LINK = Link(Uniform(0.001, 0.005))
NEAR = 0.05


def isolated(*, one_way: bool) -> list[float]:
    """Errors of n000 and of another member, 20 s after all direct links of n000 were cut and 15 s after all reported something else."""
    with without(mutations.one_way) if one_way else nullcontext():
        group = SumGroup(3, 6, LimitsConfig(epoch=0.1), link=LINK, checked=True)
        group.set_all(1.0)
        group.install()
        group.run(5.0)
        group.world.network.partition("cut", [group.names[:1], group.names[1:]])
        group.run(5.0)
        for number, name in enumerate(group.names):
            group.set(name, 5.0 + number)
        group.run(15.0)
        return group.errors(sum(range(5, 11)))[:2]


def test_an_isolated_member_knows_the_sum() -> None:
    """Limits D14: it exchanges halves over the overlay, and knows what all want as the others do."""
    assert max(isolated(one_way=False)) < NEAR


def test_without_d14_an_isolated_member_knows_nothing() -> None:
    """Limits D14: what it gives does not come back, its weight goes to nothing, and its estimate is worth nothing."""
    alone, other = isolated(one_way=True)
    assert alone > 0.5
    assert other < 0.5


@pytest.mark.parametrize("mutation", [mutations.no_black_list, mutations.as_published])
def test_without_a_black_list_a_cut_link_swallows_weight(mutation: mutations.Mutation) -> None:
    """Limits 5.4: with it a change is known everywhere although a link is cut; without it what is outstanding there is missing."""

    def after() -> float:
        group = SumGroup(5, 6, LimitsConfig(epoch=0.1, branching=1), link=LINK, checked=True)
        group.set_all(1.0)
        group.install()
        group.run(5.0)
        group.world.network.partition("cut", [group.names[:1], group.names[1:2]])
        for value in (10.0, 1.0, 10.0, 1.0):
            group.set_all(value)
            group.run(9.0)
        return max(group.errors(6.0))

    assert after() < NEAR
    with without(mutation):
        assert after() > 4 * NEAR


def test_each_tooth_can_be_taken_out() -> None:
    """Limits 7: there is a lab-only change for every rule that a tooth is of, and it says whose rule it takes out."""
    assert set(mutations.TEETH) == {"settle", "D1", "D5", "D14", "D20", "D22", "D23"}
    for decision, mutation in mutations.TEETH.items():
        said = mutation.__doc__ or ""
        assert said.startswith(decision) or decision == "settle", mutation
