"""Questions to an ensemble of ZooKeeper servers, and their answers: the seam between the rules and kazoo.

Every question returns at once, and its answer comes in a turn of the host. The ensemble does what it is asked in the order of the
questions. Answers to questions of one kind come in this order, too; those to different kinds may not. A question that was under way when
the connection broke is answered with ``UNKNOWN``, late, or never: it may have been done.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple, Protocol


class Failure(Enum):
    """Why a question was not answered as it was asked."""

    NO_NODE = auto()
    NODE_EXISTS = auto()
    NOT_EMPTY = auto()
    REFUSED = auto()  # not done: no permission, a quota, an argument that ZooKeeper does not take
    UNKNOWN = auto()  # the connection broke: it was done or it was not


class Stat(NamedTuple):
    """The part of a znode's status that the rules use. A zxid is the number of a change; there is one sequence of them."""

    czxid: int  # of its creation
    pzxid: int  # of the last creation or deletion of a child
    cversion: int  # creations and deletions of children so far, as a signed number of 32 bits
    version: int  # changes of its data so far
    owner: int  # session that it ends with; 0: it does not end with a session


NO_STAT = Stat(0, 0, 0, 0, 0)


class Reply(NamedTuple):
    """The answer to one question."""

    failure: Failure | None = None
    why: str = ""  # of what was refused, as the library calls it
    path: str = ""  # of what was created
    data: bytes = b""
    names: tuple[str, ...] = ()  # of children, in no order
    stat: Stat = NO_STAT


Then = Callable[[Reply], None]


class Standing(Enum):
    """How the session stands."""

    CONNECTED = auto()
    SUSPENDED = auto()  # the connection broke; the session lives on until its time-out
    LOST = auto()  # the session is over, and what it owned is gone or will be


class Listener(Protocol):
    """Hears of a session. Called in turns of the host."""

    def on_standing(self, standing: Standing, session: int) -> None:
        """``session`` names it, with ``CONNECTED``."""

    def on_watch(self, path: str, deleted: bool) -> None:
        """The znode there changed since it was watched. ``deleted``: it is gone. The watch is used up."""


class Session(Protocol):
    """One client of the ensemble. It connects again by itself, in a new session if the old one is over."""

    @property
    def complaint(self) -> str:
        """The last error, as the library says it; "" if there was none."""

    def create(self, path: str, data: bytes, then: Then, *, ephemeral: bool = False, sequence: bool = False) -> None: ...
    def delete(self, path: str, then: Then) -> None: ...
    def get(self, path: str, then: Then) -> None: ...
    def exists(self, path: str, then: Then) -> None: ...
    def children(self, path: str, then: Then, *, watch: bool = False) -> None:
        """``watch``: tell the listener when a child comes or goes, or when the znode itself goes."""

    def sync(self, path: str, then: Then) -> None:
        """Later questions of this client are answered with all that the leader knew at some moment after this call."""

    def close(self) -> None:
        """End it, and hear nothing more of it. Returns at once, with or without an ensemble."""


class Sessions(Protocol):
    """Makes sessions, and knows what was agreed about them."""

    @property
    def asked(self) -> float:
        """Seconds of silence after which a session ends, as asked for."""

    @property
    def granted(self) -> float | None:
        """The same as the ensemble granted it; None before the first connection."""

    def open(self, listener: Listener) -> Session: ...
