"""Every message of a world through the real wire: encode, seal, open, decode.

In the lab messages pass by reference, so a shared list or a field that cannot be encoded would never be seen. One
run in ten therefore takes this road. What the wire refuses is counted at the receiver, what is too large for it at the
sender, as on real sockets.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, ClassVar

from holdfast.drops import Drop, Rejected
from holdfast.host import DATAGRAM_BYTES_MAX, MESSAGE_BYTES_MAX, Address
from holdfast.lab.network import CLOSED
from holdfast.wire.codec import Codec
from holdfast.wire.keys import Key, Keyring
from holdfast.wire.seal import Channel, Sealed

if TYPE_CHECKING:
    from holdfast.lab.host import LabHost
    from holdfast.lab.network import Endpoint, Handlers, Packet
    from holdfast.lab.world import World

GROUP = "lab"


class WireEnd:
    """Where sealed bytes arrive: one per address; keys, counters and windows belong to the life behind it."""

    handlers: ClassVar[Handlers] = CLOSED

    def __init__(self, world: World, name: str, keyring: Keyring) -> None:
        self.name = name
        self._world = world
        self._keyring = keyring
        self._open(world.nodes[name])

    @property
    def up(self) -> bool:
        return not self._life().dead

    def pack(self, packet: Packet) -> tuple[bytes, Channel] | None:
        """What is too large for a datagram takes the stream, what is too large for that is counted and forgotten (None)."""
        host = self._life()
        _, sender, life, fingerprint, message = packet
        payload = self._codec.encode(sender, life, fingerprint, message)  # type: ignore[arg-type]
        size = len(payload) + self._sealer.overhead
        if size > MESSAGE_BYTES_MAX:
            host.node.drops[Drop.TOO_LARGE] += 1
            return None
        channel = Channel.DATAGRAM if size <= DATAGRAM_BYTES_MAX else Channel.STREAM
        return self._sealer.seal(payload, channel), channel

    def deliver(self, packet: tuple[Address, bytes, Channel]) -> None:
        source, data, channel = packet
        host = self._life()
        if host.dead:
            return
        try:
            envelope = self._codec.decode(self._sealer.open(data, channel))
        except Rejected as rejected:
            host.node.drops[rejected.why] += 1
            return
        if self._world.trace is not None:
            self._world.trace.record(self._world.now, "{} -> {}  {}", envelope.sender.name, self.name, envelope.message)
        known = source if channel is Channel.DATAGRAM else None  # A stream comes from a port without a listener.
        host.endpoint.receive(known, envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message)

    def _life(self) -> LabHost:
        host = self._world.nodes[self.name]
        if host is not self._host:
            self._open(host)
        elif host.node.changes != self._changes:
            self._read_types(host)
        return host

    def _open(self, host: LabHost) -> None:
        self._host = host
        self._sealer = Sealed(GROUP, self._keyring, run_id=Random(f"{self._world.seed}/run/{host.me}").randbytes(16))
        self._read_types(host)

    def _read_types(self, host: LabHost) -> None:
        self._changes = host.node.changes
        self._codec = Codec(host.node.types, wall=host.wall)


def through_wire(world: World) -> None:
    """From now on every message of this world is sealed by its sender's life and opened by its receiver's."""
    ends: dict[str, WireEnd] = {}
    keyring = Keyring(Key(Random(f"{world.seed}/key").randbytes(32)))

    def end_of(name: str) -> WireEnd:
        if name not in ends:
            ends[name] = WireEnd(world, name, keyring)
        return ends[name]

    def through(source: Endpoint, target: Endpoint, packet: Packet) -> tuple[object, Packet] | None:
        packed = end_of(source.name).pack(packet)
        return None if packed is None else (end_of(target.name), (source.address, *packed))

    world.network.through = through
    world.network.watch()
