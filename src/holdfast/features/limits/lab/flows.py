"""Members that limit flows of traffic on real views: what F1, F6, F7 and T1 are made of.  Spec: limits 5.2 (flows), 8; paper 003, 7.1.

What flows use follows the limit down at once and up with a time constant of a second, as TCP does. The rates of flows differ a little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import exp
from random import Random

from holdfast.features.limits.lab.measures import thinned
from holdfast.features.limits.lab.terms import Policy
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.demand import FlowDemand
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.outlet import NOTHING, Allotment, Outlet, Wants
from holdfast.features.limits.protocol.specs import Specs, make
from holdfast.features.views.lab.groups import STEP, ViewGroup, slots_of
from holdfast.features.views.lab.users import Habits, ViewUser
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import Host, Machine, Message, NodeId, Views
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.parcels import Parcels
from holdfast.kit.slots import own_slot
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link
from holdfast.lab.listed_members import ListedMembers, Lists

LIMIT = "traffic"
RATE, MEMBERS, SERVERS = 6.0, 6, 3  # Mbps, and who shares them
# The paper's limiters, by the agent that stands for each: c0 and c3 are at server s0 (its S_a), c1 and c4 at s1, c2 and c5 at s2.
L1, L2, L3, L4, L5, L6 = "c0", "c3", "c1", "c4", "c2", "c5"
FLOWS: Mapping[str, int] = {L2: 40, L6: 20}
RESERVE = 0.0  # the paper has none (D7)
RISE = 1.0  # seconds
NOISE = 0.05
AGAIN = 1.0  # seconds between two comparisons of specs


class Traffic(Outlet):
    """The flows of one member."""

    def __init__(self, host: Host, flows: int) -> None:
        self.on_less: Callable[[], None] = lambda: None
        self.flows = flows
        self.allotment: Allotment = NOTHING
        self.use = 0.0
        self._host, self._random = host, Random(f"{host.me}/flows")
        self._at = host.now
        self._arrived = 0.0

    @property
    def told(self) -> float:
        """Nothing stands between the limiter and the flows."""
        return self.allotment.usable(self._host.now)

    @property
    def largest(self) -> float:
        """Rate of the largest flow."""
        return self.told / self.flows * (1 + NOISE * self._random.random()) if self.flows else 0.0

    def wants(self) -> Wants:
        self.advance()
        arrived, self._arrived = self._arrived, 0.0
        return Wants(arrived, 0.0)

    def allot(self, allotment: Allotment) -> None:
        self.advance()
        self.allotment = allotment
        self.advance()

    def advance(self) -> None:
        """What flows did since the last time."""
        now = self._host.now
        elapsed, self._at = now - self._at, now
        self._arrived += self.use * elapsed
        limit = self.told if self.flows else 0.0
        self.use = limit if self.use > limit else self.use + (limit - self.use) * (1 - exp(-elapsed / RISE))


class Opener:
    """Opens the limit of one agent."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, host: Host, limiter: Limiter, specs: Specs, flows: int, policy: Policy, fleet: int) -> None:
        self._limiter, self._specs, self._policy, self._fleet = limiter, specs, policy, fleet
        self.traffic = Traffic(host, flows)

    def start(self) -> None:
        self._specs.offer(LIMIT, make(RATE, 1.0, policy=self._policy, share="demand", fleet=self._fleet, reserve=RESERVE))
        limiter = self._limiter
        limit = limiter.allocator.limits[LIMIT]
        demand = FlowDemand(
            lambda: self.traffic.largest, lambda: limit.aggregates.get(limit.key, 0.0), partial(limiter.allocator.whole_of, limit)
        )
        limiter.open(LIMIT, self.traffic, demand)

    def on_message(self, source: NodeId, message: Message) -> None:
        """It has none."""

    def on_away(self, seconds: float) -> None:
        """Flows that waited are not made up."""

    def stop(self) -> None:
        """It is over."""


def limited(
    host: Host, views: Views, exchange: Exchange, config: LimitsConfig, *, flows: int, policy: Policy, fleet: int
) -> tuple[Limiter, Opener]:
    """The machines of a member that has this limit."""
    specs = Specs(host, exchange)
    limiter = Limiter(host, config, views, specs, agreed=True)
    return limiter, Opener(host, limiter, specs, flows, policy, fleet)


class Recorded:
    """What members may use, as it was written down."""

    def __init__(self, names: Iterable[str]) -> None:
        self.lines: dict[str, list[tuple[float, float]]] = {name: [] for name in names}  # of each member with flows
        self.sums: list[tuple[float, float]] = []

    def note(self, at: float, shares: Mapping[str, float]) -> None:
        for name, line in self.lines.items():
            line.append((at, shares[name]))
        self.sums.append((at, sum(shares.values())))

    def thin(self) -> dict[str, list[tuple[float, float]]]:
        """The lines of a figure."""
        return {name: thinned(line) for name, line in self.lines.items()}


class FlowGroup(ViewGroup):
    """Three servers with two agents each, which do not fail over."""

    def __init__(
        self,
        seed: int,
        config: LimitsConfig,
        *,
        policy: Policy = "fair",
        flows: Mapping[str, int] = FLOWS,
        servers: int = SERVERS,
        clients: int = MEMBERS,
        link: Link | None = None,
    ) -> None:
        self.limits, self.policy, self.flows, self.fleet = config, policy, flows, clients
        self.recorded = Recorded(flows)
        self._own_slots, self._began = slots_of(servers), 0.0
        super().__init__(seed, servers, clients, config=ViewsConfig(), habits=Habits(says=0.0), homes=True, checkers=[], link=link)
        Lists(self.world, ())

    def used(self, name: str) -> float:
        """L of this agent."""
        host = self.world.nodes[name]
        return 0.0 if not host.running else host.node.use(Opener).traffic.told

    def warm_up(self, seconds: float) -> None:
        """Run; the clock of the figure begins after it."""
        self.run(seconds)
        self._began = self.world.now

    def record(self, until: float) -> None:
        """Run, and write down what all may use."""
        while self.world.now < self._began + until - STEP / 2:
            self.run(STEP)
            at = self.world.now - self._began
            self.recorded.note(at, {name: self.used(name) for name in self.clients})

    def _build(self, host: Host) -> Sequence[Machine]:
        assert isinstance(host, LabHost)
        members = ListedMembers(host)
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast, ae_period=AGAIN)
        own = own_slot(self._own_slots, host.me.name, host.address)
        views = ViewNode(host, self.config, self._own_slots, own, Parcels(host.node, host.wall))
        found: list[Machine] = [members, broadcast, exchange, views]
        if own is not None:
            return [*found, ViewUser(host, views, Habits(takes_part=False))]
        flows = self.flows.get(host.me.name, 0)
        machines = limited(host, views, exchange, self.limits, flows=flows, policy=self.policy, fleet=self.fleet)
        return [*found, ViewUser(host, views, Habits(says=0.0)), *machines]
