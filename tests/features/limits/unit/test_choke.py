"""Does a look at the links find the place where a group is about to fall in two?  Spec: limits 5.9; paper 003, 6.3."""

from __future__ import annotations

from itertools import combinations, product
from random import Random
from time import process_time

import pytest

from holdfast.features.limits.protocol.choke import MEMBERS_MAX, find_choke, threshold, worth_looking
from holdfast.host import NodeId


def lives(count: int) -> list[NodeId]:
    return [NodeId(f"m{number:03}", 1) for number in range(count)]


def halves(members: list[NodeId], left: int, kept: int) -> list[tuple[NodeId, NodeId]]:
    """All pairs between the first ``left`` members and the others are bad, but the first ``kept``."""
    return list(product(members[:left], members[left:]))[kept:]


@pytest.mark.parametrize("kept, named", [(0, True), (1, True), (3, True), (4, False), (8, False)])
def test_two_halves_are_named_while_fewer_links_than_the_threshold_hold_them(kept: int, named: bool) -> None:
    """Limits 5.9: if the minimum cut is below t = max(1, b/2), ``ChokePoint`` names the smaller side; here b = 8."""
    members = lives(24)
    found = find_choke(members, halves(members, 10, kept), threshold(8))
    if named:
        assert found is not None
        assert found.cut == kept
        assert found.smaller_side == tuple(members[:10])
    else:
        assert found is None


def test_one_member_alone_is_no_choke_point() -> None:
    """Limits 5.9: both sides have two members; one that is cut off is black-listed by all, and they know it."""
    members = lives(8)
    assert find_choke(members, halves(members, 1, 0), threshold(6)) is None
    assert find_choke(members, halves(members, 2, 0), threshold(6)) is not None


def test_too_few_bad_pairs_are_not_looked_at() -> None:
    """Limits 5.9: only if the bad pairs are at least |V| - 1 - t: fewer cannot isolate anyone."""
    assert not worth_looking(24, 18, 4)
    assert worth_looking(24, 19, 4)
    assert not worth_looking(3, 3, 1)
    assert not worth_looking(MEMBERS_MAX + 1, 10**6, 1)


def test_pairs_of_members_that_left_count_for_nothing() -> None:
    """Limits 5.9: a report may be older than the view."""
    members, gone = lives(6), NodeId("gone", 3)
    assert find_choke(members, [(gone, member) for member in members], threshold(4)) is None


def smallest_cut(members: list[NodeId], bad: set[tuple[NodeId, NodeId]]) -> int:
    """Every way to part them, counted."""
    best = len(members) ** 2
    for mask in range(1, 1 << (len(members) - 1)):
        side = [mask >> at & 1 for at in range(len(members))]
        cut = sum(
            side[a] != side[b] and (members[a], members[b]) not in bad and (members[b], members[a]) not in bad
            for a, b in combinations(range(len(members)), 2)
        )
        best = min(best, cut)
    return best


@pytest.mark.parametrize("seed", range(30))
def test_the_cut_is_the_smallest_of_all(seed: int) -> None:
    """Limits 5.9: a global minimum cut, as counting every way to part the members finds it."""
    chance = Random(seed)
    members = lives(chance.randrange(4, 9))
    pairs = list(combinations(members, 2))
    bad = {pair for pair in pairs if chance.random() < chance.choice([0.4, 0.6, 0.8])}
    least, limit = smallest_cut(members, bad), threshold(chance.choice([1, 4, 8]))
    found = find_choke(members, bad, limit)
    if found is not None:
        assert found.cut == least < limit
        assert 2 <= len(found.smaller_side) <= len(members) // 2
        inside = set(found.smaller_side)
        assert found.cut == sum((a in inside) != (b in inside) for a, b in pairs if (a, b) not in bad)
    else:
        alone = min(sum(member in pair and pair not in bad for pair in pairs) for member in members)
        assert least >= limit or alone == least or not worth_looking(len(members), len(bad), limit)


def test_a_look_at_a_large_group_takes_milliseconds() -> None:
    """Limits 5.9: a server looks between two datagrams; members that no small cut parts are put together first."""
    members = lives(200)
    chance = Random(1)
    bad = {*halves(members, 90, 2), *(pair for pair in combinations(members, 2) if chance.random() < 0.2)}
    began = process_time()
    found = find_choke(members, bad, threshold(8))
    assert process_time() - began < 1.0
    assert found is not None
    assert len(found.smaller_side) == 90
