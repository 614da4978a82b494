"""Who sent how much of what: messages per node and type always, bytes, also times hops, where they are asked for.  docs/lab.md"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from holdfast.host import Message, NodeId
from holdfast.lab.world import World
from holdfast.node import FINGERPRINT_BYTES, WrongLife
from holdfast.wire.codec import Codec
from holdfast.wire.seal import SEALED_BYTES_MIN

_encode = Codec((WrongLife,)).encode  # A codec writes any message; it only reads the types it was made with.


class Sent(Struct, frozen=True):
    """What one node sent of one type, over all its lives."""

    messages: int
    size: int  # sealed bytes; 0 unless ``count_bytes`` was called before


def count_bytes(world: World) -> None:
    """Measure every message from now on as it would leave a socket: encoded and sealed. It costs an encoding per message."""

    def measure(sender: NodeId, boot: int, fingerprint: bytes, message: Message) -> int:
        return len(_encode(sender, boot, fingerprint, message)) + SEALED_BYTES_MIN

    world.network.measure = measure
    world.network.watch()


def sealed_bytes(sender: str, message: Message) -> int:
    """What one message takes when it leaves a socket, to a few bytes: lives and fingerprints may be shorter than here."""
    return len(_encode(NodeId(sender, 1 << 20), 1 << 47, bytes(FINGERPRINT_BYTES), message)) + SEALED_BYTES_MIN


class HopBytes:
    """Bytes times hops, by type of message, from now on: each message counts once for each hop of its way, also if it is lost there."""

    def __init__(self, world: World, size: Callable[[str, Message], int] = sealed_bytes) -> None:
        self.by_type: dict[str, int] = {}
        self._network, self._size = world.network, size
        self._hops: dict[tuple[str, str], int] = {}
        self._network.lose_if(self._count, self)

    @property
    def total(self) -> int:
        return sum(self.by_type.values())

    def stop(self) -> None:
        self._network.let_pass(self)

    def add(self, message: Message, source: str, links: int = 1) -> None:
        """What went another way than by the network: over so many links."""
        name = type(message).__name__
        self.by_type[name] = self.by_type.get(name, 0) + self._size(source, message) * links

    def hops(self, source: str, target: str) -> int:
        if (source, target) not in self._hops:
            field = self._network.topology
            path = (target,) if field is None else field.path(source, target)
            self._hops[source, target] = 0 if path is None else len(path)
        return self._hops[source, target]

    def _count(self, source: str, target: str, message: Message) -> bool:
        self.add(message, source, self.hops(source, target))
        return False


def sent(world: World) -> dict[str, dict[str, Sent]]:
    """Node by node in order of first appearance, type by type by name."""
    table: dict[str, dict[str, Sent]] = {}
    for endpoint in world.network.endpoints.values():
        kinds = sorted(endpoint.sent, key=lambda kind: kind.__name__)
        table[endpoint.name] = {kind.__name__: Sent(endpoint.sent[kind], endpoint.sent_bytes.get(kind, 0)) for kind in kinds}
    return table


def total(world: World) -> dict[str, Sent]:
    """The same over all nodes."""
    sums: dict[str, Sent] = {}
    for kinds in sent(world).values():
        for name, each in kinds.items():
            before = sums.get(name, Sent(0, 0))
            sums[name] = Sent(before.messages + each.messages, before.size + each.size)
    return dict(sorted(sums.items()))
