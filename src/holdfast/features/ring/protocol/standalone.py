"""A ring member with a broadcast and an exchange of its own: for a node that runs nothing beside it (the lab, tests, benchmarks)."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import Host
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange


class Standalone(NamedTuple):
    """The machines of such a node, in the order in which it runs them."""

    ring: RingNode
    broadcast: Broadcast
    exchange: Exchange


def standalone(
    host: Host, config: RingConfig, *, rules: Rules | None = None, sole_life: bool = False, kind: type[RingNode] = RingNode
) -> Standalone:
    """``kind``: a subclass, for experiments that change a rule."""
    broadcast = Broadcast(host)
    exchange = Exchange(host, broadcast, ae_period=config.ae_period)
    ring = kind(host, config, broadcast, exchange, rules=rules, sole_life=sole_life)
    broadcast.over(ring)
    return Standalone(ring, broadcast, exchange)
