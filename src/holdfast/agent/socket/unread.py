"""How much of what was written to a local client is not read yet: the kernel's word about who is listening.  Spec: foundation F14; H148.

A stopped process keeps its socket, and the kernel takes what is written to it for a long time. But it counts it.
"""

from __future__ import annotations

import fcntl
import struct
import termios

COUNT = struct.Struct("i")


def unread_bytes(descriptor: int) -> int:
    """At least as many bytes as the process at the other end of a Unix stream socket has not read: the kernel counts its own overhead, too.
    0 where it does not count."""
    try:
        return int(COUNT.unpack(fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(COUNT.size)))[0])
    except OSError:
        return 0


class Reading:
    """Whether one client reads. The kernel counts more than there is (``unread_bytes``), so a slow client may seem to have read less
    than it has. But of one that reads nothing, what waits grows by all that is sent: if it did not, the client has read something since
    the last look."""

    def __init__(self) -> None:
        self._sent, self._waiting = 0, 0  # at the last look
        self._alive_at = -1  # so many bytes were sent when it was alive for certain

    def follows(self, mark: int, sent: int, waiting: int) -> bool:
        """It has read everything up to the mark, or something since then. ``sent`` bytes were sent, at most ``waiting`` are not read."""
        if waiting < self._waiting + sent - self._sent:
            self._alive_at = self._sent
        self._sent, self._waiting = sent, waiting
        return mark <= self._alive_at or waiting <= sent - mark
