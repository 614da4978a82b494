"""Who leads what, as this agent heard it: the table that clients, HTTP and the page read.  Spec: foundation 5 (LeaderChanged).

It is fed by ``LeaderChanged`` alone, so whoever reads an event and then this table never finds it older than the event. All of it
is a hint: whoever acts has a term of its own.
"""

from __future__ import annotations

from holdfast.events import LeaderChanged
from holdfast.host import NodeId
from holdfast.local.calls import LeaderView

NAMES_MAX = 4096  # as many as a seat keeps promises for; beyond, names that nobody leads are forgotten first


class Board:
    """One line per name."""

    def __init__(self) -> None:
        self.version = 0  # grows with every change
        self.changes = 0  # terms of others and own ones, since this agent began
        self._lines: dict[str, LeaderView] = {}
        self._terms: dict[str, int] = {}  # per name, how many terms were heard of
        self._view: tuple[LeaderView, ...] | None = ()

    def note(self, event: LeaderChanged, at: float) -> None:
        former = self._lines.get(event.name)
        if former is not None and (former.leader, former.token) == (event.leader, event.token):
            return
        if event.leader is not None and (former is None or former.token != event.token):
            self._terms[event.name] = self._terms.get(event.name, 0) + 1
            self.changes += 1
        if former is None and len(self._lines) >= NAMES_MAX:
            self._forget_one()
        token = event.token or (0 if former is None else former.token)
        self._lines[event.name] = LeaderView(event.name, event.leader, token, at)
        self.version += 1
        self._view = None

    @property
    def lines(self) -> tuple[LeaderView, ...]:
        """Sorted by name; the same object until something changes."""
        if self._view is None:
            self._view = tuple(line for _, line in sorted(self._lines.items()))
        return self._view

    def terms(self, name: str) -> int:
        """How many terms of this name were heard of."""
        return self._terms.get(name, 0)

    def led_by(self, life: NodeId) -> int:
        return sum(line.leader == life for line in self._lines.values())

    def _forget_one(self) -> None:
        gone = min(self._lines.values(), key=lambda line: (line.leader is not None, line.since))
        del self._lines[gone.name]
        self._terms.pop(gone.name, None)
