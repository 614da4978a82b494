"""The journal's bytes: what is cut off, what is refused.  Spec: foundation 3 (Storage)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.disk.files import MAGIC, TAIL, Change, Damage, scan, unit

FIRST: list[Change] = [("a", b"1"), ("part/b", b"2" * 30)]
SECOND: list[Change] = [("a", None)]
LAST: list[Change] = [("part/", True), ("c", b"\0\0\0\0\0\0\0\0\0\0\0\0"), ("d", b"")]
INTACT = MAGIC + unit(FIRST) + unit(SECOND)
WHOLE = INTACT + unit(LAST)


@given(st.lists(st.lists(st.tuples(st.text(), st.none() | st.just(True) | st.binary()), max_size=4), max_size=5))
def test_what_was_written_is_read(batches: list[list[Change]]) -> None:
    """Storage.load: everything confirmed before, in the order of the saves."""
    data = MAGIC + b"".join(unit(batch) for batch in batches)
    assert scan(data) == ([change for batch in batches for change in batch], len(data))


def test_a_tail_cut_at_any_byte_is_cut_off() -> None:
    """A torn tail was never confirmed: what came before it counts in full."""
    for end in range(len(INTACT), len(WHOLE)):
        assert scan(WHOLE[:end]) == (FIRST + SECOND, len(INTACT)), f"cut at {end}"


def test_a_file_cut_anywhere_never_gives_half_a_unit() -> None:
    """What one sync made durable counts as a whole or not at all."""
    ends = [len(MAGIC), len(MAGIC + unit(FIRST)), len(INTACT), len(WHOLE)]
    for end in range(len(MAGIC), len(WHOLE)):
        assert scan(WHOLE[:end]).intact == max(e for e in ends if e <= end)


@pytest.mark.parametrize("left", [*(MAGIC[:end] for end in range(len(MAGIC))), bytes(len(MAGIC)), bytes(len(WHOLE))])
def test_a_file_without_its_beginning_is_refused(left: bytes) -> None:
    """A journal gets its name after its beginning was synced: an empty, zeroed or shorter one was damaged, never fresh."""
    with pytest.raises(Damage, match="not the beginning of a journal at offset 0"):
        scan(left)


def test_a_tail_of_zeros_is_cut_off() -> None:
    """A file system may grow the file before it writes the data: zeros at the end were never confirmed."""
    for kept in range(len(unit(LAST)) - TAIL.size + 1):
        torn = WHOLE[: len(INTACT) + kept] + bytes(len(unit(LAST)) - kept)
        assert scan(torn).intact == len(INTACT), f"{kept} bytes kept"
    assert scan(WHOLE + bytes(5000)) == (FIRST + SECOND + LAST, len(WHOLE))


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_one_flipped_byte_anywhere_is_refused(mask: int) -> None:
    """Storage.load raises instead of guessing: also in a length, where the rest would look like a torn tail."""
    for at in range(len(WHOLE)):
        damaged = bytearray(WHOLE)
        damaged[at] ^= mask
        with pytest.raises(Damage):
            scan(bytes(damaged))


def test_damage_says_where() -> None:
    """A damaged state file is named with its offset."""
    damaged = bytearray(WHOLE)
    damaged[len(MAGIC) + 12] ^= 1
    with pytest.raises(Damage, match=f"checksum mismatch at offset {len(MAGIC)}"):
        scan(bytes(damaged))
    with pytest.raises(Damage, match="not the beginning of a journal at offset 0"):
        scan(b"something else")


def test_a_body_that_is_no_list_of_changes_is_refused() -> None:
    """A unit with a good checksum and another content was written by something else."""
    with pytest.raises(Damage, match="unreadable record"):
        scan(MAGIC + unit([("a", 5)]))  # type: ignore[list-item]
