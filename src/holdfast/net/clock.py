"""Which clock ``host.now`` reads.  Spec: foundation F7.

A promise must not outlive its time because a laptop was closed in between, so the clock has to count the time a
machine was suspended. Linux has such a clock; elsewhere the monotonic clock stands in, and ``doctor`` says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

COUNTS_SUSPENDED_TIME = hasattr(time, "CLOCK_BOOTTIME")

wall: Callable[[], float] = time.time  # wall-clock seconds, for numbers that outlive a life and for nothing else

# Seconds, meaningless on another machine. A call of the system's own, because it is read with every turn, timer and deadline.
now: Callable[[], float] = partial(time.clock_gettime, time.CLOCK_BOOTTIME) if COUNTS_SUSPENDED_TIME else time.monotonic
# The same clock in whole nanoseconds.
now_ns: Callable[[], int] = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if COUNTS_SUSPENDED_TIME else time.monotonic_ns
