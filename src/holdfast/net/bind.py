"""Two sockets on one port: UDP for datagrams, TCP for streams. What goes wrong here is the user's to mend, so it says how."""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from typing import NamedTuple

from holdfast.errors import AddressUnusable, shown
from holdfast.host import AWAY_DATAGRAMS_MAX, Address
from holdfast.net.resolve import literal, sockaddr

# F10 reads up to 4096 datagrams after a pause, so so many should have had room to wait: 1 KiB each is what the kernel
# accounts for a small one. Linux grants at most net.core.rmem_max and says nothing if that is less.
RECEIVE_BYTES = AWAY_DATAGRAMS_MAX * 1024
SO_RCVBUFFORCE = 33  # Linux, for CAP_NET_ADMIN; elsewhere no such option, which is refused like a missing right
BACKLOG = 128  # connections that wait for an accept: one turn's worth of a large group, all at once
FREE_PORT_TRIES = 16  # a port that is free for UDP may be taken for TCP; 16 misses in a row mean that nothing is free

WHY = {
    errno.EADDRNOTAVAIL: "this machine has no such address; choose one of its own, or 0.0.0.0 with an address to advertise",
    errno.EACCES: "this user may not use that port; choose one above 1023",
    errno.EAFNOSUPPORT: "this machine does not speak that kind of address; choose an address of another family",
}


def why_not(error: OSError, where: Address, kinds: tuple[str, ...] = ("udp", "tcp")) -> str:
    """What is wrong with an address, and what to do about it."""
    if error.errno == errno.EADDRINUSE:
        from holdfast.net.holder import in_use  # what looks for that process

        return in_use(where, kinds)
    return WHY.get(error.errno or errno.EIO, error.strerror or str(error))


class Bound(NamedTuple):
    """Both sockets, and where they listen."""

    udp: socket.socket
    tcp: socket.socket
    address: Address


def bind(where: Address) -> Bound:
    """Bind both sockets; port 0 takes a port that is free for both."""
    host = literal(where.host)
    if host is None:
        raise AddressUnusable(f"cannot listen on {where}: {shown(where.host)} is a name; give one of this machine's literal addresses")
    tries = FREE_PORT_TRIES if where.port == 0 else 1
    while True:
        tries -= 1
        try:
            return _bind_once(host, where.port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and tries > 0:
                continue
            raise AddressUnusable(f"cannot listen on {where}: {why_not(error, Address(host, where.port))}") from None


def is_wildcard(host: str) -> bool:
    """Says where to listen, and nothing about where peers reach us."""
    return ip_address(host).is_unspecified


def _bind_once(host: str, port: int) -> Bound:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    udp = socket.socket(family, socket.SOCK_DGRAM)
    tcp = socket.socket(family, socket.SOCK_STREAM)
    try:
        for each in (udp, tcp):
            each.setblocking(False)
            if family == socket.AF_INET6:
                # "::" listens to both families, as people expect of it; IPv4 peers appear under their IPv4 address.
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        _make_room(udp)
        # Only for TCP, where it means "in spite of old connections"; for UDP it would let two processes share a port.
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        udp.bind(sockaddr(family, host, port))
        taken = udp.getsockname()[1]
        tcp.bind(sockaddr(family, host, taken))
        tcp.listen(BACKLOG)
    except BaseException:
        udp.close()
        tcp.close()
        raise
    return Bound(udp, tcp, Address(host, taken))


def _make_room(udp: socket.socket) -> None:
    """A process that may exceed net.core.rmem_max does so: 200 KiB, the usual limit, hold some 270 datagrams, which a flood brings in 9
    ms."""
    try:
        udp.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BYTES)
    except OSError:
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
