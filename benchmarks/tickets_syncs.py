"""Who syncs what it was told: system calls of other processes, counted by strace.

What a server answers before it is on a disk is fast and worth nothing. So for a while strace looks at every voter of a system: each
must sync for each lock that is taken and for each that is given back. Nothing is timed meanwhile; a traced process is slow.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.agent_fleet import until

CALLS = "fsync,fdatasync,sync_file_range,msync"
ATTACHED = "TracerPid:\t0\n"  # in /proc/PID/status while no tracer looks
LOOK_INTERVAL = 0.05
SYNC = "sync("  # a call, whether or not it was interrupted by another thread's line


class Syncs:
    """Counts of the processes in their order; complete when the block has ended."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def counts(self) -> list[int]:
        return [counted(path.read_text(errors="replace")) for path in self._paths]


def counted(trace: str) -> int:
    """A call that was cut in two by another thread has two lines; the second one does not name it with a bracket."""
    return sum(SYNC in line for line in trace.splitlines())


def available() -> bool:
    return shutil.which("strace") is not None


@contextmanager
def watched(pids: Sequence[int], folder: Path) -> Iterator[Syncs]:
    paths = [folder / f"syncs{pid}" for pid in pids]
    tracers: list[subprocess.Popen[bytes]] = []
    try:
        for pid, path in zip(pids, paths, strict=True):
            command = ["strace", "-f", "-qq", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(path), "-p", str(pid)]
            tracers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        for pid in pids:
            until(lambda: _attached(pid), f"strace looks at {pid}", LOOK_INTERVAL, lambda: None)  # noqa: B023 - called here
        yield Syncs(paths)
    finally:
        for tracer in tracers:
            tracer.send_signal(signal.SIGINT)  # It lets go of what it looks at, and ends.
        for tracer in tracers:
            tracer.wait()


def _attached(pid: int) -> bool:
    return all(ATTACHED not in (thread / "status").read_text() for thread in Path(f"/proc/{pid}/task").iterdir())
