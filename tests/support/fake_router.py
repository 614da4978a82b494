"""A node as ``kit.parcels`` sees it: it notes what is handed on."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.drops import Drops
from holdfast.host import Message, NodeId


class FakeRouter:
    """Implements ``kit.parcels.Router`` for these types."""

    def __init__(self, *types: type[Message]) -> None:
        self.drops = Drops()
        self.types = types
        self.digests: Mapping[type[Message], bytes] = {}
        self.handed: list[tuple[NodeId, Message]] = []
        self.on_handed: Callable[[], None] = _nothing

    def hand_on(self, sender: NodeId, fingerprint: bytes, message: Message) -> None:
        self.handed.append((sender, message))
        self.on_handed()


def _nothing() -> None:
    """No test listens."""
