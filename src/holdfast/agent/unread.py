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
