"""The token bucket of one worker process: what may go now, at a rate that changes.  Spec: limits 5.1, RL8, D16.

Everything is a whole number: amounts are micro-units of cost, instants are nanoseconds of the machine's clock, and
what a refill leaves of a micro-unit is kept for the next one. So RL8 holds exactly: in any interval no more is admitted
than the rate brings in, plus the larger of the depth at its start and the largest cost. ``now`` is an argument: clients
and the lab use the same class.
"""

from __future__ import annotations

from math import inf
from typing import Final

MICRO: Final = 1_000_000  # micro-units of one unit of cost
SECOND: Final = 1_000_000_000  # nanoseconds
NEVER: Final = 1 << 62  # nanoseconds: 146 years
DEPTH_MIN: Final = MICRO  # d_min: one unit of cost


def micros(amount: float) -> int:
    """Units of cost, or of cost per second, as whole micro-units; what is less than one is dropped, so that no rate grows by rounding."""
    return int(amount * MICRO)


def cost_micros(cost: float) -> int:
    """A cost in micro-units, rounded, and at least one: no cost is so small that it is free."""
    return max(1, round(cost * MICRO))


def nanos(seconds: float) -> int:
    """An instant of the machine's clock in whole nanoseconds; ``NEVER`` for infinity, 0 for what was over before the clock began."""
    return int(max(0.0, min(NEVER / SECOND, seconds)) * SECOND)


class Bucket:
    """Starts empty, with rate 0. ``tokens`` is what it held at ``filled_at``; it may be negative after a cost above the depth.

    ``settled_until`` is for callers in a hurry: before that instant a cost up to ``tokens`` may be subtracted from
    ``tokens`` without any other step. The bucket cannot have run over before it, so a later refill counts the same.
    """

    __slots__ = ("_rest", "depth", "filled_at", "forgiven", "rate", "refilled", "settled_until", "tokens")

    def __init__(self, now: int) -> None:
        self.rate = 0  # micro-units per second
        self.depth = DEPTH_MIN
        self.tokens = 0
        self.filled_at = now
        self.settled_until = NEVER
        self.refilled = 0  # micro-units that came in and did not run over or were cut off since the start
        self.forgiven = 0  # parts that smaller depths did not ask back: they come in before a cost above the depth goes (H275)
        self._rest = 0  # parts: what a refill left of a micro-unit; one has as many parts as a second nanoseconds

    @property
    def admitted(self) -> int:
        """All that was taken since the start, in micro-units. Counted from what came in, so that taking is one subtraction."""
        return self.refilled - self.tokens

    def set(self, now: int, rate: int, depth: int) -> None:
        """Refill at the old rate, then cut to the new depth. Without a rate nothing goes, not even what is left in the bucket."""
        assert rate >= 0
        assert depth >= DEPTH_MIN
        self.refill(now)
        missing = self.depth - self.tokens
        cut = max(0, self.tokens - (depth if rate else 0))
        self.tokens -= cut
        self.refilled -= cut
        if depth < self.depth:
            self.forgiven = max(0, self.forgiven + (missing - (depth - self.tokens)) * SECOND)
        if cut or self.tokens >= depth:
            self._rest = 0
        self.rate, self.depth = rate, depth
        self._look_ahead()

    def refill(self, now: int) -> None:
        """Bring in what the rate gave since the last time. A clock that was asked too early brings in nothing (F9)."""
        since = now - self.filled_at
        if since <= 0:
            return
        self.filled_at = now
        gained, self._rest = divmod(self.rate * since + self._rest, SECOND)
        over = self.tokens + gained - self.depth
        if over >= 0:
            gained -= over
            self.forgiven = max(0, self.forgiven - over * SECOND - self._rest)
            self._rest = 0  # a full bucket keeps no part of a micro-unit
        self.tokens += gained
        self.refilled += gained
        self._look_ahead()

    def admits(self, now: int, cost: int) -> bool:
        """May this cost go now? A cost above the depth waits for a full bucket, and is paid afterwards."""
        self.refill(now)
        return self.tokens >= cost if cost <= self.depth else self.tokens >= self.depth and not self.forgiven

    def take(self, now: int, cost: int) -> bool:
        """Let this cost go, if it may."""
        assert cost > 0
        if not self.admits(now, cost):
            return False
        self.tokens -= cost
        return True

    def ready_in(self, now: int, cost: int) -> int:
        """Nanoseconds until this cost may go, if nothing else does and the rate stays; ``NEVER`` without a rate."""
        if self.admits(now, cost):
            return 0
        if not self.rate:
            return NEVER
        missing = (min(cost, self.depth) - self.tokens) * SECOND - self._rest
        if cost > self.depth:
            missing += self.forgiven
        return min(NEVER, -(-missing // self.rate))

    def seen(self, now: int) -> int:
        """What it holds, for those who only look: nothing is brought in."""
        return min(self.depth, self.tokens + max(0, now - self.filled_at) * self.rate // SECOND)

    def _look_ahead(self) -> None:
        missing = (self.depth - self.tokens) * SECOND - self._rest
        self.settled_until = self.filled_at + max(0, missing) // self.rate if self.rate else NEVER


class TimedBucket(Bucket):
    """A bucket that goes by what a worker was told: at its instants the rate ends, whether it is looked at or not (limits 5.1, F9)."""

    __slots__ = ("_changes",)

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self._changes: list[tuple[int, int, int]] = []  # what ends by itself: instant, and the rate and depth from then on

    def tell(self, now: int, rate: float, depth: float, until: float, after: float, ends_at: float) -> None:
        """From now on ``rate``; past ``until`` no more than ``after``, past ``ends_at`` nothing. Costs per second, and seconds."""
        self.move(now)
        full, left, size = micros(rate), micros(min(rate, after)), max(DEPTH_MIN, micros(depth))
        self.set(now, full, size)
        self._changes = [(nanos(ends_at), 0, DEPTH_MIN)]
        if left != full:
            self._changes.insert(0, (nanos(until), left, max(DEPTH_MIN, size * left // full)))
        self.move(now)

    def prolong(self, now: int, ends_at: float) -> None:
        """What was told ends later. What has ended already does not begin again."""
        self.move(now)
        if self._changes:
            at, rate, depth = self._changes.pop()
            self._changes.append((max(at, nanos(ends_at)), rate, depth))

    def end(self, now: int) -> None:
        """Nothing goes any more."""
        self._changes = []
        self.set(now, 0, DEPTH_MIN)

    def move(self, now: int) -> None:
        """What ended by itself since the last look did so at its time."""
        while self._changes and self._changes[0][0] <= now:
            self.set(*self._changes.pop(0))

    @property
    def changes_at(self) -> int:
        """When the rate ends by itself."""
        return self._changes[0][0] if self._changes else NEVER

    def take_at(self, now: int, cost: int) -> float:
        """0.0: it went. Else the seconds after which to look again; infinity: only another word of the agent helps."""
        self.move(now)
        if self.take(now, cost):
            return 0.0
        left = min(self.ready_in(now, cost), self.changes_at - now)
        return inf if left >= NEVER - now else left / SECOND
