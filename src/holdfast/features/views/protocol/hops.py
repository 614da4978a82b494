"""Hops: one step of an overlay message, repeated until it is acknowledged.  Spec: views 5.7, D13.

A hop that uses up its tries is a failure detection: what it led to is held to be lost. Who sent it says what follows from that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from holdfast.features.views.protocol.config import HOPS_MAX, ViewsConfig
from holdfast.features.views.protocol.facts import HopFailed
from holdfast.features.views.protocol.messages import HopAck, OvData
from holdfast.host import Host, Message, NodeId, Timer

Send = Callable[[NodeId, Message], None]


class Hop:
    """One that is under way."""

    __slots__ = ("arrived", "began_at", "data", "failed", "timer", "to", "tries")

    def __init__(self, to: NodeId, data: OvData, began_at: float, arrived: Callable[[], None], failed: Callable[[], None]) -> None:
        self.to, self.data, self.began_at, self.arrived, self.failed = to, data, began_at, arrived, failed
        self.tries = 0
        self.timer: Timer | None = None


class Hops:
    """All hops from one node, as a client and as a server."""

    def __init__(self, host: Host, config: ViewsConfig, send: Send, counts: Counter[str]) -> None:
        self._host, self._config, self._send, self._counts = host, config, send, counts
        self._under_way: dict[int, Hop] = {}
        self._serial = 0

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def is_full(self) -> bool:
        return len(self._under_way) >= HOPS_MAX

    def send(self, to: NodeId, data: OvData, *, arrived: Callable[[], None], failed: Callable[[], None]) -> None:
        """One of the two runs, once, later; neither if this node stops. The caller has looked whether there is room."""
        assert not self.is_full
        self._serial += 1
        hop = self._under_way[self._serial] = Hop(to, replace(data, hop=self._serial), self._host.now, arrived, failed)
        self._try(self._serial, hop)

    def on_ack(self, source: NodeId, ack: HopAck) -> None:
        hop = self._under_way.get(ack.hop)
        if hop is None or hop.to != source:
            self._counts["late"] += 1
            return
        self._end(ack.hop, hop)
        hop.arrived()

    def stop(self) -> None:
        for hop in self._under_way.values():
            if hop.timer is not None:
                hop.timer.cancel()
        self._under_way.clear()

    def _try(self, serial: int, hop: Hop) -> None:
        hop.tries += 1
        hop.timer = self._host.after(self._config.hop_rto, partial(self._on_timeout, serial, hop))
        self._send(hop.to, hop.data)

    def _on_timeout(self, serial: int, hop: Hop) -> None:
        if self._host.now - hop.began_at > self._config.ov_deadline:
            # This node was stopped. The sender has given up, and the receiver may have forgotten that it has it (G7): no proof of anything.
            self._end(serial, hop)
            self._counts["hops_overslept"] += 1
            return
        if hop.tries < self._config.hop_tries or self._host.late > self._config.hop_rto:  # F11: the answers may still wait to be read.
            self._try(serial, hop)
            return
        self._end(serial, hop)
        self._counts["hops_failed"] += 1
        self._host.emit(HopFailed(hop.to, hop.data.mid))
        hop.failed()

    def _end(self, serial: int, hop: Hop) -> None:
        del self._under_way[serial]
        if hop.timer is not None:
            hop.timer.cancel()
