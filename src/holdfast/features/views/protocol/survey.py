"""What people are shown of views: one look at the state of a node.  Spec: views 9, 10."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.features.views.protocol.links import NO_LINK_STATE, NO_MESSAGES, Link
from holdfast.features.views.protocol.server import ViewServer
from holdfast.host import Address, NodeId

FLAP_SECONDS = 300.0  # a link that went down lately


class LinkLook(NamedTuple):
    """A link of this server."""

    slot: int
    address: Address
    life: NodeId | None  # who answered there; None: no server did
    state: str  # "up", "down" or "quarantined"
    since: float | None  # seconds in that state; None: since the beginning
    flaps: int  # times it went down in the last five minutes
    why: str = ""  # it went down the last time; "": it never did
    hole: bool = False  # it went down although heartbeats passed, in the last five minutes, or is down for that reason


class ViewSurvey(NamedTuple):
    """How this node stands. Seconds count back from now."""

    own: int | None  # slot of this agent, if it serves views
    server: NodeId | None  # to which this agent is attached as a client
    attach: int
    installed_for: float | None
    changing_for: float | None  # a change under way, as the server here or the client sees it
    lost_for: float | None  # this agent takes part and has no view
    lost_why: str
    links: tuple[LinkLook, ...]  # empty if this agent serves no views
    graph: tuple[tuple[int, int, bool], ...]  # (slot, slot, both say that the link is up), as this server knows; empty if it is none
    clients: int  # attached here
    quarantined: int  # clients that this server does not let in for a while
    rtt_p99: float | None  # of pings of links and of the client, in the last minute
    number: int  # of this server


def links_of(server: ViewServer, now: float) -> tuple[LinkLook, ...]:
    return tuple(_link(link, now) for _, link in sorted(server.links.all.items()))


def graph_of(server: ViewServer) -> tuple[tuple[int, int, bool], ...]:
    """Every pair of slots of which this server knows a link state."""
    lsas = {lsa.slot: lsa for lsa in server.states.fresh().values()}
    slots = sorted({server.states.mine.slot, *server.links.all})
    return tuple(
        (a, b, a in lsas and b in lsas and lsas[b].origin in lsas[a].up and lsas[a].origin in lsas[b].up)
        for at, a in enumerate(slots)
        for b in slots[at + 1 :]
    )


def _link(link: Link, now: float) -> LinkLook:
    flaps = sum(now - at <= FLAP_SECONDS for at in link.downs)
    hole = link.expired or (flaps > 0 and link.down_why in (NO_MESSAGES, NO_LINK_STATE))
    began_at = link.up_at if link.up else link.downs[-1] if link.downs else None
    since = None if began_at is None else now - began_at
    state = "up" if link.up else "quarantined" if now < link.quarantine_until else "down"
    return LinkLook(link.slot.number, link.slot.address, link.life, state, since, flaps, link.down_why, hole)
