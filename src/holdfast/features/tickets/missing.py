"""Tickets in an agent without seats, and what an agent with seats says in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from holdfast.agent.feature import Calls, Missing
from holdfast.agent.observe.findings import warning
from holdfast.config import Config
from holdfast.errors import TicketLost
from holdfast.features.tickets import KIND
from holdfast.features.tickets.settings import TICKET_K_RING

if TYPE_CHECKING:
    from holdfast.agent.feature import HttpPart, Web
    from holdfast.agent.socket.connection import Connection, Handler
    from holdfast.features.tickets.calls import Publish, Touch
    from holdfast.local.calls import Call, Finding


class NoTickets(Missing):
    """No pool is known, and no ticket can be had."""

    def __init__(self, why: str, config: Config) -> None:
        super().__init__(why, kind=KIND)
        self._config = config

    def calls(self) -> Calls:
        from holdfast.features.tickets.calls import AbandonTicket, Publish, ReadTickets, StopTicket, Tickets, Touch, WatchTickets

        in_turn: dict[type[Call], Handler] = dict.fromkeys((ReadTickets, StopTicket, AbandonTicket, WatchTickets), self.refuse)
        return Calls({Tickets: self.refuse}, {**in_turn, Publish: self._not_held, Touch: self._not_held})

    def setting_findings(self) -> Iterator[Finding]:
        return few_guardians(self._config)

    def http(self, web: Web) -> HttpPart:
        from holdfast.features.tickets.http import TicketHttp

        return TicketHttp(web, None, self.why)

    def _not_held(self, client: Connection, call: Publish | Touch) -> NoReturn:
        del client
        raise not_held(call.grant)


def not_held(grant: int) -> TicketLost:
    return TicketLost(f"grant: {grant} is not held on this connection: it is over, and nothing was done")


def few_guardians(config: Config) -> Iterator[Finding]:
    """H140: guardians without a journal are allowed to be few, and then one crash loses tickets."""
    if config.ticket_guardians == "ring" and config.ticket_k < TICKET_K_RING:
        yield warning(
            "few_guardians", f"ticket_k = {config.ticket_k}",
            f"Tickets are kept by agents without a journal, and {config.ticket_k + 1} of them lost at once lose a ticket.",
            f'Set ticket_k = {TICKET_K_RING} or more, or ticket_guardians = "seats", and restart the agent.',
        )  # fmt: skip
