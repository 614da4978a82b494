"""Views as the membership of an agent: a ``membership.Kind``.  Spec: views D31."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, cast

from holdfast.agent.membership import Hints, HttpSide, Side
from holdfast.errors import ConfigError, Unavailable
from holdfast.features.views.protocol.membership import RowsBeside, ViewMembership
from holdfast.features.views.settings import ViewsSettings
from holdfast.kit.exchange import AE_PERIOD

if TYPE_CHECKING:
    from holdfast.agent.feature import Web
    from holdfast.agent.observe.openapi import Route
    from holdfast.config import Config
    from holdfast.features.views.backend import Backend
    from holdfast.host import Standing
    from holdfast.kit.broadcast import Broadcast
    from holdfast.kit.exchange import Exchange
    from holdfast.kit.slots import OwnSlots
    from holdfast.net.host import NetHost

NOT_A_MEMBER = "See `holdfast views`: no server of views lets this agent in. Start the seats, or mend the way to one of them."
NOT_A_MEMBER_OF_ZOOKEEPER = "See `holdfast views`: ZooKeeper does not let this agent in. Start the ensemble, or mend the way to it."
UNREACHABLE = "Messages go round by the servers of views meanwhile; look for a firewall, a route or a cable between the two."
SETTINGS = {"view_heartbeat": "view_heartbeat"}
NO_OWNERS = 'membership: "views" has no owners of keys, because two halves of a group may both be at work; keys have owners on the ring'


class ViewsSide(Side):
    """The view is the member list. The machine that brings views is also what the feature of views shows and serves."""

    name = "views"

    def __init__(self, membership: ViewMembership, views: Backend, not_a_member: str) -> None:
        self.standing = membership
        self.machines = (views, membership)
        self.hints = Hints(not_a_member, UNREACHABLE, SETTINGS, pause=inf)

    @property
    def unowned(self) -> Unavailable:
        return Unavailable(NO_OWNERS)

    def http(self, web: Web) -> HttpSide:
        """Its route, metrics and panel are those of the feature."""
        del web
        return HttpSide()


def views_of(standing: Standing) -> Backend:
    """What an agent with this membership takes part in."""
    assert isinstance(standing, ViewMembership)
    return cast("Backend", standing.views)


def ae_period(config: Config) -> float:
    del config
    return AE_PERIOD


def told_for(config: Config) -> float:
    """Clients are told of no key."""
    del config
    return 0.0


def routes() -> tuple[Route, ...]:
    """``/v1/views`` is a route of the feature."""
    return ()


def build(host: NetHost, config: Config, broadcast: Broadcast, exchange: Exchange, slots: OwnSlots) -> ViewsSide:
    from holdfast.features.views.backend import back_end

    del broadcast
    settings = ViewsSettings.of(config)
    if not slots.all and not settings.zookeeper:
        raise ConfigError(f'membership: "views" needs servers: {slots.missing}')
    views = back_end(host, config.group, settings, slots)
    beside = cast("RowsBeside", views) if settings.zookeeper else None
    membership = ViewMembership(host, views, exchange, heartbeat=settings.view_heartbeat, beside=beside)
    return ViewsSide(membership, views, NOT_A_MEMBER_OF_ZOOKEEPER if settings.zookeeper else NOT_A_MEMBER)
