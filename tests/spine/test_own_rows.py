"""The rows that a member publishes of itself."""

from __future__ import annotations

import pytest

from holdfast.errors import ConfigError
from holdfast.host import ROW_BYTES_MAX, ROW_NAME_BYTES_MAX, ROWS_BYTES_MAX, ROWS_MAX, changed_rows

ROWS = {"tag:zone": b"eu-1", "topic:news": b""}


def test_what_a_change_makes_of_them() -> None:
    """Foundation 3: a row has one value, and None removes it. What was there stays as it was."""
    assert changed_rows(ROWS, "tag:role", b"web") == {**ROWS, "tag:role": b"web"}
    assert changed_rows(ROWS, "tag:zone", b"eu-2") == {"tag:zone": b"eu-2", "topic:news": b""}
    assert changed_rows(ROWS, "tag:zone", None) == {"topic:news": b""}
    assert ROWS == {"tag:zone": b"eu-1", "topic:news": b""}


@pytest.mark.parametrize("row, value", [("tag:zone", b"eu-1"), ("topic:news", b""), ("tag:none", None)])
def test_what_changes_nothing(row: str, value: bytes | None) -> None:
    """Foundation 3: the version of a list grows with changes, so a membership has to know what is none."""
    assert changed_rows(ROWS, row, value) is None


def test_what_may_be_published() -> None:
    """Foundation 3: 64 rows of 256 bytes, with names of 72, and 3072 bytes together."""
    full = {f"row-{number}": b"" for number in range(ROWS_MAX)}
    heavy = {f"row-{number}": bytes(ROW_BYTES_MAX) for number in range(ROWS_BYTES_MAX // (ROW_BYTES_MAX + len("row-0")))}
    assert changed_rows({}, "x" * ROW_NAME_BYTES_MAX, bytes(ROW_BYTES_MAX)) is not None
    assert changed_rows(full, "row-0", b"other") is not None  # another value is no other row
    for rows, row, value, said in (
        ({}, "", b"", "accepted are 1 to 72"),
        ({}, "é" * 37, b"", "has 74 bytes"),
        ({}, "row", bytes(ROW_BYTES_MAX + 1), "257 bytes; accepted are at most 256"),
        (full, "one-more", b"", "would be row 65; a member publishes at most 64"),
        (heavy, "too-much", bytes(ROW_BYTES_MAX), "together may have 3072 bytes"),
    ):
        with pytest.raises(ConfigError, match=said):
            changed_rows(rows, row, value)
