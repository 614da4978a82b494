"""The numbers of rate limits, and their limits.  Spec: limits 4, 10, D1, D26, H265; foundation F17.

Amounts are integers: cost per second in micro-units, weight in 2^-32, quota in 2^-32 of one member's part. Numbers without a unit (``R``,
``L``, wants) are cost per second, as floats.
"""

from __future__ import annotations

from hashlib import blake2b
from math import ceil, isfinite, log2

from msgspec import Struct

from holdfast.bounds import MEMBERS_MAX
from holdfast.errors import ConfigError, shown

WEIGHT = 1 << 32  # W: what a member brings into an instance
QUOTA = 1 << 32  # Q: one member's 1/n of an exact limit
UNIT = 1_000_000  # micro-units in a unit of cost
AMOUNT_MAX = (1 << 63) - 1  # of all members together: MessagePack has integers of 64 bits
RATE_MAX = 1e9  # cost per second
# What one member may want: the wants of the largest group, half of MEMBERS_MAX, together stay below AMOUNT_MAX. That is 0.9 of RATE_MAX.
DEMAND_MAX = min(int(RATE_MAX) * UNIT, AMOUNT_MAX // (MEMBERS_MAX // 2))
LIMITS_MAX = 256  # limits of a group; each costs two portions in every message
PORTIONS_MAX = 1024  # in a message and at a member: two for each limit, and as many of limits that are gone
NAME_BYTES_MAX = 128  # of a limit
BRANCHING_MAX = 16
ASK_FANOUT_MAX = 32
ASKS_MAX = 64  # members whose asks wait at one member: more than ask one member in an epoch, but for one in many thousands
SENDS_MAX = 56  # F17: peers that one callback sends to; the rest of 64 is for answers
QUIET_AFTER = 10  # epochs without news of the own demands (D26)
QUIET_STEADY = 4  # epochs without news of the estimates
QUIET_EVERY = 4  # a quiet member speaks in every fourth epoch
QUIET_CHANGE = 0.01  # what moved by less is no news
STARVED_AFTER = 10.0  # seconds with waiters and next to nothing to give them
STARVED_SHARE = 0.01  # of R
FLEET_MAX = MEMBERS_MAX


class LimitsConfig(Struct, frozen=True, kw_only=True):
    """Raises ``ConfigError`` naming the field."""

    epoch: float = 0.5
    branching: int = 0  # b; 0: as many as the logarithm of the size says
    loss: int = 6  # r: unanswered messages in a row before a peer is black-listed
    probe: float = 5.0  # seconds between two tries of a black-listed link
    alpha_up: float = 0.5
    alpha_down: float = 0.25
    horizon: float = 0.0  # backlog is demanded away in so many seconds; 0: half an epoch
    blend_rounds: int = 0  # 0: logarithm of the size, and 2
    adopt_timeout: float = 3.0  # for a view that a peer knows to come from the server
    d_min: float = 1.0  # smallest depth of a bucket, in cost
    ask_fanout: int = 0  # 0: 2 b
    differ_timeout: float = 3.0  # member lists may differ for so long before each member is on its own (5.11)

    def __post_init__(self) -> None:
        for field, low, high in _RANGES:
            value = getattr(self, field)
            if not (isfinite(value) and low <= value <= high):
                raise ConfigError(f"limit_{field}: {shown(value)}; accepted are {low:g} to {high:g}")

    def fanout(self, size: int) -> int:
        """b: peers of one epoch."""
        return self.branching or max(1, min(BRANCHING_MAX, ceil(log2(max(2, size)))))

    def asks(self, size: int) -> int:
        """Peers that a member asks for quota in one epoch."""
        return self.ask_fanout or min(ASK_FANOUT_MAX, 2 * self.fanout(size))

    def blends(self, size: int) -> int:
        """Rounds in which an estimate of a new instance counts for less than all (D9)."""
        return self.blend_rounds or ceil(log2(max(2, size))) + 2

    @property
    def clears_in(self) -> float:
        """Seconds in which a backlog is to be demanded away: ``horizon``, or half of an epoch."""
        return self.horizon or self.epoch / 2


_RANGES = (
    ("epoch", 0.05, 2.0),
    ("branching", 0, BRANCHING_MAX),
    ("loss", 3, 20),
    ("probe", 1.0, 60.0),
    ("alpha_up", 0.01, 1.0),
    ("alpha_down", 0.01, 1.0),
    ("horizon", 0.0, 10.0),
    ("blend_rounds", 0, 64),
    ("adopt_timeout", 0.5, 60.0),
    ("d_min", 1e-6, 1e9),
    ("ask_fanout", 0, ASK_FANOUT_MAX),
    ("differ_timeout", 0.5, 60.0),
)


def key_of(name: str, part: str = "") -> int:
    """The number under which amounts of a limit travel (H265). ``part``: "n" and "u" for the portions of ``maxmin``, "" otherwise."""
    return int.from_bytes(blake2b(f"{part}/{name}".encode(), digest_size=8).digest(), "big")


def micro(value: float) -> int:
    """A demand as an integer amount, within what one member may want."""
    return max(0, min(DEMAND_MAX, round(value * UNIT))) if isfinite(value) else 0
