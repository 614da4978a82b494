"""Probe: how far is it to a peer, how large may a message be, which version runs there.  Used by ``doctor``.

``size`` counts bytes on the wire. Up to 1200 it is one datagram, so a path with a small MTU shows as silence from some size on; above, it
goes by stream, so a closed TCP port shows as silence of large messages only. The answer has a size of its own, to tell the two directions
apart. An address that was never heard is greeted first (F3): the first time measured there is about twice the true one, and what is too
large for a datagram reaches only those who were heard before.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from holdfast.features.probe.protocol.messages import Ping, Pong
from holdfast.host import Address, Host, Message, NodeId, Timer
from holdfast.kit.slots import WRITTEN_CHARS_MAX

PINGS_MAX = 256  # open at a time
TRIES = 3
TIMEOUT = 1.0  # seconds for all tries together, unless the caller says otherwise
SIZE_MAX = 32 * 1024  # as large as the largest letter; beyond, nothing new is learned
SEAL_BYTES = 50  # what sealing adds; a test compares it with the wire
LIFE_BYTES = 8  # what a life adds to the envelope of a greeting, whose life is 0
VERSION_CHARS_MAX = 64
PAUSES_MAX = 64  # remembered; more of them in ten minutes say the same
LATELY = 600.0  # seconds


class Reply(NamedTuple):
    """What came back."""

    rtt: float
    life: NodeId
    version: str
    uptime: float
    paused: float  # seconds for which it was stopped in the last ten minutes
    seats: str = ""  # "": it did not say


Done = Callable[[Reply | None], None]


class Open:
    """A ping without an answer."""

    __slots__ = ("done", "sent_at", "timer", "to")

    def __init__(self, to: NodeId | Address, done: Done) -> None:
        self.to, self.done = to, done
        self.sent_at: list[float] = []
        self.timer: Timer | None = None


class Probe:
    """Pings others and answers those who ping. ``version`` and ``seats`` are what this process says of itself."""

    handles = (Ping, Pong)
    fingerprint = b""

    def __init__(self, host: Host, version: str = "", seats: str = "") -> None:
        assert len(version) <= VERSION_CHARS_MAX
        assert len(seats) <= WRITTEN_CHARS_MAX
        self._host, self._version, self._seats = host, version, seats
        self._last_serial = 0
        self._open: dict[int, Open] = {}
        self._born_at = host.now
        self._pauses: deque[tuple[float, float]] = deque(maxlen=PAUSES_MAX)  # when it was noticed, how long it was
        self.counts: Counter[str] = Counter()  # pings, pongs, answered, silent, late, malformed, busy

    @property
    def paused(self) -> float:
        """Seconds for which this process was stopped in the last ten minutes, as far as a timer noticed."""
        return sum(seconds for at, seconds in self._pauses if at > self._host.now - LATELY)

    def ping(self, to: NodeId | Address, size: int, done: Done, *, back: int | None = None, timeout: float = TIMEOUT) -> None:
        """``done`` runs once: with what came back, or None. The answer is as large as the question, or ``back`` if that is less."""
        assert 0 <= size <= SIZE_MAX
        assert timeout > 0
        if len(self._open) >= PINGS_MAX:
            self.counts["busy"] += 1
            done(None)
            return
        self._last_serial += 1
        ping = self._padded(size, size if back is None else back)
        waits = self._open[ping.serial] = Open(to, done)
        self._on_try(ping, waits, timeout / TRIES)

    def start(self) -> None:
        """Nothing is asked before ``doctor`` wants to know."""

    def on_away(self, seconds: float) -> None:
        self._pauses.append((self._host.now, seconds))

    def on_message(self, source: NodeId, message: Message) -> None:
        if isinstance(message, Pong):
            self._on_pong(source, message)
        else:
            assert isinstance(message, Ping)
            self._on_ping(source, message)

    def stop(self) -> None:
        for serial in list(self._open):
            self._end(serial, None)

    def _padded(self, size: int, back: int) -> Ping:
        bare = Ping(self._last_serial, TRIES, back, b"")
        return Ping(self._last_serial, 0, back, padding(self._host.me, bare, size))

    def _on_try(self, ping: Ping, waits: Open, every: float) -> None:
        attempt = len(waits.sent_at)
        if attempt == TRIES:
            self.counts["silent"] += 1
            self._end(ping.serial, None)
            return
        waits.sent_at.append(self._host.now)
        waits.timer = self._host.after(every, partial(self._on_try, ping, waits, every))
        self.counts["pings"] += 1
        self._host.send(waits.to, Ping(ping.serial, attempt, ping.back, ping.padding))

    def _on_ping(self, source: NodeId, message: Ping) -> None:
        self.counts["pongs"] += 1
        bare = Pong(message.serial, message.attempt, self._version, self._host.now - self._born_at, self.paused, b"")
        # Never more than was sent here: no peer is flooded with the help of others.
        size = min(message.back, wire_bytes(source, message))
        told = replace(bare, seats=self._seats)
        if wire_bytes(self._host.me, told) <= size:
            bare = told
        self._host.send(source, replace(bare, padding=padding(self._host.me, bare, size)))

    def _on_pong(self, source: NodeId, message: Pong) -> None:
        waits = self._open.get(message.serial)
        if waits is None or (isinstance(waits.to, NodeId) and waits.to != source):
            self.counts["late"] += 1
        elif not (0 <= message.attempt < len(waits.sent_at) and _plain(message)):
            self.counts["malformed"] += 1
        else:
            rtt = self._host.now - waits.sent_at[message.attempt]
            self.counts["answered"] += 1
            self._end(message.serial, Reply(rtt, source, message.version, message.uptime, message.paused, message.seats))

    def _end(self, serial: int, reply: Reply | None) -> None:
        waits = self._open.pop(serial)
        if waits.timer is not None:
            waits.timer.cancel()
        waits.done(reply)


def wire_bytes(sender: NodeId, message: Message) -> int:
    """What a message has when it is addressed to a life and sealed."""
    return len(msgspec.msgpack.encode((sender, 0, b"", message))) + LIFE_BYTES + SEAL_BYTES


def padding(sender: NodeId, bare: Message, size: int) -> bytes:
    """What fills it up to ``size`` bytes, or up to two less; nothing if it is as large without."""
    return bytes(max(0, size - wire_bytes(sender, bare) - 1))  # one more byte for a length above 255


def _plain(pong: Pong) -> bool:
    """It ends on a terminal: short, printable, numbers that are numbers."""
    texts = ((pong.version, VERSION_CHARS_MAX), (pong.seats, WRITTEN_CHARS_MAX))
    readable = all(text.isprintable() and len(text) <= most for text, most in texts)
    return readable and all(isfinite(value) and value >= 0 for value in (pong.uptime, pong.paused))
