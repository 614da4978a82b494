"""What a task waits for: events, messages, and the end of what it holds.  The asyncio side of ``buffers`` and ``holding``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from holdfast.client import checks
from holdfast.client.buffers import Buffer, EventBuffer, Kept, MessageBuffer, PoolBuffer, Received
from holdfast.client.checks import PUBLISH_BYTES_MAX
from holdfast.client.connection import Answer, Connection
from holdfast.client.holding import Held, TicketHeld, not_granted
from holdfast.client.wire import forked
from holdfast.errors import AgentLost, HoldfastError, LeadershipLost
from holdfast.events import Event
from holdfast.features.mail import calls as mail_calls
from holdfast.features.tickets import calls as ticket_calls
from holdfast.host import SLEEP_MAX
from holdfast.local import calls
from holdfast.local.ends import RELEASED, UNWANTED
from holdfast.net.clock import now

T = TypeVar("T")


class Reader(Buffer[T], Generic[T]):
    """An async iterator over a buffer. It ends when the group is left, and raises what ended it otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        self._ready = asyncio.Event()

    def __aiter__(self) -> Reader[T]:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if os.getpid() != self._pid:
                raise forked()
            if self._over:
                raise StopAsyncIteration if self._error is None else type(self._error)(*self._error.args)
            self._ready.clear()
            await self._ready.wait()
        return self._items.popleft()

    def close(self) -> None:
        """Read no further. What is not referenced any more is closed as well."""
        self._items.clear()
        self.end(None)

    def _wake(self) -> None:
        self._ready.set()


class Watch(EventBuffer, Reader[Event]):
    """Events of ``holdfast.events``, in order, from the call of ``watch`` on."""


class Opened(Kept[T], Reader[T], Generic[T]):
    """What a call of its own opened."""

    call: ClassVar[type[calls.Call]]
    about = ""  # its one field

    _connection: Connection | None = None
    _serial = 0

    def open(self, connection: Connection) -> None:
        self._connection = connection
        self._serial = connection.begin(self.call, (self.about,), Answer(self), sink=self)

    def close(self) -> None:
        super().close()
        if self._connection is not None:
            self._connection.close_stream(self._serial)


class Messages(MessageBuffer, Opened[Received]):
    """Messages, in the order of their coming, from the call of ``messages`` on."""

    call = mail_calls.Messages

    def __init__(self, topic: str) -> None:
        super().__init__()
        self.topic = self.about = topic


class PoolWatch(PoolBuffer, Opened[Event]):
    """Events of one pool of tickets, in order, from the call of ``watch`` on."""

    call = ticket_calls.WatchTickets

    def __init__(self, pool: str) -> None:
        super().__init__()
        self.pool = self.about = pool


class Holding(Held):
    """Something that excludes others, for the length of an ``async with`` block."""

    def __init__(self, connection: Connection, kind: str, name: str, options: Mapping[str, Any], timeout: float | None) -> None:
        super().__init__(kind, name)
        self._connection, self._options, self._timeout = connection, options, timeout
        self._serial = 0
        self._news = asyncio.Event()
        self._lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def lost(self) -> asyncio.Future[str]:
        """Awaitable: completes, with the reason, when it is lost, told to stop, or its deadline has passed on this machine's clock."""
        self._changed()
        return asyncio.shield(self._lost)

    async def __aenter__(self) -> Self:
        """Ask, and wait until it is granted. Raises ``AcquireTimeout``, or what the agent refuses it with."""
        self._enter()
        asked: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._serial = self._connection.begin(calls.Acquire, (self.kind, self.name, self._options), asked, sink=self)
        try:
            async with asyncio.timeout(self._timeout):
                await asked
                while not self._granted and not self._over:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError as error:
            self._give_up()
            if isinstance(error, HoldfastError):
                raise
            raise not_granted(self, self._timeout) from None
        except BaseException:
            self._give_up()
            raise
        if self._look():
            self._give_up()
            raise self._not_held()
        with suppress(AgentLost):  # Then it ends at its deadline.
            self._connection.tell(calls.Confirm, self._serial, self.token)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Say that the work has stopped, and wait until it was released. After a fork it is the parent's to give back."""
        if os.getpid() == self._pid:
            await self.release()

    async def release(self) -> None:
        """Give it back now, before the block ends. Nothing may be done under it from here on."""
        if os.getpid() != self._pid:
            raise forked()  # It is the parent's to give back (F14).
        self._finish(RELEASED)
        self._changed()
        if self._serial and not self._connection.lost:
            serial, self._serial = self._serial, 0
            with suppress(HoldfastError):  # Then it ends at its deadline.
                await self._connection.stop(serial)

    def _give_up(self) -> None:
        """Nobody wants it any more. It may have been granted just now: then nobody has acted under it."""
        self._finish(UNWANTED)
        self._changed()
        if self._serial and not self._connection.lost:
            self._connection.tell(calls.Stopped, self._serial)
            self._connection.close_stream(self._serial)

    def _changed(self) -> None:
        self._news.set()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._look():
            if not self._lost.done():
                self._lost.set_result(self.why)
        elif self._granted:
            # Timers of a loop stand still while the machine is suspended, so none is longer than a second (F10).
            wait = min(SLEEP_MAX, max(0.0, self.deadline - now()))
            self._timer = self._lost.get_loop().call_later(wait, self._changed)


class Term(Holding):
    """A term as leader of a name, for the length of an ``async with`` block. Made by ``group.lead``.

    ``valid`` says whether this process leads now: it reads the clock of this machine and nothing else, so it is right also when the agent
    is dead or this process was stopped for a while. ``token`` grows with every term of the name, everywhere: give it to what you write
    to, and let that refuse smaller ones. ``deadline`` moves as the term is renewed; ``left`` is what remains.
    ``await term.lost`` returns, with the reason, when the term is over.
    """

    lost_error = LeadershipLost

    async def resign(self) -> None:
        """Give the leadership up now. Say it when nothing is done under it any more: the next candidate leads about a round trip later."""
        await self.release()


class Ticket(TicketHeld, Holding):
    """One ticket of a pool, for the length of an ``async with`` block. Made by ``group.ticket``.

    ``number`` says which one, from 0. ``valid`` says whether this process holds it now: it reads the clock of this machine and nothing
    else, so it is right also when the agent is dead or this process was stopped for a while. ``token`` grows with every holder of that
    number, everywhere: give it to what you write to, and let that refuse smaller ones. ``deadline`` moves as the ticket is renewed;
    ``left`` is what remains. ``await ticket.lost`` returns, with the reason, when it is over.
    """

    async def publish(self, data: bytes) -> None:
        """Tell up to 15 KiB to everybody who watches the pool (``group.tickets(pool).watch()``), as a rumour stamped with number and token:
        it reaches all of them with high probability, at most once each. Who has heard of a later holder of this number drops it. Returns
        when this agent has begun to spread it; raises ``TicketLost`` if the ticket is over."""
        told = checks.payload(data, PUBLISH_BYTES_MAX)
        self.check()
        with self._named():
            await self._connection.call(ticket_calls.Publish, self._serial, told)

    async def touch(self) -> None:
        """Say that this program is at work: a ticket that was asked for with ``user_ttl`` wants to hear it at least so often. Raises
        ``TicketLost`` if the ticket is over."""
        self.check()
        with self._named():
            await self._connection.call(ticket_calls.Touch, self._serial)
