"""Positions, neighbours and owners on the circle.  Spec: ring 2 (id, nbrs), 5.7 (owner), D21; foundation F2."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.features.ring.protocol.ids import CIRCLE, RingId, hash_of, nearest, owner_of, position_of, sides

positions = st.integers(min_value=0, max_value=CIRCLE - 1)
rings = st.lists(st.tuples(positions, st.integers(min_value=1, max_value=3)), min_size=1, max_size=12, unique=True).map(
    lambda pairs: sorted(RingId(pos, inc) for pos, inc in pairs)
)


def around(ids: list[RingId], centre: RingId, step: int, count: int) -> list[RingId]:
    """The next ``count`` in one direction, one by one."""
    others = sorted({*ids, centre})
    at = others.index(centre)
    return [others[(at + step * (i + 1)) % len(others)] for i in range(count)]


def test_a_name_has_one_place() -> None:
    """D21: pos is the hash of the name, the same in every life; numbers are taken as they are, around the circle."""
    assert position_of("web-7") == position_of("web-7") == position_of(b"web-7")
    assert position_of("web-7") != position_of("web-8")
    assert 0 <= position_of("web-7") < CIRCLE
    assert position_of(5) == position_of(CIRCLE + 5) == 5


def test_names_spread_over_the_circle() -> None:
    """II (hashing): of 4000 names each quarter of the circle gets its share."""
    quarters = [0, 0, 0, 0]
    for i in range(4000):
        quarters[position_of(f"node-{i}") * 4 // CIRCLE] += 1
    assert min(quarters) > 900


def test_order_is_position_then_incarnation() -> None:
    """Ring 2: the total order of ids is ring order."""
    assert RingId(1, 9) < RingId(2, 1) < RingId(2, 2)


@given(rings, positions, st.integers(min_value=1, max_value=4))
def test_nearest_are_k_on_each_side(ids: list[RingId], pos: int, k: int) -> None:
    """Ring 2 (nbrs): k nearest on each side of a place, whether it is taken or not; all others if there are at most 2k."""
    for centre in (ids[0], RingId(pos, 7)):
        others = [each for each in ids if each != centre]
        found = nearest(ids, centre, k)
        assert list(found) == sorted(found)
        assert centre not in found
        if len(others) <= 2 * k:
            assert list(found) == others
        else:
            assert set(found) == {*around(ids, centre, 1, k), *around(ids, centre, -1, k)}
            assert len(found) == 2 * k


@given(rings, positions)
def test_sides_are_the_two_beside(ids: list[RingId], pos: int) -> None:
    """D29: the nearest predecessor and successor."""
    centre = RingId(pos, 7)
    others = [each for each in ids if each != centre]
    if others:
        assert sides(others, centre) == (around(others, centre, -1, 1)[0], around(others, centre, 1, 1)[0])
    assert sides([], centre) is None


@given(rings, positions)
def test_the_owner_is_the_closest(ids: list[RingId], key: int) -> None:
    """II, ring 5.7: nobody is closer to a key than its owner, and of two that are equally close it is the predecessor."""
    owner = owner_of(ids, key)
    assert owner is not None

    def distance(ring_id: RingId) -> int:
        return min((key - ring_id.pos) % CIRCLE, (ring_id.pos - key) % CIRCLE)

    assert distance(owner) == min(map(distance, ids))
    before = [each for each in ids if distance(each) == distance(owner) and (key - each.pos) % CIRCLE == distance(each)]
    assert not before or owner in before


def test_nobody_owns_a_key_of_an_empty_list() -> None:
    """Ring 10 (owner): a look at the list, which may be empty."""
    assert owner_of([], 5) is None


@pytest.mark.parametrize("ids", [(), (RingId(1, 1),), (RingId(1, 1), RingId(2, 2))], ids=len)
def test_a_list_stands_by_its_hash(ids: tuple[RingId, ...]) -> None:
    """Ring 3: 64 bits; the same list the same hash, another list another one."""
    assert hash_of(ids) == hash_of(list(ids))
    assert 0 <= hash_of(ids) < 1 << 64
    assert hash_of((*ids, RingId(9, 9))) != hash_of(ids)


def test_ids_read_as_hex() -> None:
    """Traces and logs: position and incarnation, fixed width."""
    assert str(RingId(255, 1)) == "00000000000000ff.0000000000000001"
