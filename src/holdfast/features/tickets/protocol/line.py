"""Line: the candidates of one agent in one pool that ask around, and those that wait for their turn to ask.  docs/decisions.md H167.

A candidate that waits asks the seats and up to three holders about once a second. Of hundreds, a few do so for all of them: the others
stand behind them, first come first served, and cost nothing. Those who ask share what they see of the first arc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from holdfast.features.tickets.protocol.messages import Info
from holdfast.features.tickets.protocol.values import ANCHOR, Key, Status
from holdfast.host import Timer

if TYPE_CHECKING:
    from holdfast.features.tickets.protocol.desk import Desk, End

ASKING_MAX = 32  # candidates of one pool and agent that ask at a time: about 50 turns a second, and 100 grants
SHARED_AGE = 0.1  # in polls: so old may be what another one saw of the first arc


class Seeker(Protocol):
    """A candidate, as far as the line is concerned."""

    @property
    def position(self) -> int:
        """Where it waits; 0: nowhere yet."""

    def look(self) -> None:
        """It is its turn to ask."""

    def poke(self) -> None:
        """Room was announced."""

    def unpark(self) -> None:
        """What it may have waited for at this agent has ended."""

    def look_soon(self) -> None:
        """Another one of this agent acts on what was seen: look again in a moment."""

    def stands_at(self, position: int, why: str = "") -> None:
        """That many come before it at this agent, less one. ``why``: what it waits for, if that is not its turn."""


class Seen(NamedTuple):
    """The first arc, as a majority of the seats described it."""

    end: End
    at: float
    busy: float  # seconds from then on in which its holder's grant runs

    @property
    def held(self) -> bool:
        best = self.end.best[1]
        return self.end.won and self.busy > 0 and best is not None and best.status is not Status.FREE


class Line:
    """Of one pool, at one agent."""

    def __init__(self, pool: str, desk: Desk) -> None:
        self.asking: dict[Seeker, None] = {}
        self.standing: dict[Seeker, None] = {}
        self._key, self._desk = Key(pool, ANCHOR, 0), desk
        self._timer: Timer | None = None
        self._looking: list[tuple[Seeker, Callable[[End, float], None]]] = []  # who waits for the look under way
        self._seen: Seen | None = None

    def enter(self, seeker: Seeker, *, wait: bool) -> None:
        """A candidate that does not wait asks at once: it is gone in a moment."""
        if wait and (len(self.asking) >= ASKING_MAX or self._desk.rounds.late):
            self.standing[seeker] = None
            self._tell()
            self._arm()
        else:
            self.asking[seeker] = None
            seeker.look()

    def back(self, seeker: Seeker) -> None:
        """What it was granted came to nothing. It goes on asking, however many do."""
        self.asking[seeker] = None

    def leave(self, seeker: Seeker) -> None:
        """It has what it wanted, or wants it no more: the next one's turn."""
        self.standing.pop(seeker, None)
        if seeker in self.asking:
            del self.asking[seeker]
            self._advance()

    def look(self, seeker: Seeker, done: Callable[[End, float], None]) -> None:
        """At the first arc. ``done`` is called with what a majority says and how old it is: a hint, as always (tickets D10)."""
        now, seen = self._desk.host.now, self._seen
        if seen is not None and seen.held and now - seen.at < min(SHARED_AGE * self._desk.config.poll, seen.busy):
            done(seen.end, now - seen.at)
            return
        self._looking.append((seeker, done))
        if len(self._looking) == 1:
            self._desk.query(self._key, self._desk.seats, self._on_looked)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _on_looked(self, end: End) -> None:
        looking, self._looking = self._looking, []
        infos = [each for _, each in end.yes if isinstance(each, Info)]
        self._seen = Seen(end, self._desk.host.now, max((info.busy for info in infos), default=0.0))
        for number, (seeker, done) in enumerate(looking):
            if number == 0 or self._seen.held or not end.won:
                done(end, 0.0)
            else:
                seeker.look_soon()  # It would only get in the way of the first, which takes the arc over.

    def _advance(self) -> None:
        while self.standing and len(self.asking) < ASKING_MAX and not self._desk.rounds.late:
            seeker = next(iter(self.standing))
            del self.standing[seeker]
            self.asking[seeker] = None
            seeker.look()

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = self._desk.host.after(self._desk.config.poll, self._on_poll)

    def _on_poll(self) -> None:
        self._timer = None
        self._advance()
        self._tell()
        if self.standing:
            self._arm()

    def _tell(self) -> None:
        """Behind those who ask, if any of these has a place; about as often as those are told."""
        late, before = self._desk.rounds.late, len(self.asking)
        placed = any(seeker.position for seeker in self.asking)
        if placed or late:
            for number, seeker in enumerate(tuple(self.standing), 1):
                seeker.stands_at(before + number if placed else 0, late_text(late) if late else "")


def late_text(seconds: float) -> str:
    """What a client that waits, or does not, is told by an agent that is late (H168)."""
    return f"this agent is {seconds:.1f} s late, and takes in no new ticket so that it loses none that it holds"
