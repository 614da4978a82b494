"""How late the machine was: how long this process waited for a core, and for how much of the time any process of the machine did."""

from __future__ import annotations

import os
import time
from pathlib import Path

LATE_MIN = 0.05  # seconds; less is what any machine does
WAITED, PRESSURE = Path("/proc/thread-self/schedstat"), Path("/proc/pressure/cpu")  # Linux; elsewhere nothing is known
BYTES_MAX = 4096  # of such a file; they have two lines

# As they were before any test: some replace what opens files, and this is asked between set-up, call and tear-down.
_open, _read, _close = os.open, os.read, os.close


class Seen:
    """What the kernel says about waiting for a core, up to now."""

    def __init__(self) -> None:
        self.at = time.monotonic()
        self.waited = _number(WAITED, 1) / 1e9
        self.pressure = pressure()

    def until(self, now: Seen) -> str:
        """For people: was the machine too busy for a test of real time?"""
        late, took = now.waited - self.waited, now.at - self.at
        load = f"{os.getloadavg()[0]:.1f} processes wanted {os.cpu_count()} cores in the last minute"
        share = f"some process of the machine for {now.pressure - self.pressure:.1f} s of {took:.1f} s"
        if late < LATE_MIN:
            return f"This process was not late; {share}; {load}."
        return f"The machine was late by {late * 1000:.0f} ms: so long this process waited for a core, {share}; {load}."


def pressure() -> float:
    """Seconds since the machine's start in which at least one of its processes waited for a core (the line "some")."""
    return _number(PRESSURE, -1) / 1e6


def _number(file: Path, place: int) -> float:
    """The number at this place of a file's first line, which may stand behind a name and ``=``; 0 where there is no such file."""
    try:
        handle = _open(file, os.O_RDONLY)
        try:
            return float(_read(handle, BYTES_MAX).splitlines()[0].split()[place].rpartition(b"=")[2])
        finally:
            _close(handle)
    except (OSError, IndexError, ValueError):
        return 0.0
