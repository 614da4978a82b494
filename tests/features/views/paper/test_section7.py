"""Paper 003, section 7.1.1: what our servers do in the four failures, with the paper's times and places.  One test per claim.

Three servers with two limiters each; a cut begins at 10 s and ends at 55 s. Table 1 as an experiment, with ZooKeeper in its other column,
is ``views/T1``. Rates and the gossip of 7.1.2 are no part of views.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from holdfast.events import ViewChanged, ViewLost
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.host import Carried, View
from tests.features.views.paper.groups import CHANGES, FORMED, figure_5, noted, outcomes

ONSET, RESOLUTION = 10.0, 55.0  # seconds
LOST = 45.0  # seconds: how long the paper's cuts last
MINORITY, MAJORITY = ["c0", "c3"], ["c1", "c2", "c4", "c5"]  # {L1, L2} and {L3, L4, L5, L6}
SIDES = {1: (["s0", *MINORITY], ["s1", "s2", *MAJORITY]), 2: (["c3"], ["c1"]), 3: (["s0"], ["s1", "s2"]), 4: (["s0"], ["s2"])}


def leased(group: ViewGroup, name: str) -> View:
    view = group.leased(name)
    assert view is not None
    return view


def at_onset(case: int) -> tuple[ViewGroup, tuple[object, ...]]:
    """The group when this failure begins, and what heals it."""
    group = figure_5()
    group.run(ONSET - FORMED)
    return group, group.cut(*SIDES[case])


def test_7_1_1_a_cut_between_two_limiters_changes_nothing() -> None:
    """Paper 003, section 7.1.1, Figure 6: for a cut between L2 and L4 from 10 s to 55 s, "By routing through the circuit breaker messaging
    overlay" the group goes on: no event in a minute, and every message between the two is delivered."""
    group, cuts = at_onset(2)
    said = {}
    for second in range(60):
        if group.world.now >= RESOLUTION:
            group.heal(cuts)
        said.update({(name, group.say(name, other)): second for name, other in (("c3", "c1"), ("c1", "c3"))})
        group.run(1.0)
    assert len(said) == 120
    assert {outcomes(group, name)[number] for name, number in said} == {Carried.DELIVERED}
    assert noted(group, *CHANGES) == []


def test_7_1_1_each_side_knows_its_share() -> None:
    """Paper 003, section 7.1.1, Figure 7: "Moshe delivers two views", which allow L1 and L2 "1/3rd of the global limit", and the others
    "the remaining 2/3rd's": a view says of how many its members were part (``View.fleet``)."""
    group, _ = at_onset(3)
    group.run(LOST)
    shares = [{Fraction(view.size, view.fleet) for view in [leased(group, name) for name in side]} for side in (MINORITY, MAJORITY)]
    assert shares == [{Fraction(1, 3)}, {Fraction(2, 3)}]


@pytest.mark.parametrize("case", [1, 3])
def test_7_1_1_no_side_panics(case: int) -> None:
    """Paper 003, section 7.1.1, Table 1: "In scenarios 1 and 3, Moshe avoids the static panic modes of Zookeeper": two views until the end
    of the cut, one per side, and no limiter is without one for a moment."""
    group, _ = at_onset(case)
    group.run(LOST)
    assert group.views() == [MINORITY, MAJORITY]
    assert noted(group, ViewLost) == []
    installed = [name for name, _ in noted(group, ViewChanged)]
    assert {installed.count(name) for name in group.clients} == {1}


@pytest.mark.parametrize("case", [2, 4])
def test_7_1_1_the_same_view_goes_on(case: int) -> None:
    """Paper 003, section 7.1.1, Table 1: the original view in case 2, and in case 4, "because Moshe can route around single inter-server
    cuts, Moshe will continue to deliver the same view": the same id, not only the same members, from before the cut to after it."""
    group, cuts = at_onset(case)
    before = {leased(group, name).id for name in group.clients}
    group.run(LOST)
    assert {leased(group, name).id for name in group.clients} == before
    group.heal(cuts)
    group.run(5.0)
    assert {leased(group, name).id for name in group.clients} == before
    assert noted(group, *CHANGES) == []


@pytest.mark.parametrize("case", [1, 3])
def test_7_1_1_a_heal_is_seen_as_soon_after_a_long_cut(case: int) -> None:
    """Paper 003, section 7.1.1: "Zookeeper reacts more slowly to the healed partition because it exponentially backs off when probing
    server liveness". Ours asks every heartbeat, however long the cut was: two answers in a row, and a view."""
    for seconds in (5.0, LOST, 10 * LOST):
        group, cuts = at_onset(case)
        group.run(seconds)
        assert len(group.views()) == 2
        group.heal(cuts)
        beat = group.config.heartbeat
        assert group.until(group.is_one, (group.config.up_count + 2) * beat)
