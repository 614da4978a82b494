"""What must come about when the faults are over: one instance, no black list, all of the quota, and shares as the wants say.

Spec: limits 7 (RL4 at rest, RL6, RL7). What shares should come to is counted by ``terms``, not by what limiters know.
"""

from __future__ import annotations

from holdfast.features.limits.lab.fleet import Fleet
from holdfast.features.limits.lab.terms import Terms, shares_of, spare_of
from holdfast.features.limits.protocol.config import QUOTA, LimitsConfig, key_of
from holdfast.features.limits.protocol.limiter import Limiter
from holdfast.features.views.lab.users import ViewUser
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import ViewState
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.violation import Violation
from holdfast.lab.world import World

PATIENCE = 25.0  # seconds after the last fault (RL6)
NEAR = 0.06  # of R (RL6)


class LimitsSettled(Checker):
    """RL6 and RL7. It looks when it is asked (``why``), after the faults."""

    name = "RL7 whole"

    def __init__(self, fleet: Fleet, views: ViewsConfig, config: LimitsConfig) -> None:
        self._fleet, self._views, self._config = fleet, views, config
        self._calm_at: float | None = None
        self._viewed_at = 0.0  # since then the views are as they should be
        self.took = 0.0  # seconds until all was well
        self.worst = 0.0  # error of a share, of R, when it was

    def why(self, world: World) -> str:
        """Why the group is not yet as it should be; "" if it is. Fails if that takes too long."""
        if self._calm_at is None:
            self._calm_at = self._viewed_at = world.now
            for host in world.alive:
                world.step(host, host.node.use(ViewUser).rest)  # Users trip no more: each trip is a view, and ``settle`` of waiting.
        if all(host.me.name in self._fleet.crews for host in world.alive):
            return ""  # No server lives, so there is no view for ever.
        name, why = "RL7 whole", self._no_view(world)
        if why:
            self._viewed_at = world.now  # views CB7 says how long that may take, and ``settle`` of exact limits counts from then.
        else:
            why = self._apart(world)
            if not why:
                name, why = "RL6 share", self._unfair(world)
        self.took = world.now - self._calm_at
        if why and world.now - self._viewed_at > PATIENCE:
            raise Violation(name, f"{world.now - self._viewed_at:.3f} s after the last view: {why}")
        return why

    def _members(self, world: World) -> list[LabHost]:
        return [host for host in world.alive if host.me.name in self._fleet.crews]

    def _no_view(self, world: World) -> str:
        members = self._members(world)
        lives = sorted(host.me for host in members)
        for host in members:
            node = host.node.use(ViewNode)
            listed = [] if node.view is None else [member.id for member in node.view.members]
            if node.state is not ViewState.STABLE or listed != lives:
                return f"{host.me} is {node.state.name.lower()} with {len(listed)} members"
        return ""

    def _apart(self, world: World) -> str:
        members = self._members(world)
        instances = set()
        for host in members:
            limiter = host.node.use(Limiter)
            if limiter.sums is None or limiter.standing.provisional or limiter.standing.panic:
                return f"{host.me} is in no instance, or provisional, or in panic"
            if limiter.links.black:
                return f"{host.me} has {len(limiter.links.black)} peers on its black list"
            instances.add(limiter.sums.inst)
        if len(instances) > 1:
            return f"there are {len(instances)} instances"
        return next((why for terms in self._fleet.terms.values() if terms.policy == "exact" and (why := self._quota(world, terms))), "")

    def _quota(self, world: World, terms: Terms) -> str:
        """RL4 at rest: each member brought its 1/n in, and nothing is lost or doubled."""
        key, members = key_of(terms.name), self._members(world)
        held = moving = 0
        for host in members:
            quotas = host.node.use(Limiter).quotas
            if not quotas.holdings[key].raised:
                return f"{terms.name} of {host.me} was not raised"
            held += quotas.holdings[key].q + sum(promise.amount for promise in quotas.promises if promise.key == key)
            moving += sum(ledger.outstanding.get(key, 0) for ledger in quotas.ledgers.values())
        if moving:
            return f"{terms.name}: quota is under way"
        whole = min(len(members), terms.fleet) * QUOTA
        return "" if held == whole else f"{terms.name}: {held / QUOTA:.9f} of {whole // QUOTA} parts are held"

    def _unfair(self, world: World) -> str:
        """RL6, for what does not change."""
        members = self._members(world)
        self.worst = 0.0
        for terms in self._fleet.terms.values():
            if not terms.constant:
                continue
            wants = {host.me.name: self._fleet.crews[host.me.name].wanted(terms.name) for host in members}
            spare = spare_of(terms, wants, len(members))
            for name, share in shares_of(terms, wants, len(members)).items():
                used = self._fleet.enforced(name, terms.name)
                least, most = share - spare / len(members), share + spare * (1 - 1 / len(members))
                error = max(least - used, used - most, 0.0) / terms.rate
                self.worst = max(self.worst, error)
                if error > NEAR:
                    return f"{terms.name}: {name} may use {used:.3f}, expected {share:.3f} of {terms.rate:g}; wants are {wants}"
        return ""
