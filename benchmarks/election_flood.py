"""A LEADER to all over radio links, with real datagrams: who hears it first passes it on, and what links lose is repaired.

It is what `lab.flood` emulates for Figures 3 to 11. There each holder knows at whose end a message is missing; here it asks again, every
half second, each neighbour from which it has not heard the message itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from holdfast.features.election.lab.groups import REPAIR
from holdfast.features.election.protocol.messages import Leader
from holdfast.host import Address, Host, Member, Message, NodeId, Timer

REPAIRS_MAX = 240  # rounds, two minutes: no election lasts longer


class Flooded(Message, frozen=True, tag=244):
    """One LEADER on its way."""

    epoch: int  # of elections; what an earlier one said is over
    origin: NodeId
    serial: int
    leader: bytes
    again: bool  # a repair: a neighbour that has it says so


class Kept:
    """A message that this member has."""

    def __init__(self, message: Flooded, lacking: dict[NodeId, None]) -> None:
        self.message, self.lacking = message, lacking
        self.rounds = 0
        self.timer: Timer | None = None


class Flood:
    """One member's part. A Machine, and the ``Multicast`` of its elections."""

    handles: Sequence[type[Message]] = (Flooded,)
    fingerprint = b""

    def __init__(self, host: Host, neighbours: Mapping[NodeId, Address]) -> None:
        self._host, self._neighbours = host, dict(neighbours)
        self._epoch, self._serial = 0, 0
        self._kept: dict[tuple[NodeId, int], Kept] = {}
        self._deliver: Callable[[NodeId, Leader], None] = _nowhere
        self.casts: list[tuple[float, str, int]] = []  # by this member, in this epoch: when, of which name, under which term

    def begin(self, epoch: int, deliver: Callable[[NodeId, Leader], None]) -> None:
        """Other elections: from now on these hear, and what is left of earlier ones is dropped."""
        self.stop()
        self._epoch, self._deliver = epoch, deliver
        self.casts.clear()

    def cast(self, message: Leader, members: Sequence[Member]) -> None:
        """``members``: whom the list has; radios do not ask."""
        self._serial += 1
        self.casts.append((self._host.now, message.name, message.term))
        self._keep(Flooded(self._epoch, self._host.me, self._serial, msgspec.msgpack.encode(message), False))

    # The machine.

    def start(self) -> None:
        for life, address in self._neighbours.items():
            self._host.meet(life, address)

    def stop(self) -> None:
        for kept in self._kept.values():
            if kept.timer is not None:
                kept.timer.cancel()
        self._kept.clear()

    def on_away(self, seconds: float) -> None:
        """What was missed is repaired."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, Flooded)
        if message.epoch != self._epoch:
            return
        kept = self._kept.get((message.origin, message.serial))
        if kept is not None:
            kept.lacking.pop(source, None)
            if message.again:
                self._host.send(source, kept.message)
            return
        self._keep(msgspec.structs.replace(message, again=False), source)
        self._deliver(message.origin, _LEADER.decode(message.leader))

    # How it is done.

    def _keep(self, message: Flooded, source: NodeId | None = None) -> None:
        """Also to ``source``, which so hears that it arrived, as on a radio."""
        kept = self._kept[message.origin, message.serial] = Kept(message, dict.fromkeys(self._neighbours))
        for life in self._neighbours:
            self._host.send(life, message)
        if source is not None:
            kept.lacking.pop(source, None)
        kept.timer = self._host.after(REPAIR, lambda: self._on_repair(kept))

    def _on_repair(self, kept: Kept) -> None:
        kept.timer = None
        kept.rounds += 1
        for life in kept.lacking:
            self._host.send(life, msgspec.structs.replace(kept.message, again=True))
        if kept.lacking and kept.rounds < REPAIRS_MAX:
            kept.timer = self._host.after(REPAIR, lambda: self._on_repair(kept))


def _nowhere(source: NodeId, message: Leader) -> None:
    """No election has begun."""


_LEADER = msgspec.msgpack.Decoder(Leader)
