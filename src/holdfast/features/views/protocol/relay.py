"""Relay: a server brings overlay messages towards their receiver, and the result back.  Spec: views 5.7, D7, D13.

In a full mesh a message crosses three hops: client, server, server, client. Where links are cut it goes over at most two servers more. What
does not arrive shares the fate of the path: the client is removed, or the link is down, and another view comes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from functools import partial
from typing import Protocol

from msgspec.structs import replace

from holdfast.features.views.protocol.config import RECENT_MAX, ViewsConfig
from holdfast.features.views.protocol.hops import Hops
from holdfast.features.views.protocol.liveness import Client
from holdfast.features.views.protocol.messages import BUSY, DELIVERED, NO_PATH, NOT_A_MEMBER, RECEIVER_LOST, OvData, OvResult
from holdfast.features.views.protocol.nsview import NSView
from holdfast.host import Host, Message, NodeId

MessageId = tuple[NodeId, int]


class RelayOwner(Protocol):
    """What a relay asks of its server."""

    def client_of(self, life: NodeId) -> Client | None: ...
    def is_server(self, life: NodeId) -> bool: ...
    def present(self) -> NSView | None:
        """After it looked (5.4)."""

    def on_client_lost(self, life: NodeId) -> None: ...
    def on_server_lost(self, life: NodeId) -> None: ...
    def send(self, to: NodeId, message: Message) -> None: ...


class Relay:
    """The overlay messages that pass one server."""

    def __init__(self, host: Host, config: ViewsConfig, hops: Hops, owner: RelayOwner, counts: Counter[str]) -> None:
        self._host, self._config, self._hops, self._owner, self._counts = host, config, hops, owner, counts
        self._recent: OrderedDict[MessageId, float] = OrderedDict()  # forwarded lately, and when

    def on_data(self, source: NodeId, data: OvData) -> bool:
        """False: this source may not send it here, and gets no acknowledgement."""
        client = self._owner.client_of(source) if data.src == source else None
        if data.ttl > self._config.max_server_hops or data.last:
            self._counts["malformed"] += 1
            return False
        if client is None and not self._owner.is_server(source):
            self._counts["stranger"] += 1
            return False
        if self._is_repeated((data.src, data.mid)):
            return True  # Before there is a question of room: a copy of what is under way must not be answered "busy".
        if self._hops.is_full or (client is not None and not self._has_room(client)):
            self._counts["busy"] += 1
            self._tell(data, BUSY)
            return True
        self._forward(data)
        return True

    def on_result(self, source: NodeId, result: OvResult) -> None:
        """Of another server; it goes on to the sender's own server, or to the sender."""
        if not self._owner.is_server(source):
            self._counts["stranger"] += 1
        elif result.ttl > self._config.max_server_hops:
            self._counts["malformed"] += 1
        elif result.ttl > 0:
            self._return(replace(result, ttl=result.ttl - 1))

    def _has_room(self, client: Client) -> bool:
        """A bucket of one second's messages."""
        now, rate = self._host.now, self._config.overlay_rate
        client.room = min(rate, client.room + rate * (now - client.room_at))
        client.room_at = now
        if client.room < 1:
            return False
        client.room -= 1
        return True

    def _is_repeated(self, mid: MessageId) -> bool:
        """The same one came so lately that its sender cannot have given up waiting; with ``busy`` it was answered then."""
        now = self._host.now
        while self._recent and next(iter(self._recent.values())) < now - self._config.recent_seconds:
            self._recent.popitem(last=False)
        at = self._recent.get(mid)
        if at is not None and now - at < 0.8 * self._config.e2e_rto:
            return True
        self._recent.pop(mid, None)
        self._recent[mid] = now
        if len(self._recent) > RECENT_MAX:
            self._recent.popitem(last=False)
        return False

    def _forward(self, data: OvData, *, again: bool = False) -> None:
        if self._hops.is_full:
            self._tell(data, BUSY)
            return
        ns = self._owner.present()
        if self._owner.client_of(data.dst) is not None:
            hop = replace(data, last=True)
            self._hops.send(data.dst, hop, arrived=partial(self._on_arrived, data), failed=partial(self._on_client_lost, data))
            return
        member = None if ns is None else ns.find(data.dst)
        if ns is None or member is None:
            self._tell(data, NOT_A_MEMBER)
            return
        step = ns.steps.get(member.server)
        if step is None or data.ttl < 1:
            self._tell(data, NO_PATH)
            return
        hop = replace(data, ttl=data.ttl - 1, last=False)
        self._hops.send(step, hop, arrived=_on_its_way, failed=partial(self._on_server_lost, data, step, again=again))

    def _on_arrived(self, data: OvData) -> None:
        self._tell(data, DELIVERED)

    def _on_client_lost(self, data: OvData) -> None:
        self._owner.on_client_lost(data.dst)
        self._tell(data, RECEIVER_LOST)

    def _on_server_lost(self, data: OvData, step: NodeId, *, again: bool) -> None:
        self._owner.on_server_lost(step)
        if again:
            self._tell(data, NO_PATH)
        else:
            self._forward(data, again=True)

    def _tell(self, data: OvData, why: int) -> None:
        """The sender, by its own server."""
        hops = self._config.max_server_hops - data.ttl + 2  # between servers, and at both ends
        result = OvResult(data.src, data.mid, ok=why == DELIVERED, why=why, ttl=self._config.max_server_hops, hops=hops)
        self._return(result)

    def _return(self, result: OvResult) -> None:
        ns = self._owner.present()
        if self._owner.client_of(result.src) is not None:
            self._owner.send(result.src, result)
            return
        member = None if ns is None else ns.find(result.src)
        step = None if ns is None or member is None else ns.steps.get(member.server)
        if step is not None:
            self._owner.send(step, result)  # Otherwise it is lost: the sender asks again, and has a limit.


def _on_its_way() -> None:
    """The next server has it, and says what becomes of it."""
