"""Numbers about tickets for Prometheus.  Spec: tickets 9.7 (metrics); docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.agent.metrics import Metric, counter, gauge, labelled

if TYPE_CHECKING:
    from holdfast.agent.agent import Agent

MOVES = ("acquired", "takeovers", "handovers", "exclusions", "reballots", "moves", "returned", "abandoned", "cells_lost")
TROUBLES = ("phase_timeouts", "malformed", "strangers", "table_full", "queue_full", "view_full", "refused_renewal")


def of_tickets(agent: Agent) -> Iterable[Metric]:
    """Nothing where there are no seats."""
    tickets, kind = agent.tickets, agent.ticket_kind
    if tickets is None or kind is None:
        return
    owned = [each for each in tickets.coordinators if each.valid]
    counts = tickets.counts
    yield gauge("ticket_pools", "Pools of which somebody is known to hold a ticket, or this agent asks for one.", len(tickets.pools()))
    yield gauge("ticket_owned", "Tickets that this agent owns.", len(owned))
    yield gauge("ticket_free_coordinated", "Free tickets that this agent can give away.", sum(each.free for each in owned))
    yield gauge("ticket_wishes", "Clients of this agent that hold a ticket or ask for one.", sum(kind.wishes.values()))
    yield gauge("ticket_guardian_cells", "Cells of pools that this agent keeps for others.", len(tickets.guardian.cells))
    if kind.margin_least is not None:
        yield gauge("ticket_margin_seconds_least", "Least time that was left of a ticket when it was renewed.", kind.margin_least)
    yield counter("ticket_granted_total", "Tickets that clients of this agent were granted.", kind.counts["granted"])
    yield counter("ticket_acquire_wait_seconds_total", "Seconds that these waited for theirs.", kind.waited)
    moves = {name: float(counts[name]) for name in MOVES}
    yield labelled("ticket_moves_total", "counter", "What became of tickets here, by what it was.", "what", moves)
    troubles = {name: float(counts[name]) for name in TROUBLES}
    yield labelled("ticket_troubles_total", "counter", "What did not work, or was refused, by reason.", "why", troubles)
