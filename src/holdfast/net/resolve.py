"""From what a user writes to addresses: "10.0.0.5:7946", "[::1]:7946", "seeds.example.org:7946".

Spec: foundation F12 (literal addresses and names). A name may stand for many seeds, and for other ones tomorrow, so
it is asked again and again, in a thread. A failed answer keeps the last good one and costs a counter.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import IPv6Address, ip_address
from typing import Any, NamedTuple

from holdfast.errors import AddressUnusable, shown
from holdfast.host import Address

REFRESH_INTERVAL = 30.0  # seconds between two questions: the usual time a seed record lives in a cloud's DNS
LOOKUP_TIMEOUT = 15.0  # seconds; three tries of the system's resolver at its default of 5 s
ADDRESSES_MAX = 256  # addresses kept of all answers together: more than an agent greets, fewer than a bad answer can hold
PORT_MAX = 65535
SCOPE_CHARS_MAX = 15  # what an interface may be called on Linux, and far below what IDNA refuses to encode
SCOPE_TEXT = re.compile(r"[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*")  # 2, eth0, eth0.100, br-lan
ACCEPTED = 'accepted are "10.0.0.5:7946", "[::1]:7946" and "name.example.org:7946"'

Lookup = Callable[[str, int], Awaitable[Iterable[str]]]  # a name and a port; the literal addresses behind it


class Endpoint(NamedTuple):
    """A host, by name or by literal address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def literal(self) -> Address | None:
        """The address itself, if no name has to be asked for."""
        host = literal(self.host)
        return None if host is None else Address(host, self.port)


def parse(text: str, *, listen: bool = False) -> Endpoint:
    """Read ``host:port``. Port 0 ("any free one") makes sense only for listening."""
    host, port = _split(text.strip())
    if ":" in text and literal(text.strip()) is not None:
        raise AddressUnusable(f"address {shown(text)}: an IPv6 address is written in brackets, with a port: {ACCEPTED}")
    if ":" not in text:
        raise AddressUnusable(f"address {shown(text)} has no port: {ACCEPTED}")
    if not host or any(c.isspace() for c in host):
        raise AddressUnusable(f"address {shown(text)} has no host: {ACCEPTED}")
    if not port.isascii() or not port.isdigit():
        raise AddressUnusable(f"address {shown(text)} has no port: {ACCEPTED}")
    low = 0 if listen else 1
    if not low <= int(port) <= PORT_MAX:
        raise AddressUnusable(f"address {shown(text)}: the port must lie between {low} and {PORT_MAX}")
    if ":" in host and literal(host) is None:
        raise AddressUnusable(f"address {shown(text)}: {shown(host)} is no IPv6 address; {ACCEPTED}")
    return Endpoint(literal(host) or host, int(port))


def literal(host: str) -> str | None:
    """One spelling per address: IPv6 compressed, IPv4-mapped as IPv4; None if it is a name.

    Python takes any text for the scope of an IPv6 address, also one that no system call can be given. A peer chooses what
    comes here, so a scope has to look like an interface.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.scope_id is not None and not _is_scope(address.scope_id):
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


def sockaddr(family: int, host: str, port: int) -> Any:
    """What a system call is given of a literal address."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return socket.getaddrinfo(spelled(host), port, family, socket.SOCK_DGRAM, 0, flags)[0][4]


def spelled(host: str) -> str | bytes:
    """For a host that is text Python imports its tables of IDNA (0.4 MiB), and few hosts need them."""
    return host.encode() if host.isascii() else host


class Resolver:
    """Keeps the addresses behind a list of endpoints up to date: sorted, without repetition."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        *,
        every: float = REFRESH_INTERVAL,
        lookup: Lookup | None = None,
        on_change: Callable[[list[Address]], None] | None = None,
    ) -> None:
        assert every > 0
        self.endpoints = tuple(endpoints)
        self.every = every
        self.failures = 0  # questions without an answer, since the start
        self._lookup = lookup or _ask_system
        self._on_change = on_change
        self._known: dict[Endpoint, tuple[Address, ...]] = {}
        self._addresses: list[Address] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def addresses(self) -> list[Address]:
        """As last known; empty before the first answer."""
        return list(self._addresses)

    async def start(self) -> list[Address]:
        """Ask once, then keep asking. Raises if nothing at all is known after the first round."""
        assert self._task is None
        await self.refresh()
        if self.endpoints and not self._addresses:
            names = ", ".join(str(endpoint) for endpoint in self.endpoints)
            raise AddressUnusable(f"cannot resolve {names}: check the spelling and this machine's DNS, or give literal addresses")
        if any(endpoint.literal is None for endpoint in self.endpoints):
            self._task = asyncio.create_task(self._keep_asking())
        return self.addresses

    async def refresh(self) -> list[Address]:
        """Ask for every name once, side by side."""
        await asyncio.gather(*(self._refresh_one(endpoint) for endpoint in self.endpoints))
        found = sorted({address for endpoint in self.endpoints for address in self._known.get(endpoint, ())})[:ADDRESSES_MAX]
        if found != self._addresses:
            self._addresses = found
            if self._on_change is not None:
                self._on_change(list(found))
        return self.addresses

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _keep_asking(self) -> None:
        while True:
            await asyncio.sleep(self.every)
            await self.refresh()

    async def _refresh_one(self, endpoint: Endpoint) -> None:
        if endpoint.literal is not None:
            self._known[endpoint] = (endpoint.literal,)
            return
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                answer = await self._lookup(endpoint.host, endpoint.port)
        except (OSError, UnicodeError):  # A name that IDNA cannot spell is a UnicodeError; TimeoutError is an OSError.
            self.failures += 1
            return
        hosts = {host for host in (literal(text) for text in answer) if host is not None}
        if not hosts:
            self.failures += 1
            return
        self._known[endpoint] = tuple(Address(host, endpoint.port) for host in sorted(hosts))


def _is_scope(text: str) -> bool:
    return len(text) <= SCOPE_CHARS_MAX and SCOPE_TEXT.fullmatch(text) is not None


async def _ask_system(host: str, port: int) -> list[str]:
    found = await asyncio.get_running_loop().getaddrinfo(spelled(host), port, type=socket.SOCK_DGRAM)
    return [str(place[0]) for _, _, _, _, place in found]


def _split(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        return host, rest[1:] if rest.startswith(":") else ""
    host, _, port = text.rpartition(":")
    return ("", "") if ":" in host else (host, port)
