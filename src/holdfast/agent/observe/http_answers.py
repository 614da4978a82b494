"""What the HTTP API answers with.  docs/http.md; the OpenAPI document is made from these types, ``http_views`` fills them.

Those of a feature or a membership stand in its ``http.py``. Positions have 64 bits, more than a number in JavaScript
holds: they are given as 16 hexadecimal digits, and beside them as the part of a whole turn, for drawing.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct


class Refusal(Struct, frozen=True):
    """Why a request was not served. ``error`` is a name to compare, ``text`` is for people."""

    error: str
    text: str


class MemberAnswer(Struct, frozen=True):
    """One line of the member list."""

    name: str
    boot: int
    address: str
    status: Literal["alive", "suspected", "decided"]
    tags: dict[str, str]
    version: str  # of its Holdfast, as it says; "" if it does not
    me: bool  # the agent that answers
    position: str | None  # among those of keys; None: not known
    turn: float | None  # the same, from 0 up to 1
    since: float | None  # wall clock when it became a member, as it says


class MembersAnswer(Struct, frozen=True):
    """Who is here, as this agent knows it."""

    version: int  # grows with every change
    state: Literal["joining", "member", "leaving", "left"]
    members: tuple[MemberAnswer, ...]


class OwnerAnswer(Struct, frozen=True):
    """The member closest to a key: a hint. What an agent may act for, and until when, is told on its local socket alone."""

    key: str
    position: str
    turn: float
    owner: MemberAnswer | None


class SeatAnswer(Struct, frozen=True):
    """One slot of the seats."""

    number: int
    name: str
    address: str
    life: str | None  # who sits there, as last heard
    own: bool
    state: str  # "asking", "waiting", "serving", "failed", "silent" or "unheard"
    wait: float  # seconds until it grants something, if it waits
    heard_ago: float | None  # seconds since it last answered this agent; null: it is this agent, or was never heard
    why: str  # why it failed, or has no address


class SeatsAnswer(Struct, frozen=True):
    """The slots, as this agent sees them; ``why`` says what is missing when there are none."""

    seats: tuple[SeatAnswer, ...]
    why: str
    voting: int  # how many grant something now, as far as this agent knows
    needed: int  # how many must, so that anything exclusive is granted
    verdict: str  # the same in a sentence


class GrantAnswer(Struct, frozen=True):
    """What a client of this agent holds."""

    kind: str
    name: str
    token: int
    number: int
    left: float  # seconds until the last deadline that the client was told; 0.0: passed


class GrantsAnswer(Struct, frozen=True):
    """What the clients of this agent hold."""

    grants: tuple[GrantAnswer, ...]


class EventAnswer(Struct, frozen=True):
    """One event."""

    id: str  # what Last-Event-ID takes
    at: float  # wall-clock seconds
    name: str
    internal: bool  # a fact inside a protocol
    version: int  # of the member list after it
    fields: dict[str, Any]


class EventsAnswer(Struct, frozen=True):
    """The latest events, oldest first."""

    life: str
    last: str  # id of the newest event there is
    events: tuple[EventAnswer, ...]


class Health(Struct, frozen=True):
    """How this agent is doing. Seconds are seconds."""

    lateness: float  # of the event loop, at the last look
    lateness_worst: float
    pauses: int
    paused_longest: float
    rtt: float | None  # longest of the leases
    safe_for: float | None
    safe_for_most: float | None  # what it is right after every lease was renewed: 2 T_l + T_a
    lease: float | None  # what round trips and lateness are compared with; None: nothing
    drops: int
    drops_most: str  # the reason of most of them; "" without drops
    resident_bytes: int
    streams: int
    seats: int  # how many there are; 0: none are known
    seats_voting: int


class TagsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Tags to set; null removes one."""

    tags: dict[str, str | None]


class Probe(Struct, frozen=True):
    """Yes; no is a Refusal."""

    state: Literal["ok", "ready"]


class Accepted(Struct, frozen=True):
    """It was done, or has begun."""

    state: str
