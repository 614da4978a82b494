"""What one more member costs an agent in memory, for `memory`: told of, and heard.

    python -m benchmarks.heard addresses|heard|heard_full MEMBERS

``addresses``: what a node, its socket and its codec keep of a member that was told of, written to and heard. ``heard``: the cipher and the
replay windows of a sender that was heard on both channels; ``heard_full`` with every bit of both windows in use. Bytes per member: of
Python's objects for addresses, of resident memory for what OpenSSL keeps.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from benchmarks.lease import LeaseRequest
from holdfast.drops import Drops
from holdfast.host import Address, Message, NodeId
from holdfast.lab.fake_host import FakeHost
from holdfast.net.bind import bind
from holdfast.net.udp import Datagrams
from holdfast.node import Node, life_of
from holdfast.wire.codec import Codec
from holdfast.wire.keys import Keyring, generate, parse_key
from holdfast.wire.replay import WINDOW_COUNTERS
from holdfast.wire.seal import Channel, Sealed

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
WARM = 4  # members before the count begins: what is made once is there by then, and few of the ciphers that are kept


class Addresses:
    """What knows where members are."""

    def __init__(self) -> None:
        host = FakeHost("me")
        self._node = Node(host, lambda place, life, fingerprint, message: None)
        self._codec = Codec([LeaseRequest])
        bound = bind(Address("127.0.0.1", 0))
        bound.tcp.close()
        self._datagrams = Datagrams(bound.udp, Drops())

    def __call__(self, number: int) -> None:
        life, place = NodeId(f"web-{number:05}", 1_800_000_000_000 + number), Address(f"10.{number >> 8}.{number & 255}.1", 7946)
        message: Message = LeaseRequest(number)
        self._node.meet(life, place)
        life_of(life)
        self._codec.decode(self._codec.encode(life, 1, b"", message))
        self._datagrams._learn_target(place)
        self._datagrams._learn_source((place.host.encode().decode(), int(str(place.port))))  # recvfrom makes both anew


class Heard:
    """Who was heard."""

    def __init__(self, *, full: bool) -> None:
        self._keyring, self._full = Keyring(parse_key(generate())), full
        self._receiver = Sealed("bench", self._keyring)

    def __call__(self, number: int) -> None:
        del number
        sender = Sealed("bench", self._keyring)
        for channel in Channel:
            for _ in range(WINDOW_COUNTERS + 1 if self._full else 1):
                self._receiver.open(sender.seal(b"", channel), channel)


ADD: dict[str, Callable[[], Callable[[int], None]]] = {
    "addresses": Addresses,
    "heard": lambda: Heard(full=False),
    "heard_full": lambda: Heard(full=True),
}


def measure(what: str, members: int) -> float:
    """Bytes per member, in this process: call it once per process."""
    add = ADD[what]()
    for number in range(WARM):
        add(number)
    used = _resident_bytes if what.startswith("heard") else _traced_bytes
    gc.collect()
    before = used()
    for number in range(WARM, members):
        add(number)
    gc.collect()
    return (used() - before) / (members - WARM)


def _traced_bytes() -> int:
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
