"""Members whose limits are used by flows of traffic, as in the paper: what F6, F7, F11, F12 and T1 are made of.  Spec: limits 5.2, 8.

Traffic is a fluid. What a member's flows use falls with its limit at once, as packets are dropped, and grows towards it with a time constant.
All flows of a member are equal but for noise, so the limit over the rate of the largest one says how many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp
from random import Random

from holdfast.features.limits.lab.given_views import GivenViews
from holdfast.features.limits.lab.sums import ALONE, SumGroup
from holdfast.features.limits.protocol.config import UNIT, LimitsConfig, key_of
from holdfast.features.limits.protocol.demand import FlowDemand
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.outlet import NOTHING, Allotment, Wants
from holdfast.features.limits.protocol.specs import Spec, Specs, make
from holdfast.host import Host, Machine, Message, NodeId
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link
from holdfast.lab.listed_members import ListedMembers

GROWS_IN = 1.0  # seconds: the time constant with which use grows
NOISE = 0.05  # of the rate of each flow
FLOWS = "flows"


class Flows:
    """An outlet. All of its flows are at one member."""

    def __init__(self, host: Host, random: Random) -> None:
        self._host, self._random = host, random
        self.on_less: Callable[[], None] = lambda: None
        self.allotment: Allotment = NOTHING
        self.count = 0
        self.used = 0.0  # in all
        self._use = self._limit = 0.0
        self._at = host.now
        self._looked_at_used = 0.0

    @property
    def told(self) -> float:
        """Packets are dropped by the agent itself."""
        return 0.0

    @property
    def limit(self) -> float:
        return self.allotment.usable(self._host.now)

    def wants(self) -> Wants:
        self.advance()
        arrived, self._looked_at_used = self.used - self._looked_at_used, self.used
        return Wants(arrived, 0.0)

    def allot(self, allotment: Allotment) -> None:
        self.advance()
        self.allotment = allotment

    def largest(self) -> float:
        """The rate of the largest flow, as it is measured: each is an equal part of the use, with noise of its own."""
        if not self.count:
            return 0.0
        return self._use / self.count * (1 + NOISE * max(self._random.gauss(0.0, 1.0) for _ in range(self.count)))

    def advance(self) -> None:
        """Since the last look the limit was what it is, or what it became when its time was over."""
        elapsed, self._at = self._host.now - self._at, self._host.now
        limit = self.limit if self.count else 0.0
        missing = max(0.0, limit - self._use)
        left = missing * exp(-elapsed / GROWS_IN)
        self.used += limit * elapsed - (missing - left) * GROWS_IN
        self._use = limit - left


class FlowUser:
    """Opens the limit of one member for its flows. A machine."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, host: Host, limiter: Limiter, specs: Specs, spec: Spec) -> None:
        assert isinstance(host, LabHost)
        self._limiter, self._specs, self._spec = limiter, specs, spec
        self.flows = Flows(host, Random(f"{host.world.seed}/flows/{host.me.name}"))
        self._key = key_of(FLOWS)

    def start(self) -> None:
        self._specs.offer(FLOWS, self._spec)
        self._limiter.open(FLOWS, self.flows, FlowDemand(self.flows.largest, self._aggregate, self._whole))

    def on_message(self, source: NodeId, message: Message) -> None:
        """It has none."""

    def on_away(self, seconds: float) -> None:
        """Flows are looked at by the clock."""

    def stop(self) -> None:
        """It is over."""

    @property
    def aggregate(self) -> float:
        """The weight of all, as this member knows it."""
        return self._aggregate()

    @property
    def weight(self) -> float:
        """What this member reports."""
        return self._limiter.allocator.limits[FLOWS].values.get(self._key, 0) / UNIT

    def _aggregate(self) -> float:
        return self._limiter.allocator.limits[FLOWS].aggregates.get(self._key, 0.0)

    def _whole(self) -> float:
        return self._limiter.allocator.whole_of(self._limiter.allocator.limits[FLOWS])


class FlowGroup(SumGroup):
    """So many members with flows, in views that an experiment writes."""

    def __init__(
        self, seed: int, members: int, config: LimitsConfig, *, link: Link, rate: float, reserve: float, aggregate: str = "gossip"
    ) -> None:
        self._spec = make(rate, max(1.0, rate / 10), share="demand", aggregate=aggregate, fleet=members, reserve=reserve)
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
        return [members, broadcast, exchange, views, limiter, FlowUser(host, limiter, specs, self._spec)]
