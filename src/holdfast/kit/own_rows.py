"""The rows that a member publishes of itself: what may be in them, and what a change makes of them.  Spec: foundation 3 (Membership)."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import ConfigError, shown
from holdfast.host import ROW_BYTES_MAX, ROW_NAME_BYTES_MAX, ROWS_BYTES_MAX, ROWS_MAX, rows_bytes


def changed_rows(rows: Mapping[str, bytes], row: str, value: bytes | None) -> dict[str, bytes] | None:
    """The rows with another value of this row, or without it if ``value`` is None. None: they are the same as before.

    Raises ``ConfigError`` for a row that a member may not publish beside the others.
    """
    changed = {name: kept for name, kept in rows.items() if name != row}
    if value is not None:
        _check(row, value, changed)
        changed[row] = value
    return None if changed == rows else changed


def _check(row: str, value: bytes, others: Mapping[str, bytes]) -> None:
    if not 1 <= len(row.encode()) <= ROW_NAME_BYTES_MAX:
        raise ConfigError(f"row: {shown(row)} has {len(row.encode())} bytes; accepted are 1 to {ROW_NAME_BYTES_MAX}")
    if len(value) > ROW_BYTES_MAX:
        raise ConfigError(f"row {shown(row)}: {len(value)} bytes; accepted are at most {ROW_BYTES_MAX}")
    if len(others) >= ROWS_MAX:
        raise ConfigError(f"row {shown(row)}: would be row {len(others) + 1}; a member publishes at most {ROWS_MAX}")
    if rows_bytes({**others, row: value}) > ROWS_BYTES_MAX:
        raise ConfigError(f"row {shown(row)}: all rows of a member together may have {ROWS_BYTES_MAX} bytes")
