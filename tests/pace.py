"""How slow the machine is now, as a ratio: a fixed piece of work here, beside what it takes on a quiet machine.

The same test takes up to twice the CPU seconds when other programs share the caches and the cores. What it takes says little about the
test then, so budgets (tests/budget.py) are compared with CPU seconds divided by this number, measured in the same process and minute.
"""

from __future__ import annotations

import time
from collections import deque

QUIET = 0.0034  # CPU seconds of ``yardstick`` on the machine that the budgets were written on, when nothing else ran
EVERY = 0.5  # CPU seconds of tests between two measurements, which take a hundredth of that
LAST = 4  # measurements that are averaged: one alone may meet a neighbour's burst
ROUNDS = 160

_thread_time = time.thread_time  # as it was before any test: some replace clocks


def yardstick() -> int:
    """What protocols do most: calls, small objects, dictionaries, sorting and bytes."""
    total = 0
    for turn in range(ROUNDS):
        table = {f"{turn}/{place}": (place, float(place)) for place in range(64)}
        total += sum(place for place, _ in sorted(table.values(), reverse=True))
        total += len(b"".join(key.encode() for key in table))
    return total


class Pace:
    """The pace of one process. ``now`` measures again when ``EVERY`` seconds of CPU were used."""

    def __init__(self) -> None:
        self._lately: deque[float] = deque([measured()], maxlen=LAST)
        self._used = 0.0

    def now(self, used: float) -> float:
        """``used``: CPU seconds since the last call. 1.0 on a quiet machine, 2.0 where everything takes twice the CPU seconds.

        Never below 1.0, so a budget is never stricter than written.
        """
        self._used += used
        if self._used >= EVERY:
            self._used = 0.0
            self._lately.append(measured())
        return max(1.0, sum(self._lately) / len(self._lately))


def measured() -> float:
    began_at = _thread_time()
    yardstick()
    return (_thread_time() - began_at) / QUIET
