"""How soon the next leader leads, from the settings: what the page and the demo promise.  Spec: fast-detection G2, D9, D26."""

from __future__ import annotations

from holdfast.config import Config
from holdfast.features.leadership.detector.plan import make_plan
from holdfast.features.leadership.protocol.config import MONITORS_MAX


def takeover_bound(config: Config, members: int, grace: float = 0.0) -> float:
    """Seconds from the death of a leader until the next one leads, in a group of so many; infinity if no other member is left.

    It is found dead, or the seats' promises to it end, whichever is later; then a candidate asks and is answered. Holds while messages
    arrive within t_lat and a candidate lives. The fewer there are to miss a heartbeat, the more heartbeats it takes (D9), as long as
    their links are not measured.
    """
    lead = config.leadership_config()
    found_dead = make_plan(lead, lead.p_m, [lead.p_new] * min(members - 1, MONITORS_MAX), lead.c0).bound_s
    promises_end = lead.lat + config.term_length(grace) * (1 + config.rho)
    return max(found_dead, promises_end) + 2 * lead.t_rtt
