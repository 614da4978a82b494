"""Tickets: the machine of one agent.  Spec: tickets 2 (roles), 5, 9, 10; paper 001.

An agent is guardian (and with a slot: seat), observer, candidate once per ``acquire``, and coordinator once per ticket it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from holdfast.host import Host, Membership
from holdfast.kit.broadcast import Broadcast
from holdfast.kit.exchange import Exchange
from holdfast.kit.seats import Seats
from holdfast.protocols.tickets.config import TicketConfig
from holdfast.protocols.tickets.messages import MESSAGES
from holdfast.protocols.tickets.view import TicketView

LAPSED = "lapsed"  # the deadline passed before a majority of guardians answered
DEPOSED = "deposed"  # somebody else has the cell: it had lapsed, and the guardians knew first
MISMATCH = "mismatch"  # the pool has another number of tickets; the text goes on with it
FULL = "full"  # wait=False, and no ticket is free
UNAVAILABLE = "unavailable"  # wait=False, and no majority of the seats answered


class Ticketing(Protocol):
    """Who asked for a ticket; told in the host's turns."""

    def on_acquired(self, number: int, token: int, deadline: float) -> None:
        """Ours until the deadline, on this host's clock. Once."""

    def on_extended(self, deadline: float) -> None:
        """Still ours, until then."""

    def on_at_risk(self) -> None:
        """A round passed without an extension."""

    def on_lost(self, why: str) -> None:
        """It is over, or was never to be had; the text begins with LAPSED, DEPOSED, or before it was owned MISMATCH, FULL, UNAVAILABLE."""

    def on_queued(self, position: int) -> None:
        """Somebody holds a place for us; 1 is next. May come again with another number."""


class Attempt(Protocol):
    """One ``acquire``. Either ``cancel`` or ``release`` is called, once; both are harmless after a loss."""

    @property
    def number(self) -> int: ...  # of the ticket; -1 before it is owned
    @property
    def token(self) -> int: ...
    @property
    def deadline(self) -> float: ...
    @property
    def valid(self) -> bool:
        """Owned now, by the clock (F9)."""

    def cancel(self) -> None:
        """Nobody wants it any more, and it is not owned yet. A late grant is given back at once."""

    def release(self) -> None:
        """Nobody acts under it any more (F14 allows it): 5.8 cleave, to the first who waits if there is one."""

    def renew_allowed(self, allowed: bool) -> None:
        """False: ``on_extended`` is not called any more. It stays ours until ``release``."""

    def publish(self, payload: bytes) -> None:
        """An application event stamped with (number, token), to everybody who listens to the pool. Raises ``Lost``."""


class Tickets:
    """A machine (host.Machine)."""

    handles = MESSAGES

    def __init__(
        self, host: Host, membership: Membership, seats: Seats, broadcast: Broadcast, exchange: Exchange, config: TicketConfig
    ) -> None: ...

    def acquire(self, pool: str, n: int, listener: Ticketing, *, wait: bool = True, metadata: Mapping[str, str] | None = None) -> Attempt:
        """Ask for one of ``n`` tickets. Raises ``ConfigError`` for a name, number or metadata that cannot be."""
        raise NotImplementedError

    def view(self, pool: str) -> TicketView:
        """Cview: a hint, at once."""
        raise NotImplementedError

    def pools(self) -> tuple[str, ...]:
        """The pools that are known here, sorted."""
        raise NotImplementedError

    def read(self, pool: str, done: Callable[[TicketView | None], None]) -> None:
        """The truth: walks the cells with majorities. None: some majority did not answer."""
        raise NotImplementedError

    def abandon(self, pool: str, number: int, done: Callable[[str], None]) -> None:
        """9.5, after an operator confirmed that the holder is dead. ``done`` gets "" or why it was refused."""
        raise NotImplementedError

    def listen(self, pool: str, listener: Callable[[int, int, bytes], None]) -> Callable[[], None]:
        """Application events of a pool: number, token, payload. Call the result to stop."""
        raise NotImplementedError

    def watch(self, listener: Callable[[str, int, TicketView], None]) -> Callable[[], None]:
        """Changes of owners in any pool: pool, number, the view now. Call the result to stop."""
        raise NotImplementedError

    def drain(self) -> None:
        """This agent shuts down: guardians say so in ALIVE, ring cells move away (9.6). Tickets are released by their users (F14)."""
        raise NotImplementedError
