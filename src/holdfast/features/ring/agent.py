"""The ring as the membership of an agent: a ``membership.Kind``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.agent.membership import Hints, Side
from holdfast.features.ring.protocol.facts import BecameMember, Departed, JoinRetry, LinkBroken, LinkMended
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.kit.deadline import wait_length

if TYPE_CHECKING:
    from holdfast.agent.feature import Web
    from holdfast.agent.observe.openapi import Route
    from holdfast.config import Config
    from holdfast.features.ring.http import RingHttp
    from holdfast.host import Host
    from holdfast.kit.broadcast import Broadcast
    from holdfast.kit.exchange import Exchange
    from holdfast.kit.slots import OwnSlots

NOT_A_MEMBER = "See the findings about its seeds; if there are none, wait a few leases or give it other seeds (`holdfast join`)."
UNREACHABLE = "Look for a firewall, a route or a cable between the two: others carry its leases meanwhile."
SETTINGS = {"T_l": "lease", "T_a": "arbitration"}  # what the papers' letters are called in the settings


class RingSide(Side):
    """One ``RingNode``."""

    name = "ring"
    info = (BecameMember, Departed, JoinRetry, LinkMended)
    warning = (LinkBroken,)
    retried = (JoinRetry,)

    def __init__(self, ring: RingNode) -> None:
        self._ring = ring
        self.standing = self.keyed = ring
        self.machines = (ring,)
        self.hints = Hints(NOT_A_MEMBER, UNREACHABLE, SETTINGS, pause=ring.config.lease)

    def http(self, web: Web) -> RingHttp:
        from holdfast.features.ring.http import RingHttp

        return RingHttp(web, self._ring)


def ae_period(config: Config) -> float:
    return config.ring_config().ae_period


def told_for(config: Config) -> float:
    return wait_length(config.ring_config().publish_length, config.rho, config.margin)


def routes() -> tuple[Route, ...]:
    from holdfast.features.ring.http import ROUTES

    return ROUTES


def build(host: Host, config: Config, broadcast: Broadcast, exchange: Exchange, slots: OwnSlots) -> RingSide:
    """Seeds come when they are resolved and the name is ours. A ring stands without seats."""
    del slots
    return RingSide(RingNode(host, config.ring_config(), broadcast, exchange))
