"""How a LEADER reaches all members.  Spec: election 5.7; foundation F17.

The multicast is a parameter of the machine: experiments hand in a flood over radio links. Whatever brings the message gives it to
``Elections.on_message`` with the leader as source; it may lose and double it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from holdfast.features.election.protocol.config import DIRECT_MAX, TOPIC
from holdfast.features.election.protocol.messages import Leader
from holdfast.host import Host, Member, NodeId
from holdfast.kit.broadcast import Broadcast, RumourId
from holdfast.kit.outbox import Outbox
from holdfast.kit.versioned import UNREADABLE

CAST_TOPIC = f"{TOPIC}:leader"
Deliver = Callable[[NodeId, Leader], None]


class Multicast(Protocol):
    """Sends LEADER to all others; best effort, as datagrams are."""

    def cast(self, message: Leader, members: Sequence[Member]) -> None:
        """``members``: whom this member lists, without itself."""


class DirectMulticast:
    """Sends one datagram to each member; a rumour where there are more than 1024."""

    def __init__(self, host: Host, outbox: Outbox, broadcast: Broadcast | None, deliver: Deliver) -> None:
        self._host, self._outbox, self._broadcast, self._deliver = host, outbox, broadcast, deliver
        if broadcast is not None:
            broadcast.on_rumour(CAST_TOPIC, self._on_rumour)

    def cast(self, message: Leader, members: Sequence[Member]) -> None:
        if self._broadcast is not None and len(members) > DIRECT_MAX:
            self._broadcast.cast(CAST_TOPIC, msgspec.msgpack.encode(message))
            return
        for member in members:
            self._outbox.put_member(member, message)

    def _on_rumour(self, rumour: RumourId, payload: bytes) -> None:
        try:
            message = _LEADER.decode(payload)
        except UNREADABLE:
            return
        self._deliver(rumour.origin, message)


_LEADER = msgspec.msgpack.Decoder(Leader)
