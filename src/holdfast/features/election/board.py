"""Who leads by election, as this agent knows it: the lines that clients, HTTP and the page read.  Spec: election 10, 9.

A tentative leader is shown and is no ``LeaderChanged``, so the machine is asked for what it knows. It is asked when one of its facts was
heard, and else at most every LOOK_INTERVAL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Raw
from msgspec.msgpack import Encoder

from holdfast.features.election.protocol.shown import Reign
from holdfast.local.leaders import ACTIVE, ELECTION, TENTATIVE, LeaderView

LOOK_INTERVAL = 0.25  # seconds: a nominee is tentative for a round trip mostly, and what it is then is a hint
NAMES_MAX = 1024  # as many as the machine knows; beyond, names without a leader are forgotten first

_encode = Encoder().encode


class Known(Protocol):
    """What the board reads of ``protocol.elections.Elections``."""

    def reigns(self) -> Mapping[str, Reign]: ...
    def highest(self, name: str) -> int: ...


class Board:
    """One line per name that has, or had, a leader."""

    def __init__(self, known: Known, now: Callable[[], float], wall: Callable[[], float]) -> None:
        self._known, self._now, self._wall = known, now, wall
        self._version = 0
        self._looked_at = float("-inf")
        self._stale = True
        self._views: dict[str, LeaderView] = {}
        self._raws: dict[str, Raw] = {}

    def note(self) -> None:
        """Something happened in an election."""
        self._stale = True

    @property
    def version(self) -> int:
        """Grows with every change."""
        if self._stale or self._now() >= self._looked_at + LOOK_INTERVAL:
            self._look()
        return self._version

    @property
    def lines(self) -> Mapping[str, Raw]:
        """As clients read them, by name; the same objects until something changes."""
        return self._raws

    @property
    def views(self) -> tuple[LeaderView, ...]:
        """Sorted by name."""
        assert self.version >= 0
        return tuple(view for _, view in sorted(self._views.items()))

    def _look(self) -> None:
        self._stale, self._looked_at = False, self._now()
        reigns = self._known.reigns()
        found = {name: self._line(name, reigns.get(name)) for name in {*self._views, *reigns}}
        if len(found) > NAMES_MAX:
            kept = sorted(found.values(), key=lambda line: (line.leader is None, -line.since))[:NAMES_MAX]
            found = {line.name: line for line in kept}
        if found != self._views:
            raws = {name: self._raws[name] if view is self._views.get(name) else Raw(_encode(view)) for name, view in found.items()}
            self._views, self._raws = found, raws
            self._version += 1

    def _line(self, name: str, reign: Reign | None) -> LeaderView:
        """The same object while nothing is different."""
        former = self._views.get(name)
        leader = None if reign is None else reign.leader
        token = reign.token if reign is not None else max(self._known.highest(name), 0 if former is None else former.token)
        state = ACTIVE if reign is None or reign.active else TENTATIVE
        if former is not None and (former.leader, former.token, former.state) == (leader, token, state):
            return former
        return LeaderView(name, leader, token, self._wall(), ELECTION, state)
