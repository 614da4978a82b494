"""An agent that answers, found or started by the thread that asks."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.client import start
from holdfast.client.options import Plan
from holdfast.client.start import Reached


def reach(plan: Plan, end_at: float, stopped: Callable[[], bool]) -> Reached:
    """``start.reach``; it ends what it started when the caller does not want it any more."""
    return start.reach(plan, end_at, stopped)
