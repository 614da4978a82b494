"""What is told about a membership, and how two words about it become one.  Spec: ring 3, 5.7 (tombstones win); foundation 4 (Rows)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.features.ring.protocol.ids import CIRCLE, RingId
from holdfast.features.ring.protocol.memberlist import (
    REASON_BYTES_MAX,
    Listed,
    Tombstone,
    gone,
    id_of,
    join,
    key_of,
    read,
    valid,
    write,
)
from holdfast.host import ROWS_BYTES_MAX, Address, NodeId

listed = st.builds(
    Listed,
    st.builds(NodeId, st.sampled_from("ab"), st.integers(1, 3)),
    st.builds(Address, st.sampled_from("ab"), st.integers(1, 3)),
    st.sampled_from((0.0, 5.0)),
    st.integers(0, 3),
    st.dictionaries(st.sampled_from(("tag", "topic:x")), st.binary(max_size=3), max_size=2),
)
tombstones = st.builds(Tombstone, st.booleans(), st.integers(0, 5), st.sampled_from(("failed", "left", "orphan", "restarted")))
entries = st.one_of(listed, tombstones).map(write)


@given(entries, entries, entries)
def test_entries_join(a: bytes, b: bytes, c: bytes) -> None:
    """Foundation 4 (Rows): any order, any repetition, the same result."""
    assert join(a, a) == a
    assert join(a, b) == join(b, a)
    assert join(join(a, b), c) == join(a, join(b, c))


@given(listed.map(write), tombstones.map(write))
def test_gone_wins_for_ever(alive: bytes, dead: bytes) -> None:
    """Ring 2 (gone), 5.7: a tombstone wins over anything alive, however new."""
    assert join(alive, dead) == join(dead, alive) == dead


def test_tombstones_agree_on_the_most_that_is_known() -> None:
    """Ring 5.7 ("certain" travels), G9: certainty of either, the largest generation of both."""
    one, other = Tombstone(certain=False, gen=9, reason="orphan"), Tombstone(certain=True, gen=4, reason="failed")
    joined = read(join(write(one), write(other)))
    assert isinstance(joined, Tombstone)
    assert (joined.certain, joined.gen) == (True, 9)


def test_the_newer_word_of_a_member_about_itself_wins() -> None:
    """Foundation 3 (publish): a changed row replaces the former one; hearsay (version 0) replaces nothing."""
    node, address = NodeId("a", 1), Address("a", 1)
    hearsay, first, second = (write(Listed(node, address, 1.0, version, {"v": bytes([version])})) for version in (0, 1, 2))
    assert join(second, first) == join(hearsay, second) == second


@given(entries)
def test_entries_survive_the_wire(value: bytes) -> None:
    """Ring 3: what was written is read."""
    assert write(read(value)) == value
    assert valid(value)
    assert gone(value) is isinstance(read(value), Tombstone)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xc1",
        write(Tombstone(certain=True, gen=1, reason="x" * (REASON_BYTES_MAX + 1))),
        write(Listed(NodeId("a" * 200, 1), Address("a", 1), 0.0, 1, {})),
        write(Listed(NodeId("a", 1), Address("a", 1), 0.0, 1, {"r": bytes(ROWS_BYTES_MAX)})),
    ],
    ids=["nothing", "no entry", "long reason", "long name", "too many rows"],
)
def test_what_a_peer_may_not_send(value: bytes) -> None:
    """F17: everything has a limit; what is beyond is no entry."""
    assert not valid(value)


@given(st.integers(0, CIRCLE - 1), st.integers(0, CIRCLE - 1))
def test_keys_name_ids(pos: int, inc: int) -> None:
    """Ring 5.7: one row per membership; rows sort as ids do."""
    ring_id = RingId(pos, inc)
    assert id_of(key_of(ring_id)) == ring_id


@pytest.mark.parametrize("key", ["", "xyz", "0" * 31, "0" * 33, "-" + "0" * 31, "0x" + "0" * 30, "A" * 32], ids=str)
def test_other_keys_name_nobody(key: str) -> None:
    """F17: a key that a peer made up is passed over."""
    assert id_of(key) is None
