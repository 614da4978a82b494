"""One grant: what its kind said, what its client was told, and who acts under it.  Spec: foundation F9, F14.

The three are kept apart, because they end at different times. The kind's deadline moves with every renewal; the published one only
when the client was told; the bodies end when the kernel says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Protocol

from holdfast.agent.grants.bodies import Body
from holdfast.errors import shown
from holdfast.events import Event
from holdfast.host import Grant, Timer
from holdfast.kit.hold import NO_NUMBERS, Claim, Lapsed, LossReason
from holdfast.local.calls import Acquire, GrantItem
from holdfast.local.ends import UNREAD, UNTAKEN

if TYPE_CHECKING:
    from holdfast.agent.grants.reaper import Reaper

TOKEN_MAX = (1 << 53) - 1  # F16: every language's numbers hold it
TOKEN_FIRST_MIN = 1_577_836_800_000  # F16: the first token of a name is wall-clock ms; no clock is before 2020
TOKENS_MAX = 65_536  # names whose last token is remembered, so that none is given twice
State = Enum("State", ["ASKED", "HELD", "LOST", "OVER"])
NEVER, FOREVER = float("-inf"), float("inf")


class Unread(LossReason, frozen=True):
    """It was renewed, and its client did not read that in time."""

    word = "unread"

    def __str__(self) -> str:
        return UNREAD


class Untaken(LossReason, frozen=True):
    """Its client did not take it up by its first deadline (H146)."""

    word = "untaken"

    def __str__(self) -> str:
        return UNTAKEN


class TokenTooLow(LossReason, frozen=True):
    """F16: a token that is not above the one before protects nothing."""

    word = "token"

    token: int
    last: int

    def __str__(self) -> str:
        return f"its token {self.token} is not above {self.last}, which was given before: a seat went back in time, or a peer lies"


class Turns(Protocol):
    """What the law needs of a host."""

    @property
    def now(self) -> float: ...
    def at(self, due: float, callback: Callable[[], None]) -> Timer: ...
    def post(self, callback: Callable[[], None]) -> None: ...
    def emit(self, event: Event) -> None: ...


class Session(Protocol):
    """One connection of one client."""

    @property
    def number(self) -> int: ...
    @property
    def connected(self) -> bool: ...
    @property
    def reads(self) -> bool:
        """It is connected and does not have more before it than it can read."""

    @property
    def sent(self) -> int:
        """Bytes that it was sent until now."""

    def follows(self, sent: int) -> bool:
        """The client reads: it has read all of them up to there, or something since then. Also True where the kernel cannot tell."""

    def push(self, serial: int, item: GrantItem) -> None: ...
    def end(self, serial: int, error: str, text: str) -> None:
        """The stream is over."""

    def body(self) -> Body | None:
        """The process that made the connection, if the kernel can name it."""

    def forget(self) -> None:
        """The connection is gone and nothing that was told on it binds any more. It may be said more than once."""


class Law(Protocol):
    """Where a grant's kind is heard (``grants.Grants``)."""

    host: Turns
    draining: bool

    def on_queued(self, grant: Granted, position: int, why: str) -> None: ...
    def on_granted(self, grant: Granted, token: int, deadline: float, number: int) -> None: ...
    def on_extended(self, grant: Granted, deadline: float) -> None: ...
    def on_at_risk(self, grant: Granted) -> None: ...
    def on_lost(self, grant: Granted, reason: LossReason) -> None: ...


class Granted:
    """One ``Acquire`` of one session; what its kind knows as the holder."""

    def __init__(self, law: Law, session: Session, call: Acquire, bodies: list[Body]) -> None:
        self.kind, self.name = call.kind, call.name
        self.serial = call.serial
        self.session = session
        self.state = State.ASKED
        self.token, self.number = 0, 0
        self.deadline = NEVER  # as the kind said last
        self.published = NEVER  # as the client was told last
        self.unheard_until = NEVER  # a client that never reads that it was granted something has lost it then
        self.bodies = bodies
        self.client_named = bool(bodies)  # then it is the first of them
        self.asked_at = law.host.now
        self.reaper: Reaper | None = None  # of a client that asked for it: the agent ends its command
        self.confirmable = bool(bodies)  # False: the kernel cannot name the client, so its death is never confirmed
        self.confirmed = False  # the client said that it took it up; before that nothing is extended
        self.attached = True  # False: nothing is published any more
        self.at_risk_told = False
        self.delay_told = False  # the client heard why the seats grant nothing yet
        self.stopping = False  # the client was asked to stop: nothing is extended any more
        self.claim: Claim | None = None  # None: ``acquire`` of the kind has not returned yet
        self.timer: Timer | None = None
        self.sent = 0  # of the session, when the client was told last
        self.reading: Timer | None = None  # there is more to tell it when it has read that
        self.then: list[Callable[[], None]] = []  # when it is over
        self._law = law

    def __str__(self) -> str:
        return f"{self.kind} {shown(self.name)}"

    @property
    def fact(self) -> Grant:
        return Grant(self.kind, self.name, self.token, max(self.published, 0.0), self.number)

    @property
    def dead(self) -> bool:
        """The kernel confirms the death of every body, and of all that a command has left behind."""
        return self.confirmable and all(body.dead for body in self.bodies) and (self.reaper is None or self.reaper.over)

    @property
    def reaps_at(self) -> float:
        """When the agent ends the command, if it still runs: at once when its client is dead."""
        if self.reaper is None or self.reaper.begun:
            return FOREVER
        return NEVER if self.client_named and self.bodies[0].dead else self.ends_at - self.reaper.before

    @property
    def ends_at(self) -> float:
        """When the client stops by itself; before it heard anything, when it was to stop."""
        return self.published if self.published > NEVER else self.unheard_until

    @property
    def lapse(self) -> LossReason:
        """Why it is over, when its client has let its deadline pass."""
        if not self.confirmed:
            return Untaken()
        return Lapsed() if self.deadline <= self.ends_at else Unread()

    @property
    def wanted(self) -> bool:
        """The client is there, holds it, and may go on."""
        return self.state is State.HELD and self.attached and not self.stopping and not self._law.draining

    # Holder.

    def on_queued(self, position: int, why: str = "") -> None:
        self._once_asked(partial(self._law.on_queued, self, position, why))

    def on_granted(self, token: int, deadline: float, number: int = 0) -> None:
        self._once_asked(partial(self._law.on_granted, self, token, deadline, number))

    def on_extended(self, deadline: float) -> None:
        self._once_asked(partial(self._law.on_extended, self, deadline))

    def on_at_risk(self) -> None:
        self._once_asked(partial(self._law.on_at_risk, self))

    def on_lost(self, reason: LossReason) -> None:
        self._once_asked(partial(self._law.on_lost, self, reason))

    def _once_asked(self, step: Callable[[], None]) -> None:
        """A kind may answer before its ``acquire`` returns; the client hears the answer to its call first."""
        if self.claim is None:
            self._law.host.post(step)
        else:
            step()

    def tell(self, what: str, why: str = "", *, numbers: Mapping[str, int] = NO_NUMBERS, error: str = "") -> None:
        if self.attached:
            deadline = self.published if self.published > NEVER else 0.0
            length = deadline - self._law.host.now if what == "granted" else 0.0
            self.session.push(self.serial, GrantItem(what, self.token, deadline, self.number, why, numbers, length, error))


class Tokens:
    """The largest token under which clients of this agent were granted each name (F16)."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, int], int] = {}

    def why_not(self, grant: Granted, token: int, number: int) -> TokenTooLow | None:
        """Why this one protects nothing; None: it does."""
        last = self._last.get((grant.kind, grant.name, number), TOKEN_FIRST_MIN - 1)
        return None if last < token <= TOKEN_MAX else TokenTooLow(token, last)

    def note(self, grant: Granted, token: int, number: int) -> None:
        key = grant.kind, grant.name, number
        self._last.pop(key, None)
        if len(self._last) >= TOKENS_MAX:
            del self._last[next(iter(self._last))]
        self._last[key] = token
