"""What one node measured of the links from its peers; shared by its detectors, kept across terms.  Spec: fast-detection 2, 4, D8."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.host import Host, NodeId
from holdfast.protocols.detection.config import FfdConfig


class LinkStats(NamedTuple):
    """One link, for metrics and the API."""

    p: float  # mean of the measured loss
    p_upper: float  # what is used
    jitter: float  # standard deviation of arrivals, seconds
    alpha: float  # the margin of freshness points, seconds
    samples: int  # heartbeats that the loss rests on


class Links:
    """One per node: freshness points per (peer, boot), loss per peer, and the numbers of ballots."""

    def __init__(self, host: Host, config: FfdConfig) -> None:
        raise NotImplementedError

    def p(self, peer: str) -> float:
        """The upper limit of the loss on the link from this peer (D8)."""
        raise NotImplementedError

    def stats(self, peer: NodeId) -> LinkStats:
        """What is known of the link from this life."""
        raise NotImplementedError
