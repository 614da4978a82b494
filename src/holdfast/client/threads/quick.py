"""``try_acquire`` for threads: one lock, no call."""

from __future__ import annotations

from holdfast.client.counted import COST_MAX, MICRO_UNITS, Counted, Tokens
from holdfast.net.clock import now_ns


class Quick:
    """What is taken most often costs a lock, one look at the clock, two comparisons and a subtraction."""

    _meter: Counted
    _bucket: Tokens

    def try_acquire(self, cost: float = 1) -> bool:
        """Let this cost go, if it may now: True. Never waits for it, and makes no call; False before the first share has come, and while
        other callers of this process wait."""
        with self._meter.lock:
            if 0 < cost <= COST_MAX:
                units, bucket = int(cost * MICRO_UNITS + 0.5), self._bucket
                if 0 < units <= bucket.tokens and now_ns() < self._meter.quick_until:
                    bucket.tokens -= units
                    return True
            return self._meter.try_slowly(cost)
