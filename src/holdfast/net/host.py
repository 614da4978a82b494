"""The real Host: one life of one process on asyncio.  Spec: foundation 3 (Host), F7 (clock), F10 (order after a pause, and of due timers).

Everything a machine hears comes in turns. A turn reads the clock; if a timer is late by more than ``AWAY_AFTER`` the process was
stopped, and every machine is told so first; then come the datagrams that waited, then what came by stream and what the disk
completed, then the timers that are due. A socket that is readable, a timer, a frame and a completed save all start the same
turn, so whatever wakes the process after a pause, the order is the same.

A turn leaves out what the loop has just done for it, because most turns of a quiet process are for one datagram or one timer, and a read
of an empty socket costs as much as one that finds something (H367). For a socket that is readable one datagram is read, and the loop says
if there are more; unless it is busy, or a timer is due. For a timer that is on time the socket is not read: the loop has looked at it
when it woke up, and lets it speak first.

A handler that raises is a bug, and the state that it left behind is unknown. The host stops: it closes its sockets, and
``failed`` carries the exception. Peers see a crash, which is what they are built for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from math import inf
from random import Random
from secrets import randbits

from holdfast.disk.journal import Journal, TurnStorage, Volatile
from holdfast.drops import Drop, Drops, Rejected
from holdfast.errors import AddressUnusable
from holdfast.events import Event, StorageFailed
from holdfast.host import (
    AWAY_DATAGRAMS_MAX,
    CALM_DATAGRAMS_MAX,
    DATAGRAM_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    SLEEP_MAX,
    Address,
    Message,
    NodeId,
    Storage,
)
from holdfast.net import clock
from holdfast.net.bind import Bound, is_wildcard
from holdfast.net.bind import bind as bind_both
from holdfast.net.tcp import Streams
from holdfast.net.timers import HostTimer, Timers
from holdfast.net.udp import Datagrams
from holdfast.node import Node
from holdfast.wire.codec import Codec, Envelope
from holdfast.wire.seal import Sealer

AWAY_AFTER = 0.1  # seconds of lateness that count as a pause: half of the shortest period of any preset (0.2 s)
ON_TIME = 0.005  # seconds of lateness up to which a timer need not look at the sockets: the loop did, when it woke up for it
HURRY = 0.001  # seconds after a datagram: when the next one comes that soon, there are probably more of them
WAKE_DELAY_MIN = 0.001  # seconds; loops wake up to 1 ms early or late, and a shorter sleep would only spin
INBOX_MAX = 1024  # messages that came by stream and wait for their turn; each was sealed by a member of this group
INBOX_BYTES_MAX = 16 << 20


def _nobody(event: Event) -> None:
    """Where events go that no listener asked for."""


def _too_early(sender: NodeId, to_life: int, fingerprint: bytes, message: Message) -> bytes:
    raise AssertionError("a machine sends before its host was started")


def _too_late(data: bytes, to: Address) -> None:
    """Where datagrams go when the sockets are closed."""


class NetHost:
    """Runs one ``Node`` on a UDP and a TCP socket. ``open``, ``node.add(...)``, ``start``, ``close``. Machines that come later, or go
    earlier, are added and removed in a turn: ``host.post(lambda: host.node.add(machine))``."""

    def __init__(self, me: NodeId, bound: Bound, sealer: Sealer, address: Address, *, seed: int, now: Callable[[], float]) -> None:
        self.me = me
        self.address = address
        self.bound = bound.address
        self.seed = seed
        self.random = Random(seed)
        self.late = 0.0
        self.on_event: Callable[[Event], None] = _nobody
        self.storage: Storage = TurnStorage(Volatile(), self.post)
        self.node = Node(self, self._transmit)
        self.send = self.node.send
        self.meet = self.node.meet
        self._dropped_from: dict[Drop, Address] = {}
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # None: closed in good order
        self.datagrams = Datagrams(bound.udp, self.drops)
        self.datagrams.refuse_unless(sealer)
        self.streams = Streams(bound.address, sealer, self.drops, self._on_stream, self._fail)
        self._sealer = sealer
        self._payload_max = DATAGRAM_BYTES_MAX - sealer.overhead
        self._seal, self._send_datagram = sealer.seal, self.datagrams.send
        self._codec: Codec | None = None  # known when the machines are
        self._encode = _too_early
        self._loop = asyncio.get_running_loop()
        self._clock = now
        self._timers = Timers()
        self._inbox: deque[tuple[Envelope[Message], int]] = deque()
        self._inbox_bytes = 0
        self._posted: deque[Callable[[], None]] = deque()
        self._now = now()  # the latest reading: time does not go back
        self._served_at = self._now  # when the sockets were last looked at
        self._read_at = -inf  # when a turn read one datagram because the socket was readable
        self._wake: asyncio.TimerHandle | None = None
        self._wake_for = 0.0  # when the timer is due that it was set for
        self._soon: asyncio.Handle | None = None
        self._in_turn = False
        self._closed = False

    @classmethod
    async def open(
        cls,
        me: NodeId,
        bind: Address,
        sealer: Sealer,
        *,
        advertise: Address | None = None,
        storage: Storage | None = None,
        seed: int | None = None,
        on_event: Callable[[Event], None] | None = None,
        now: Callable[[], float] = clock.now,
    ) -> NetHost:
        """Take the port. Nothing is read before ``start``. ``advertise`` is where peers reach us, if that is elsewhere."""
        bound = bind_both(bind)
        if advertise is None and is_wildcard(bound.address.host):
            bound.udp.close()
            bound.tcp.close()
            raise AddressUnusable(f"{bind} says where to listen, not where peers reach this process: advertise one of its addresses")
        host = cls(me, bound, sealer, advertise or bound.address, seed=randbits(64) if seed is None else seed, now=now)
        host.on_event = on_event or _nobody
        if storage is not None:
            host.storage = TurnStorage(storage, host.post)
        if isinstance(storage, Journal):
            storage.on_failed = host._on_storage_failed
        await host.streams.listen(bound.tcp)
        return host

    @property
    def now(self) -> float:
        now = self._clock()
        if now > self._now:
            self._now = now
        return self._now

    @property
    def drops(self) -> Drops:
        return self.node.drops

    @property
    def dropped_from(self) -> dict[Drop, Address]:
        """By reason: where the last datagram that was dropped for it came from."""
        return {**self._dropped_from, **self.datagrams.refused_from}

    def wall(self) -> float:
        return clock.wall()

    def at(self, due: float, callback: Callable[[], None]) -> HostTimer:
        timer = self._timers.add(due, callback)
        if not self._in_turn:
            self._arm()
        return timer

    def after(self, delay: float, callback: Callable[[], None]) -> HostTimer:
        return self.at(self.now + delay, callback)

    def emit(self, event: Event) -> None:
        self.on_event(event)

    def post(self, callback: Callable[[], None]) -> None:
        """Run it in the next turn, in F10's order. This is the way in for everything outside the machines."""
        if not self._closed:
            self._posted.append(callback)
            self._turn_soon()

    def enter(self, callbacks: Iterable[Callable[[], None]]) -> None:
        """As if each had been posted, in a turn that is now: for code that the loop calls and that has nothing else to wait for."""
        if self._closed:
            return
        self._posted.extend(callbacks)
        if self._in_turn:
            self._turn_soon()
        elif self._codec is not None:
            self._turn()

    def start(self) -> None:
        """Start the machines and begin to listen."""
        assert self._codec is None
        assert not self._closed
        self._read_types()
        self.node.on_machines = self._read_types
        self._served_at = self.now
        self._loop.add_reader(self.datagrams.fileno(), self._on_readable)
        self._guarded(self.node.start)
        self._arm()

    async def close(self) -> None:
        """Stop the machines in good order, let what they said leave, close the sockets."""
        if self._closed:
            return
        if self.node.running and not self._guarded(self.node.stop):
            return
        self._stop_turns()
        await self.streams.close()
        self.datagrams.close()
        if not self.failed.done():
            self.failed.set_result(None)

    def _read_types(self) -> None:
        """Speak the types of the machines that are there now."""
        codec = self._codec = Codec(self.node.types, wall=clock.wall)
        self._encode, self.datagrams.deliver = codec.encode, self._way_up(codec)

    def _transmit(self, address: Address, life: int, fingerprint: bytes, message: Message) -> None:
        payload = self._encode(self.me, life, fingerprint, message)
        if len(payload) <= self._payload_max:
            self._send_datagram(self._seal(payload), address)
        else:
            self._transmit_large(payload, address)

    def _way_up(self, codec: Codec) -> Callable[[bytes, Address], None]:
        """What every datagram passes on its way in. A closure, because it runs for each of them and names cost time."""
        unseal, decode, receive, drops = self._sealer.open, codec.decode, self.node.receive, self.drops
        dropped_from = self._dropped_from

        def deliver(data: bytes, source: Address) -> None:
            try:
                envelope = decode(unseal(data))
            except Rejected as rejected:
                drops[rejected.why] += 1
                dropped_from[rejected.why] = source
                return
            receive(source, envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message)

        return deliver

    def _transmit_large(self, payload: bytes, address: Address) -> None:
        if self._closed:
            return
        if len(payload) + self._sealer.overhead <= MESSAGE_BYTES_MAX:
            self.streams.send(payload, address)
        else:
            self.drops[Drop.TOO_LARGE] += 1

    def _turn(self) -> None:
        if not self._in_turn and not self._closed:
            self._guarded(self._serve)

    def _guarded(self, step: Callable[[], None]) -> bool:
        """Run the machines; False if one of them raised, which is the end of this host."""
        self._in_turn = True
        try:
            step()
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                raise
            return False
        finally:
            self._in_turn = False
        return True

    def _serve(self) -> None:
        """One turn (F10)."""
        began_at = self.now
        due_at = self._timers.next_due()
        if due_at is not None and (away := began_at - max(due_at, self._served_at)) > AWAY_AFTER:
            self.node.on_away(away)
            self._read(AWAY_DATAGRAMS_MAX)
            # Not `began_at`: reading so much takes time, and counting it as one more pause would starve the timers.
            self._served_at = self.now
        else:
            self._read(CALM_DATAGRAMS_MAX)
            self._served_at = began_at
        self._run_due()
        self._arm()

    def _serve_one(self) -> None:
        """The turn of a socket that is readable."""
        began_at = self.now
        due_at = self._timers.next_due()
        if (due_at is not None and due_at <= began_at) or began_at - self._read_at < HURRY or self._inbox or self._posted:
            self._serve()
            return
        self.datagrams.drain(1)
        self._served_at = self._read_at = began_at
        if self._posted:
            self._run_posted()
        self._run_due()
        self._arm()

    def _serve_due(self) -> None:
        """The turn of a timer."""
        began_at = self.now
        due_at = self._timers.next_due()
        if (due_at is not None and began_at - due_at > ON_TIME) or self._inbox or self._posted:
            self._serve()
            return
        self._served_at = began_at
        self._run_due()
        self._arm()

    def _read(self, limit: int) -> None:
        self.datagrams.drain(limit)
        if self._inbox:
            self._read_inbox(limit)
        if self._posted:
            self._run_posted()

    def _read_inbox(self, limit: int) -> None:
        for _ in range(min(limit, len(self._inbox))):
            envelope, size = self._inbox.popleft()
            self._inbox_bytes -= size
            self.node.receive(None, envelope.sender, envelope.to_life, envelope.fingerprint, envelope.message)

    def _run_posted(self) -> None:
        for _ in range(len(self._posted)):
            if self.node.reached:
                self.node.begin_turn()
            self._posted.popleft()()

    def _run_due(self) -> None:
        timers = self._timers
        if (due_at := timers.next_due()) is None or due_at > (now := self.now):
            return
        until = now
        try:
            while due_at is not None and due_at <= until:
                if now - max(due_at, self._served_at) > AWAY_AFTER:
                    return  # Stopped since the sockets were looked at: begin again, or this timer would judge before it heard.
                self.late = max(0.0, now - due_at)
                if self.node.reached:
                    self.node.begin_turn()
                timers.pop()()
                now = self.now
                due_at = timers.next_due()
        finally:
            self.late = 0.0

    def _arm(self) -> None:
        """Come back when the next timer is due; at once if something is left to do."""
        if self._closed or self._codec is None:
            return
        due_at = self._timers.next_due()
        if self._inbox or self._posted:
            self._turn_soon()
        elif due_at is not None and (self._wake is None or due_at != self._wake_for):
            # Also if it is later than before: an answer cancels the timer of its question, and waking up for nothing costs far more.
            self._set_alarm(due_at)

    def _set_alarm(self, due_at: float) -> None:
        now = self.now
        if due_at <= now:
            self._turn_soon()
            return
        if self._wake is not None:
            self._wake.cancel()
        self._wake_for = due_at
        self._wake = self._loop.call_later(min(max(due_at - now, WAKE_DELAY_MIN), SLEEP_MAX), self._on_wake)

    def _turn_soon(self) -> None:
        if self._soon is None and self._codec is not None:
            self._soon = self._loop.call_soon(self._on_soon)

    def _fail(self, error: BaseException) -> None:
        """A bug. Nothing goes on half-way."""
        if self._closed:
            return
        self._stop_turns()
        self.streams.abort()
        self.datagrams.close()
        self.failed.set_exception(error)

    def _stop_turns(self) -> None:
        self._closed = True
        self._send_datagram = _too_late
        self._loop.remove_reader(self.datagrams.fileno())
        for handle in (self._wake, self._soon):
            if handle is not None:
                handle.cancel()
        self._posted.clear()
        self._inbox.clear()

    def _on_soon(self) -> None:
        self._soon = None
        self._turn()

    def _on_wake(self) -> None:
        self._wake = None
        if not self._in_turn and not self._closed:
            self._guarded(self._serve_due)

    def _on_readable(self) -> None:
        if not self._in_turn and not self._closed:
            self._guarded(self._serve_one)

    def _on_stream(self, payload: bytes) -> None:
        if self._codec is None or self._closed:
            return
        if len(self._inbox) >= INBOX_MAX or self._inbox_bytes + len(payload) > INBOX_BYTES_MAX:
            self.drops[Drop.QUEUE_FULL] += 1
            return
        try:
            envelope = self._codec.decode(payload)
        except Rejected as rejected:
            self.drops[rejected.why] += 1
            return
        self._inbox.append((envelope, len(payload)))
        self._inbox_bytes += len(payload)
        self._turn_soon()

    def _on_storage_failed(self, event: StorageFailed) -> None:
        self.post(lambda: self.emit(event))
