"""Telling systemd how it is: one datagram per word (sd_notify(3)), nothing if systemd did not ask."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

MICROSECONDS = 1_000_000


class Notifier:
    """Says READY=1 and its kin to ``NOTIFY_SOCKET``; without one it is silent."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        where = environ.get("NOTIFY_SOCKET", "")
        self._where = "\0" + where[1:] if where.startswith("@") else where  # an abstract address is written with an @
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if where else None
        if self._socket is not None:
            self._socket.setblocking(False)
        self.watchdog_interval = _interval(environ) if where else 0.0

    def tell(self, *words: str) -> None:
        if self._socket is None:
            return
        with suppress(OSError):  # systemd is gone or does not read: an agent goes on all the same.
            self._socket.sendto("\n".join(words).encode(), self._where)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()


def _interval(environ: Mapping[str, str]) -> float:
    """Half the time after which systemd gives up; 0.0 if it does not watch, or watches another process."""
    usec, pid = environ.get("WATCHDOG_USEC", ""), environ.get("WATCHDOG_PID", "")
    if not usec.isdigit() or (pid and pid != str(os.getpid())):
        return 0.0
    return int(usec) / MICROSECONDS / 2
