"""How much of the event loop strangers get: protocols come first.  Decision H179; docs/http.md, docs/local-api.md (limits).

An agent has one loop. What runs on it beside the protocols comes in small pieces, a few per turn, so that between two of them the
sockets and timers of the protocols have their own turn. ``Line`` serves HTTP: one piece per turn, and all of them together a share of the
time. ``Slices`` serves the local socket: so many milliseconds per turn and no share, because its clients are why the agent is there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Protocol

SHARE = 0.25  # of the time, for all of HTTP: a quarter of a core at most
SHARE_BURST = 0.1  # seconds of work after a rest: the twenty answers that a page wants at its start

TURN_SECONDS = 0.002  # per turn of the loop, for all clients of the local socket: a tenth of what is noticed as late (0.02 s)
SLICE_SECONDS = 0.001  # of it, for one client, before the next one


class Bucket:
    """Tokens that come back with time."""

    __slots__ = ("_at", "_left", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        assert rate > 0
        assert burst > 0
        self.rate, self.burst = rate, burst
        self._left, self._at = burst, now

    def left(self, now: float) -> float:
        if now > self._at:
            self._left, self._at = min(self.burst, self._left + (now - self._at) * self.rate), now
        return self._left

    def take(self, amount: float, now: float) -> None:
        """What is left may fall below 0: then it takes longer until there is something again."""
        self._left = self.left(now) - amount

    def wait(self, now: float, amount: float = 0.0) -> float:
        """Seconds until more than ``amount`` is left."""
        return max(0.0, (amount - self.left(now)) / self.rate)


class Line:
    """A queue of pieces of work: one per turn of the loop, first come, first served, within a share of the time.

    A piece is a function and what it makes ready to run in the next turn: the first step of a task it starts. Both are timed.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._share = Bucket(SHARE, SHARE_BURST, monotonic())
        self._pieces: deque[Callable[[], None]] = deque()  # at most one per connection and one per stream
        self._due = False
        self._began_at = 0.0
        self._cost = 0.0
        self.spent = 0.0  # seconds
        self.longest = 0.0  # of one piece, seconds

    def __len__(self) -> int:
        return len(self._pieces)

    def add(self, piece: Callable[[], None]) -> None:
        self._pieces.append(piece)
        if not self._due:
            self._due = True
            self._loop.call_soon(self._on_turn)

    async def turn(self) -> None:
        """Wait for one; what runs until the next ``await`` is the piece."""
        granted: asyncio.Future[None] = self._loop.create_future()
        self.add(lambda: None if granted.done() else granted.set_result(None))
        await granted

    def _on_turn(self) -> None:
        now = monotonic()
        wait = self._share.wait(now)
        if wait > 0:
            self._loop.call_later(wait, self._on_turn)
            return
        piece = self._pieces.popleft()
        # Callbacks run in the order in which they were made: what the piece makes ready runs between these two.
        self._loop.call_soon(self._begin)
        try:
            piece()
        finally:
            self._cost = monotonic() - now
            self._loop.call_soon(self._end)

    def _begin(self) -> None:
        self._began_at = monotonic()

    def _end(self) -> None:
        now = monotonic()
        cost = self._cost + now - self._began_at
        self._share.take(cost, now)
        self.spent += cost
        self.longest = max(self.longest, cost)
        self._due = bool(self._pieces)
        if self._due:
            self._loop.call_soon(self._on_turn)


class Sliced(Protocol):
    """A client of the local socket, as ``Slices`` sees it."""

    def serve(self, end_at: float) -> bool:
        """Work until then; True if something is left."""

    def wait(self) -> None:
        """Read nothing until it is served again."""


class Slices:
    """The clients of the local socket: each is served at once while there is time in this turn; the others wait, unread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: dict[Sliced, None] = {}  # in the order in which they came
        self._began_at = 0.0  # when this turn's time began to run
        self._spent = 0.0
        self._due = False
        self.deferred = 0  # times that a client had to wait

    def enter(self, client: Sliced) -> None:
        """It has something to do."""
        if client in self._waiting:
            return
        now = monotonic()
        if now - self._began_at >= 2 * TURN_SECONDS:
            self._began_at, self._spent = now, 0.0  # Nothing was left over, so this is another turn.
        if self._waiting or self._spent >= TURN_SECONDS:
            self._defer(client)
        else:
            self._serve(client, now)

    def forget(self, client: Sliced) -> None:
        with suppress(KeyError):
            del self._waiting[client]

    def _serve(self, client: Sliced, now: float) -> None:
        more = client.serve(now + SLICE_SECONDS)
        self._spent += monotonic() - now
        if more:
            self._defer(client)

    def _defer(self, client: Sliced) -> None:
        self.deferred += 1
        self._waiting[client] = None
        client.wait()
        if not self._due:
            self._due = True
            self._loop.call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._due = False
        now = self._began_at = monotonic()
        self._spent = 0.0
        while self._waiting and self._spent < TURN_SECONDS:
            client = next(iter(self._waiting))
            del self._waiting[client]
            self._serve(client, now)
            now = monotonic()
        if self._waiting and not self._due:
            self._due = True
            self._loop.call_soon(self._on_turn)
