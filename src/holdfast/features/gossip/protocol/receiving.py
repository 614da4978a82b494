"""What a probe brings with it, and how it is answered.  Spec: gossip 5.2 (receipts), 5.7 (unknown and former lives), D13."""

from __future__ import annotations

from holdfast.features.gossip.protocol.cbound import MeasuredC
from holdfast.features.gossip.protocol.core import Core
from holdfast.features.gossip.protocol.merge import Merge
from holdfast.features.gossip.protocol.messages import Ack, Gossip, Nack, Ping, PingReq, Status
from holdfast.features.gossip.protocol.myself import Myself
from holdfast.features.gossip.protocol.probe import Prober
from holdfast.features.gossip.protocol.rumours import Rumours, rumour_of
from holdfast.features.gossip.protocol.sync import Syncs
from holdfast.host import NodeId


class Receiving:
    """Handlers of the messages that carry rumours."""

    def __init__(
        self, core: Core, rumours: Rumours, myself: Myself, merge: Merge, measured: MeasuredC, prober: Prober, syncs: Syncs
    ) -> None:
        self._core, self._rumours, self._myself, self._merge = core, rumours, myself, merge
        self._measured, self._prober, self._syncs = measured, prober, syncs

    def on_ping(self, source: NodeId, message: Ping) -> None:
        core = self._core
        if core.is_leaving:
            core.answer(source, Ack(message.seq, (self._myself.rumour(),)))
            return
        known = core.table.get(source.name)
        if known is not None and source.name != core.name and (known.id == source and known.status is Status.LEFT):
            core.answer(source, Ack(message.seq))
            return
        if known is not None and source.boot < known.id.boot:
            core.answer(source, Ack(message.seq, (rumour_of(known),)))  # Its time is over, and it does not know.
            return
        accused = self._merge.absorb(source, message.rumours, answered=True)
        if message.hint is not None:
            self._measured.push(message.hint)
        first = (self._myself.rumour(),) if accused else ()
        core.answer(source, Ack(message.seq, self._rumours.pick(source, first=first), self._measured.hint()))
        if core.table.of(source) is None:
            self._syncs.greet(source)

    def on_ack(self, source: NodeId, message: Ack) -> None:
        """It counts first: what it says may change the list."""
        self._prober.on_ack(source, message)
        self._merge.absorb(source, message.rumours)
        if message.hint is not None:
            self._measured.push(message.hint)

    def on_ping_req(self, source: NodeId, message: PingReq) -> None:
        self._merge.absorb(source, message.rumours)
        self._prober.relays.on_ping_req(source, message)

    def on_nack(self, source: NodeId, message: Nack) -> None:
        self._prober.on_nack(source, message)

    def on_gossip(self, source: NodeId, message: Gossip) -> None:
        self._merge.absorb(source, message.rumours)
