"""Views on the local socket: what a client may ask, and what it hears.  docs/local-api.md has the layout."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

from holdfast.host import NodeId, ViewId, ViewMember
from holdfast.local.calls import Call

WHY_CHARS_MAX = 200  # of a reason to trip: it is logged, and told in events

# ``ViewItem.what``.
NOW, VIEW, CHANGING, LOST, RESTORED, TRIPPED, LEASE, MISSED = "now", "view", "changing", "lost", "restored", "tripped", "lease", "missed"


class NextView(Struct, frozen=True, array_like=True):
    """A view: whole, or as what differs from the one that was told on this stream before."""

    id: ViewId
    servers: tuple[NodeId, ...]
    whole: bool
    members: tuple[ViewMember, ...]  # all, or those that are new or attached otherwise; sorted by id
    gone: tuple[str, ...]  # names of members that are not in it any more; none if it is whole
    fleet: int


class ViewItem(Struct, frozen=True, array_like=True):
    """One event of a ``WatchViews``, and how this agent stands with its view by then. Deadlines are on the clock of this machine."""

    what: str  # "now" (the first item), "view", "changing", "lost", "restored", "tripped", "lease" (no event) or "missed"
    state: int  # ``host.ViewState``
    leased_until: float | None  # None: there is no lease
    settled_at: float | None  # None: there is no view
    view: NextView | None = None  # None: the one that was told before; it counts only while there is a lease
    number: int = 0  # with "changing": another view than this one will come
    why: str = ""  # with "lost" and "tripped"
    peer: NodeId | None = None  # with "tripped": the member that was not reached; None: a user said so
    missed: int = 0  # with "missed": so many events were not told, because the client did not read


class SeatOfViews(Struct, frozen=True, array_like=True):
    """One slot, as the server of this agent sees it."""

    slot: int
    address: str
    life: NodeId | None
    link: str  # "up", "down", "quarantined"
    since: float | None  # seconds in that state; None: since the beginning
    flaps: int  # times it went down in the last 5 minutes
    why: str = ""  # it went down the last time; "": it never did


class ViewsReport(Struct, frozen=True, array_like=True):
    """How this agent takes part in views. Ages and lengths are in seconds, as of the answer."""

    back_end: str  # "seats" or "zookeeper"
    slot: int | None  # of this agent; None: it is no seat
    takes_part: bool = False  # a client of this agent asked for views, or the view is its member list
    users: int = 0  # clients of this agent that asked for views
    state: int = 2  # ``host.ViewState``
    view: NextView | None = None  # whole; None: there is none that counts
    leased_for: float = 0.0  # 0.0: there is no lease
    settled: bool = False
    settles_in: float | None = None  # None: there is no view
    installed_ago: float | None = None
    changing_for: float | None = None
    lost_for: float | None = None
    lost_why: str = ""
    server: NodeId | None = None  # to which this agent is attached
    attach: int = 0
    serves: bool = False  # this seat serves views now: somewhere a client takes part
    number: int = 0  # highest that this server proposed
    clients: int = 0  # attached to this server
    quarantined: int = 0  # clients that this server does not let in for a while
    seats: tuple[SeatOfViews, ...] = ()  # the other slots; none if this agent does not serve
    graph: tuple[tuple[int, int, bool], ...] = ()  # two slots, and whether both say that their link is up
    rtt_p99: float | None = None  # of the last minute, seconds


class WatchViews(Call, frozen=True, tag=28):
    """Take part in views as long as this stream is open: a stream of ``ViewItem``. The first one says how it is now."""

    items: ClassVar[Any] = ViewItem


class TripView(Call, frozen=True, tag=29):
    """Believe the present view no more, and force another one. ``Unavailable`` if that was done too lately, or there is none."""

    why: str


class SurveyViews(Call, frozen=True, tag=30):
    """How this agent takes part in views, as a client and as a seat. Asking does not make it take part."""

    answers: ClassVar[Any] = ViewsReport
