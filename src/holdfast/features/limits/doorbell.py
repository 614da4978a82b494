"""What an agent has of limits while it takes part in views and uses no limit: all members of a view gossip.  Spec: limits 5.3, H278.

It owns the two messages with which a member begins to talk to another one. It sends nothing and sets no timer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.features.limits.protocol.messages import Gossip, Reconcile
from holdfast.host import Message, NodeId


class Doorbell:
    """Calls ``ring`` with the first message of a limiter; from then on others own these types."""

    handles: Sequence[type[Message]] = (Gossip, Reconcile)
    fingerprint = b""

    def __init__(self, ring: Callable[[NodeId, Message], None]) -> None:
        self._ring = ring

    def start(self) -> None:
        """It waits."""

    def on_message(self, source: NodeId, message: Message) -> None:
        self._ring(source, message)

    def on_away(self, seconds: float) -> None:
        """It keeps no time."""

    def stop(self) -> None:
        """It has no timers."""
