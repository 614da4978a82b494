"""What a seat runs while no client of the group takes part in views: it waits for the first one.  Spec: views D1, D31; foundation F4.

It owns the two messages with which a client, or a server that has clients, begins to talk to a seat. It sends nothing and sets no timer, so
a seat whose group uses no views costs what it cost without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.features.views.protocol.messages import ClientPing, LinkPing
from holdfast.host import Message, NodeId


class Doorbell:
    """Calls ``ring`` with the first message that means that a client takes part somewhere; from then on others own these types."""

    handles: Sequence[type[Message]] = (LinkPing, ClientPing)

    def __init__(self, fingerprint: bytes, ring: Callable[[NodeId, Message], None]) -> None:
        """``fingerprint`` is that of the machine that takes over: who counts with other numbers is told so, and does not ring."""
        self.fingerprint = fingerprint
        self._ring = ring

    def start(self) -> None:
        """It waits."""

    def on_message(self, source: NodeId, message: Message) -> None:
        """A server without clients asks its links once more before it retires: that is no reason to serve."""
        if not isinstance(message, LinkPing) or message.used:
            self._ring(source, message)

    def on_away(self, seconds: float) -> None:
        """It keeps no time."""

    def stop(self) -> None:
        """It has no timers."""
