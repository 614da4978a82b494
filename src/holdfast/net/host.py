"""The real Host: one life of one process on asyncio.  Spec: foundation 3 (Host), F7 (clock), F10 (order after a pause, and of due timers).

Everything a machine hears comes in turns. A turn reads the clock; if a timer is late by more than ``AWAY_AFTER`` the process was
stopped, and every machine is told so first; then come the datagrams that waited, then what came by stream and what the disk
completed, then the timers that are due. A socket that is readable, a timer, a frame and a completed save all start the same
turn, so whatever wakes the process after a pause, the order is the same.

A turn leaves out what the loop has just done for it, because most turns of a quiet process are for one datagram or one timer, and a read
of an empty socket costs as much as one that finds something (H367). For a socket that is readable one datagram is read, and the loop says
if there are more; unless it is busy, or a timer is due. For a timer that is on time the socket is not read: the loop has looked at it
when it woke up, and lets it speak first.

Protocols cancel most of their timers, so cancelling only empties one. It leaves the heap when it surfaces, or when most of it is dead.

A handler that raises is a bug, and the state that it left behind is unknown. The host stops: it closes its sockets, and
``failed`` carries the exception. Peers see a crash, which is what they are built for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from math import inf
from random import Random
from secrets import randbits

from holdfast.disk.journal import Journal, TurnStorage, Volatile
from holdfast.drops import Drop, Drops
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
from holdfast.net.incoming import Incoming
from holdfast.net.tcp import Streams
from holdfast.net.udp import Datagrams
from holdfast.node import Node
from holdfast.wire.codec import Codec
from holdfast.wire.seal import Sealer

AWAY_AFTER = 0.1  # seconds of lateness that count as a pause: half of the shortest period of any preset (0.2 s)
ON_TIME = 0.005  # seconds of lateness up to which a timer need not look at the sockets: the loop did, when it woke up for it
HURRY = 0.001  # seconds after a datagram: when the next one comes that soon, there are probably more of them
DEAD_MIN = 64  # cancelled timers that never trigger a compaction: a heap that small is cheap to carry
WAKE_DELAY_MIN = 0.001  # seconds; loops wake up to 1 ms early or late, and a shorter sleep would only spin


def _nobody(event: Event) -> None:
    """Where events go that no listener asked for."""


def _too_early(sender: NodeId, to_life: int, fingerprint: bytes, message: Message) -> bytes:
    raise AssertionError("a machine sends before its host was started")


def _too_late(data: bytes, to: Address) -> None:
    """Where datagrams go when the sockets are closed."""


class HostTimer:
    """A callback that will run once. It is spent when it ran or was cancelled."""

    __slots__ = ("_timers", "callback", "due_at")

    def __init__(self, timers: Timers, due_at: float, callback: Callable[[], None]) -> None:
        self._timers = timers
        self.due_at = due_at
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        if self.callback is not None:
            self.callback = None
            self._timers.on_cancelled()


class Timers:
    """A heap of timers. Timers with one due time run in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, HostTimer]] = []
        self._serial = 0
        self._dead = 0

    def __len__(self) -> int:
        """How many timers will still run."""
        return len(self._heap) - self._dead

    @property
    def held(self) -> int:
        """How many entries the heap holds, cancelled ones included."""
        return len(self._heap)

    def add(self, due_at: float, callback: Callable[[], None]) -> HostTimer:
        timer = HostTimer(self, due_at, callback)
        self._serial += 1
        heappush(self._heap, (due_at, self._serial, timer))
        return timer

    def next_due(self) -> float | None:
        """When the earliest timer that will still run is due."""
        heap = self._heap
        while heap:
            due_at, _, timer = heap[0]
            if timer.callback is not None:
                return due_at
            heappop(heap)
            self._dead -= 1
        return None

    def pop(self) -> Callable[[], None]:
        """The callback of the timer that ``next_due`` just spoke of. It is spent from here on."""
        timer = heappop(self._heap)[2]
        callback, timer.callback = timer.callback, None
        assert callback is not None
        return callback

    def on_cancelled(self) -> None:
        """A timer in the heap was emptied."""
        self._dead += 1
        if self._dead > DEAD_MIN and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].callback is not None]
            heapify(self._heap)
            self._dead = 0


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
        self._incoming = Incoming(self.node, sealer)
        self._inbox = self._incoming.waiting
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
        return {**self._incoming.dropped_from, **self.datagrams.refused_from}

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
        self._encode, self.datagrams.deliver = codec.encode, self._incoming.way_up(codec)

    def _transmit(self, address: Address, life: int, fingerprint: bytes, message: Message) -> None:
        payload = self._encode(self.me, life, fingerprint, message)
        if len(payload) <= self._payload_max:
            self._send_datagram(self._seal(payload), address)
        else:
            self._transmit_large(payload, address)

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
            self._incoming.read(limit)
        if self._posted:
            self._run_posted()

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
        self._incoming.clear()

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
        if self._codec is not None and not self._closed and self._incoming.put(payload, self._codec):
            self._turn_soon()

    def _on_storage_failed(self, event: StorageFailed) -> None:
        self.post(lambda: self.emit(event))
