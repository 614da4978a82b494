"""What a member says about itself: tags, topics, flags of other machines.  Spec: foundation 3 (Membership.publish); ring 3 (rows)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from holdfast.errors import ConfigError, shown
from holdfast.features.ring.protocol import memberlist, news
from holdfast.features.ring.protocol.entries import ROWS_BYTES_MAX, Listed, rows_bytes
from holdfast.host import ROW_BYTES_MAX, ROW_NAME_BYTES_MAX, ROWS_MAX

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode

OWN_TOPICS = (f"topic:{memberlist.TOPIC}", f"topic:{news.TOPIC}")  # every member is in these


class Publishing:
    """The own rows. They outlive a membership: a process that comes back brings them along."""

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self._rows: dict[str, bytes] = {}
        self._version = 1

    @property
    def rows(self) -> Mapping[str, bytes]:
        """Another object after every change."""
        return self._rows

    def publish(self, row: str, value: bytes | None) -> None:
        if row.startswith(OWN_TOPICS):
            return
        rows = {name: kept for name, kept in self._rows.items() if name != row}
        if value is not None:
            _check_row(row, value, rows)
            rows[row] = value
        if rows != self._rows:
            self._rows = rows
            self._version += 1
            if self._ring.is_member:
                self.tell()

    def tell(self) -> None:
        """All members shall know."""
        ring = self._ring
        ring.list.announce(ring.id, Listed(ring.raw.me, ring.raw.address, ring.since_wall, self._version, self._rows))


def _check_row(row: str, value: bytes, others: dict[str, bytes]) -> None:
    if not 1 <= len(row.encode()) <= ROW_NAME_BYTES_MAX:
        raise ConfigError(f"row: {shown(row)} has {len(row.encode())} bytes; accepted are 1 to {ROW_NAME_BYTES_MAX}")
    if len(value) > ROW_BYTES_MAX:
        raise ConfigError(f"row {shown(row)}: {len(value)} bytes; accepted are at most {ROW_BYTES_MAX}")
    if len(others) >= ROWS_MAX:
        raise ConfigError(f"row {shown(row)}: would be row {len(others) + 1}; a member publishes at most {ROWS_MAX}")
    if rows_bytes({**others, row: value}) > ROWS_BYTES_MAX:
        raise ConfigError(f"row {shown(row)}: all rows of a member together may have {ROWS_BYTES_MAX} bytes")
