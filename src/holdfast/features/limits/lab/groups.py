"""Agents with limits on views: what scenarios and experiments are made of.  Spec: limits 7, 8.

Servers s0.. serve views and have no limits; agents c0.. are the members. Each has the processes that ``Fleet`` gives it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.features.limits.lab.conserved import Conserved
from holdfast.features.limits.lab.crews import Desk, Outlet
from holdfast.features.limits.lab.fleet import Appetites, Fleet
from holdfast.features.limits.lab.parts import Parts
from holdfast.features.limits.lab.settled import LimitsSettled
from holdfast.features.limits.lab.terms import Terms
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.limits.protocol.pushsum import PushSum
from holdfast.features.limits.protocol.specs import Specs, make
from holdfast.features.views.lab.groups import ViewGroup, slots_of
from holdfast.features.views.lab.users import Habits, ViewUser
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import Host, Machine
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.parcels import Parcels
from holdfast.kit.slots import Slot, own_slot
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link
from holdfast.lab.listed_members import ListedMembers, Lists

QUIET = Habits(says=0.0)
NO_USERS = Habits(takes_part=False)


def machines(
    host: Host, slots: Sequence[Slot], fleet: Fleet, *, views: ViewsConfig, config: LimitsConfig, habits: Habits = QUIET
) -> list[Machine]:
    """The machines of one life. A server is known by its slot."""
    assert isinstance(host, LabHost)
    members = ListedMembers(host)
    broadcast = Broadcast(host, members)
    exchange = Exchange(host, broadcast)
    own = own_slot(slots, host.me.name, host.address)
    node = ViewNode(host, views, slots, own, Parcels(host.node, host.wall))
    specs = Specs(host, exchange)
    found: list[Machine] = [members, broadcast, exchange, node]
    if own is not None:
        return [*found, ViewUser(host, node, NO_USERS)]
    limiter = Limiter(host, config, node, specs, agreed=True)
    return [*found, ViewUser(host, node, habits), limiter, fleet.desk(host, opener(limiter, specs, fleet))]


def opener(limiter: Limiter, specs: Specs, fleet: Fleet) -> Callable[[str, Outlet], None]:
    """A process names its limit: it is there from then on."""

    def open_limit(name: str, outlet: Outlet) -> None:
        terms = fleet.terms[name]
        asked = make(
            terms.rate,
            terms.burst,
            policy=terms.policy,
            share=terms.share,
            aggregate=terms.aggregate,
            fleet=terms.fleet,
            reserve=terms.reserve,
        )
        specs.offer(name, asked)
        limiter.open(name, outlet)

    return open_limit


def checkers_of(fleet: Fleet, views: ViewsConfig, config: LimitsConfig) -> list[Checker]:
    """RL1 to RL5, RL8 and RL9 after every event, and the one that is asked for RL6 and RL7 when the faults are over."""

    def sum_of(host: LabHost) -> PushSum | None:
        """The instance that this agent gossips in."""
        return host.node.use(Limiter).sums if host.me.name in fleet.crews else None

    return [Conserved(sum_of), fleet, Parts(fleet), LimitsSettled(fleet, views, config)]


class LimitGroup(ViewGroup):
    """A group for directed runs and experiments."""

    def __init__(
        self,
        seed: int,
        servers: int,
        clients: int,
        terms: Sequence[Terms],
        appetites: Callable[[str], Appetites],
        *,
        config: LimitsConfig | None = None,
        views: ViewsConfig | None = None,
        link: Link | None = None,
        drift: float = 0.0,
        homes: bool = False,
        checked: bool = True,
    ) -> None:
        """``appetites``: of the processes of an agent. ``homes``: agent i reaches server i modulo the number of servers alone."""
        self.limits = LimitsConfig() if config is None else config
        views = ViewsConfig() if views is None else views
        self.fleet = Fleet(terms, appetites, period=self.limits.epoch / 2)
        checkers = checkers_of(self.fleet, views, self.limits) if checked else [self.fleet]
        self._own_slots = slots_of(servers)
        super().__init__(seed, servers, clients, config=views, habits=QUIET, link=link, drift=drift, homes=homes, checkers=checkers)
        Lists(self.world, ())

    def limiter(self, name: str) -> Limiter:
        return self.world.nodes[name].node.use(Limiter)

    def desk(self, name: str) -> Desk:
        return self.world.nodes[name].node.use(Desk)

    def used(self, limit: str) -> dict[str, float]:
        """L of every living agent, cost per second."""
        return {name: self.fleet.enforced(name, limit) for name in self.clients if not self.world.nodes[name].dead}

    def _build(self, host: Host) -> Sequence[Machine]:
        return machines(host, self._own_slots, self.fleet, views=self.config, config=self.limits)
