"""Which sets decide: winning sets meet, and "cannot be enough any more" is exact.  Foundation 4, ring 5 and D5, D14."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host import NodeId
from holdfast.kit.phase import Quorum, count, joint, majority, weighted

groups = st.frozensets(st.integers(0, 8), max_size=6)


def subsets(group: frozenset[int]) -> list[frozenset[int]]:
    ordered = sorted(group)
    return [frozenset(s) for s in chain.from_iterable(combinations(ordered, n) for n in range(len(ordered) + 1))]


def winning(quorum: Quorum[int], group: frozenset[int]) -> list[frozenset[int]]:
    return [yes for yes in subsets(group) if quorum.enough(yes)]


@pytest.mark.parametrize("rule", [majority, weighted])
@given(group=groups)
def test_any_two_winning_sets_meet(rule: Callable[[frozenset[int]], Quorum[int]], group: frozenset[int]) -> None:
    """Foundation 4, ring D5: two answers to one question cannot both have won."""
    sets = winning(rule(group), group)
    assert all(a & b for a in sets for b in sets)


@given(a=groups, b=groups)
def test_a_joint_set_meets_every_winning_set_of_either(a: frozenset[int], b: frozenset[int]) -> None:
    """Ring 5.3, D14: while a group changes, the opener's wins meet those of old and new group alike."""
    old, new = weighted(a), weighted(b)
    both = winning(joint(old, new), a | b)
    assert all(s & t for s in both for t in winning(old, a) + winning(new, b))


@given(group=groups, other=groups, data=st.data(), n=st.integers(1, 7))
def test_possible_is_exact(group: frozenset[int], other: frozenset[int], data: st.DataObject, n: int) -> None:
    """Ring D4: lost as soon as, and not before, no further answer can help."""
    everybody = group | other
    voters = st.frozensets(st.sampled_from(sorted(everybody))) if everybody else st.just(frozenset[int]())
    yes, no = data.draw(voters), data.draw(voters)
    for quorum in (majority(group), weighted(group), count(n, group), joint(weighted(group), majority(other))):
        reachable = any(quorum.enough(more) for more in subsets(everybody) if yes <= more and not more & (no - yes))
        assert quorum.possible(yes, no) == reachable


@given(group=groups, strangers=st.frozensets(st.integers(100, 110)))
def test_strangers_do_not_count(group: frozenset[int], strangers: frozenset[int]) -> None:
    """Votes are sets over the group; whoever is not in it adds nothing."""
    for quorum in (majority(group), weighted(group), count(1, group)):
        assert not quorum.enough(strangers)


def test_nobody_is_never_enough() -> None:
    """An empty group decides nothing: a list that has not arrived yet must not look like consent."""
    for quorum in (majority(frozenset[int]()), weighted(frozenset[int]())):
        assert not quorum.enough(frozenset())
        assert not quorum.possible(frozenset(), frozenset())


def test_the_smallest_of_a_pair_wins_alone() -> None:
    """Ring D5: two nodes; the smaller id survives the crash of the larger, not the other way round."""
    a, b = NodeId("a", 9), NodeId("b", 1)
    assert weighted([a, b]).enough({a})
    assert not weighted([a, b]).enough({b})
    assert not weighted([a, b]).possible(frozenset(), {a})
    assert not majority([a, b]).enough({a})


def test_weighted_thresholds_are_never_harder_than_a_majority() -> None:
    """Ring D5: every majority also wins under the tie-break."""
    for size in range(1, 7):
        group = frozenset(range(size))
        assert set(winning(majority(group), group)) <= set(winning(weighted(group), group))
