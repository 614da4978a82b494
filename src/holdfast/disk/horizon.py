"""Until when anything can run that the one seat of a machine has promised; kept where the next process finds it.  Spec: F12, F13; H154.

Without seeds, key and network an agent is the only seat of its group, and all that it promises is acted on under the clock of this
kernel. So the end of the longest running promise is one number on that clock. It is written before the promise leaves, and never
synced: a process that is killed does not take the kernel's memory with it, and when the kernel goes, the stamp is another one. The
number stands beside the machine-wide lock, not in the state directory, so that it is there when that directory was lost.

The number counts only if it is the word of the last process: it carries the stamp of the kernel and of its time namespace, and the boot
number of the life that wrote it, which must be the last one in the state directory (or there is none: that directory is new). In all
other cases it is not known, and F13 decides as for every other seat.
"""

from __future__ import annotations

import os
import re
import time
from binascii import crc32
from math import inf, isfinite
from pathlib import Path

STRIDE = 0.25  # seconds that are written ahead: renewals of many holders cost four writes a second, and a restart waits so much longer
RECORD_BYTES = 160  # each write replaces the whole record
RECORD = re.compile(rb"(\S{1,100}) (\d{1,16}) (-?\d{1,12}\.\d{6}) ([0-9a-f]{8}) *\n")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
TIME_OFFSETS = Path("/proc/self/timens_offsets")


class Horizon:
    """One number on this kernel's clock, for as long as the machine-wide lock is held."""

    def __init__(self, fd: int, stamp: str, life: int, until: float | None) -> None:
        self._fd, self._stamp, self._life = fd, stamp, life
        self.until = until  # as it stands in the file; None: not known yet

    @classmethod
    def open(cls, path: Path, *, former: int, life: int, stamp: str | None = None) -> Horizon | None:
        """``former`` and ``life`` are boot numbers of the state directory: of its last life (0: there was none) and of this one. None if
        this machine cannot have one: no such clock, no stamp, or no file."""
        stamp = stamp or kernel_stamp()
        if stamp is None:
            return None
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            found = cls(fd, stamp, life, _read(os.pread(fd, RECORD_BYTES, 0), stamp, former))
        except OSError:
            return None
        if not found._write(inf if found.until is None else found.until):
            found.close()
            return None
        return found

    def cover(self, until: float) -> bool:
        """Before anything is promised until then, which is after ``until``. False: it cannot be written, and must not be promised."""
        assert self.until is None or until > self.until  # The number would go back.
        return self.settle(until + STRIDE)

    def settle(self, until: float) -> bool:
        """Nothing that was promised runs longer than this."""
        if self._write(until):
            self.until = until
            return True
        return False

    def begin_again(self, life: int) -> None:
        """F5: the same process leads another life. If that cannot be written, the next process does not believe this record."""
        self._life = life
        self._write(inf if self.until is None else self.until)

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, until: float) -> bool:
        record = _record(self._stamp, self._life, until) if isfinite(until) else b""
        try:
            return os.pwrite(self._fd, record.ljust(RECORD_BYTES), 0) == RECORD_BYTES
        except OSError:
            return False


def kernel_stamp() -> str | None:
    """What tells this run of this kernel, and this reading of its clock, from all others; None if nothing does."""
    if not hasattr(time, "CLOCK_BOOTTIME"):  # what ``host.now`` reads where there is one (net/clock.py)
        return None
    try:
        boot = BOOT_ID.read_text("ascii").strip()
        offsets = TIME_OFFSETS.read_text("ascii") if TIME_OFFSETS.exists() else ""
    except (OSError, UnicodeDecodeError):
        return None
    offset = "_".join(next((line.split()[1:] for line in offsets.splitlines() if line.startswith("boottime")), ["0", "0"]))
    return f"{boot}/{offset}" if boot and " " not in boot else None


def _record(stamp: str, life: int, until: float) -> bytes:
    text = b"%s %d %.6f" % (stamp.encode(), life, until)
    return b"%s %08x" % (text, crc32(text))


def _read(data: bytes, stamp: str, former: int) -> float | None:
    """The clock's beginning if no process ever promised anything here; None: not known."""
    if not data:
        return 0.0 if former == 0 else None
    found = RECORD.fullmatch(data.rstrip() + b"\n")
    if found is None or data.rstrip() != _record(found[1].decode("ascii", "replace"), int(found[2]), float(found[3])):
        return None
    same = found[1] == stamp.encode() and former in (0, int(found[2]))
    return float(found[3]) if same else None
