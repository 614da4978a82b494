"""Keys with owners: which clients were told that they may act for one.  Spec: foundation F14.

Whether a client may act is decided by the membership (F14): it publishes for a short time at once, and neither departs nor
hands over before that has passed. Here is only remembered which clients were told, so that the membership does not wait for clients that
have stopped or are dead.
"""

from __future__ import annotations

from collections.abc import Callable

from holdfast.agent.grants.granted import NEVER, Session, Turns


def _nothing() -> None:
    """No membership has to be told."""


class Keys:
    """Who was told, until when."""

    def __init__(self, host: Turns) -> None:
        self.withdrawn: Callable[[], None] = _nothing  # tells the membership that no client acts for a key any more
        self._host = host
        self._told: dict[int, float] = {}  # session -> until

    def tell(self, session: Session, until: float) -> None:
        """Called before the client is told."""
        self._told[session.number] = max(until, self._told.get(session.number, until))

    def told_until(self, session: Session) -> float:
        return self._told.get(session.number, NEVER)

    def forget(self, session: Session) -> None:
        """What it was told has ended, and it will be told nothing more."""
        self._told.pop(session.number, None)

    def stopped(self, session: Session) -> None:
        """It said so, or is dead."""
        if self._told.pop(session.number, None) is None:
            return
        now = self._host.now
        self._told = {number: until for number, until in self._told.items() if until > now}
        if not self._told:
            self.withdrawn()
