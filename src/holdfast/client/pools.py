"""Who holds the tickets of a pool, in both spellings.  Spec: tickets 10, G6; docs/client.md (tickets)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from holdfast.client import streams, waits
from holdfast.client.connection import Connection
from holdfast.client.pump import Pump
from holdfast.features.tickets import calls as ticket_calls
from holdfast.host import NodeId
from holdfast.net.clock import now

READ_TIMEOUT = 60.0  # seconds; an agent that reaches too few seats says so earlier


class Holder(NamedTuple):
    """Who holds one ticket."""

    id: NodeId  # the agent whose client it is
    token: int  # the next holder of the same number has a larger one
    metadata: Mapping[str, str]  # as it was given to ``ticket``

    @property
    def name(self) -> str:
        """Of the member."""
        return self.id.name


class PoolView(NamedTuple):
    """The tickets of a pool at one moment."""

    pool: str
    of: int  # how many there are; 0: nobody has asked for one yet, as far as is known
    holders: Mapping[int, Holder]  # by number
    is_hint: bool  # False: a majority of the seats said so
    as_of: float  # when this process received it, on the clock of ``holdfast.client.clock.now()``: it is at least that old

    @property
    def free(self) -> tuple[int, ...]:
        """The numbers that nobody holds. One whose holder has died counts as held until it is reclaimed."""
        return tuple(number for number in range(self.of) if number not in self.holders)


class Pool:
    """The pool of ``group.tickets(name)``."""

    def __init__(self, connected: Callable[[], Connection], name: str, opened: Callable[[str], streams.PoolWatch]) -> None:
        self.name = name
        self._connected, self._opened = connected, opened

    def __repr__(self) -> str:
        return f"<Pool {self.name!r}>"

    def watch(self) -> streams.PoolWatch:
        """News of this pool, from now on: an iterator of ``OwnerChanged``, as this agent hears of it, and of ``Published``, which is what
        holders of its tickets say with ``ticket.publish``. A reader that falls more than 1024 events behind reads ``EventsLost(n)``; then
        ``hint()`` says what is. Ends when the group is left, and raises ``AgentLost`` when the agent is lost (with ``reconnect``:
        ``EventsLost(0)``, and it goes on)."""
        return self._opened(self.name)

    async def hint(self) -> PoolView:
        """As this agent heard it: costs nothing but a word with it, and may be late."""
        return hinted(self.name, await self._connected().call(ticket_calls.Tickets, self.name))

    async def read(self) -> PoolView:
        """The newest version that a majority of the seats has: a change that is being written may be in it, or not yet. A holder that has
        died counts until its ticket is reclaimed. Raises ``Unavailable`` if too few answer."""
        return viewed(await self._connected().call(ticket_calls.ReadTickets, self.name, timeout=READ_TIMEOUT))


class BlockingPool:
    """The pool of ``group.tickets(name)``."""

    def __init__(self, connected: Callable[[], Pump], name: str, opened: Callable[[str], waits.PoolWatch]) -> None:
        self.name = name
        self._connected, self._opened = connected, opened

    def __repr__(self) -> str:
        return f"<Pool {self.name!r}>"

    def watch(self) -> waits.PoolWatch:
        """News of this pool, from now on: an iterator of ``OwnerChanged``, as this agent hears of it, and of ``Published``, which is what
        holders of its tickets say with ``ticket.publish``. A reader that falls more than 1024 events behind reads ``EventsLost(n)``; then
        ``hint()`` says what is. Ends when the group is left, and raises ``AgentLost`` when the agent is lost (with ``reconnect``:
        ``EventsLost(0)``, and it goes on)."""
        return self._opened(self.name)

    def hint(self) -> PoolView:
        """As this agent heard it: costs nothing but a word with it, and may be late."""
        return hinted(self.name, self._connected().call(ticket_calls.Tickets, self.name))

    def read(self) -> PoolView:
        """The newest version that a majority of the seats has: a change that is being written may be in it, or not yet. A holder that has
        died counts until its ticket is reclaimed. Raises ``Unavailable`` if too few answer."""
        return viewed(self._connected().call(ticket_calls.ReadTickets, self.name, timeout=READ_TIMEOUT))


def hinted(pool: str, views: tuple[ticket_calls.PoolView, ...]) -> PoolView:
    return viewed(views[0] if views else ticket_calls.PoolView(pool, 0, (), True))


def viewed(view: ticket_calls.PoolView) -> PoolView:
    holders = {each.number: Holder(each.agent, each.token, each.metadata) for each in view.holders}
    return PoolView(view.pool, view.of, holders, view.hint, now())
