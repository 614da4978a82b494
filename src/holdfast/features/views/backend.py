"""What runs views in an agent: the protocol among the seats, or ZooKeeper. The one place that knows both.  Spec: views 1, 5Z."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.host import Machine, Views
from holdfast.kit.parcels import Parcels

if TYPE_CHECKING:
    from holdfast.features.views.protocol.survey import ViewSurvey
    from holdfast.features.views.settings import ViewsSettings
    from holdfast.kit.slots import OwnSlots
    from holdfast.net.host import NetHost


class Backend(Machine, Views, Protocol):
    """A machine that offers ``Views``, and says how it does."""

    @property
    def idle_since(self) -> float | None:
        """As a server: no client is known anywhere since then; None: there are clients, or it is no server."""

    @property
    def trips_again_in(self) -> float:
        """Seconds until ``trip`` is accepted again."""

    @property
    def left(self) -> bool:
        """True if this agent takes no part in views, and nothing remains to be said."""

    def take_part(self) -> None:
        """Begin to be a client of views, if it is none yet."""

    def withdraw(self) -> None:
        """Leave the view politely, and be no client any more."""

    def survey(self) -> ViewSurvey:
        """What people are shown."""

    def metrics(self) -> dict[str, float]: ...


def back_end(host: NetHost, group: str, settings: ViewsSettings, slots: OwnSlots) -> Backend:
    """Not added to the node yet. Raises ``ConfigError`` if it cannot run here."""
    parcels = Parcels(host.node, host.wall)
    if settings.zookeeper:
        return _zookeeper(host, group, settings, parcels)
    from holdfast.features.views.protocol.views import ViewNode

    return ViewNode(host, settings.views_config(), slots.all, slots.own, parcels)


def _zookeeper(host: NetHost, group: str, settings: ViewsSettings, parcels: Parcels) -> Backend:
    from holdfast.features.views.zookeeper.servers import check_kazoo, parse_servers
    from holdfast.features.views.zookeeper.session import KazooSessions
    from holdfast.features.views.zookeeper.views import ZooKeeperViews

    check_kazoo()
    loop = asyncio.get_running_loop()

    def post(turn: Callable[[], None]) -> None:
        """Where kazoo's threads come in."""
        loop.call_soon_threadsafe(host.post, turn)

    sessions = KazooSessions(parse_servers(settings.zookeeper), settings.zk_session, post)
    return ZooKeeperViews(host, settings.views_config(), group, sessions, parcels, stale=settings.zk_stale)
