"""A receiver as small as it can be: Node, codec and sealer as in production, and a host of lists instead of sockets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from holdfast.drops import Drop, Drops, Rejected
from holdfast.events import Event
from holdfast.host import DATAGRAM_BYTES_MAX, Address, Message, NodeId, Storage, Timer
from holdfast.node import Node
from holdfast.wire import Channel, Codec, Sealer

Carry = Callable[[Address, bytes, Channel], None]  # where to, sealed bytes, how

WALL = 1_753_000_000.0  # seconds
_ON_THE_WAY_DOWN = (Drop.NO_ADDRESS, Drop.FANOUT)  # counted for what this node sends, not for what it received


class NoStorage:
    """Nothing is kept."""

    fresh = True

    def load(self) -> Mapping[str, bytes]:
        return {}

    def save(self, key: str, value: bytes | None, then: Callable[[], None]) -> None:
        then()

    def part(self, name: str) -> Storage:
        return self


class NoTimer:
    """A timer that never runs: here only messages happen."""

    def __init__(self, due: float) -> None:
        self.due_at = due

    def cancel(self) -> None:
        pass


class Keeper:
    """A machine that keeps what it is told."""

    def __init__(self, types: Sequence[type[Message]], *, fingerprint: bytes) -> None:
        self.handles, self.fingerprint = tuple(types), fingerprint
        self.told: list[tuple[NodeId, Message]] = []

    def start(self) -> None:
        pass

    def on_message(self, source: NodeId, message: Message) -> None:
        self.told.append((source, message))

    def on_away(self, seconds: float) -> None:
        pass

    def stop(self) -> None:
        pass


class Receiver:
    """One life of one node: ``deliver`` bytes, then look at ``keeper.told``, ``drops`` and ``events``."""

    now = 0.0
    late = 0.0

    def __init__(self, me: NodeId, address: Address, types: Sequence[type[Message]], sealer: Sealer, carry: Carry) -> None:
        self.me, self.address, self.sealer, self._carry = me, address, sealer, carry
        self.random = Random(0)
        self.storage: Storage = NoStorage()
        self.events: list[Event] = []
        self.refused: Drops = Drops()
        self.node = Node(self, self._transmit)
        self.keeper = Keeper(types, fingerprint=b"lease=2.5;rho=0.001")
        self.node.add(self.keeper)
        self.codec = Codec(self.node.types, wall=lambda: WALL)
        self.node.start()

    @property
    def drops(self) -> Drops:
        """Every message that was dropped on its way up, by reason."""
        counted = self.refused + self.node.drops
        return Drops({why: count for why, count in counted.items() if why not in _ON_THE_WAY_DOWN})

    def take(self) -> tuple[list[tuple[NodeId, Message]], list[Drop]]:
        """What the machine was told and what was dropped since the last time somebody asked."""
        told, self.keeper.told = self.keeper.told, []
        dropped = list(self.drops.elements())
        self.refused.clear()
        self.node.drops.clear()
        self.events.clear()
        return told, dropped

    def deliver(self, source: Address | None, data: bytes, channel: Channel = Channel.DATAGRAM) -> Message | Drop:
        """What a host does with the bytes it read. Says what they were."""
        try:
            envelope = self.codec.decode(self.sealer.open(data, channel))
        except Rejected as rejected:
            self.refused[rejected.why] += 1
            return rejected.why
        self.node.receive(source, envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message)
        return envelope.message

    def wall(self) -> float:
        return 0.0

    def at(self, due: float, callback: Callable[[], None]) -> Timer:
        return NoTimer(due)

    def after(self, delay: float, callback: Callable[[], None]) -> Timer:
        return NoTimer(delay)

    def send(self, to: NodeId | Address, message: Message) -> None:
        self.node.send(to, message)

    def meet(self, peer: NodeId, address: Address) -> None:
        self.node.meet(peer, address)

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def _transmit(self, address: Address, to_life: int, fingerprint: bytes, message: Message) -> None:
        payload = self.codec.encode(self.me, to_life, fingerprint, message)
        small = len(payload) + self.sealer.overhead <= DATAGRAM_BYTES_MAX
        channel = Channel.DATAGRAM if small else Channel.STREAM
        self._carry(address, self.sealer.seal(payload, channel), channel)
