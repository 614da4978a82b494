"""What a member counts, for its operator.  Spec: ring 9 (metrics)."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from holdfast.features.ring.protocol.lease import RELAYED_MAX
from holdfast.features.ring.protocol.pair import State

if TYPE_CHECKING:
    from holdfast.features.ring.protocol.ring import RingNode


def metrics(ring: RingNode) -> dict[str, float]:
    """Numbers by name. Counters never fall in a life; the rest is as of now. Seconds are seconds."""
    pairs = list(ring.pairs.values())
    rtts = [pair.rtt for pair in pairs if pair.rtt > 0]
    safe_for = ring.safe_until - ring.raw.now
    now = {
        "member": float(ring.is_member),
        "members": float(len(ring.list)),
        "tombstones": float(len(ring.list.gone)),
        "pairs_dormant": float(sum(pair.state is State.DORMANT for pair in pairs)),
        "pairs_half": float(sum(pair.state is State.HALF for pair in pairs)),
        "pairs_active": float(sum(pair.state is State.ACTIVE for pair in pairs)),
        "pairs_suspected": float(sum(pair.susp is not None for pair in pairs)),
        "upgrades_pending": float(sum(pair.next is not None for pair in pairs)),
        "group_size_max": float(max((len(pair.cfg) for pair in pairs), default=0)),
        "lease_tries_max": float(max((pair.tries for pair in pairs), default=0)),
        "links_relayed": float(sum(pair.relayed > 0 for pair in pairs)),
        "links_broken": float(sum(pair.relayed >= RELAYED_MAX for pair in pairs)),
        "lease_rtt_max": max(rtts, default=0.0),
        "safe_for": safe_for if isfinite(safe_for) else 0.0,
        "safe_for_least": ring.safe_for_least if isfinite(ring.safe_for_least) else 0.0,
        "arbitration_seconds_last": ring.arbitration.took_last,
        "unmet": float(len(ring.neighbours.unmet)),
        "generation": float(ring.fencing.gen),
        "lists_compared": float(ring.exchange.counts["compared"]),
        "lists_differed": float(ring.exchange.counts["differed"]),
    }
    return {**now, **{name: float(count) for name, count in sorted(ring.counts.items())}}


def of_peers(ring: RingNode) -> dict[str, dict[str, float]]:
    """The same about each neighbour, by its name: how long it takes, how often it was asked, for how many sessions only others reach it."""
    return {
        pair.peer.node.name: {
            "lease_rtt": pair.rtt,
            "lease_tries": float(pair.tries),
            "relayed_sessions": float(pair.relayed),
            "group_size": float(len(pair.cfg)),
            "suspected": float(pair.susp is not None),
        }
        for pair in ring.pairs.values()
    }
