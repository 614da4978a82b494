"""Pools of tickets as clients, HTTP and the page see them, and what they may ask about them.  Spec: tickets 9.5, 10; docs/local-api.md."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.agent.encode import encoded
from holdfast.errors import ConfigError, Lost, Unavailable
from holdfast.local import calls
from holdfast.local.calls import PoolView, TicketHolder
from holdfast.protocols.tickets.values import pool_fits

if TYPE_CHECKING:
    from holdfast.agent.agent import Agent
    from holdfast.agent.connection import Connection
    from holdfast.protocols.tickets.tickets import Tickets, TicketView

BY_HAND = "an operator asked for it"


def pools_of(agent: Agent, pool: str = "") -> tuple[PoolView, ...]:
    """As announced: of one pool, or of all that are known here, sorted."""
    if agent.tickets is None:
        return ()
    return tuple(pool_view(agent, agent.tickets.view(name)) for name in agent.tickets.pools() if pool in ("", name))


def pool_view(agent: Agent, view: TicketView) -> PoolView:
    holders = tuple(TicketHolder(number, each.agent, each.token, each.metadata) for number, each in sorted(view.owners.items()))
    here = 0 if agent.ticket_kind is None else agent.ticket_kind.wishes.get(view.pool, 0)
    return PoolView(view.pool, view.n, holders, view.hint, here)


class Pools:
    """The calls about pools."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def look(self, client: Connection, call: calls.Tickets) -> None:
        self._machine()
        client.done(call.serial, encoded(pools_of(self._agent, call.pool)))

    def read(self, client: Connection, call: calls.ReadTickets) -> None:
        self._machine(call.pool).read(call.pool, partial(self._on_read, client, call))

    def stop(self, client: Connection, call: calls.StopTicket) -> None:
        """F14, F15: whoever holds it says when it has stopped, or its deadline does; nobody takes it away."""
        owner = self._machine(call.pool).view(call.pool).owners.get(call.number)
        if self._agent.grants.ask_to_stop("ticket", call.pool, call.number, BY_HAND):
            client.done(call.serial)
        elif owner is None or owner.agent == self._agent.me:
            raise Lost(f"ticket: nobody holds {call.number} of {call.pool[:64]!r}, as far as this agent knows")
        else:
            raise ConfigError(f"ticket: {call.number} of {call.pool[:64]!r} is held at {owner.agent}; ask that agent")

    def abandon(self, client: Connection, call: calls.AbandonTicket) -> None:
        self._machine(call.pool).abandon(call.pool, call.number, partial(_on_abandoned, client, call))

    def _machine(self, pool: str | None = None) -> Tickets:
        if self._agent.tickets is None:
            raise ConfigError(self._agent.seats_missing)
        if pool is not None and not pool_fits(pool):
            raise ConfigError(f"pool: {pool[:64]!r} is no name of a pool; accepted are 1 to 56 bytes of printable text")
        return self._agent.tickets

    def _on_read(self, client: Connection, call: calls.ReadTickets, view: TicketView | None) -> None:
        if view is None:
            text = f"tickets: too few seats answer to say who owns {call.pool[:64]!r} (`holdfast seats`)"
            client.refuse(call.serial, Unavailable(text))
        else:
            client.done(call.serial, encoded(pool_view(self._agent, view)))


def _on_abandoned(client: Connection, call: calls.AbandonTicket, refusal: str) -> None:
    if refusal:
        client.refuse(call.serial, Unavailable(f"ticket {call.number} of {call.pool[:64]!r} is not given up: {refusal}"))
    else:
        client.done(call.serial)
