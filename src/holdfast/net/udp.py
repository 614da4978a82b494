"""Datagrams: a socket that is drained in small reads.  Spec: foundation F10; docs/sockets.md says what it costs.

asyncio's own datagram transport asks the kernel for 256 KiB per datagram and goes once around the loop for each. Here a read asks
for one byte more than a datagram may have, and goes on until the socket is empty or the turn's share is read.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from typing import Any

from holdfast.bounds import MEMBERS_MAX
from holdfast.drops import Drop, Drops
from holdfast.host import DATAGRAM_BYTES_MAX, Address
from holdfast.net.resolve import literal, sockaddr
from holdfast.wire.seal import Sealer

READ_BYTES = DATAGRAM_BYTES_MAX + 1  # the spare byte tells a datagram that is too long from one that just fits
ANYTHING = frozenset([b""])
CACHED_MAX = MEMBERS_MAX  # addresses kept in either direction, as many as a node keeps peers; forged sources cannot fill more

# Datagrams of one turn that are refused by how they begin. They do not count as read: a flood of them shall not keep out what members say,
# which waits in the same queue, and a thousand refusals take about a millisecond (H163).
REFUSED_MAX = 1024

# What sendto says while the way out is full, in contrast to "there is no way".
FULL = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS, errno.ENOMEM})


class Datagrams:
    """One bound, non-blocking UDP socket."""

    def __init__(self, sock: socket.socket, drops: Drops) -> None:
        self.deliver: Callable[[bytes, Address], None] = _to_nobody
        self.received = 0
        self.received_bytes = 0
        self.sent = 0
        self.sent_bytes = 0
        self._sealer: Sealer | None = None  # who knows how our datagrams begin
        self._socket = sock
        self._family = sock.family
        self._drops = drops
        self._recvfrom = sock.recvfrom
        self._sendto = sock.sendto
        self._sources: dict[Any, Address] = {}  # what recvfrom says, and how we spell it; where both are equal, the key is ours
        self._refused_from: dict[Drop, tuple[Any, ...]] = {}  # as the system wrote it: a flood costs no address
        self._targets: dict[tuple[Any, ...], Any] = {}  # and the other way round

    def fileno(self) -> int:
        return self._socket.fileno()

    def refuse_unless(self, sealer: Sealer) -> None:
        """What does not begin as ours does is refused unread, before anything is kept or looked up for it."""
        self._sealer = sealer

    def drain(self, limit: int) -> bool:
        """Deliver up to ``limit`` datagrams; True if the socket was empty before."""
        recvfrom, sources, deliver, drops = self._recvfrom, self._sources, self.deliver, self._drops
        sealer = self._sealer
        openings = ANYTHING if sealer is None else sealer.openings
        begins = len(next(iter(openings)))
        refused_from = self._refused_from
        count = refused = 0
        while count < limit and refused < REFUSED_MAX:
            try:
                data, raw = recvfrom(READ_BYTES)
            except BlockingIOError:
                self.received += count + refused
                return True
            except OSError:
                # An ICMP answer to something we sent (connection refused): it is about a datagram that is gone.
                drops[Drop.UNREACHABLE] += 1
                count += 1
                continue
            if data[:begins] not in openings:
                refused += 1
                assert sealer is not None
                why = sealer.why(data) if len(data) <= DATAGRAM_BYTES_MAX else Drop.OVERSIZED
                drops[why] += 1
                refused_from[why] = raw
                continue
            count += 1
            if len(data) > DATAGRAM_BYTES_MAX:
                drops[Drop.OVERSIZED] += 1
                continue
            self.received_bytes += len(data)
            deliver(data, sources.get(raw) or self._learn_source(raw))
        self.received += count + refused
        return False

    @property
    def refused_from(self) -> dict[Drop, Address]:
        """By reason: where the last datagram came from that was refused by its first bytes."""
        return {why: self._learn_source(raw) for why, raw in self._refused_from.items()}

    def send(self, data: bytes, to: Address) -> None:
        try:
            self._sendto(data, self._targets.get(to) or self._learn_target(to))
        except (OSError, ValueError) as error:  # A UnicodeError is a ValueError: text that no address can be made of.
            self._drops[_why(error)] += 1
        else:
            self.sent += 1
            self.sent_bytes += len(data)

    def close(self) -> None:
        self._socket.close()

    def _learn_source(self, raw: tuple[Any, ...]) -> Address:
        if len(self._sources) >= CACHED_MAX:
            self._sources.clear()
        if self._family == socket.AF_INET:
            known = self._targets.get(raw)  # where we sent to: one object for both directions, its text included
            address = known if isinstance(known, Address) else Address(*raw)
            self._sources[address] = address
            return address
        host, scope = raw[0], raw[3]
        address = self._sources[raw] = Address(literal(f"{host}%{scope}" if scope else host) or host, raw[1])
        return address

    def _learn_target(self, to: Address) -> Any:
        """What sendto wants. A name is refused: looking it up would stop the loop."""
        host = literal(to.host)
        if host is None or not 0 < to.port < 1 << 16 or (self._family == socket.AF_INET and ":" in host):
            raise OSError(errno.EHOSTUNREACH, "no address that this socket can send to")
        if self._family == socket.AF_INET6 and ":" not in host:
            host = f"::ffff:{host}"
        # What the system is given of an IPv4 address is that address, so nothing is made of it.
        target = to if host == to.host and self._family == socket.AF_INET else sockaddr(self._family, host, to.port)
        if len(self._targets) >= CACHED_MAX:
            self._targets.clear()
        self._targets[to] = target
        return target


def _why(error: OSError | ValueError) -> Drop:
    code = error.errno if isinstance(error, OSError) else None
    if code in FULL:
        return Drop.QUEUE_FULL
    return Drop.TOO_LARGE if code == errno.EMSGSIZE else Drop.UNREACHABLE


def _to_nobody(data: bytes, source: Address) -> None:
    """Where datagrams go before a listener is set."""
