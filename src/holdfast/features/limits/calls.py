"""Rate limits on the local socket: what a client may ask, and what it hears.  docs/local-api.md has the layout."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Struct

from holdfast.features.limits.terms import Change, Terms
from holdfast.local.calls import Call

# ``LimitItem.state``.
STARTING, STABLE, CHANGING, PANIC = "starting", "stable", "changing", "panic"


class LimitItem(Struct, frozen=True, array_like=True):
    """What this process may use of one limit from now on, and how the limit is. Instants are on the clock of this machine."""

    serial: int  # to be confirmed; 0: nothing was told yet
    rate: float  # cost per second, of this process
    depth: float  # of its bucket, in cost
    until: float  # past it: min(rate, after)
    after: float
    ends_at: float  # past it: nothing
    state: str
    share: float  # of the agent, cost per second
    demand: float  # of the agent, as it takes part in the sum
    aggregate: float  # of all members, as estimated here
    limit: float  # R
    burst: float  # B
    fleet: int  # n
    members: int  # of the view
    workers: int  # of this agent
    policy: str
    epoch: float  # seconds
    claims_at: float = 0.0  # exact: before this instant this life takes no part that a former one had (H310); 0: it has it


class WorkerLine(Struct, frozen=True, array_like=True):
    """One process of this agent that uses a limit."""

    pid: int
    program: str
    rate: float  # what it was told
    waiting: float  # cost
    gone: bool = False  # its connection has ended, and its process lives: what it was told is held
    waiters: int = 0  # callers that wait
    tokens: float = 0.0  # cost that may go at once; negative after a cost above the depth


class LimitLine(Struct, frozen=True, array_like=True):
    """One limit, as this agent sees it. Rates are cost per second."""

    name: str
    terms: Terms
    version: int  # grows with every change, anywhere
    by: str  # the member that made this version
    used: bool = False  # a process of this agent uses it
    state: str = ""  # "" while this agent does not take part
    over: str = ""  # "views" or "members": what the limit stands on
    view: str = ""  # id of the instance
    members: int = 0
    fleet: int = 0
    share: float = 0.0
    demand: float = 0.0
    aggregate: float = 0.0
    told: float = 0.0  # what the processes of this agent may use together
    waiting: float = 0.0  # cost that waits in them
    workers: tuple[WorkerLine, ...] = ()
    quota: float | None = None  # exact: the part of one member's 1/n that is held here
    panic_for: float | None = None  # seconds
    starved_for: float | None = None
    penalty_for: float = 0.0  # seconds for which the rate is lower, because a member was told to slow down
    rate: float = 0.0  # as it counts now; 0.0 while this agent does not take part
    shared: float | None = None  # what all members use of it, as the aggregate says; None: it is not known
    waiters: int = 0  # callers that wait in the processes of this agent
    tokens: float = 0.0  # cost that may go at once in them
    admitted: float = 0.0  # cost that went in them, since this agent takes part
    waited: float = 0.0  # the part of it that had waited


class LimitsReport(Struct, frozen=True, array_like=True):
    """All limits that this agent knows, sorted by name."""

    takes_part: bool  # this agent gossips
    lines: tuple[LimitLine, ...] = ()
    blacklisted: tuple[str, ...] = ()  # members that no direct message reaches


class Taken(Struct, frozen=True, array_like=True):
    """What became of a cost."""

    went: bool
    retry_after: float  # seconds until it may go, if nothing else does; 0.0 if it went, -1.0 if that is not known


class Tally(Struct, frozen=True, array_like=True):
    """What a process counted since its last report, and how it stands now. For people: nothing is decided by it."""

    admitted: float = 0.0  # cost that went
    waited: float = 0.0  # the part of it that had waited
    seconds: float = 0.0  # for which the callers of that part waited, together
    waits: tuple[int, ...] = ()  # how many of them waited up to each bound of ``tally.WAITS``, and longer; empty: none
    waiters: int = 0  # callers that wait
    tokens: float = 0.0  # in the bucket


class AttachLimit(Call, frozen=True, tag=31):
    """Use a limit as long as this stream is open: a stream of ``LimitItem``. The stream's end says that this process has stopped."""

    items: ClassVar[Any] = LimitItem

    name: str
    terms: Terms | None = None  # None: of the limit that is there
    weight: float = 1.0
    worker: int = 0  # names this user of the limit in this process, also on its next connection


class ReportLimit(Call, frozen=True, tag=32):
    """Since the last report on the same stream."""

    stream: int  # the serial of ``AttachLimit``
    confirmed: int  # this process goes by the item of this serial
    arrived: float  # cost
    waiting: float  # cost, now
    user: float | None = None  # what ``demand=`` returned last
    tally: Tally | None = None


class SetLimit(Call, frozen=True, tag=33):
    """Make a limit, or a new version of it."""

    name: str
    terms: Terms | None  # of a new one; None: it has to be there
    change: Change | None = None


class RemoveLimit(Call, frozen=True, tag=34):
    """Forget a limit, on all members."""

    name: str


class PenalizeLimit(Call, frozen=True, tag=35):
    """Lower the rate for a while, everywhere: a member was told to slow down."""

    name: str
    seconds: float
    factor: float


class TakeLimit(Call, frozen=True, tag=37):
    """Let a cost go, out of the bucket that this agent keeps for callers without one. Callers that wait are served in the order of
    their calls. One that closes its connection leaves the line."""

    answers: ClassVar[Any] = Taken

    name: str
    cost: float = 1.0
    wait: float = 0.0  # seconds


class SurveyLimits(Call, frozen=True, tag=36):
    """How the limits are, as this agent sees them. Asking does not make it take part."""

    answers: ClassVar[Any] = LimitsReport

    name: str = ""  # "": all
