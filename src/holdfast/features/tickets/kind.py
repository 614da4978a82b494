"""Tickets as a kind of grant: clients of this agent that ask for one of a pool.  Spec: tickets 9.2, 10; foundation F14, F16.

Each asking is an attempt of its own at the machine, so clients of one agent compete like those of two. The machine knows
nothing of clients: it owns a ticket until it is told to release it, and the law says when (F14).

A client is told a deadline that lies ``margin`` before the machine's own. The order in time is: at risk (a round was not answered), the
client's deadline, this agent's deadline, the earliest moment at which another client can own the ticket.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple, Protocol

from holdfast.errors import ConfigError, shown
from holdfast.features.tickets import KIND
from holdfast.features.tickets.protocol.tickets import Attempt
from holdfast.kit.deadline import Clock
from holdfast.kit.histogram import Histogram
from holdfast.kit.hold import Holder, LossReason

OPTIONS = ("of", "wait", "metadata", "user_ttl")
WAIT_BOUNDS = (0.005, 0.01, 0.05, 0.2, 1.0, 5.0, 30.0, 300.0)


class Untouched(LossReason, frozen=True):
    """9.2: the process is there and says nothing."""

    word = "silent"

    seconds: float  # user_ttl

    def __str__(self) -> str:
        return f"the program that holds it did not touch it for {self.seconds:g} s (user_ttl)"


class Pools(Protocol):
    """What this kind needs of the machine (``protocol.tickets.Tickets``)."""

    def acquire(self, pool: str, n: int, holder: Holder, *, wait: bool = True, metadata: Mapping[str, str] | None = None) -> Attempt: ...


class Wish(NamedTuple):
    """What a client asked for, checked."""

    of: int
    wait: bool
    metadata: Mapping[str, str]
    user_ttl: float


class TicketHeld:
    """One client's wish, from its asking to its end; what the machine tells goes to the law."""

    def __init__(self, kind: TicketKind, pool: str, holder: Holder, user_ttl: float = inf) -> None:
        """``user_ttl``: it is renewed only within so many seconds of the program's latest word that it is at work."""
        self.pool = pool
        self.attempt: Attempt | None = None  # None: ``acquire`` of the machine has not returned yet
        self.asked_at = kind.clock.now
        self._kind, self._holder = kind, holder
        self._over = False
        self._owned: tuple[int, int] | None = None  # number and token, before the client was told
        self._deadline = 0.0  # as the machine said last; 0.0 while the client has none
        self._user_ttl, self._touched_at = user_ttl, inf

    # What the law says.

    def cancel(self) -> None:
        self._end(lambda attempt: attempt.cancel())

    def release(self) -> None:
        self._end(lambda attempt: attempt.release())

    def renew_allowed(self, allowed: bool) -> None:
        if self.attempt is not None and not self._over:
            self.attempt.renew_allowed(allowed)

    # What the machine says. It may have had something to say just before it was told that there is no listener.

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        if not self._over:
            self._owned = number, token
            self._grant(deadline)

    def on_extended(self, deadline: float) -> None:
        if self._over:
            return
        if self._owned is not None:
            self._grant(deadline)
        elif self._kind.clock.now >= self._touched_at + self._user_ttl:
            self._leave_alone()
        else:
            self._kind.renewed(self._deadline)
            self._deadline = deadline
            self._holder.on_extended(deadline - self._kind.margin)

    def on_at_risk(self) -> None:
        if not self._over and self._owned is None:
            self._holder.on_at_risk()

    def on_lost(self, reason: LossReason) -> None:
        if not self._over:
            self._over = True
            self._kind.forget(self)
            self._holder.on_lost(reason)

    def on_queued(self, position: int, why: str = "") -> None:
        if not self._over and self._owned is None:
            self._holder.on_queued(position, why)

    def publish(self, payload: bytes) -> None:
        """Raises ``TicketLost``."""
        assert self.attempt is not None
        self.attempt.publish(payload)

    def touch(self) -> None:
        """The program says that it is at work."""
        self._touched_at = self._kind.clock.now

    def _leave_alone(self) -> None:
        """9.2: the process is there and says nothing. What it was told stands, and nothing is added; the law gives the ticket back then."""
        assert self.attempt is not None
        self._touched_at = inf  # It is said once.
        self._kind.counts["silent"] += 1
        self.attempt.renew_allowed(False)
        self._holder.on_lost(Untouched(self._user_ttl))

    def _grant(self, deadline: float) -> None:
        """A first deadline that leaves the client no time is none: the next round brings another, or the machine loses it."""
        assert self._owned is not None
        if deadline - self._kind.margin > self._kind.clock.now:
            (number, token), self._owned = self._owned, None
            self.touch()
            self._deadline = deadline
            waited = self._kind.clock.now - self.asked_at
            self._holder.on_granted(token, deadline - self._kind.margin, number)
            self._kind.granted(waited)

    def _end(self, step: Callable[[Attempt], None]) -> None:
        self._over = True
        self._kind.forget(self)
        if self.attempt is not None:
            step(self.attempt)


class TicketKind:
    """Tickets of pools."""

    kind = KIND

    def __init__(self, tickets: Pools, clock: Clock, margin: float) -> None:
        """``margin``: so long before this agent's own deadline a client stops."""
        self._tickets, self.clock, self.margin = tickets, clock, margin
        self.margin_least: float | None = None  # of all renewals: seconds that were left to this agent
        self.waits = Histogram(*WAIT_BOUNDS)  # seconds until a ticket was granted
        self.counts: Counter[str] = Counter()  # asked, refused, granted, silent
        self._wishes: dict[TicketHeld, None] = {}

    def acquire(self, name: str, options: Mapping[str, Any], holder: Holder) -> TicketHeld:
        try:
            wish = _checked(options)
            held = TicketHeld(self, name, holder, wish.user_ttl)
            held.attempt = self._tickets.acquire(name, wish.of, held, wait=wish.wait, metadata=wish.metadata)
        except ConfigError:
            self.counts["refused"] += 1
            raise
        self.counts["asked"] += 1
        self._wishes[held] = None
        return held

    @property
    def wishes(self) -> Mapping[str, int]:
        """How many clients of this agent want or hold a ticket, by pool."""
        return dict(sorted(Counter(held.pool for held in self._wishes).items()))

    # What its wishes say.

    def granted(self, waited: float) -> None:
        self.counts["granted"] += 1
        self.waits.add(waited)

    def renewed(self, deadline: float) -> None:
        """The deadline that was there before."""
        left = deadline - self.clock.now
        self.margin_least = left if self.margin_least is None else min(left, self.margin_least)

    def forget(self, held: TicketHeld) -> None:
        self._wishes.pop(held, None)


def _checked(options: Mapping[str, Any]) -> Wish:
    """They come from a client, and may be anything."""
    unknown = next((option for option in options if option not in OPTIONS), None)
    if unknown is not None:
        raise ConfigError(f"option {shown(unknown)}: tickets have none of that name; accepted are {', '.join(OPTIONS)}")
    of, wait, metadata = options.get("of"), options.get("wait", True), options.get("metadata", {})
    if isinstance(of, bool) or not isinstance(of, int):
        raise ConfigError(f"of: {str(of)[:32]}; accepted is the number of tickets in the pool")
    if not isinstance(wait, bool):
        raise ConfigError(f"wait: {str(wait)[:32]}; accepted are true and false")
    if not isinstance(metadata, Mapping) or not all(isinstance(text, str) for pair in metadata.items() for text in pair):
        raise ConfigError(f"metadata: {str(metadata)[:32]}; accepted is a table of texts")
    ttl = options.get("user_ttl", inf)
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0:
        raise ConfigError(f"user_ttl: {str(ttl)[:32]}; accepted is a positive number of seconds")
    return Wish(of, wait, metadata, float(ttl))
