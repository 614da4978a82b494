"""The numbers of tickets.  Spec: tickets 4; foundation F4 (what must match at both ends), F8 (drift)."""

from __future__ import annotations

from math import isfinite
from typing import Literal

from msgspec import Struct

from holdfast.errors import ConfigError, shown
from holdfast.kit.deadline import RHO_MAX, holder_length

K_MAX = 3
PERIOD_MIN, PERIOD_MAX = 0.05, 10.0
LEASE_MAX = 60.0  # as for every promise (kit.keeper)
ROUNDS_PER_LEASE = 4  # T <= D/4: three rounds may get lost
STOP_MARGIN = 0.25
TTL_MIN = 60.0  # no datagram lives that long

Placement = Literal["seats", "ring"]


class TicketConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one agent counts with. Raises ``ConfigError`` naming the field. 0.0 means: derived from the others."""

    k: int = 1  # guardian failures tolerated per cell, with placement "ring"; with "seats" the number of seats decides
    period: float = 0.5  # T: one round
    lease: float = 2.0  # D: granted by guardians, on their clock
    rho: float = 0.001  # each clock's rate is within 1 +- rho of true time
    stop_margin: float = 0.0  # users are told to stop this long before the deadline; 0: a quarter of the lease, at most 0.25 s
    suspect: float = 0.0  # silence of the successor before exclusion is tried; 0: D
    rtx: float = 0.2  # a question is asked again after so long: about two round trips
    phase_timeout: float = 1.5
    poll: float = 1.0  # candidate's loop; queue entries live three of them
    guardians: Placement = "seats"
    silent: float = 0.0  # a guardian that has not answered for so long is replaced (ring); 0: 3 T
    move_gap: float = 0.0  # least time between two moves of a cell; 0: 2 T
    tombstone_ttl: float = 600.0  # no datagram is delivered later than this after it was sent

    def __post_init__(self) -> None:
        _check(self)

    @property
    def hold(self) -> float:
        """What the holder counts, from before it sent the request (F8)."""
        return holder_length(self.lease, self.rho)

    @property
    def margin(self) -> float:
        return self.stop_margin or min(STOP_MARGIN, self.lease / 4)

    @property
    def suspect_after(self) -> float:
        return self.suspect or self.lease

    @property
    def silent_after(self) -> float:
        return self.silent or 3 * self.period

    @property
    def move_after(self) -> float:
        return self.move_gap or 2 * self.period

    @property
    def leave_timeout(self) -> float:
        """5.8: how long the last write of a leave is tried."""
        return 4 * self.lease

    @property
    def waiter_ttl(self) -> float:
        """5.5: how long an entry of a queue lives without a word."""
        return 3 * self.poll

    @property
    def grant_ttl(self) -> float:
        """H133: how long after its CJOIN a grant is repeated and acted on. If the cell was merged meanwhile its tombstone is there for
        twice as long: the other half is for messages on the road."""
        return self.tombstone_ttl / 2


def _check(config: TicketConfig) -> None:
    if not 0 <= config.k <= K_MAX:
        raise ConfigError(f"k: {config.k} guardian failures; accepted are 0 to {K_MAX}")
    if config.guardians not in ("seats", "ring"):
        raise ConfigError(f"guardians: {shown(config.guardians)}; accepted are seats and ring")
    _between("period", config.period, PERIOD_MIN, PERIOD_MAX)
    _between("lease", config.lease, ROUNDS_PER_LEASE * config.period, LEASE_MAX)
    _between("rho", config.rho, 0.0, RHO_MAX)
    _between("stop_margin", config.stop_margin, 0.0, config.lease / 2)
    for name, value in (("suspect", config.suspect), ("silent", config.silent)):
        if value:
            _between(name, value, 2 * config.period, 1000 * config.period)
    _between("move_gap", config.move_gap, 0.0, 1000 * config.period)
    _between("phase_timeout", config.phase_timeout, 0.01, LEASE_MAX)
    _between("rtx", config.rtx, 0.001, config.phase_timeout)
    _between("poll", config.poll, 0.01, LEASE_MAX)
    _between("tombstone_ttl", config.tombstone_ttl, TTL_MIN, 1e6)


def _between(field: str, value: float, low: float, high: float) -> None:
    if not (isfinite(value) and low <= value <= high):
        raise ConfigError(f"{field}: {value:g}; accepted are {low:g} to {high:g}")
