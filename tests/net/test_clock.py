"""The clock that host.now reads.  Spec: foundation F7."""

from __future__ import annotations

import time

from holdfast.net import clock


def test_it_counts_suspended_time_where_the_system_can() -> None:
    """F7: CLOCK_BOOTTIME where it exists, elsewhere the monotonic clock; which one it is can be asked."""
    assert clock.COUNTS_SUSPENDED_TIME is hasattr(time, "CLOCK_BOOTTIME")
    which = time.CLOCK_BOOTTIME if clock.COUNTS_SUSPENDED_TIME else time.CLOCK_MONOTONIC
    before, read, after = time.clock_gettime(which), clock.now(), time.clock_gettime(which)
    assert before <= read <= after


def test_the_wall_clock_is_the_wall_clock() -> None:
    """F7: for numbers that outlive a life."""
    assert time.time() - 60 < clock.wall() < time.time() + 60
