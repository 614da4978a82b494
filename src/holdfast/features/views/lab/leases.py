"""CB6: one group at a time, exactly as G6 says it, at every instant.  Spec: views 1 (G6), 7 (CB6), D24.

Every condition of G6 names a view, or two clients, and an instant from which on a valid lease is a violation. So the checker keeps for each
client what it counts on and until when, in true time, and knows the first instant at which two of these facts would contradict each other.
Nothing is missed between two events, because between them only time passes. Clocks are those of the clients (``host.now``); a stopped
process counts on its lease, too, and a dead one does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from holdfast.events import Event, ViewChanged
from holdfast.features.views.protocol.config import ViewsConfig
from holdfast.features.views.protocol.facts import Detached
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import NodeId, View, ViewId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World

ROUNDING = 1e-6  # seconds: true time and the clocks of nodes differ by rounding errors


class Holding:
    """What one client counts on, in true time."""

    __slots__ = ("host", "installed_at", "lives", "node", "reading", "ripe_at", "since", "until", "view")

    def __init__(self, host: LabHost, node: ViewNode) -> None:
        self.host, self.node = host, node
        self.view: View | None = None
        self.lives: frozenset[NodeId] = frozenset()
        self.installed_at = -inf
        self.ripe_at = inf  # when it has been installed for ``settle``
        self.reading = -inf  # ``leased_until`` as it was read last
        self.until = -inf  # the end of the lease
        self.since = -inf  # when ``until`` was read


class OneGroup(Checker):
    """CB6, G6 (a), (b) and (c) over all pairs of living clients."""

    name = "CB6 one-group"

    def __init__(self, config: ViewsConfig) -> None:
        self._config = config
        self._holdings: dict[LabHost, Holding] = {}  # of living clients
        self._views: dict[ViewId, View] = {}
        self._over: dict[ViewId, tuple[float, str]] = {}  # from then on no lease on it is valid (a, c), and why
        self._left: dict[NodeId, list[tuple[int, float]]] = {}  # attachments that began, and when the ones before them are over
        self._next = inf  # nothing can be violated before
        self.settled_pairs = 0  # that were compared: a run without any shows nothing

    @property
    def settle(self) -> float:
        return self._config.settle

    def after(self, world: World, host: LabHost | None) -> None:
        now = world.now
        if now > self._next:
            self._look(now)
        if host is None:
            for each in [each for each in self._holdings if each.dead]:
                del self._holdings[each]
            return
        holding = self._holdings.get(host)
        if holding is not None and holding.node.leased_until != holding.reading:
            self._read(holding, now)

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, ViewChanged):
            self._on_installed(world, host, event.view)
        elif isinstance(event, Detached):
            self._on_detached(host, event.attach, world.now + self.settle / host.rate)

    def _on_installed(self, world: World, host: LabHost, view: View) -> None:
        if world.now > self._next:
            self._look(world.now)  # as it was until now
        ripe_at = world.now + self.settle / host.rate
        holding = self._holdings.get(host)
        if holding is None:
            holding = self._holdings[host] = Holding(host, host.node.use(ViewNode))
        if holding.view is not None:
            self._end(holding.view.id, ripe_at, f"{host.me} installed {view.id} after it")
        if view.id not in self._views:
            self._views[view.id] = view
            for member in view.members:
                self._end_if_left(view, member.id, member.attach)
        holding.view, holding.lives = view, frozenset(member.id for member in view.members)
        holding.installed_at, holding.ripe_at = world.now, ripe_at
        self._read(holding, world.now)

    def _on_detached(self, host: LabHost, attach: int, over_at: float) -> None:
        self._left.setdefault(host.me, []).append((attach, over_at))
        for view in self._views.values():
            member = view.find(host.me.name)
            if member is not None and member.id == host.me:
                self._end_if_left(view, host.me, member.attach)

    def _end_if_left(self, view: View, life: NodeId, attach: int) -> None:
        """(c) From ``settle`` after this client left the attachment that the view lists."""
        over_at = next((over_at for began, over_at in self._left.get(life, ()) if began > attach), None)
        if over_at is not None:
            self._end(view.id, over_at, f"{life} left attachment {attach}, which it lists")

    def _end(self, view: ViewId, at: float, why: str) -> None:
        if at < self._over.get(view, (inf, ""))[0]:
            self._over[view] = at, why
            for holding in self._holdings.values():
                if holding.view is not None and holding.view.id == view:
                    self._next = min(self._next, self._breach_of(holding))

    def _read(self, holding: Holding, now: float) -> None:
        host = holding.host
        holding.reading = holding.node.leased_until
        holding.until = -inf if holding.reading == -inf else now + (holding.reading - host.now) / host.rate
        holding.since = now
        for at, _ in self._breaches(holding):
            self._next = min(self._next, at)
        if now >= self._next:
            self._look(now)

    def _look(self, now: float) -> None:
        """What can first be violated, and is there anything by now?"""
        found = [breach for holding in self._holdings.values() for breach in self._breaches(holding)]
        at, what = min(found, default=(inf, ""))
        if at <= now:
            self.fail(f"{what} at {at:.6f} s")
        self._next = at

    def _breaches(self, holding: Holding) -> Iterator[tuple[float, str]]:
        """When what this client counts on contradicts G6, if nothing happens meanwhile."""
        if holding.view is None:
            return
        at = self._breach_of(holding)
        if at < inf:
            over_at, why = self._over[holding.view.id]
            yield at, f"{holding.host.me} counts on {holding.view.id} until {holding.until:.6f} s; it is over at {over_at:.6f} s: {why}"
        for other in self._holdings.values():
            at = self._breach_between(holding, other)
            if at < inf:
                assert other.view is not None
                yield at, f"{holding.host.me} in {holding.view.id} and {other.host.me} in {other.view.id} both count on settled views"

    def _breach_of(self, holding: Holding) -> float:
        """(a) and (c)."""
        if holding.view is None or holding.view.id not in self._over:
            return inf
        at = max(self._over[holding.view.id][0], holding.since)
        return at if at + ROUNDING < holding.until else inf

    def _breach_between(self, one: Holding, other: Holding) -> float:
        """(b)"""
        if other is one or one.view is None or other.view is None:
            return inf
        at = max(one.ripe_at, other.ripe_at, one.since, other.since)
        if at + ROUNDING >= min(one.until, other.until):
            return inf
        self.settled_pairs += 1
        related = one.host.me in other.lives or other.host.me in one.lives
        return at if related and one.view.id != other.view.id else inf
