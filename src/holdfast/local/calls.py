"""What a client may ask of its agent, and what it hears back.  Spec: foundation 4 (Grants, F14), PRODUCT (parts); docs/local-api.md.

Every call has a ``serial`` of the client's choice, larger than all before on its connection. The agent answers each call once, in any
order, with ``Done`` (whose value has the type ``answers`` of the call) or ``Refused``. Calls that open a stream
(``Watch``, ``Acquire``) are answered first and then followed by ``Pushed`` under the same serial, until ``Close`` or the
end of the connection.

These are the calls of the agent itself. Those of a feature stand in the ``calls.py`` of the feature; ``table`` says
which of them can be read. All of them are MessagePack arrays that begin with the tag. They grow at the end, by fields
with defaults; a tag is never used again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw, Struct

from holdfast.host import Member, NodeId

# Of this conversation; an agent speaks with clients of its own version only, and says so. 2: grants are confirmed. 3: views have lines
# of features.
VERSION = 3

Lines = Mapping[str, Mapping[str, Raw]]  # of a view: the name of a feature -> the name of a line -> what its ``calls.py`` says it is


# What an agent says.


class Done(Struct, array_like=True, tag=1):
    """The answer to a call."""

    serial: int
    value: Raw


class Refused(Struct, array_like=True, tag=2):
    """It cannot be done; ``error`` is the name of the class in ``holdfast.errors`` that the client raises."""

    serial: int
    error: str
    text: str
    numbers: Mapping[str, int] = {}  # attributes of the error (``HoldfastError.NUMBERS``)


class Pushed(Struct, array_like=True, tag=3):
    """News on a stream."""

    serial: int  # of the call that opened it
    item: Raw


class Closed(Struct, array_like=True, tag=4):
    """The agent ends a stream (serial > 0) or the connection (serial 0), and says why."""

    serial: int
    error: str
    text: str


FromAgent = Done | Refused | Pushed | Closed


# What calls are answered with.


class Welcome(Struct, frozen=True, array_like=True):
    """The agent's side of the greeting."""

    version: int
    agent: NodeId
    pid: int
    group: str
    now: float  # the agent's clock, read between the receipt of Hello and this answer (F14: both must read the same clock)
    session: int  # names this connection in logs


class Listed(Struct, frozen=True, array_like=True):
    """One line of a view."""

    member: Member
    position: int | None  # among those of the members; None where these have none


class ViewChange(Struct, frozen=True, array_like=True):
    """What differs between two views of one agent. Every line that changed after version ``since`` is in it, as it is now: it makes any
    view from that version on into the view of the item's version."""

    since: int
    state: str
    me: Member | None = None  # None: as before
    listed: tuple[Listed, ...] = ()  # members that are new or have changed, sorted by id; one of the same name is replaced
    gone: tuple[str, ...] = ()  # names of members that are not in the list any more
    lines: Lines = {}  # those that are new or have changed
    lines_gone: Mapping[str, tuple[str, ...]] = {}  # the name of a feature -> names of lines that are not in the view any more
    waits_for: str = ""  # as it is now


class GroupView(Struct, frozen=True, array_like=True):
    """Who is here, as this agent knows it."""

    version: int  # grows with every change, also while the agent is in no group
    state: str  # "joining", "member", "leaving", "left"
    me: Member  # this agent, with its own tags, also while it is no member
    members: tuple[Member, ...]  # sorted by id; empty while this agent is no member
    positions: tuple[int, ...]  # one per member, in the same order; empty where members have none
    lines: Lines = {}  # of features that have some
    waits_for: str = ""  # what an agent that is in no group, and wants to be, waits for; a sentence
    change: ViewChange | None = None  # answers ``Look(since)``: members, positions and lines are empty, and this is what differs


class Owned(Struct, frozen=True, array_like=True):
    """This agent may act for a key until then, on the clock of this machine."""

    token: int
    until: float


class EventItem(Struct, frozen=True, array_like=True):
    """One event of a ``Watch``. ``name`` is the class in ``holdfast.events``, ``fields`` its fields by name."""

    version: int  # of the view after it
    at: float  # wall-clock seconds, for people
    name: str
    fields: Raw
    change: ViewChange | None = None  # what is new in the view since the last change that was told; None: nothing, or too much


class GrantItem(Struct, frozen=True, array_like=True):
    """What became of an ``Acquire``. ``deadline`` is on the clock of this machine; 0.0 where there is none."""

    what: str  # "queued" (any number of times, before it is granted), "granted", "extended", "at_risk", "stop", "lost", "released"
    token: int
    deadline: float
    number: int  # which one, where several have one name; with "queued" the position, 1 is next; 0 elsewhere
    why: str = ""  # of an end; with "queued" why the seats grant nothing to any client until ``deadline`` (0.0: that is not known)
    numbers: Mapping[str, int] = {}  # with "lost": attributes of the error that the client raises, as in Refused
    length: float = 0.0  # with "granted": seconds from when it was written to the deadline, so that a late reader knows how late it is
    error: str = ""  # with "lost", of what was never granted: the class in ``holdfast.errors``; "": the one that a loss of its kind has


class SeatView(Struct, frozen=True, array_like=True):
    """One slot of the seats."""

    number: int
    name: str
    address: str
    life: NodeId | None  # who sits there, as last heard
    own: bool
    state: str  # "asking", "waiting", "serving", "failed", "silent" or "unheard": docs/cli.md says what they mean
    wait: float  # seconds until it grants something, if it waits
    heard_ago: float | None = None  # seconds since it last answered; None: it is the own one, or was never heard
    why: str = ""  # why it failed, or has no address


class Finding(Struct, frozen=True, array_like=True):
    """One thing that ``doctor`` noticed."""

    code: str  # "wrong_key", "closed_port", ...; docs/operations.md has one entry for each
    severity: str  # "error", "warning", "note"
    about: str  # whom it concerns: a member, an address, a setting
    text: str
    advice: str
    seen_ago: float = 0.0  # seconds since it was last seen; 0.0: it is so now


# What a client may ask.


class Call(Struct, frozen=True, array_like=True):
    """Base of all calls. ``answers`` is the type of the value in ``Done``, ``items`` that of what a stream carries; None: there is none."""

    answers: ClassVar[Any] = None
    items: ClassVar[Any] = None

    serial: int


class Hello(Call, frozen=True, tag=1):
    """First on every connection."""

    answers: ClassVar[Any] = Welcome

    version: int
    program: str  # what the client is, for logs and `holdfast info`
    clock: float  # the client's reading of the machine's clock, just before it sent this


class Look(Call, frozen=True, tag=2):
    """The member list; with ``since`` what changed in it since that version, if the agent still knows."""

    answers: ClassVar[Any] = GroupView

    since: int = 0  # the version of the client's view; 0: the whole list


class Watch(Call, frozen=True, tag=3):
    """A stream of ``EventItem``, beginning after the view in the answer. With ``internal`` also the facts inside the protocols."""

    answers: ClassVar[Any] = GroupView
    items: ClassVar[Any] = EventItem

    internal: bool = False


class Owns(Call, frozen=True, tag=4):
    """May this agent act for a key? Told to the client, and binding until then (F14)."""

    answers: ClassVar[Any] = Owned | None

    key: bytes


class SetTags(Call, frozen=True, tag=5):
    """Change this agent's tags; None removes one. Answered when the own list has them; others follow by rumour."""

    tags: Mapping[str, str | None]


class Leave(Call, frozen=True, tag=6):
    """Drain and leave the group (F14). With ``end`` the agent ends after the answer."""

    end: bool = True


class Join(Call, frozen=True, tag=7):
    """Knock at these seeds, of an agent that is in no group. Answered when it is a member."""

    seeds: tuple[str, ...]
    timeout: float


class Seats(Call, frozen=True, tag=10):
    """The slots, as this agent sees them; ``Refused`` with what is missing when there are none (F12)."""

    answers: ClassVar[Any] = tuple[SeatView, ...]


class Acquire(Call, frozen=True, tag=14):
    """Ask for a grant; a stream of ``GrantItem``. The grant belongs to this connection and is never revived by another (F14)."""

    items: ClassVar[Any] = GrantItem

    kind: str  # of what the agent grants
    name: str
    options: Mapping[str, Any]  # of the kind


class Stopped(Call, frozen=True, tag=15):
    """The body of a grant has stopped acting: it may go to another client. Answered when it was released."""

    grant: int  # serial of its Acquire; 0: the client acts for no key any more (Owns)


class Body(Call, frozen=True, tag=16):
    """Another process that acts under a grant, as a pid that was not waited for yet. Only its death, or ``Stopped``, ends it early.

    With ``before`` the agent ends it, and whatever descends from it or bears the mark, so many seconds before the deadline, or when the
    client dies: SIGSTOP, then SIGKILL. The first body of this kind is the parent of the others."""

    grant: int
    pid: int
    before: float = 0.0  # seconds; 0.0: the agent only watches it
    mark: str = ""  # a word of the variable HOLDFAST_RUN in the environment of the command; the same for all bodies of a grant


class Close(Call, frozen=True, tag=17):
    """End a stream. An ``Acquire`` that was granted ends as by ``Stopped`` only if that was said; else at its deadline."""

    stream: int


class Info(Call, frozen=True, tag=18):
    """What this agent is: version, settings without secrets, counters, metrics."""

    answers: ClassVar[Any] = dict[str, Any]


class Doctor(Call, frozen=True, tag=19):
    """Look for what is wrong, also by asking other members; takes up to ``timeout`` seconds."""

    answers: ClassVar[Any] = tuple[Finding, ...]

    timeout: float
    since: float = 600.0  # seconds: what was last seen earlier is left out


class Confirm(Call, frozen=True, tag=27):
    """The client read that it was granted something, before the deadline, and takes it up. Nothing is extended before; a grant that was not
    confirmed by its first deadline is lost then. ``HoldLost`` if it is over."""

    grant: int  # serial of its Acquire
    token: int  # as "granted" named it: who repeats it has read it


OWN: tuple[type[Call], ...] = (
    Hello, Look, Watch, Owns, SetTags, Leave, Join, Seats, Acquire, Stopped, Body, Close, Info, Doctor, Confirm,
)  # fmt: skip
