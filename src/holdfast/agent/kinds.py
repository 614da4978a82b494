"""What a kind of grant is: the interface between the law (``grants``) and a protocol that can exclude others.  Spec: foundation 4 (Grants).

A kind knows how something becomes exclusive: terms, tickets. It does not know clients, sockets or processes. What a client was told, and
when that binds no longer, is the law's business. Everything here is called in the host's turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

NO_NUMBERS: Mapping[str, int] = {}


class Sink(Protocol):
    """Given to a kind with every ``acquire``: what became of it."""

    def queued(self, position: int, why: str = "") -> None:
        """Somebody holds a place for it; 1 is next. Before the grant, any number of times, or never. ``why``: what it waits for, if that
        is not its turn."""

    def granted(self, token: int, deadline: float, number: int = 0) -> None:
        """It is ours until the deadline, on the clock of this host. Once."""

    def extended(self, deadline: float) -> None:
        """Still ours, until then. Ignored when the client's deadline has passed meanwhile: it has stopped, for good."""

    def at_risk(self) -> None:
        """It was not renewed in time."""

    def lost(self, why: str, numbers: Mapping[str, int] = NO_NUMBERS) -> None:
        """It is over, or was never to be had. What the client was told stands as it was told. ``numbers``: attributes of its error."""


class Held(Protocol):
    """What a kind keeps for one ``acquire``. Either ``cancel`` or ``release`` is called, once; neither after a loss before the grant."""

    def cancel(self) -> None:
        """Nobody wants it any more, and it was not granted yet. A grant that was under way is given back by the kind."""

    def release(self) -> None:
        """Nobody acts under it any more: it may go to somebody else. Also called, for tidiness, after a loss."""

    def renew_allowed(self, allowed: bool) -> None:
        """False: do not extend it any further, nobody will be told. It is still ours until ``release``."""


class GrantKind(Protocol):
    """One kind of thing that excludes others."""

    kind: str

    def acquire(self, name: str, options: Mapping[str, Any], sink: Sink) -> Held:
        """Ask for it. Raises ``ConfigError`` for options that make no sense; they come from a client, and may be anything."""
