"""What a thread waits for: events, messages, and the end of what it holds.  The blocking side of ``buffers`` and ``holding``."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from threading import Condition
from types import TracebackType
from typing import Any, ClassVar, Generic, Self, TypeVar

from holdfast.client import checks
from holdfast.client.buffers import Buffer, EventBuffer, Kept, MessageBuffer, PoolBuffer, Received
from holdfast.client.checks import PUBLISH_BYTES_MAX, Seconds
from holdfast.client.holding import Held, TicketHeld, not_granted
from holdfast.client.pump import Answer, Pump
from holdfast.client.wire import CALL_TIMEOUT, forked
from holdfast.errors import AgentLost, HoldfastError, LeadershipLost, Timeout
from holdfast.events import Event
from holdfast.features.mail import calls as mail_calls
from holdfast.features.tickets import calls as ticket_calls
from holdfast.host import SLEEP_MAX
from holdfast.local import calls
from holdfast.local.ends import RELEASED, UNWANTED
from holdfast.net.clock import now

T = TypeVar("T")


class Reader(Buffer[T], Generic[T]):
    """An iterator over a buffer. It ends when the group is left, and raises what ended it otherwise. Several threads may read one: each
    item goes to one of them."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()
        self._news = Condition()

    def __iter__(self) -> Reader[T]:
        return self

    def __next__(self) -> T:
        return self.next()

    def next(self, timeout: Seconds | None = None) -> T:
        """The next item; raises ``Timeout`` if none came in time. 0 only looks."""
        limit = checks.patience(timeout)
        end_at = None if limit is None else now() + limit
        with self._news:
            while not self._items:
                if os.getpid() != self._pid:
                    raise forked()
                if self._over:
                    raise StopIteration if self._error is None else type(self._error)(*self._error.args)
                if end_at is not None and now() >= end_at:
                    raise Timeout(f"nothing came within {limit:g} s")
                self._news.wait(None if end_at is None else max(0.0, end_at - now()))
            return self._items.popleft()

    def close(self) -> None:
        """Read no further. What is not referenced any more is closed as well."""
        self._items.clear()
        self.end(None)

    def _wake(self) -> None:
        with self._news:
            self._news.notify_all()


class Watch(EventBuffer, Reader[Event]):
    """Events of ``holdfast.events``, in order, from the call of ``watch`` on."""


class Opened(Kept[T], Reader[T], Generic[T]):
    """What a call of its own opened."""

    call: ClassVar[type[calls.Call]]
    about = ""  # its one field

    _pump: Pump | None = None
    _serial = 0

    def open(self, pump: Pump) -> None:
        """Returns when the agent has agreed: what happens from then on arrives here."""
        opened = Answer()
        self._pump = pump
        self._serial = pump.begin(self.call, (self.about,), opened, sink=self)
        opened.wait(pump.path, CALL_TIMEOUT)

    def close(self) -> None:
        super().close()
        if self._pump is not None:
            self._pump.close_stream(self._serial)


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


class Signal:
    """Set when a holding is over, by word or by clock; used as a ``threading.Event``."""

    def __init__(self, holding: Holding) -> None:
        self._holding = holding

    def is_set(self) -> bool:
        return self._holding._look()

    def wait(self, timeout: Seconds | None = None) -> bool:
        """Wait until it is over, at most so long; whether it is. 0 only looks."""
        return self._holding._wait(lambda holding: holding._look(), checks.patience(timeout))


class Holding(Held):
    """Something that excludes others, for the length of a ``with`` block."""

    def __init__(self, pump: Pump, kind: str, name: str, options: Mapping[str, Any], timeout: float | None) -> None:
        super().__init__(kind, name)
        self._pump, self._options, self._timeout = pump, options, timeout
        self._serial = 0
        self._news = Condition()

    @property
    def lost(self) -> Signal:
        """``lost.wait(timeout)`` returns when it is lost, told to stop, or its deadline has passed on this machine's clock; ``why`` says
        which."""
        return Signal(self)

    def __enter__(self) -> Self:
        """Ask, and wait until it is granted. Raises ``AcquireTimeout``, or what the agent refuses it with."""
        self._enter()
        asked = Answer()
        self._serial = self._pump.begin(calls.Acquire, (self.kind, self.name, self._options), asked, sink=self)
        try:
            asked.wait(self._pump.path, CALL_TIMEOUT)
            if not self._wait(lambda held: held._granted or held._over, self._timeout):
                raise not_granted(self, self._timeout)
            if self._look():
                raise self._not_held()
            with suppress(AgentLost):  # Then it ends at its deadline.
                self._pump.tell(calls.Confirm, self._serial, self.token)
        except BaseException:
            self._give_up()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Say that the work has stopped, and wait until it was released. After a fork it is the parent's to give back."""
        if os.getpid() == self._pid:
            self.release()

    def release(self) -> None:
        """Give it back now, before the block ends. Nothing may be done under it from here on."""
        if os.getpid() != self._pid:
            raise forked()  # It is the parent's to give back (F14).
        self._finish(RELEASED)
        self._changed()
        serial, self._serial = self._serial, 0
        if serial and not self._pump.lost:
            with suppress(HoldfastError):  # Then it ends at its deadline.
                self._pump.stop(serial)

    def _give_up(self) -> None:
        """Nobody wants it any more. It may have been granted just now: then nobody has acted under it."""
        self._finish(UNWANTED)
        self._changed()
        if self._serial:  # else it was given back by whoever left the group meanwhile; 0 would speak of keys
            with suppress(AgentLost):
                self._pump.tell(calls.Stopped, self._serial)
                self._pump.close_stream(self._serial)

    def _wait(self, true: Callable[[Holding], bool], timeout: float | None) -> bool:
        end_at = inf if timeout is None else now() + timeout
        with self._news:
            while not true(self):
                if now() >= end_at:
                    return False
                # Waits of the kernel stand still while the machine is suspended, so none is longer than a second (F10).
                deadline = self.deadline if self._granted else inf
                self._news.wait(max(0.0, min(SLEEP_MAX, end_at - now(), deadline - now())))
            return True

    def _changed(self) -> None:
        with self._news:
            self._news.notify_all()


class Term(Holding):
    """A term as leader of a name, for the length of a ``with`` block. Made by ``group.lead``.

    ``valid`` says whether this process leads now: it reads the clock of this machine and nothing else, so it is right also when the agent
    is dead or this process was stopped for a while. ``token`` grows with every term of the name, everywhere: give it to what you write
    to, and let that refuse smaller ones. ``deadline`` moves as the term is renewed; ``left`` is what remains.
    ``term.lost.wait()`` returns when the term is over; ``why`` says why.
    """

    lost_error = LeadershipLost

    def resign(self) -> None:
        """Give the leadership up now. Say it when nothing is done under it any more: the next candidate leads about a round trip later."""
        self.release()


class Ticket(TicketHeld, Holding):
    """One ticket of a pool, for the length of a ``with`` block. Made by ``group.ticket``.

    ``number`` says which one, from 0. ``valid`` says whether this process holds it now: it reads the clock of this machine and nothing
    else, so it is right also when the agent is dead or this process was stopped for a while. ``token`` grows with every holder of that
    number, everywhere: give it to what you write to, and let that refuse smaller ones. ``deadline`` moves as the ticket is renewed;
    ``left`` is what remains. ``ticket.lost.wait()`` returns when it is over; ``why`` says why.
    """

    def publish(self, data: bytes) -> None:
        """Tell up to 15 KiB to everybody who watches the pool (``group.tickets(pool).watch()``), as a rumour stamped with number and token:
        it reaches all of them with high probability, at most once each. Who has heard of a later holder of this number drops it. Returns
        when this agent has begun to spread it; raises ``TicketLost`` if the ticket is over."""
        told = checks.payload(data, PUBLISH_BYTES_MAX)
        self.check()
        with self._named():
            self._pump.call(ticket_calls.Publish, self._serial, told)

    def touch(self) -> None:
        """Say that this program is at work: a ticket that was asked for with ``user_ttl`` wants to hear it at least so often. Raises
        ``TicketLost`` if the ticket is over."""
        self.check()
        with self._named():
            self._pump.call(ticket_calls.Touch, self._serial)
