"""Which clock ``host.now`` reads.  Spec: foundation F7.

A promise must not outlive its time because a laptop was closed in between, so the clock has to count the time a
machine was suspended. Linux has such a clock; elsewhere the monotonic clock stands in, and ``doctor`` says so.
"""

from __future__ import annotations

import time

COUNTS_SUSPENDED_TIME = hasattr(time, "CLOCK_BOOTTIME")


def wall() -> float:
    """Wall-clock seconds, for numbers that outlive a life and for nothing else."""
    return time.time()


if COUNTS_SUSPENDED_TIME:

    def now() -> float:
        """Seconds on a clock that counts suspended time; meaningless on another machine."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:

    def now() -> float:
        """Seconds on the monotonic clock, which may stand still while the machine is suspended."""
        return time.monotonic()
