"""Until when clients were told that they may act, for the next life of this directory.  Spec: foundation F6, F14; decisions H78, H161.

A life that follows a crash knocks when nothing that the former one told its clients is used any more. How long that takes, the former life
writes down before it tells a client: one instant, on the clock that all processes of this machine share until it restarts. It goes to the
page cache and no farther, because whatever loses that loses the clock, too: a file of another start of the machine says nothing, and then
the wait is the longest that can be (H78).
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from math import inf
from pathlib import Path
from struct import Struct

from holdfast.net import clock

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
TIME_NAMESPACE = "/proc/self/ns/time"  # processes in another one read another clock
PLACE_BYTES = 16
_line = Struct(f"<{PLACE_BYTES}sd")


def this_clock() -> bytes | None:
    """What tells the clock of this start of this machine from all others; None where that cannot be said."""
    if not clock.COUNTS_SUSPENDED_TIME:
        return None
    try:
        known = BOOT_ID.read_bytes() + os.readlink(TIME_NAMESPACE).encode()  # noqa: PTH115 - no path, a name
    except OSError:
        return None
    return blake2b(known, digest_size=PLACE_BYTES).digest()


class Told:
    """The file of one directory. ``until`` is what the former life left in it: an instant of this clock, or None if it does not say."""

    def __init__(self, path: Path, place: bytes | None) -> None:
        self._path, self._place, self._fd = path, place, -1
        self.until = self._read()
        self._noted = float("-inf")

    def begin(self, until: float) -> None:
        """A life begins, and nothing that others told is used after ``until``. Without a file all goes on as without this module."""
        if self._place is not None:
            with suppress(OSError):
                self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                self._write(until)

    @property
    def is_kept(self) -> bool:
        """Whatever is told from now on is written down first."""
        return self._fd >= 0

    def note(self, until: float) -> bool:
        """Before a client is told. False: it must not be, because the next life would not know."""
        if self._fd < 0 or until <= self._noted:
            return True
        try:
            self._write(until)
        except OSError:
            return self._give_up()
        return True

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, until: float) -> None:
        assert self._place is not None
        os.pwrite(self._fd, _line.pack(self._place, until), 0)
        self._noted = until

    def _give_up(self) -> bool:
        """The disk does not take it. Without the file the next life waits for the longest time."""
        try:
            self._path.unlink()
        except OSError:
            return False
        self.close()
        return True

    def _read(self) -> float | None:
        try:
            content = self._path.read_bytes()
        except OSError:
            return None
        if len(content) != _line.size:
            return None
        place, until = _line.unpack(content)
        return float(until) if place == self._place and until < inf else None
