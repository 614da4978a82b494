"""Noticing that the process that started this one is gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

POLL_INTERVAL = 1.0  # seconds, on systems without pidfds


class Parent:
    """Calls ``gone`` once when the parent has ended, also if it had ended before."""

    def __init__(self, pid: int, gone: Callable[[], None]) -> None:
        self._pid, self._gone = pid, gone
        self._loop = asyncio.get_running_loop()
        self._fd = -1
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        if os.getppid() != self._pid:  # A pid may belong to another process by now; only the kernel's word counts.
            self._loop.call_soon(self._gone)
            return
        try:
            self._fd = os.pidfd_open(self._pid)
        except (AttributeError, OSError):
            self._poll()
            return
        self._loop.add_reader(self._fd, self._on_end)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _on_end(self) -> None:
        self.close()
        self._gone()

    def _poll(self) -> None:
        if os.getppid() != self._pid:
            self._gone()
        else:
            self._timer = self._loop.call_later(POLL_INTERVAL, self._poll)
