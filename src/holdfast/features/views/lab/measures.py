"""What experiments count in a group with views: when all are in one view, how a change went, what a violation is.  Spec: views 8."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from holdfast.events import Event, ViewChanged
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.protocol.facts import Delivered, Proposed
from holdfast.host import NodeId, View, ViewId
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform

LAN, WAN = "LAN", "WAN"
NETWORKS = {LAN: Link(Uniform(0.0005, 0.002)), WAN: Link(Uniform(0.03, 0.15))}  # views 8, M1
HEARTBEATS = {LAN: 0.25, WAN: 1.0}  # of the presets


def form(group: ViewGroup, seconds: float) -> float:
    """Run until all count on one view. How long that took."""
    begun_at = group.world.now
    assert group.until(group.is_one, seconds), f"there is no view of all after {seconds:g} s: {group.views()}"
    return group.world.now - begun_at


class Reached:
    """From now on: when have all of these agents installed one view that lists them and no other agent?"""

    def __init__(self, group: ViewGroup, wanted: Iterable[str], *, without: Iterable[str] = ()) -> None:
        """``without``: servers that must not be in the view."""
        self.wanted, self._without = sorted(wanted), frozenset(without)
        self.at: float | None = None
        self.first_at: float | None = None  # when the first of them installed it
        self._names = frozenset(self.wanted)
        self._world = group.world
        self._fits: dict[ViewId, bool] = {}
        self._installed: dict[ViewId, list[float]] = {}
        self._world.listeners.append(self._on_event)

    def _on_event(self, host: LabHost, event: Event) -> None:
        if self.at is not None or not isinstance(event, ViewChanged) or host.me.name not in self._names:
            return
        view = event.view
        if view.id not in self._fits:
            self._fits[view.id] = self._is_it(view)
        if self._fits[view.id]:
            times = self._installed.setdefault(view.id, [])
            times.append(self._world.now)
            if len(times) == len(self.wanted):
                self.first_at, self.at = times[0], self._world.now

    def _is_it(self, view: View) -> bool:
        listed = [member.id.name for member in view.members]
        return listed == self.wanted and not any(server.name in self._without for server in view.servers)


class Rounds:
    """From now on: how often did each server propose for each view? A change is fast if every server of the view proposed once since its
    delivery before (views 5.4)."""

    def __init__(self, group: ViewGroup) -> None:
        self.deliveries = Counter[bool]()  # as each server counts for itself: fast or not
        self._proposed = Counter[NodeId]()  # since the delivery before
        self._of: dict[ViewId, dict[NodeId, int]] = {}
        self._servers: dict[ViewId, tuple[NodeId, ...]] = {}
        group.world.listeners.append(self._on_event)

    @property
    def changes(self) -> Counter[bool]:
        """Views by whether they were agreed on the fast path. One that a server of it did not deliver was overtaken: slow."""
        found = Counter[bool]()
        for view, servers in self._servers.items():
            found[all(self._of[view].get(server) == 1 for server in servers)] += 1
        return found

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, Proposed):
            self._proposed[host.me] += 1
        elif isinstance(event, Delivered):
            view = event.view
            self._servers[view.id] = view.servers
            self._of.setdefault(view.id, {})[host.me] = self._proposed.pop(host.me, 0)
            self.deliveries[event.fast] += 1
