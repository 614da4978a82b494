"""Tickets in an agent with seats: the machine, clients that ask for one, calls about pools."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.agent.feature import Calls, Parts, Running
from holdfast.agent.observe.findings import WORRY, error, warning
from holdfast.errors import shown
from holdfast.features.tickets.kind import TicketKind
from holdfast.features.tickets.missing import few_guardians
from holdfast.features.tickets.protocol.cells import ANCHORS_MAX, CELLS_MAX, TOMBSTONES_MAX
from holdfast.features.tickets.protocol.facts import FREQUENT, CellLost
from holdfast.features.tickets.protocol.tickets import Tickets

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.socket.connection import Handler
    from holdfast.features.tickets.pools import Pools
    from holdfast.features.tickets.protocol.cells import Cells
    from holdfast.kit.seats import Seats
    from holdfast.local.calls import Call, Finding


class TicketAgent(Running):
    """One ``Tickets``."""

    on_seats = True
    warning = (CellLost,)
    frequent = FREQUENT

    def __init__(self, parts: Parts, seats: Seats) -> None:
        host, self.config, self._parts = parts.host, parts.config, parts
        self.me, self.broadcast = host.me, parts.broadcast
        self.tickets = Tickets(host, parts.membership, seats, parts.broadcast, parts.exchange, parts.config.ticket_config(len(seats.slots)))
        self.kind = self.grant_kind = TicketKind(self.tickets, host, self.tickets.config.margin)
        self.machines = (self.tickets,)

    @cached_property
    def pools(self) -> Pools:
        """Made when a client or a page first asks for a pool."""
        from holdfast.features.tickets.pools import Pools

        return Pools(self._parts, self.tickets, self.kind)

    def calls(self) -> Calls:
        from holdfast.features.tickets.calls import AbandonTicket, Publish, ReadTickets, StopTicket, Tickets, Touch, WatchTickets

        pools = self.pools
        in_turn: dict[type[Call], Handler] = {
            ReadTickets: pools.read, StopTicket: pools.stop, AbandonTicket: pools.abandon,
            Publish: pools.publish, Touch: pools.touch, WatchTickets: pools.watch,
        }  # fmt: skip
        return Calls({Tickets: pools.look}, in_turn)

    def drain(self, *, draining: bool = True) -> None:
        self.tickets.drain(draining=draining)

    @property
    def drained(self) -> bool:
        """Tickets 9.6: what clients held is written as free, or handed on, and what this agent kept others keep; after 4 D in any case."""
        return self.tickets.drained

    @property
    def running_until(self) -> float:
        return self.tickets.guardian.running_until

    def counts(self) -> dict[str, float]:
        found = {f"ticket_{name}": float(count) for name, count in sorted(self.tickets.counts.items())}
        found["ticket_guardian_cells"] = float(self.tickets.guardian.kept)
        return found

    def findings(self) -> Iterator[Finding]:
        return full_of_cells(self.me.name, self.tickets.guardian.table)

    def setting_findings(self) -> Iterator[Finding]:
        return few_guardians(self.config)

    def unusable(self) -> Iterator[str]:
        return (f"the pool {shown(key.pool)}" for key in self.tickets.guardian.unusable)

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.tickets.http import TicketHttp

        return TicketHttp(web, self)


def full_of_cells(about: str, table: Cells) -> Iterator[Finding]:
    """H133: what a guardian has no room for it refuses. Pools are never forgotten, merged cells after ten minutes."""
    if table.anchors >= WORRY * ANCHORS_MAX:
        say = error if table.anchors >= ANCHORS_MAX else warning
        yield say(
            "pools_full", about, f"This seat remembers {table.anchors} pools that were used once, of {ANCHORS_MAX} at most.",
            "Use few pools again and again instead of a new one per job; no client gets a ticket of a pool beyond them.",
        )  # fmt: skip
    for count, limit, what in (
        (table.others, CELLS_MAX, "tickets that are held, or wait to be taken in"),
        (len(table.tombstones), TOMBSTONES_MAX, "tickets that were taken in during the last ten minutes"),
    ):
        if count >= WORRY * limit:
            say = error if count >= limit else warning
            yield say(
                "cells_full", about, f"This seat remembers {count} {what}, of {limit} at most.",
                "Hold tickets for longer, or fewer of them; beyond that no client gets a further one until there is room.",
            )  # fmt: skip
