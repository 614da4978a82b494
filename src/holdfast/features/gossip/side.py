"""Gossip as the membership of an agent: a ``membership.Kind``.  Spec: gossip 10."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from holdfast.agent.membership import Hints, Side
from holdfast.errors import ConfigError
from holdfast.features.gossip.protocol.facts import BecameMember, JoinRetry, Overslept, ProbeFailed, Refuted, Settled, Synced
from holdfast.features.gossip.protocol.node import GossipNode
from holdfast.features.gossip.settings import GossipSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.agent.feature import Web
    from holdfast.agent.observe.openapi import Route
    from holdfast.config import Config
    from holdfast.features.gossip.http import GossipHttp
    from holdfast.host import Host, Member
    from holdfast.kit.broadcast import Broadcast
    from holdfast.kit.exchange import Exchange
    from holdfast.kit.slots import OwnSlots
    from holdfast.local.calls import Finding

NOT_A_MEMBER = "See the findings about its seeds; start one of them, or give this agent others (`holdfast join`)."
UNREACHABLE = "Look for a firewall, a route or a cable between the two: the others speak for it meanwhile."
NO_OWNERS = (
    'membership: "gossip" has no owners of keys, because lists of members may differ for a while; `owner` is a hint, and keys have owners'
    " that may act on the ring"
)


class GossipSide(Side):
    """One ``GossipNode``. It is asked for owners, and answers with a hint alone (gossip D21)."""

    name = "gossip"
    info = (BecameMember, JoinRetry, Settled, Overslept)
    retried = (JoinRetry,)
    frequent = (ProbeFailed, Refuted, Synced)

    def __init__(self, node: GossipNode) -> None:
        self._node = node
        self.standing = node
        self.machines = (node,)
        self.hints = Hints(NOT_A_MEMBER, UNREACHABLE, {"bucket": "the bucket of c", "window": "the window of c"}, pause=inf)

    @property
    def unowned(self) -> ConfigError:
        return ConfigError(NO_OWNERS)

    def owner(self, key: str | bytes) -> Member | None:
        return self._node.owner(key)

    def http(self, web: Web) -> GossipHttp:
        from holdfast.features.gossip.http import GossipHttp

        return GossipHttp(web, self._node)

    def counts(self) -> dict[str, float]:
        return {f"gossip_{name}": value for name, value in self._node.metrics().items()}

    def examined(self) -> None:
        self._node.compare_lists()

    def findings(self) -> Iterable[Finding]:
        from holdfast.features.gossip.findings import of_gossip

        return of_gossip(self._node)


def ae_period(config: Config) -> float:
    return GossipSettings.of(config).gossip_config().ae_period


def told_for(config: Config) -> float:
    """Clients are told of no key that they may act for."""
    del config
    return 0.0


def routes() -> tuple[Route, ...]:
    from holdfast.features.gossip.http import ROUTES

    return ROUTES


def build(host: Host, config: Config, broadcast: Broadcast, exchange: Exchange, slots: OwnSlots) -> GossipSide:
    """Seeds come when they are resolved and the name is ours. Gossip stands without seats."""
    del slots
    return GossipSide(GossipNode(host, GossipSettings.of(config).gossip_config(), broadcast, exchange))
