"""Views that are settled divide the fleet.  Spec: limits 7 (RL9), D10; views 1 (G6)."""

from __future__ import annotations

from holdfast.features.limits.lab.fleet import Fleet
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import View
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.world import World


class Parts(Checker):
    """RL9: at an instant at which members are settled, the sizes of their views add up to n at most."""

    name = "RL9 partition"

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._settled: dict[LabHost, View] = {}
        self.most = 0  # views at an instant

    def after(self, world: World, host: LabHost | None) -> None:
        if host is None or host.me.name not in self._fleet.crews:
            return
        view = _settled_in(host)
        if view is None:
            self._settled.pop(host, None)
        elif self._settled.get(host) is not view:
            self._settled[host] = view
            self._check()

    def _check(self) -> None:
        n = min(terms.fleet for terms in self._fleet.terms.values())
        if sum(view.size for view in self._views()) > n:  # Some of them may have lost their lease since they were looked at.
            self._settled = {host: view for host in self._settled if (view := _settled_in(host)) is not None}
        views = self._views()
        self.most = max(self.most, len(views))
        if sum(view.size for view in views) > n:
            self.fail(f"{', '.join(f'{view.id} of {view.size}' for view in views)} are settled in a fleet of {n}")

    def _views(self) -> list[View]:
        return list({view.id: view for view in self._settled.values()}.values())


def _settled_in(host: LabHost) -> View | None:
    if not host.running:
        return None
    node = host.node.use(ViewNode)
    return node.view if node.settled else None
