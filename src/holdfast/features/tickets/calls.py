"""Tickets on the local socket: what a client may ask, and what it hears.  docs/local-api.md has the layout.

A ticket itself is asked for with ``Acquire`` (``local.calls``) of the kind "ticket"; its options are in ``kind.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct

from holdfast.host import NodeId
from holdfast.local.calls import Call, EventItem


class TicketHolder(Struct, frozen=True, array_like=True):
    """Who owns one ticket."""

    number: int
    agent: NodeId
    token: int
    metadata: Mapping[str, str]


class PoolView(Struct, frozen=True, array_like=True):
    """The owners of a pool's tickets: a hint, unless they were read from majorities."""

    pool: str
    of: int  # tickets in the pool; 0: not known here
    holders: tuple[TicketHolder, ...]  # sorted by number; who is not in it is free, or about to be
    hint: bool
    here: int = 0  # clients of this agent that hold one or ask for one
    waiting: int = 0  # clients that are known here to wait: those, and the ones that queue at a ticket that is held here


class Tickets(Call, frozen=True, tag=20):
    """Who owns which ticket, as this agent heard it: of one pool, or ("") of all that are known here. A hint."""

    answers: ClassVar[Any] = tuple[PoolView, ...]

    pool: str = ""


class ReadTickets(Call, frozen=True, tag=21):
    """The same of one pool, read from majorities of the seats; ``Unavailable`` if some do not answer."""

    answers: ClassVar[Any] = PoolView

    pool: str


class StopTicket(Call, frozen=True, tag=22):
    """Ask the client of this agent that holds a ticket to stop. Answered when it was asked; F14 says when the ticket is free."""

    pool: str
    number: int


class AbandonTicket(Call, frozen=True, tag=23):
    """A ticket whose guardians are lost for good is given up (tickets 9.5). The caller vouches that its holder is dead."""

    pool: str
    number: int


class Publish(Call, frozen=True, tag=24):
    """Tell all clients that watch the pool of a ticket that this client holds, under its number and token; ``TicketLost`` if it is over."""

    grant: int  # serial of its Acquire
    payload: bytes


class WatchTickets(Call, frozen=True, tag=25):
    """A stream of ``EventItem``: ``OwnerChanged`` and ``Published`` of one pool, and ``EventsLost`` where some are missing."""

    items: ClassVar[Any] = EventItem

    pool: str


class Touch(Call, frozen=True, tag=26):
    """The program that holds a ticket is at work, as it must say within the ticket's ``user_ttl``; ``TicketLost`` if it is over."""

    grant: int  # serial of its Acquire
