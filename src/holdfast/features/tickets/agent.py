"""Tickets as a feature of an agent. What a running one needs is imported when there are seats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.agent.feature import Feature, Parts, Running
from holdfast.features.tickets.missing import NoTickets

if TYPE_CHECKING:
    from holdfast.agent.observe.openapi import Route


class TicketFeature(Feature):
    """Needs seats."""

    name = "tickets"

    def build(self, parts: Parts) -> Running:
        if parts.seats is None:
            return NoTickets(parts.seats_missing, parts.config)
        from holdfast.features.tickets.running import TicketAgent

        return TicketAgent(parts, parts.seats)

    def routes(self) -> tuple[Route, ...]:
        from holdfast.features.tickets.http import ROUTES

        return ROUTES
