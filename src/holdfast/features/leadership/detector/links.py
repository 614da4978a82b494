"""What one node measured of the links from its peers; shared by its detectors, kept across terms.  Spec: fast-detection 2, 4, D8."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from holdfast.features.leadership.detector.config import FfdConfig
from holdfast.features.leadership.detector.freshness import Freshness, make_freshness
from holdfast.features.leadership.detector.loss import Loss
from holdfast.host import Host, NodeId

PEERS_MAX = 512  # whose links are remembered; the link that was not asked for longest is forgotten first


class LinkStats(NamedTuple):
    """One link, for metrics and the API."""

    p: float  # mean of the measured loss
    p_upper: float  # what is used
    jitter: float  # standard deviation of arrivals, seconds
    alpha: float  # the margin of freshness points, seconds
    samples: int  # heartbeats that the loss rests on


class Link:
    """From one peer to here. A new life of it has a new clock, over the same road."""

    def __init__(self, boot: int, freshness: Freshness, loss: Loss) -> None:
        self.boot, self.freshness, self.loss = boot, freshness, loss


class Links:
    """One per node: freshness points per (peer, boot), loss per peer, and the numbers of ballots."""

    def __init__(self, host: Host, config: FfdConfig) -> None:
        self.counts: Counter[str] = Counter()  # of all detectors of this node: what they did, and what they did not believe
        self.vote_seconds = 0.0  # from queries to their votes, of counts["votes"] votes
        self._host, self._config = host, config
        self._links: dict[str, Link] = {}
        self._nonce = 0

    def next_nonce(self) -> int:
        """Names one ballot of this life."""
        self._nonce += 1
        return self._nonce

    def link(self, life: NodeId) -> Link:
        """Of this life; an older one than the last finds nothing remembered, and leaves nothing behind."""
        known = self._links.pop(life.name, None)
        loss = Loss(self._config) if known is None else known.loss
        if known is None or known.boot != life.boot:
            fresh = Link(life.boot, make_freshness(self._host, self._config), loss)
            if known is not None and life.boot < known.boot:
                self._links[life.name] = known
                return fresh
            known = fresh
        if len(self._links) >= PEERS_MAX:
            del self._links[next(iter(self._links))]
            self.counts["links_forgotten"] += 1
        self._links[life.name] = known
        return known

    def p(self, peer: str) -> float:
        """The upper limit of the loss on the link from this peer (D8)."""
        known = self._links.get(peer)
        return Loss(self._config).p if known is None else known.loss.p

    def stats(self, peer: NodeId) -> LinkStats:
        """What is known of the link from this life."""
        known = self._links.get(peer.name)
        if known is None or known.boot != peer.boot:
            return LinkStats(0.0, self.p(peer.name), 0.0, self._config.alpha_max, 0)
        loss, freshness = known.loss, known.freshness
        return LinkStats(loss.mean, loss.p, freshness.jitter, freshness.alpha, loss.samples)
