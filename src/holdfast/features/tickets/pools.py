"""Pools of tickets as clients, HTTP and the page see them, and the calls about them.  Spec: tickets 9.5, 10; docs/local-api.md."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from holdfast.agent.socket.events import EventHub
from holdfast.errors import ConfigError, HoldLost, Unavailable, shown
from holdfast.events import OwnerChanged, Published
from holdfast.features.tickets import KIND, calls
from holdfast.features.tickets.calls import PoolView, TicketHolder
from holdfast.features.tickets.kind import TicketHeld
from holdfast.features.tickets.missing import not_held
from holdfast.features.tickets.protocol.values import pool_fits
from holdfast.local.frame import encoded

if TYPE_CHECKING:
    from holdfast.agent.feature import Parts
    from holdfast.agent.socket.connection import Connection
    from holdfast.features.tickets.kind import TicketKind
    from holdfast.features.tickets.protocol.tickets import Tickets, TicketView

BY_HAND = "an operator asked for it"


class PoolStream:
    """A ``WatchTickets``: owners as they change, and what they publish."""

    def __init__(self, parts: Parts, tickets: Tickets, pool: str, wake: Callable[[], None]) -> None:
        """In a turn. Raises ``ConfigError`` if this agent listens to too many topics."""
        self._pool, self._cview, self._post = pool, tickets.cview, parts.host.post
        self._hub = EventHub(lambda: parts.life.version, parts.host.wall, asyncio.get_running_loop().call_soon)
        self._owners = {number: (each.life, each.token) for number, each in self._cview.owners(pool).items()}
        self._ends = tickets.listen(pool, self._on_published), self._cview.on_change(self._on_change)
        self._subscription = self._hub.subscribe(wake)

    def take(self, limit: int) -> list[bytes]:
        return [record.item for record in self._subscription.take(limit)]

    def close(self) -> None:
        """From anywhere."""
        self._subscription.close()
        self._post(self._end)

    def _end(self) -> None:
        for end in self._ends:
            end()

    def _on_published(self, number: int, token: int, payload: bytes) -> None:
        self._hub.publish(Published(self._pool, number, token, payload))

    def _on_change(self, pool: str, number: int) -> None:
        """Who announces again how many free tickets there are is the same owner."""
        if pool != self._pool:
            return
        entry, before = self._cview.owners(pool).get(number), self._owners.pop(number, None)
        if entry is not None:
            self._owners[number] = entry.life, entry.token
        if self._owners.get(number) != before:
            token = self._cview.newest_token(pool, number)
            self._hub.publish(OwnerChanged(pool, number, None if entry is None else entry.life, token))


class Pools:
    """The pools of one agent, and the calls about them."""

    def __init__(self, parts: Parts, tickets: Tickets, kind: TicketKind) -> None:
        self._parts, self._tickets, self._kind = parts, tickets, kind

    def views(self, pool: str = "") -> tuple[PoolView, ...]:
        """As announced: of one pool, or of all that are known here, sorted."""
        return tuple(self._view(self._tickets.view(name)) for name in self._tickets.pools() if pool in ("", name))

    # Calls.

    def look(self, client: Connection, call: calls.Tickets) -> None:
        client.done(call.serial, encoded(self.views(call.pool)))

    def read(self, client: Connection, call: calls.ReadTickets) -> None:
        self._machine(call.pool).read(call.pool, partial(self._on_read, client, call))

    def stop(self, client: Connection, call: calls.StopTicket) -> None:
        """F14, F15: its holder says when it has stopped, or its deadline does; it is not taken away."""
        owner = self._machine(call.pool).view(call.pool).owners.get(call.number)
        if self._parts.grants.ask_to_stop(KIND, call.pool, call.number, BY_HAND):
            client.done(call.serial)
        elif owner is None or owner.agent == self._parts.host.me:
            raise HoldLost(f"ticket: {call.number} of {shown(call.pool)} is not held, as far as this agent knows")
        else:
            raise ConfigError(f"ticket: {call.number} of {shown(call.pool)} is held at {owner.agent}; ask that agent")

    def publish(self, client: Connection, call: calls.Publish) -> None:
        self._held(client, call.grant).publish(call.payload)
        client.done(call.serial)

    def touch(self, client: Connection, call: calls.Touch) -> None:
        self._held(client, call.grant).touch()
        client.done(call.serial)

    def watch(self, client: Connection, call: calls.WatchTickets) -> None:
        client.check_room()
        machine = self._machine(call.pool)
        stream = PoolStream(self._parts, machine, call.pool, partial(client.wake, call.serial))
        client.open_stream(call.serial, stream)
        client.done(call.serial)

    def abandon(self, client: Connection, call: calls.AbandonTicket) -> None:
        self._machine(call.pool).abandon(call.pool, call.number, partial(_on_abandoned, client, call))

    def _held(self, client: Connection, serial: int) -> TicketHeld:
        held = self._parts.grants.claim(client, serial)
        if held is None:
            raise not_held(serial)
        if not isinstance(held, TicketHeld):
            raise ConfigError(f"grant: {serial} is no ticket, and only tickets take this")
        return held

    def _machine(self, pool: str) -> Tickets:
        if not pool_fits(pool):
            raise ConfigError(f"pool: {shown(pool)} is no name of a pool; accepted are 1 to 56 bytes of printable text")
        return self._tickets

    def _on_read(self, client: Connection, call: calls.ReadTickets, view: TicketView | Unavailable) -> None:
        if isinstance(view, Unavailable):
            client.refuse(call.serial, view)
        else:
            client.done(call.serial, encoded(self._view(view)))

    def _view(self, view: TicketView) -> PoolView:
        holders = tuple(TicketHolder(number, each.agent, each.token, each.metadata) for number, each in sorted(view.owners.items()))
        return PoolView(view.pool, view.n, holders, view.hint, self._kind.wishes.get(view.pool, 0), view.waiting)


def _on_abandoned(client: Connection, call: calls.AbandonTicket, refusal: str) -> None:
    if refusal:
        client.refuse(call.serial, Unavailable(f"ticket {call.number} of {shown(call.pool)} is not given up: {refusal}"))
    else:
        client.done(call.serial)
