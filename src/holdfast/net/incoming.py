"""What comes to a host: each datagram at once, and what came by stream in its turn.  Spec: foundation 3 (Host), F10."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from holdfast.drops import Drop, Rejected
from holdfast.host import Address, Message
from holdfast.node import Node
from holdfast.wire.codec import Codec, Envelope
from holdfast.wire.seal import Sealer

INBOX_MAX = 1024  # messages that came by stream and wait for their turn; each was sealed by a member of this group
INBOX_BYTES_MAX = 16 << 20


class Incoming:
    """The way up to one node."""

    def __init__(self, node: Node, sealer: Sealer) -> None:
        self._node, self._sealer = node, sealer
        self.dropped_from: dict[Drop, Address] = {}  # by reason: where the last datagram that was dropped for it came from
        self.waiting: deque[tuple[Envelope[Message], int]] = deque()  # what came by stream, with its size
        self._bytes = 0

    def way_up(self, codec: Codec) -> Callable[[bytes, Address], None]:
        """What every datagram passes. A closure, because it runs for each of them and names cost time."""
        unseal, decode, receive, drops = self._sealer.open, codec.decode, self._node.receive, self._node.drops
        dropped_from = self.dropped_from

        def deliver(data: bytes, source: Address) -> None:
            try:
                envelope = decode(unseal(data))
            except Rejected as rejected:
                drops[rejected.why] += 1
                dropped_from[rejected.why] = source
                return
            receive(source, envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message)

        return deliver

    def put(self, payload: bytes, codec: Codec) -> bool:
        """Came by stream, opened. False: it is dropped, and counted."""
        drops = self._node.drops
        if len(self.waiting) >= INBOX_MAX or self._bytes + len(payload) > INBOX_BYTES_MAX:
            drops[Drop.QUEUE_FULL] += 1
            return False
        try:
            envelope = codec.decode(payload)
        except Rejected as rejected:
            drops[rejected.why] += 1
            return False
        self.waiting.append((envelope, len(payload)))
        self._bytes += len(payload)
        return True

    def read(self, limit: int) -> None:
        """Hand so many of those that wait to the node."""
        for _ in range(min(limit, len(self.waiting))):
            envelope, size = self.waiting.popleft()
            self._bytes -= size
            self._node.receive(None, envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message)

    def clear(self) -> None:
        self.waiting.clear()
