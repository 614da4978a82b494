"""Flows at many members, in views that an experiment writes: what F11 and F12 are made of.  Spec: limits 5.2 (flows), 8."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.features.limits.lab.flows import Traffic
from holdfast.features.limits.lab.given_views import GivenViews
from holdfast.features.limits.lab.sums import ALONE, LIMIT, SumGroup
from holdfast.features.limits.protocol.config import UNIT, LimitsConfig, key_of
from holdfast.features.limits.protocol.demand import FlowDemand
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.specs import Spec, Specs, make
from holdfast.host import Host, Machine, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.links import Link
from holdfast.lab.listed_members import ListedMembers


class FlowUser:
    """Opens the limit of one member for its flows. A machine."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, host: Host, limiter: Limiter, specs: Specs, spec: Spec) -> None:
        self._limiter, self._specs, self._spec = limiter, specs, spec
        self.traffic = Traffic(host, 0)
        self._key = key_of(LIMIT)

    def start(self) -> None:
        self._specs.offer(LIMIT, self._spec)
        self._limiter.open(LIMIT, self.traffic, FlowDemand(lambda: self.traffic.largest, lambda: self.aggregate, self._whole))

    def on_message(self, source: NodeId, message: Message) -> None:
        """It has none."""

    def on_away(self, seconds: float) -> None:
        """Flows are looked at by the clock."""

    def stop(self) -> None:
        """It is over."""

    @property
    def aggregate(self) -> float:
        """The weight of all, as this member knows it."""
        return self._limiter.allocator.limits[LIMIT].aggregates.get(self._key, 0.0)

    @property
    def weight(self) -> float:
        """What this member reports."""
        return self._limiter.allocator.limits[LIMIT].values.get(self._key, 0) / UNIT

    def _whole(self) -> float:
        return self._limiter.allocator.whole_of(self._limiter.allocator.limits[LIMIT])


class ManyFlows(SumGroup):
    """So many members; none has flows at first."""

    def __init__(
        self, seed: int, members: int, config: LimitsConfig, *, link: Link, rate: float, reserve: float, aggregate: str = "gossip"
    ) -> None:
        self._flow_spec = make(rate, max(1.0, rate / 10), share="demand", aggregate=aggregate, fleet=members, reserve=reserve)
        super().__init__(seed, members, config, link=link, aggregate=aggregate)

    def user(self, name: str) -> FlowUser:
        return self.world.nodes[name].node.use(FlowUser)

    def _build(self, host: Host) -> list[Machine]:
        members = ListedMembers(host)
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast, ae_period=ALONE)
        views = GivenViews(host, self.overlay)
        specs = Specs(host, exchange)
        limiter = Limiter(host, self.config, views, specs, agreed=True)
        return [members, broadcast, exchange, views, limiter, FlowUser(host, limiter, specs, self._flow_spec)]
