"""Members that gossip about values that an experiment sets, in views that it writes: what F8 to F10, N1 to N3 are made of.  Spec: limits 8.

No traffic and no processes: each member declares a value, and what is asked is how near its aggregate is to the sum of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from holdfast.features.limits.lab.conserved import Conserved
from holdfast.features.limits.lab.given_views import GivenViews, Overlay, install
from holdfast.features.limits.lab.plain import PlainSum
from holdfast.features.limits.protocol.config import LimitsConfig, key_of
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.outlet import NOTHING, Allotment, Wants
from holdfast.features.limits.protocol.pushsum import PushSum
from holdfast.features.limits.protocol.specs import Spec, Specs, make
from holdfast.host import Host, Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link
from holdfast.lab.listed_members import ListedMembers
from holdfast.lab.world import World

LIMIT = "x"
KEY = key_of(LIMIT)
RATE = 1000.0
ALONE = 1e6  # seconds between two comparisons of specs: each member is told of the limit, and there is nothing to compare


class Declared:
    """An outlet without processes: it wants what the experiment says."""

    def __init__(self) -> None:
        self.on_less: Callable[[], None] = lambda: None
        self.value = 0.0
        self.allotment: Allotment = NOTHING
        self.told = 0.0

    def wants(self) -> Wants:
        return Wants(0.0, 0.0, self.value)

    def allot(self, allotment: Allotment) -> None:
        self.allotment = allotment


class SumGroup:
    """So many members with one limit, or with push-sum as it was published (``plain``)."""

    def __init__(
        self,
        seed: int,
        members: int,
        config: LimitsConfig,
        *,
        link: Link,
        plain: bool = False,
        aggregate: str = "gossip",
        checked: bool = False,
        limits: Sequence[str] = (LIMIT,),
        fleet: int = 0,
        reserve: float = 0.05,
    ) -> None:
        """``fleet``: as many as there are if 0."""
        self.config, self.plain, self._limits = config, plain, limits
        self._spec = make(RATE, RATE / 10, share="demand", aggregate=aggregate, fleet=fleet or members, reserve=reserve)
        self.names = [f"n{number:03d}" for number in range(members)]
        self.overlay = Overlay()
        self.number = 0  # of the newest view
        conserved = [Conserved(_sums)] if checked and not plain else []
        self.world = World(seed, self._build, link=link, checkers=conserved)
        for name in self.names:
            self.world.start(name)

    # What experiments do.

    def install(self, names: Sequence[str] | None = None) -> None:
        """A new view of these, or of all."""
        chosen = self.names if names is None else list(names)
        self.number += 1
        if self.plain:
            lives = [self.world.nodes[name].me for name in chosen]
            for name in chosen:
                host = self.world.nodes[name]
                for other in chosen:
                    host.meet(self.world.nodes[other].me, self.world.nodes[other].address)
                self._step(name, partial(host.node.use(PlainSum).begin, [life for life in lives if life != host.me]))
        else:
            install(self.world, chosen, self.number, lambda host: host.node.use(GivenViews))

    def set(self, name: str, value: float) -> None:
        """What this member wants from now on."""
        host = self.world.nodes[name]
        if self.plain:
            self._step(name, partial(host.node.use(PlainSum).want, value))
        else:
            self.outlet(name).value = value

    def set_all(self, value: float) -> None:
        for name in self.names:
            self.set(name, value)

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    # What they see.

    def outlet(self, name: str, limit: str = LIMIT) -> Declared:
        return self.world.nodes[name].node.use(Members).outlets[limit]

    def limiter(self, name: str) -> Limiter:
        return self.world.nodes[name].node.use(Limiter)

    def estimate(self, name: str) -> float:
        """What this member takes the sum to be."""
        if self.plain:
            return self.world.nodes[name].node.use(PlainSum).estimate
        return self.limiter(name).allocator.limits[LIMIT].aggregates.get(KEY, 0.0)

    def share(self, name: str) -> float:
        """What it may use now."""
        return self.outlet(name).allotment.usable(self.world.nodes[name].now)

    def raw(self, name: str) -> float:
        """What gossip says, before it is blended with what was known (D9)."""
        found = self.limiter(name).sums
        assert found is not None
        return found.estimate(KEY)

    def errors(self, truth: float, read: Callable[[str], float] | None = None, names: Sequence[str] | None = None) -> list[float]:
        """Relative errors of all members."""
        chosen = self.names if names is None else names
        return [abs((read or self.estimate)(name) - truth) / truth for name in chosen]

    def _step(self, name: str, action: Callable[[], None]) -> None:
        self.world.step(self.world.nodes[name], action)

    def _build(self, host: Host) -> list[Machine]:
        if self.plain:
            return [PlainSum(host, epoch=self.config.epoch, fanout=self.config.fanout(len(self.names)))]
        members = ListedMembers(host)
        broadcast = Broadcast(host, members)
        exchange = Exchange(host, broadcast, ae_period=ALONE)
        views = GivenViews(host, self.overlay)
        specs = Specs(host, exchange)
        limiter = Limiter(host, self.config, views, specs, agreed=True)
        found = Members(limiter, specs, self._limits, self._spec)
        return [members, broadcast, exchange, views, limiter, found]


class Members:
    """Opens the limits of one member."""

    handles = ()
    fingerprint = b""

    def __init__(self, limiter: Limiter, specs: Specs, limits: Sequence[str], spec: Spec) -> None:
        self._limiter, self._specs, self._spec = limiter, specs, spec
        self.outlets = {limit: Declared() for limit in limits}

    def start(self) -> None:
        for limit, outlet in self.outlets.items():
            self._specs.set(limit, self._spec)
            self._limiter.open(limit, outlet)

    def on_message(self, source: object, message: object) -> None:
        """It has none."""

    def on_away(self, seconds: float) -> None:
        """Nothing is due here."""

    def stop(self) -> None:
        """It is over."""


def _sums(host: LabHost) -> PushSum | None:
    return host.node.use(Limiter).sums
