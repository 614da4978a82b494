"""Users of tickets in the lab: they take, hold, give back, change their mind and fail to notice.  Spec: tickets 8 (E4), 10; foundation F14.

A machine without messages beside ``Tickets``. Each user wants one ticket at a time and acts until the last deadline it was *told*,
as a client does; that is what must never overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from msgspec import Struct

from holdfast.features.tickets.protocol.tickets import Attempt, Tickets
from holdfast.host import Host, Message, NodeId
from holdfast.kit.hold import LossReason


class Habits(Struct, frozen=True):
    """What the users of one agent do."""

    pool: str
    n: int
    users: int = 1
    hold: float = 3.0  # mean seconds until a ticket is given back
    pause: float = 1.0  # mean seconds between two wishes
    impatient: float = 0.2  # share of the wishes that are given up after ``patience`` seconds, unless granted
    patience: float = 3.0
    unwilling: float = 0.1  # share of the wishes that do not wait
    keep: bool = False  # hold for ever


class User:
    """One user: the ``Holder`` of its attempts."""

    def __init__(self, host: Host, tickets: Tickets, habits: Habits) -> None:
        self._host, self._tickets, self._habits = host, tickets, habits
        self.attempt: Attempt | None = None
        self.number = -1
        self.token = 0
        self.told_until = -inf
        self.losses: list[LossReason] = []
        self.acquired = 0
        self.keeping = habits.keep
        self.position = 0
        self.wished_at = inf

    @property
    def acting(self) -> bool:
        """Uses the ticket now, by what it was told and its clock."""
        return self._host.now < self.told_until

    def begin(self) -> None:
        habits, random = self._habits, self._host.random
        self.wished_at = self._host.now
        wait = self.keeping or random.random() >= habits.unwilling
        self.attempt = attempt = self._tickets.acquire(habits.pool, habits.n, self, wait=wait)
        if not self.keeping and random.random() < habits.impatient:
            self._host.after(random.expovariate(1 / habits.patience), lambda: self._give_up(attempt))

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        assert not self.acting
        self.number, self.token, self.told_until = number, token, deadline
        self.acquired += 1
        self.wished_at = inf
        attempt = self.attempt
        if not self.keeping:
            self._host.after(self._host.random.expovariate(1 / self._habits.hold), lambda: self._give_back(attempt))

    def on_extended(self, deadline: float) -> None:
        attempt = self.attempt
        if self.acting:
            assert deadline >= self.told_until
            self.told_until = deadline
        elif attempt is not None:  # A late extension revives nothing (H76): the user has stopped, and the agent gives it back.
            self.told_until = -inf
            attempt.release()
            self._rest()

    def on_at_risk(self) -> None:
        """It goes on."""

    def on_lost(self, reason: LossReason) -> None:
        self.losses.append(reason)
        self._rest()

    def on_queued(self, position: int, why: str = "") -> None:
        self.position = position

    def stay(self) -> None:
        """From now on it wants a ticket and keeps it."""
        self.keeping = True

    def leave(self) -> None:
        """It wants none any more."""
        attempt, self.attempt = self.attempt, None
        self.told_until = -inf
        if attempt is not None:
            attempt.release()

    def _give_up(self, attempt: Attempt) -> None:
        if attempt is self.attempt and self.told_until == -inf and not self.keeping:
            attempt.cancel()
            self._rest()

    def _give_back(self, attempt: Attempt | None) -> None:
        if attempt is not None and attempt is self.attempt and not self.keeping:
            self.told_until = -inf
            attempt.release()
            self._rest()

    def _rest(self) -> None:
        self.attempt = None
        self._host.after(self._host.random.expovariate(1 / self._habits.pause), self._wish)

    def _wish(self) -> None:
        if self.attempt is None:
            self.told_until = -inf if not self.acting else self.told_until
            self.begin()


class TicketUsers:
    """All users of one agent."""

    handles: Sequence[type[Message]] = ()
    fingerprint = b""

    def __init__(self, host: Host, tickets: Tickets, habits: Habits) -> None:
        self._host = host
        self.users = [User(host, tickets, habits) for _ in range(habits.users)]

    def start(self) -> None:
        for user in self.users:
            self._host.after(self._host.random.uniform(0.0, 1.0), user.begin)

    def stop(self) -> None:
        """Its users end with it."""

    def on_away(self, seconds: float) -> None:
        """All users compare the clock."""

    def on_message(self, source: NodeId, message: Message) -> None:
        raise AssertionError("no message is written to users")
