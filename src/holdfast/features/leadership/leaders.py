"""Who leads what, as this agent heard it: the table that clients, HTTP and the page read.  Spec: foundation 5 (LeaderChanged).

It is fed by ``LeaderChanged`` alone, so a reader of an event and then of this table never finds it older than the event. All of it
is a hint: a client that acts has a term of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw
from msgspec.msgpack import Encoder

from holdfast.events import LeaderChanged
from holdfast.host import NodeId
from holdfast.local.leaders import SEATS, LeaderView

NAMES_MAX = 4096  # as many as a seat keeps promises for; beyond, names without a leader are forgotten first

_encode = Encoder().encode


class Line:
    """One name."""

    def __init__(self) -> None:
        self.view = LeaderView("", None, 0, 0.0)
        self.terms = 0  # that were heard of
        self.term: tuple[NodeId, int] | None = None  # the latest of them
        self.vacant: float | None = None  # seconds for which no leader was known, before the present term
        self.encoded: Raw | None = None  # the view, when a client first asked for it

    @property
    def raw(self) -> Raw:
        if self.encoded is None:
            self.encoded = Raw(_encode(self.view))
        return self.encoded


class Board:
    """One line per name."""

    def __init__(self) -> None:
        self.version = 0  # grows with every change
        self.terms_heard = 0  # of all names, since this agent began
        self._lines: dict[str, Line] = {}
        self._views: tuple[LeaderView, ...] | None = ()
        self._encoded: dict[str, Raw] | None = None  # for clients

    def note(self, event: LeaderChanged, at: float) -> None:
        if event.by != SEATS:
            return  # Led by election: another table has it.
        line = self._lines.get(event.name)
        if line is None:
            if len(self._lines) >= NAMES_MAX:
                self._forget_one()
            line = self._lines[event.name] = Line()
        former = line.view
        if (former.name, former.leader, former.token) == (event.name, event.leader, event.token):
            return
        if event.leader is not None and line.term != (event.leader, event.token):
            if line.terms:
                line.vacant = 0.0 if former.leader is not None else max(0.0, at - former.since)
            line.terms += 1
            line.term = event.leader, event.token
            self.terms_heard += 1
        # While there is no leader, the highest number that was heard of. A false alarm names the next one before the old leader is heard
        # again: that one was never granted, so beside a leader stands its own.
        token = event.token if event.leader is not None else max(event.token, former.token)
        line.view = LeaderView(event.name, event.leader, token, at)
        line.encoded = None
        self.version += 1
        self._views = self._encoded = None

    @property
    def lines(self) -> Mapping[str, Raw]:
        """As clients read them, by name; the same objects until something changes."""
        if self._encoded is None:
            self._encoded = {name: line.raw for name, line in self._lines.items()}
        return self._encoded

    @property
    def views(self) -> tuple[LeaderView, ...]:
        """Sorted by name; the same object until something changes."""
        if self._views is None:
            self._views = tuple(line.view for _, line in sorted(self._lines.items()))
        return self._views

    def terms(self, name: str) -> int:
        """How many terms of this name were heard of."""
        return self._lines[name].terms

    def vacant(self, name: str) -> float | None:
        """For how long no leader of it was known before the present term."""
        return self._lines[name].vacant

    def led_by(self, life: NodeId) -> int:
        return sum(line.view.leader == life for line in self._lines.values())

    def _forget_one(self) -> None:
        gone = min(self._lines.values(), key=lambda line: (line.view.leader is not None, line.view.since)).view.name
        del self._lines[gone]
