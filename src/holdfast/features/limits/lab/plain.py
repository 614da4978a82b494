"""Push-sum as it was published: halves that are sent and not acknowledged.  Spec: limits 8 (F8, F6), D1; paper 003, 6.2.1.

What a lost message carried is gone. The experiments show it beside ours; nothing that ships knows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.bounds import Number
from holdfast.host import Host, Message, NodeId


class PlainShare(Message, frozen=True, tag=231):
    """A part of the sender's weight and of its sum."""

    weight: float
    total: float
    round: Number


class PlainSum:
    """One member."""

    handles: Sequence[type[Message]] = (PlainShare,)
    fingerprint = b""

    def __init__(self, host: Host, *, epoch: float, fanout: int) -> None:
        self._host, self._epoch, self._fanout = host, epoch, fanout
        self.peers: tuple[NodeId, ...] = ()
        self.weight, self.total, self.value = 1.0, 0.0, 0.0
        self._round = 0

    @property
    def estimate(self) -> float:
        return (len(self.peers) + 1) * self.total / self.weight if self.weight else 0.0

    def begin(self, peers: Sequence[NodeId]) -> None:
        """From now on, with these."""
        self.peers = tuple(peers)
        self._host.after(self._epoch * self._host.random.random(), self._on_epoch)

    def want(self, value: float) -> None:
        self.total += value - self.value
        self.value = value

    def start(self) -> None:
        """It waits for ``begin``."""

    def stop(self) -> None:
        """What it held is gone."""

    def on_message(self, source: NodeId, message: Message) -> None:
        assert isinstance(message, PlainShare)
        self.weight += message.weight
        self.total += message.total

    def on_away(self, seconds: float) -> None:
        """Its timers are late."""

    def _on_epoch(self) -> None:
        self._round += 1
        chosen = self._host.random.sample(self.peers, min(self._fanout, len(self.peers)))
        self.weight, self.total = self.weight / (len(chosen) + 1), self.total / (len(chosen) + 1)
        for peer in chosen:
            self._host.send(peer, PlainShare(self.weight, self.total, self._round))
        self._host.after(self._epoch, self._on_epoch)
