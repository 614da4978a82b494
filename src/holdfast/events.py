"""Every fact that can surface to a user, in the past tense.  Spec: foundation 5.

Protocol-internal facts derive from ``Internal`` beside their protocol; they reach traces and checkers, never users.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from holdfast.host import Grant, Member, NodeId, View


class Event(Struct, frozen=True, gc=False):
    """Base of all facts."""


class Internal(Event, frozen=True, gc=False):
    """A fact for traces, metrics and checkers only. Outside the process it is called ``family.ClassName``."""

    family: ClassVar[str] = ""  # of a fact of the lab, which no agent tells its clients


class RecordUnusable(Internal, frozen=True):
    """A record of this seat's journal holds a number that no honest clock comes to, so no agent could go on from it. The seat says nothing
    about this key, and keeps the record as it is."""

    family: ClassVar[str] = "holdfast"
    key: str
    why: str


class TokenRefused(Internal, frozen=True):
    """The group gave this agent something under a token that is not above one that it was given before (F16). No client was told, and it
    was given back."""

    family: ClassVar[str] = "holdfast"
    kind: str
    name: str
    number: int
    token: int
    last: int


class Joined(Event, frozen=True):
    """A member is in the list."""

    member: Member


class Suspected(Event, frozen=True):
    """A member has not answered in time. Nothing is decided."""

    member: Member


class Cleared(Event, frozen=True):
    """A suspicion was wrong, or no member is left that could declare what was decided."""

    member: Member


class Decided(Event, frozen=True):
    """A member is held to be dead: route away from it. Its keys, tickets and terms are still its own."""

    member: Member


class Failed(Event, frozen=True):
    """A member is out of the list. Only with ``certain`` may its keys be taken over."""

    member: Member
    certain: bool


class Left(Event, frozen=True):
    """A member said goodbye."""

    member: Member


class Updated(Event, frozen=True):
    """A member's published rows changed."""

    member: Member


MembershipEvent = Joined | Suspected | Cleared | Decided | Failed | Left | Updated


class Expelled(Event, frozen=True):
    """This process is out of the group, not by its own wish, and will come back under a new id."""

    why: str


class ViewChanged(Event, frozen=True):
    """This agent is in another view. ``added`` and ``removed`` compare it with the one before, by life."""

    view: View
    added: tuple[NodeId, ...]
    removed: tuple[NodeId, ...]


class Changing(Event, frozen=True):
    """Another view than this number will come: servers noticed a change. Told once per change."""

    number: int


class ViewLost(Event, frozen=True):
    """This agent is in no view that it may count on. It keeps trying; ``why`` says what is missing."""

    why: str


class ViewRestored(Event, frozen=True):
    """The view that was lost holds again, without a new one."""

    view: View


class ViewTripped(Event, frozen=True):
    """This agent gave its view up, because a member of it could not be reached or a user said so. Another view comes."""

    peer: NodeId | None  # None: a user said so
    why: str


ViewEvent = ViewChanged | Changing | ViewLost | ViewRestored | ViewTripped


class LeaderChanged(Event, frozen=True):
    """Who leads, as known here. ``leader`` is None while no leader is known."""

    name: str
    leader: NodeId | None
    token: int


class LeaderSuspected(Event, frozen=True):
    """The leader of this name was not heard in time, and no monitor that was asked has heard it: nothing is decided. Told by the agent that
    asked, once per suspicion and name. ``cleared``: it was wrong. A suspicion also ends with the next ``LeaderChanged`` of that name."""

    name: str
    leader: NodeId
    token: int
    cleared: bool


class OwnerChanged(Event, frozen=True):
    """Who owns a ticket, as announced: a hint. ``owner`` is None while no owner is known. Told by ``tickets(pool).watch()`` alone."""

    pool: str
    number: int
    owner: NodeId | None
    token: int  # of that owner, or of the last one


class Published(Event, frozen=True):
    """The owner of a ticket said something (``ticket.publish``). Told by ``tickets(pool).watch()`` alone."""

    pool: str
    number: int
    token: int  # what came under a smaller one than was heard of is not told any more
    data: bytes


class Granted(Event, frozen=True):
    """A client of this agent holds something that excludes others."""

    grant: Grant


class AtRisk(Event, frozen=True):
    """It was not renewed in time; unless that comes, it ends at its deadline."""

    grant: Grant


class Lost(Event, frozen=True):
    """It is over, not by the holder's wish."""

    grant: Grant
    why: str


class Released(Event, frozen=True):
    """It was given back."""

    grant: Grant


class GrantsDelayed(Event, frozen=True):
    """A client of this agent waits for a leadership or a ticket that the seats cannot grant to any client yet. Told once, when the agent
    notices. ``seconds``: how long that lasts; None: until the seats answer that are missing."""

    why: str
    seconds: float | None


class LimitChanged(Event, frozen=True):
    """A rate limit has other numbers now, or is new, or (a rate of 0) is removed. ``by``: who changed it."""

    name: str
    rate: float
    burst: float
    by: str


class LimitPanicked(Event, frozen=True):
    """This agent is in no view that it may count on: until it is, it uses at most this rate of the limit."""

    name: str
    rate: float


class LimitRestored(Event, frozen=True):
    """It is in a view again, and shares the limit with the others there; ``rate`` is what it may use now."""

    name: str
    rate: float


class LinkBlacklisted(Event, frozen=True):
    """Limiters of this agent and this peer do not reach each other directly: what they owe each other goes round by the servers."""

    peer: NodeId


class LinkRestored(Event, frozen=True):
    """They do again."""

    peer: NodeId


class FleetExceeded(Event, frozen=True):
    """There are more members than the limit is divided for. ``exact``: those above that number use nothing of it."""

    name: str
    fleet: int
    size: int


class SpecConflict(Event, frozen=True):
    """Two members created this limit with different rates. The one that counts is told first."""

    name: str
    rate: float
    by: str
    refused: float  # the rate of the other one


class ChokePoint(Event, frozen=True):
    """Few direct links are left between two parts of a view. Advice: limits go on, and news between the parts is slow."""

    cut: int  # direct links between the parts
    smaller_side: tuple[NodeId, ...]


class Starved(Event, frozen=True):
    """Callers wait here, and for so long this agent had next to nothing of the limit."""

    name: str
    seconds: float


LimitEvent = (
    LimitChanged | LimitPanicked | LimitRestored | LinkBlacklisted | LinkRestored | FleetExceeded | SpecConflict | ChokePoint | Starved
)


class EventsLost(Event, frozen=True):
    """This subscriber did not read in time and missed so many events: look at the member list again."""

    count: int


class Paused(Event, frozen=True):
    """This process was stopped for at least so long (SIGSTOP, suspend, a stalled loop)."""

    seconds: float


class ConfigMismatch(Event, frozen=True):
    """A peer runs with another value of a number that both ends count (F4). Its messages are dropped."""

    peer: NodeId
    field: str
    ours: str
    theirs: str


class StorageFailed(Event, frozen=True):
    """The disk refused a write. What would have been promised is not promised: this machine is silent now."""

    why: str
