"""The numbers of an election, and its limits.  Spec: election 4; foundation F17."""

from __future__ import annotations

from math import isfinite

from msgspec import Struct

from holdfast.bounds import MEMBERS_MAX
from holdfast.errors import ConfigError, shown
from holdfast.features.election.protocol.manner import HASH, SUSPICIONS, Manner, Variant, Voters, manner

TOPIC = "elected"  # of the table of reigns
NAME_BYTES_MAX = 100  # as leaderships: with its prefix it is a key at the seats (128 bytes)
STANDS_MAX = 16  # names that one agent stands for: each has a row, and rows are limited
NAMES_MAX = 1024  # names that one agent knows of
UNANSWERED_MAX = 256  # questions of others that are answered in one turn; more come from a flood
XY_MAX = 32  # candidates, and unhealthy members, in one answer
TIMEOUT_MIN = 0.2  # seconds; below that a busy machine is slower than its network
TIMEOUT_RTTS = 3
NOTIFY_TIMEOUTS = 1.5  # how long the initiator waits for the nominee
CONFUSED_MAX = 16.0  # the pause after an election that came to nothing doubles up to this
FLOOR = 0.1  # of the group: c is not taken to be smaller (paper, III.A)
SAFETY, SAFETY_TURBULENT = 1.5, 3.0  # k: what is measured is the past
DEAD_SHARE = 0.05  # of the group: f is not taken to be smaller
QUARANTINE = 1.1  # of candidacy_ttl
PAUSE_MAX = 2.0  # seconds that a tick may be late before its leader doubts itself
AHEAD_MAX = 1 << 40  # H87: how far a term may be above the highest one known and above the clock, in milliseconds
RESPREAD_MAX = 6  # times that a tentative LEADER is said again
INITIATORS = 8  # of all who see that a leader is gone (D25)
DIRECT_MAX = 1024  # members up to which a multicast is a datagram to each
HOLD_MIN, HOLD_MAX = 0.05, 3600.0


class ElectionConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one agent counts with. The first four are what a name has if its candidate says nothing else; they must match within a name.
    Raises ``ConfigError`` naming the field."""

    variant: Variant = "hybrid"
    voters: Voters = "none"
    rank: str | tuple[str, ...] = HASH
    health: str = SUSPICIONS
    timeout: float = 0.0  # TIMEOUT; 0: from the round trips that the membership measures
    x: int = 5  # candidates in an answer
    y: int = 5  # unhealthy members in an answer
    c: int | None = None  # None: measured
    f: int | None = None  # None: from the suspects
    hold: float = 2.0  # seconds ahead that a client's deadline is, where it does not say
    sticky: bool = True  # the incumbent is first while any answer lists it (D14)
    preempt: bool = False  # who sees that a worse one leads initiates
    query_rounds: int = 6  # then the election is given up
    notify_retries: int = 2
    init_spread: float | None = None  # None: 2 TIMEOUT
    watch: float | None = None  # None: 6 TIMEOUT, times U(1, 2)
    candidacy_ttl: float | None = None  # None: 6 TIMEOUT
    tick: float = 1.0

    def __post_init__(self) -> None:
        _check(self)

    @property
    def manner(self) -> Manner:
        return manner(self.variant, self.voters, self.rank, self.health)


def _check(config: ElectionConfig) -> None:
    assert config.manner is not None  # Raises for a word that is none.
    if config.timeout:
        _within("timeout", config.timeout, 0.001, 60.0)
    _within("x", config.x, 1, XY_MAX)
    _within("y", config.y, 0, XY_MAX)
    for field, value in (("c", config.c), ("f", config.f)):
        if value is not None:
            _within(field, value, 0, MEMBERS_MAX)
    _within("hold", config.hold, HOLD_MIN, HOLD_MAX)
    _within("query_rounds", config.query_rounds, 1, 1 << 20)
    _within("notify_retries", config.notify_retries, 0, 64)
    for field, seconds in (("init_spread", config.init_spread), ("watch", config.watch), ("candidacy_ttl", config.candidacy_ttl)):
        if seconds is not None:
            _within(field, seconds, 0.0, 3600.0)
    _within("tick", config.tick, 0.01, 60.0)


def _within(field: str, value: float, least: float, most: float) -> None:
    if not isfinite(value) or not least <= value <= most:
        raise ConfigError(f"{field}: {shown(value)}; accepted are {least:g} to {most:g}")
