# Made by scripts/spell.py from src/holdfast/features/tickets/client.py: edit that file and run the script.
"""Tickets of a pool: one to hold for a block, and who holds the others.  tickets 10, G6; docs/client.md (tickets)."""

from __future__ import annotations

from typing import Unpack

from holdfast.client import checks
from holdfast.client.checks import Seconds
from holdfast.client.sync.holds import Holding
from holdfast.client.sync.link import Link
from holdfast.client.sync.streams import Opened
from holdfast.events import Event
from holdfast.features.tickets import calls
from holdfast.features.tickets.client_base import (
    KIND,
    PUBLISH_BYTES_MAX,
    Options,
    PoolBuffer,
    PoolView,
    TicketHeld,
    checked_options,
    checked_pool,
    hinted,
    viewed,
)

READ_TIMEOUT = 60.0  # seconds; an agent that reaches too few seats says so earlier


class Ticket(TicketHeld, Holding):
    """One ticket of a pool, for the length of a ``with`` block. Made by ``group.ticket``.

    ``number`` says which one, from 0. ``valid`` says whether this process holds it now: it reads the clock of this machine and nothing
    else, so it is right also when the agent is dead or this process was stopped for a while. ``token`` grows with every holder of that
    number, everywhere: give it to what you write to, and let that refuse smaller ones. ``deadline`` moves as the ticket is renewed;
    ``left`` is what remains. ``ticket.lost.wait()`` returns when it is over; ``why`` says why.
    """

    def publish(self, data: bytes) -> None:
        """Tell up to 15 KiB to all clients that watch the pool (``group.tickets(pool).watch()``), as a rumour stamped with number and
        token: it reaches all of them with high probability, at most once each. Who has heard of a later holder of this number drops it.
        Returns when this agent has begun to spread it; raises ``TicketLost`` if the ticket is over."""
        told = checks.payload(data, PUBLISH_BYTES_MAX)
        self.check()
        with self._named():
            self._connection.call(calls.Publish, self._serial, told)

    def touch(self) -> None:
        """Say that this program is at work: a ticket that was asked for with ``user_ttl`` wants to hear it at least so often. Raises
        ``TicketLost`` if the ticket is over."""
        self.check()
        with self._named():
            self._connection.call(calls.Touch, self._serial)


class PoolWatch(PoolBuffer, Opened[Event]):
    """Events of one pool of tickets, in order, from the call of ``watch`` on."""

    call = calls.WatchTickets

    def __init__(self, pool: str) -> None:
        super().__init__()
        self.pool = self.about = pool


class Pool:
    """The pool of ``group.tickets(name)``."""

    def __init__(self, link: Link, name: str) -> None:
        self.name = checked_pool(name)
        self._link = link

    def __repr__(self) -> str:
        return f"<Pool {self.name!r}>"

    def watch(self) -> PoolWatch:
        """News of this pool, from now on: an iterator of ``OwnerChanged``, as this agent hears of it, and of ``Published``, which is what
        holders of its tickets say with ``ticket.publish``. A reader that falls more than 1024 events behind reads ``EventsLost(n)``; then
        ``hint()`` says what is. Ends when the group is left, and raises ``AgentLost`` when the agent is lost (with ``reconnect``:
        ``EventsLost(0)``, and it goes on)."""
        return self._link.open(PoolWatch(self.name))

    def hint(self) -> PoolView:
        """As this agent heard it: costs nothing but a word with it, and may be late."""
        return hinted(self.name, self._link.call(calls.Tickets, self.name))

    def read(self) -> PoolView:
        """The newest version that a majority of the seats has: a change that is being written may be in it, or not yet. A holder that has
        died counts until its ticket is reclaimed. Raises ``Unavailable`` if too few answer."""
        return viewed(self._link.call(calls.ReadTickets, self.name, timeout=READ_TIMEOUT))


def ticket(link: Link, pool: str, timeout: Seconds | None, **options: Unpack[Options]) -> Ticket:
    return link.hold(Ticket, KIND, checked_pool(pool), checked_options(options), timeout)
