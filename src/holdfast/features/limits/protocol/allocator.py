"""The allocator: from the estimates of an instance to what this member may use of each limit.  Spec: limits 5.2, 5.3 step 6, 5.6, 5.7, D3.

Paper 003, 2.3 calls it so. It holds the limits of the group as they are known here, whether workers use them or not: of an exact one every
member holds a part. It sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf

from holdfast.errors import ConfigError, shown
from holdfast.events import Event, FleetExceeded, LimitPanicked, LimitRestored, Starved
from holdfast.features.limits.protocol import policy
from holdfast.features.limits.protocol.config import STARVED_AFTER, STARVED_SHARE, LimitsConfig
from holdfast.features.limits.protocol.demand import Demand
from holdfast.features.limits.protocol.limit import Estimate, Limit
from holdfast.features.limits.protocol.outlet import Outlet
from holdfast.features.limits.protocol.quota import Quotas
from holdfast.features.limits.protocol.specs import Spec, Specs
from holdfast.features.limits.protocol.standing import Standing
from holdfast.host import Host, Views


class Allocator:
    """All limits of one member."""

    def __init__(
        self,
        host: Host,
        views: Views,
        config: LimitsConfig,
        standing: Standing,
        quotas: Quotas,
        specs: Specs,
        told: Callable[[Event], None],
    ) -> None:
        self._host, self._views, self._config, self._standing, self._quotas, self._specs = host, views, config, standing, quotas, specs
        self._told = told
        self.limits: dict[str, Limit] = {}  # sorted by name
        self.by_key: dict[int, Limit] = {}  # by the key of their quota
        self._exceeded: dict[str, tuple[int, int]] = {}  # fleet and size that ``FleetExceeded`` was told for
        self._panicked: set[str] = set()  # limits of which panic was told
        for name, spec in specs.items():
            self.on_spec(name, None, spec)

    # Limits come and go.

    def on_spec(self, name: str, before: Spec | None, spec: Spec) -> None:
        """Another version counts here from now on (5.10)."""
        del before
        known = self.limits.get(name)
        if known is None:
            if spec.removed:
                return
            known = Limit(name, spec, self._config)
            self.limits = dict(sorted({**self.limits, name: known}.items()))
            self.by_key[known.key] = known
        known.spec = spec
        self._look_at_fleet(known)
        self._forget(known)

    def open(self, name: str, outlet: Outlet, demand: Demand | None) -> None:
        """Workers of this agent use it from now on."""
        known = self.limits.get(name)
        if known is None or known.spec.removed:
            raise ConfigError(f"limit {shown(name)}: there is no such limit in this group")
        if not known.spec.is_fair and not self._standing.agreed:
            raise ConfigError(f"limit {shown(name)}: policies strict and exact need agreed views; set seats, or use policy fair")
        assert not known.is_open
        known.open(outlet, demand)

    def close(self, name: str) -> None:
        """They do not any more; what they held is given up."""
        known = self.limits[name]
        known.close()
        self._panicked.discard(name)
        self._forget(known)

    def sweep(self) -> None:
        """Limits that are gone everywhere, also in the hands of workers."""
        for limit in [each for each in self.limits.values() if each.spec.removed]:
            self._forget(limit)

    def _forget(self, limit: Limit) -> None:
        if limit.spec.removed and not limit.is_open and limit.told <= 0:
            del self.limits[limit.name], self.by_key[limit.key]

    @property
    def open_limits(self) -> Iterable[Limit]:
        return [limit for limit in self.limits.values() if limit.is_open]

    # Numbers.

    def rate_of(self, limit: Limit) -> float:
        """R."""
        return limit.spec.rate_at(self._host.wall())

    def fleet_of(self, limit: Limit) -> int:
        """The n of D3; 0: nothing is known of the others yet, and nothing may be used."""
        if limit.spec.is_exact:
            holding = self._quotas.holdings.get(limit.key)
            return limit.spec.fleet if holding is None else max(holding.fleet, limit.spec.fleet)
        if limit.spec.fleet:
            return limit.spec.fleet
        if self._standing.fleet:
            return max(self._standing.fleet, self._standing.size)
        return 1 if self._host.now >= self._standing.started_at + self._views.settle else 0

    def whole_of(self, limit: Limit) -> float:
        """G."""
        return policy.whole(self.rate_of(limit), self._standing.size, self.fleet_of(limit))

    def fleets(self) -> dict[int, int]:
        """Of every exact limit its n, as it is set."""
        return {limit.key: limit.spec.fleet for limit in self.limits.values() if limit.spec.is_exact and not limit.spec.removed}

    def exact_limits(self) -> list[Limit]:
        return [limit for limit in self.limits.values() if limit.spec.is_exact and not limit.spec.removed]

    def quota_target(self, limit: Limit) -> int:
        return policy.quota_for(limit.target, self.rate_of(limit), self.fleet_of(limit))

    # Once an epoch.

    def measure(self, elapsed: float) -> None:
        size = self._standing.size
        for limit in self.limits.values():
            limit.measure(elapsed, self.whole_of(limit), size)

    def values(self, *, central: bool) -> dict[int, int]:
        """The portions that this member reports."""
        found: dict[int, int] = {}
        for limit in self.limits.values():
            if limit.spec.is_central == central:
                found.update(limit.values)
        return found

    def allocate(self, gossip: Estimate, central: Estimate, reported: Mapping[int, int]) -> None:
        """Aggregates, targets, and what follows for the workers."""
        size = self._standing.size
        for limit in self.limits.values():
            limit.estimate(central if limit.spec.is_central else gossip)
            limit.aim(self.whole_of(limit), size, limit.values if limit.spec.is_central else reported)
        self.allot_all()

    def allot_all(self) -> None:
        for limit in list(self.limits.values()):
            self.allot(limit)

    def allot(self, limit: Limit) -> None:
        """What this member may use now, and until when."""
        standing, views, now = self._standing, self._views, self._host.now
        rate = 0.0 if limit.spec.removed else self.rate_of(limit)
        fleet = self.fleet_of(limit)
        single = policy.single(rate, fleet)
        # A member list may be usable for ever; what a worker was told ends all the same, as with a lease.
        until = now + views.lease if standing.panic else min(views.leased_until, now + views.lease)
        ends_at = policy.ends_at(until, views.settle, views.lease) if limit.spec.is_exact else inf
        limit.allot(self._used(limit, rate, fleet, single), until, single, ends_at, rate)

    def _used(self, limit: Limit, rate: float, fleet: int, single: float) -> float:
        standing = self._standing
        if not limit.is_open and not limit.spec.is_exact:
            return 0.0
        if limit.spec.is_exact:
            holding = self._quotas.holdings.get(limit.key)
            return 0.0 if holding is None else policy.exact(rate, holding.q, fleet)
        target = min(rate, limit.target)
        if limit.spec.is_strict:
            panic, lapsed, may_grow = standing.panic, standing.lapsed, standing.may_grow
            return policy.strict(limit.used, target, single, panic=panic, lapsed=lapsed, may_grow=may_grow)
        return policy.fair(target, single, panic=standing.panic)

    def estimates(self) -> dict[int, float]:
        """For the pace."""
        return {key: known for limit in self.limits.values() for key, known in limit.aggregates.items()}

    # What happens to all of them.

    def begin(self, former: int) -> None:
        """A new instance (5.6)."""
        for limit in self.limits.values():
            limit.begin(former, self._standing.size)
            self._look_at_fleet(limit)

    def on_panic(self) -> None:
        for limit in self.limits.values():
            limit.forget()
        self.allot_all()
        for limit in self.open_limits:
            if limit.name not in self._panicked:
                self._panicked.add(limit.name)
                self._told(LimitPanicked(limit.name, limit.used))

    def on_confirmed(self) -> None:
        """The lease on the view that was delivered may end before the one on the former view: no worker is told more time than it has."""
        for limit in list(self.limits.values()):
            if limit.allotted.until > self._views.leased_until:
                self.allot(limit)

    def on_calm(self) -> None:
        self.allot_all()
        for limit in self.open_limits:
            if limit.name in self._panicked:
                self._panicked.discard(limit.name)
                self._told(LimitRestored(limit.name, limit.used))

    def is_beyond(self, limit: Limit) -> bool:
        """D3: there are more members than the limit is divided for, and this one is not of the first."""
        fleet = limit.spec.fleet
        return 0 < fleet < self._standing.size and self._standing.rank() >= fleet

    def claims_at(self, name: str) -> float:
        """Before this instant this life takes no part of an exact limit that a former one had: its processes may go on with it (H310).
        0: it has it, or there is none."""
        limit = self.limits.get(name)
        if limit is None or not limit.spec.is_exact or self.is_beyond(limit):
            return 0.0
        holding = self._quotas.holdings.get(limit.key)
        return 0.0 if holding is not None and holding.raised else self._standing.settle_at

    def look_for_starving(self) -> None:
        for limit in self.open_limits:
            seconds = limit.look_for_starving(self._host.now, STARVED_AFTER, STARVED_SHARE * self.rate_of(limit))
            if seconds is not None:
                self._told(Starved(limit.name, seconds))

    def _look_at_fleet(self, limit: Limit) -> None:
        fleet, size = limit.spec.fleet, self._standing.size
        if not 0 < fleet < size:
            self._exceeded.pop(limit.name, None)
        elif self._exceeded.get(limit.name) != (fleet, size):
            self._exceeded[limit.name] = (fleet, size)
            self._told(FleetExceeded(limit.name, fleet, size))
