"""Numbers about tickets for Prometheus.  Spec: tickets 9.7 (metrics); docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from holdfast.agent.observe.metrics import Metric, counter, gauge, histogram, labelled

if TYPE_CHECKING:
    from holdfast.features.tickets.calls import PoolView
    from holdfast.features.tickets.kind import TicketKind
    from holdfast.features.tickets.protocol.guardian import Guardian
    from holdfast.features.tickets.protocol.tickets import Tickets
    from holdfast.host import NodeId
    from holdfast.kit.broadcast import Broadcast

COUNTED = {  # tickets 9.7: how each is called there, how the machine counts it, what it says
    "rebounds": ("reballots", "Times a holder had to raise its ballot, because another agent had asked to take its ticket."),
    "exclusions": ("exclusions", "Tickets of dead or parted holders that a holder of this agent took in."),
    "takeovers": ("takeovers", "Times a client of this agent took the first ticket of a pool, or founded it."),
    "handovers": ("handovers", "Tickets that were given back to the first who waited."),
    "phase_timeouts": ("phase_timeouts", "Questions to guardians that no majority answered in time."),
}
MOVES = ("acquired", "resumed", "moves", "returned", "abandoned", "cells_lost", "orphans", "published")
TROUBLES = (
    "malformed",
    "strangers",
    "table_full",
    "queue_full",
    "view_full",
    "refused_renewal",
    "old_event",
    "old_grant",
    "crowded",
    "late",
    "late_rounds",
    "requests_dropped",
    "forgets_skipped",
)


class PoolViews(Protocol):
    """The pools of an agent."""

    def views(self) -> tuple[PoolView, ...]: ...


class TicketSource(Protocol):
    """What HTTP shows of tickets: ``running.TicketAgent``."""

    me: NodeId
    tickets: Tickets
    kind: TicketKind
    broadcast: Broadcast

    @property
    def pools(self) -> PoolViews: ...


def of_tickets(running: TicketSource) -> Iterable[Metric]:
    tickets, kind = running.tickets, running.kind
    owned = [each for each in tickets.coordinators if each.valid]
    yield gauge("tickets_owned", "Tickets that this agent owns.", len(owned))
    yield gauge("tickets_free_coordinated", "Free tickets that this agent can give away.", sum(each.free for each in owned))
    yield gauge("ticket_pools", "Pools with a known holder of a ticket, or for which this agent asks.", len(tickets.pools()))
    yield gauge("ticket_wishes", "Clients of this agent that hold a ticket or ask for one.", sum(kind.wishes.values()))
    yield gauge("ticket_waiters", "Of these, the ones that ask; and those that queue at a ticket held here.", sum(tickets.waiting.values()))
    yield from _of_guardian(tickets.guardian)
    yield counter("ticket_granted_total", "Tickets that clients of this agent were granted.", kind.counts["granted"])
    yield histogram("ticket_acquire_wait_seconds", "Seconds that these waited for theirs.", kind.waits)
    yield histogram("ticket_lease_margin_seconds", "Seconds that were left of a ticket when it was renewed.", tickets.desk.lease_margin)
    yield histogram("ticket_renew_rtt_seconds", "Seconds from a renewal to a guardian's answer.", tickets.desk.renew_rtt)
    if kind.margin_least is not None:
        yield gauge("ticket_margin_seconds_least", "Least time that was left of a client's ticket when it was renewed.", kind.margin_least)
    yield from _counters(tickets.counts)
    rumours = running.broadcast.counts
    yield counter("prcast_rumors_total", "Rumours that this agent heard for the first time, of whatever topic.", rumours["delivered"])
    yield counter("prcast_duplicates_total", "Rumours that it heard again.", rumours["duplicate"])


def _of_guardian(guardian: Guardian) -> Iterable[Metric]:
    table = guardian.table
    yield gauge("ticket_guardian_cells", "Cells of pools that this agent keeps for others.", guardian.kept)
    yield gauge("ticket_guardian_pools", "Of these, first cells of pools, which are kept for ever.", table.anchors)
    yield gauge("ticket_guardian_tombstones", "Merged cells that it remembers for a while, so that none comes back.", len(table.tombstones))


def _counters(counts: Mapping[str, int]) -> Iterable[Metric]:
    for name, (count, text) in COUNTED.items():
        yield counter(f"ticket_{name}_total", text, counts[count])
    moves = {name: float(counts[name]) for name in MOVES}
    yield labelled("ticket_moves_total", "counter", "What else became of tickets here, by what it was.", "what", moves)
    troubles = {name: float(counts[name]) for name in TROUBLES}
    yield labelled("ticket_troubles_total", "counter", "What was refused or dropped, by reason.", "why", troubles)
