"""One exception tree. Each error says what happened, to whom, and what to do next.

HoldfastError
|- ConfigError (ValueError)      a setting, flag, file or scenario is wrong; names the field and what is accepted
|  |- TicketCountMismatch        a pool has another number of tickets than was asked for
|  |- KeyUnusable                a key file that cannot be read or is no key
|  |- AddressUnusable            an address that does not parse or resolve, or a port that is taken
|  `- ExtraMissing               a part of Holdfast that is not installed; names the extra that brings it
|- StorageError (OSError)        the state directory cannot be used
|  |- StorageDamaged             what is on disk is not what was written; nothing was overwritten
|  `- StorageLocked              another process holds the state directory
|- Timeout (TimeoutError)        it was not done in the time that was given
|  |- JoinTimeout                the group was not joined
|  |- AcquireTimeout             a grant was not to be had
|  `- LimitTimeout               a rate limit did not let it go
|- JoinFailed                    this process cannot become a member, however long it waits
|  `- NameConflict               a living agent has the same name
|- NotAMember                    it asks for a member that is not there, or is none itself
|- AgentExpelled                 this agent was put out of the group; it comes back by itself, under a new id
|- HoldLost                      what was held is held no more
|  |- LeadershipLost             another client may lead now
|  `- TicketLost                 another client may hold this ticket now
|- StaleToken                    a fence admitted a larger token before: its holder has a successor
|- Unavailable                   the call cannot be served now: no seat, no such kind of grant, no listener, or a full queue
|  |- NoTicket                   every ticket of the pool is held, and the caller did not want to wait
|  `- Tripped                    the view gave a peer up before it answered
|- AgentLost (ConnectionError)   the agent ended, or was never there
`- Forked (RuntimeError)         a connection was used by a child of the process that made it
"""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import Repr
from typing import Any, ClassVar

SHOWN_CHARS_MAX = 80  # of a value that an error repeats: a file given by mistake shall not fill a log

_short = Repr()
_short.maxstring = _short.maxother = _short.maxlong = SHOWN_CHARS_MAX


def shown(value: Any) -> str:
    """What was given, as an error repeats it: on one line, cut, and whatever it is."""
    try:
        text = _short.repr(value)
    except Exception:  # Its own repr fails, or it is a number of more digits than Python writes.
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[: SHOWN_CHARS_MAX - 3]}..."


def shown_path(path: str) -> str:
    """The same of a path: its beginning and its end are what people look for."""
    half = (SHOWN_CHARS_MAX - 3) // 2
    text = path if path.isprintable() else repr(path)[1:-1]
    return text if len(text) <= SHOWN_CHARS_MAX else f"{text[:half]}...{text[-half:]}"


def installing(extra: str) -> str:
    """How to get a part that is not installed: Holdfast is installed from a clone of its repository."""
    return f"pip install '.[{extra}]' in a clone of Holdfast"


class HoldfastError(Exception):
    """Base of every error Holdfast raises on purpose."""

    NUMBERS: ClassVar[tuple[str, ...]] = ()  # attributes that an agent tells its client beside the text; 0: not known

    @property
    def numbers(self) -> Mapping[str, int]:
        """Those of ``NUMBERS`` that are known."""
        return {name: getattr(self, name) for name in self.NUMBERS if getattr(self, name)}


class ConfigError(HoldfastError, ValueError):
    """A setting is wrong: the text names the field, what it was and what is accepted."""


class TicketCountMismatch(ConfigError):
    """A pool has another number of tickets than was asked for: the number is fixed when the pool begins. ``expected`` were asked for, the
    pool has ``actual``; 0: not known."""

    NUMBERS = ("expected", "actual")

    def __init__(self, text: str = "", *, expected: int = 0, actual: int = 0) -> None:
        super().__init__(text)
        self.expected, self.actual = expected, actual


class KeyUnusable(ConfigError):
    """A key file that cannot be read, or that holds no key."""


class AddressUnusable(ConfigError):
    """An address that does not parse or resolve, or a port that is taken."""


class ExtraMissing(ConfigError):
    """A part of Holdfast that was not installed: the text names the extra that brings it."""


class StorageError(HoldfastError, OSError):
    """The state directory cannot be used."""


class StorageDamaged(StorageError):
    """What is on disk is not what was written. Nothing was overwritten."""


class StorageLocked(StorageError):
    """Another process holds the state directory."""


class Timeout(HoldfastError, TimeoutError):
    """It was not done in the time that was given."""


class JoinTimeout(Timeout):
    """The group was not joined in time."""


class AcquireTimeout(Timeout):
    """A grant was not to be had in time. ``position`` is its last place in the queue, 1 is next; 0: it had no place."""

    def __init__(self, text: str = "", position: int = 0) -> None:
        super().__init__(text)
        self.position = position


class LimitTimeout(Timeout):
    """A rate limit did not let this cost go in time. Nothing was taken from it."""


class JoinFailed(HoldfastError):
    """This process cannot become a member, however long it waits: the text says what to change."""


class NameConflict(JoinFailed):
    """A living agent of the group has the same name."""


class NotAMember(HoldfastError):
    """The one that was asked for is not in the group, or this agent is not."""


class AgentExpelled(HoldfastError):
    """This agent was removed from the group. It rejoins by itself, under a new id."""


class HoldLost(HoldfastError):
    """A leadership, ticket or other hold of this process is over. The event of the same is ``events.Lost``."""


class LeadershipLost(HoldLost):
    """This process does not lead any more; another client may."""


class TicketLost(HoldLost):
    """This process does not hold the ticket any more; another client may. ``ticket`` is its number, None if it was never owned; ``token``
    the one it was held under, or 0; ``reason`` the text without the name of the pool."""

    def __init__(self, text: str = "", *, ticket: int | None = None, token: int = 0, reason: str = "") -> None:
        super().__init__(text)
        self.ticket, self.token, self.reason = ticket, token, reason


class StaleToken(HoldfastError):
    """``Fence.admit`` refuses a token: a larger one was admitted before, so its holder is not the latest one, and must not go on."""

    NUMBERS = ("token", "highest")

    def __init__(self, text: str = "", *, token: int = 0, highest: int = 0) -> None:
        super().__init__(text)
        self.token, self.highest = token, highest


class Unavailable(HoldfastError):
    """The call cannot be served now: a seat, a listener or room is missing. If seats are missing, ``needed`` of them must answer and
    ``reachable`` did; 0 and 0 where they were not counted."""

    NUMBERS = ("needed", "reachable")

    def __init__(self, text: str = "", *, needed: int = 0, reachable: int = 0) -> None:
        super().__init__(text)
        self.needed, self.reachable = needed, reachable


class NoTicket(Unavailable):
    """Every ticket of the pool is held, and the caller did not want to wait."""


class Tripped(Unavailable):
    """The view gave the peer up before it answered, and the member list does not have it. What was asked for may have been done."""


class AgentLost(HoldfastError, ConnectionError):
    """The agent ended, or was never there. What it had granted ends at its deadline and is never revived."""


class Forked(HoldfastError, RuntimeError):
    """A connection was used by a child of the process that made it."""
