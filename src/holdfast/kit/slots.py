"""Who are the seats?  Spec: foundation F12.

The list must be the same for all agents, so it comes from the configuration and from nothing that can change. A slot is a
number and a *name*: the agent that answers for it has the group's key, that name and the slot's journal. Where the agent is
reached is an address, or a DNS name that stands for one address at a time; the address proves nothing and may change with
every restart. A slot without a name is known by its address, so that address must be literal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from ipaddress import ip_address
from typing import NamedTuple

from holdfast.bounds import TEXT_CHARS_MAX
from holdfast.errors import ConfigError, shown
from holdfast.host import Address

COUNTS = (1, 3, 5)  # 2k+1 slots tolerate k failures; an even list tolerates no more than the odd one below it
SEEDS_AS_SEATS = 3
PORT_MAX = 65_535
WRITTEN_CHARS_MAX = TEXT_CHARS_MAX  # of a list of seats in a message; five with names of 30 letters
NO_SEATS = "none"
HOST_CHARS_MAX = 253  # RFC 1035: a name in text
HOST_TEXT = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")  # labels as a resolver takes them
ACCEPTED = "accepted are NAME@HOST:PORT, with an address or the DNS name of one machine as HOST, and IP:PORT; IPv6 in brackets"
_SET_SEATS = "set seats= to 1, 3 or 5 of NAME@HOST:PORT"


class Slot(NamedTuple):
    """One numbered place for a seat. The number is what others remember; machines behind it may change."""

    number: int
    name: str  # of the agent that sits there; the address, written out, where the configuration gives no name
    address: Address  # its host may be a DNS name: the node sends to where that leads (``Node.lead_to``)

    @property
    def by_dns(self) -> bool:
        """Its address has to be looked up, and may be another one tomorrow."""
        return literal(str(self.address)) is None

    @property
    def named(self) -> bool:
        return self.name != str(self.address)

    def __str__(self) -> str:
        return f"{self.number}={self.name}@{self.address}"


class OwnSlots(NamedTuple):
    """The slots of the group as the settings name them (F12), and which one is this agent's. No journal is needed to know them."""

    all: tuple[Slot, ...]  # empty if the settings do not say who the seats are
    own: int | None = None  # None: this agent is no seat
    missing: str = ""  # which setting is missing, if there are none


def find_slots(
    *, seats: Sequence[str], seeds: Sequence[str], key: bool, loopback: bool, own_name: str, own_address: Address
) -> tuple[Slot, ...]:
    """The slots, or a ConfigError that says which setting is missing (F12).

    ``key``: the group has one. ``loopback``: this agent listens on loopback only. An agent without seeds, key and network
    is its own seat; its caller must hold the machine-wide lock of the group, so that there is no second one.
    """
    if seats:
        return _slots("seats", [_seat(text) for text in seats])
    if seeds:
        return _slots("seeds", _from_seeds(seeds))
    if key or not loopback:
        raise ConfigError(f"seats: who are the seats? There are no seeds to take them from; {_SET_SEATS}")
    return (Slot(0, own_name, own_address),)


def own_slot(slots: Sequence[Slot], name: str, address: Address) -> int | None:
    """The number of the slot that an agent of this name and address sits in; None if it is no seat."""
    return next((slot.number for slot in slots if address == slot.address or (slot.named and name == slot.name)), None)


def written(slots: Sequence[Slot]) -> str:
    """The list as the setting ``seats`` takes it. The same text means the same list; one that is too long is cut and ends with a digest."""
    text = ", ".join(f"{slot.name}@{slot.address}" if slot.named else str(slot.address) for slot in slots) or NO_SEATS
    if len(text) <= WRITTEN_CHARS_MAX:
        return text
    end = f"... {blake2b(text.encode(), digest_size=4).hexdigest()}"
    return text[: WRITTEN_CHARS_MAX - len(end)] + end


def literal(text: str) -> Address | None:
    """``1.2.3.4:7946`` or ``[::1]:7946`` as an address; None if it is anything else, such as a DNS name."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 1 <= int(port) <= PORT_MAX:
        return None
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        ip = ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        return None
    return Address(str(ip), int(port)) if bracketed == (ip.version == 6) else None


def _from_seeds(seeds: Sequence[str]) -> list[tuple[str, Address]]:
    addresses = [literal(seed) for seed in seeds]
    for seed, address in zip(seeds, addresses, strict=True):
        if address is None:
            raise ConfigError(
                f"seats: who are the seats? The seed {shown(seed)} is no IP:PORT: an address alone may change, a seat may not; {_SET_SEATS}"
            )
    distinct = [address for address in dict.fromkeys(addresses) if address is not None]
    chosen = distinct[:SEEDS_AS_SEATS] if len(distinct) >= SEEDS_AS_SEATS else distinct[:1]
    return [(str(address), address) for address in chosen]


def _seat(text: str) -> tuple[str, Address]:
    name, _, where = text.rpartition("@")
    address = literal(where) or dns(where)
    if address is None:
        raise ConfigError(f"seats: {shown(text)} is no seat; {ACCEPTED}")
    if not name and literal(where) is None:
        where = shown(text)[1:-1]
        raise ConfigError(f"seats: '{where}' has a DNS name and no seat's name; write NAME@{where}, where NAME is the name of that agent")
    return name or str(address), address


def dns(text: str) -> Address | None:
    """``holdfast-0.holdfast:7946`` as a place whose host is to be looked up; None if it is no such text."""
    host, _, port = text.rpartition(":")
    host = host.lower().removesuffix(".")
    if not port.isascii() or not port.isdigit() or len(port) > 5 or not 1 <= int(port) <= PORT_MAX:
        return None
    if len(host) > HOST_CHARS_MAX or HOST_TEXT.fullmatch(host) is None or host.rpartition(".")[2].isdigit():
        return None  # A last label of digits is a misspelled address.
    return Address(host, int(port))


def _slots(field: str, found: Sequence[tuple[str, Address]]) -> tuple[Slot, ...]:
    if len(found) not in COUNTS:
        raise ConfigError(f"{field}: {len(found)} seats; accepted are {', '.join(map(str, COUNTS))}")
    for what, values in (("name", [name for name, _ in found]), ("address", [str(address) for _, address in found])):
        if len(set(values)) < len(values):
            raise ConfigError(f"{field}: two seats have the same {what}; every seat needs its own")
    return tuple(Slot(number, name, address) for number, (name, address) in enumerate(found))
