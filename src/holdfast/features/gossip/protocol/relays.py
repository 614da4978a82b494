"""Probes for others: a helper asks the member that its peer does not hear.  Spec: gossip 5.2 (PINGREQ), D12; SWIM 3, Lifeguard (NACK)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from holdfast.features.gossip.protocol.checks import is_life, is_place
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.messages import Ack, Nack, Ping, PingReq
from holdfast.features.gossip.protocol.rumours import Rumours
from holdfast.host import NodeId, Timer

RELAYS_MAX = 256  # open at a time: each prober has one probe, and asks three of all members
NACK_SHARE = 0.8  # of probe_timeout: the NACK is back before the asker's period is over
KEPT_PERIODS = 4  # in T: so long a late answer is forwarded, also after the NACK


class Relay(NamedTuple):
    """One question of a peer."""

    requester: NodeId
    seq: int
    target: NodeId
    until: float
    nack: Timer


class Relays:
    """The open ones, by the sequence number of our own PING; the oldest first."""

    def __init__(self, core: Core, rumours: Rumours, next_seq: Callable[[], int]) -> None:
        self._core, self._rumours, self._next_seq = core, rumours, next_seq
        self._open: dict[int, Relay] = {}

    def __len__(self) -> int:
        return len(self._open)

    def on_ping_req(self, source: NodeId, message: PingReq) -> None:
        core, host = self._core, self._core.host
        if message.target == core.me:
            core.answer(source, Ack(message.seq, self._rumours.pick(source)))
            return
        self.expire()
        if not (is_life(message.target) and is_place(message.address)):
            core.counts["refused_address"] += 1
            return
        if len(self._open) >= RELAYS_MAX:
            core.counts["relays_full"] += 1
            return
        seq = self._next_seq()
        nack = host.after(NACK_SHARE * core.config.timeout, lambda: core.answer(source, Nack(message.seq)))
        self._open[seq] = Relay(source, message.seq, message.target, host.now + KEPT_PERIODS * core.config.period, nack)
        known = core.table.of(message.target)
        if known is not None:
            core.send(known.member, Ping(seq, self._rumours.pick(message.target)))
        else:
            host.meet(message.target, message.address)  # This list is behind; where the member is, its prober knows.
            core.answer(message.target, Ping(seq, self._rumours.pick(message.target)))

    def on_ack(self, source: NodeId, message: Ack) -> bool:
        """Pass an ACK on to the peer that asked. True: it was the answer to one of these."""
        relay = self._open.get(message.seq)
        if relay is None or relay.target != source:
            return False
        del self._open[message.seq]
        relay.nack.cancel()
        if self._core.host.now < relay.until:
            self._core.counts["relayed"] += 1
            self._core.answer(relay.requester, Ack(relay.seq, self._rumours.pick(relay.requester)))
        return True

    def expire(self) -> None:
        """Drop those that nothing will answer any more."""
        now = self._core.host.now
        while self._open:
            seq = next(iter(self._open))
            if self._open[seq].until > now:
                return
            del self._open[seq]

    def stop(self) -> None:
        for relay in self._open.values():
            relay.nack.cancel()
        self._open.clear()
