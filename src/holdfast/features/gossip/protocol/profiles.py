"""Configurations with names: what users choose, and what the laboratory compares with.  Spec: gossip 4."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.rules import Rules


class Profile(NamedTuple):
    """Numbers and rules. Those of the product have ``Rules()``."""

    config: GossipConfig
    rules: Rules = Rules()


LAN_PERIOD, WAN_PERIOD, LOCAL_PERIOD = 1.0, 5.0, 0.2
_OLDER = Rules(direct=False, last_call=False, hearsay_asks=False, answer_stale=False, nacks_confirm=False, growing_min=True)


def lan() -> Profile:
    return Profile(GossipConfig(period=LAN_PERIOD))


def wan() -> Profile:
    return Profile(GossipConfig(period=WAN_PERIOD))


def local() -> Profile:
    return Profile(GossipConfig(period=LOCAL_PERIOD))


def default(period: float = LAN_PERIOD) -> Profile:
    return Profile(GossipConfig(period=period))


# For the laboratory alone: what there was before (experiments S3, S8).


def swim(period: float = LAN_PERIOD) -> Profile:
    """SWIM with suspicion: one fixed wait of 4 max(1, log10 n) periods."""
    return Profile(GossipConfig(period=period, lhm_max=0, confirmations=0, patience=4.0, beta=1.0), _OLDER)


def lifeguard(period: float = LAN_PERIOD) -> Profile:
    """Lifeguard as its paper and memberlist have it."""
    return Profile(GossipConfig(period=period, patience=4.0), _OLDER)


def paper(period: float = LAN_PERIOD) -> Profile:
    """What paper 004 ran on: Medley, rumours on probes alone, one fixed wait (5 T at 49 nodes), raw counts of suspicions."""
    config = GossipConfig(
        period=period, target="spatial", exponent=3.0, lhm_max=0, gossip_fanout=0, confirmations=0, patience=3.0, beta=1.0,
        health_half_life=inf,
    )  # fmt: skip
    return Profile(config, _OLDER)


PROFILES = {"lan": lan, "wan": wan, "local": local, "swim": swim, "lifeguard": lifeguard, "paper": paper}
