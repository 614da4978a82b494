"""Who sent how much of what: messages per node and type always, bytes on the wire where they are asked for.  docs/lab.md"""

from __future__ import annotations

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
