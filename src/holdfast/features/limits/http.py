"""Rate limits over HTTP: ``GET /v1/limits``, ``POST /v1/limits/{name}/acquire``, the panel of limits, metrics.  docs/http.md."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from holdfast.agent.feature import HttpPart
from holdfast.agent.observe.metrics import Metric, counter, gauge, histograms, labelled
from holdfast.agent.observe.openapi import Parameter, Route
from holdfast.agent.observe.sse import Lists
from holdfast.errors import ConfigError, shown
from holdfast.features.limits import terms
from holdfast.features.limits.calls import LimitLine, LimitsReport, WorkerLine

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web
    from holdfast.features.limits.handlers import LimitHandlers
    from holdfast.features.limits.protocol.limiter import Limiter
    from holdfast.features.limits.protocol.specs import Specs
    from holdfast.features.limits.tally import Totals
    from holdfast.features.limits.users import Users

WAIT_MAX = 60.0  # seconds that a request may wait: proxies end those that take longer
BEAT_LIMITS = 16  # that a page is told of four times a second, the busiest: it draws twelve of them (H352)
BEAT_WORKERS = 6  # of each of these; a host may have 64
BEAT_INTERVAL = 0.5  # seconds between two looks at all limits for pages: 256 of them take milliseconds
ACCEPTED = '{"cost": 1, "wait": 0}, both of which may be left out'
NUMBERS = {
    "rate": ("limit_rate", "Rate of the limit as it counts now, cost per second of all members."),
    "share": ("limit_share", "What this agent may use of the limit, cost per second."),
    "demand": ("limit_demand", "What this agent wants of the limit, cost per second."),
    "aggregate": ("limit_aggregate", "What all members want of the limit, as this agent estimates it, cost per second."),
    "told": ("limit_told", "What the processes of this agent may use by what they were told, cost per second."),
    "waiting": ("limit_waiting", "Cost that waits in the processes of this agent."),
    "waiters": ("limit_waiters", "Callers that wait in the processes of this agent."),
    "tokens": ("limit_tokens", "Cost that may go at once in the processes of this agent; negative after a cost above the burst."),
}
COUNTERS = {
    "admitted": ("limit_admitted_total", "Cost that went in the processes of this agent."),
    "waited": ("limit_waited_total", "The part of that cost that had waited."),
}
GAUGES = {
    "instance": ("limits_instance", "Number of the view that limits of this agent gossip in; 0 without one."),
    "size": ("limits_members", "Members that share the limits, as this agent knows them."),
    "provisional": ("limits_provisional", "1 while this agent gossips in a view that its server has not delivered."),
    "panic": ("limits_panic", "1 while this agent has no view and uses its part of the fleet alone."),
    "black_links": ("limits_blacklisted", "Members that no direct message of this agent reaches."),
    "outstanding_weight": ("limits_outstanding_weight", "Weight of this agent that is on its way, as a part of what it brought."),
    "quiet": ("limits_quiet", "1 while nothing changes, so that this agent speaks less."),
}
SECONDS = {
    "panic_seconds": ("limits_panic_seconds_total", "Seconds in which this agent had no view and used its part of the fleet alone."),
    "provisional_seconds": (
        "limits_provisional_seconds_total",
        "Seconds in which this agent gossiped in a view that its server had not delivered.",
    ),
}
OWN = {*GAUGES, *SECONDS, "limits", "epochs"}


class WorkerAnswer(Struct, frozen=True):
    """One process of this agent that uses a limit."""

    pid: int  # 0: the agent itself, for callers without a bucket
    program: str
    rate: float
    waiting: float
    gone: bool
    waiters: int
    tokens: float  # cost that may go at once; negative after a cost above the burst


class LimitAnswer(Struct, frozen=True):
    """One limit, as this agent sees it. Rates are cost per second; lengths are in seconds, as of the answer."""

    name: str
    rate: float  # as it counts now; 0 where this agent does not take part
    set_rate: float
    burst: float
    policy: str
    shared_by: str
    aggregated_by: str
    set_fleet: int  # 0: auto
    fleet: int
    members: int
    over: str  # "views", "members", or "" where this agent does not take part
    view: str
    state: str
    used: bool
    share: float
    demand: float
    aggregate: float
    told: float
    waiting: float
    workers: tuple[WorkerAnswer, ...]
    quota: float | None
    panic_for: float | None
    starved_for: float | None
    penalty_for: float
    version: int
    by: str
    shared: float | None  # what all members use of it, as the aggregate says; null where that is not known
    waiters: int
    tokens: float
    admitted: float  # cost that went in the processes of this agent
    waited: float  # the part of it that had waited


class LimitsAnswer(Struct, frozen=True):
    """The limits that this agent knows."""

    takes_part: bool
    blacklisted: tuple[str, ...]
    limits: tuple[LimitAnswer, ...]


class AcquireBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to go."""

    cost: float = 1.0
    wait: float = 0.0  # seconds


class AcquireAnswer(Struct, frozen=True):
    """What became of it."""

    went: bool
    retry_after: float | None  # seconds until it may go, if nothing else does; null if it went, or that is not known


class WorkerBeat(Struct, frozen=True):
    """One process of this agent, as its page draws it."""

    pid: int  # 0: the agent itself, for callers without a bucket
    program: str
    rate: float
    waiters: int
    gone: bool


class LimitBeat(Struct, frozen=True):
    """One limit, as the page draws it."""

    name: str
    rate: float
    burst: float
    policy: str
    shared_by: str
    fleet: int
    members: int
    over: str
    view: str
    state: str
    share: float
    demand: float
    shared: float | None
    told: float
    waiters: int
    workers: tuple[WorkerBeat, ...]
    workers_of: int  # how many they are
    panic_for: float | None
    starved_for: float | None
    penalty_for: float


class LimitsBeat(Struct, frozen=True):
    """The busiest limits, and how many there are."""

    count: int
    blacklisted: tuple[str, ...]
    lines: tuple[LimitBeat, ...]


LIMIT = Parameter("name", "path", "Name of a limit.", {"type": "string"}, required=True)
ROUTES = (
    Route("GET", "/v1/limits", "limits", "The rate limits of the group, as this agent sees them.", LimitsAnswer),
    Route(
        "POST", "/v1/limits/{name}/acquire", "acquire_limit", "Let a cost go, or wait for it behind those that came before.", AcquireAnswer,
        parameters=(LIMIT,), body=AcquireBody, errors=(400, 413, 503),
    ),
)  # fmt: skip


class LimitSource(Protocol):
    """What HTTP shows of limits: ``running.LimitsAgent``."""

    limiter: Limiter | None
    users: Users | None

    @property
    def now(self) -> float: ...
    @property
    def has_specs(self) -> bool: ...
    @property
    def specs(self) -> Specs: ...
    @property
    def handlers(self) -> LimitHandlers: ...
    def counts(self) -> dict[str, float]: ...


class LimitsHttp(HttpPart):
    """Looking changes nothing, and does not make this agent take part."""

    routes = ROUTES
    page = Path(__file__).parent / "page"

    def __init__(self, web: Web, agent: LimitSource) -> None:
        self._web, self._agent = web, agent
        self._number = 0
        self._seen: tuple[tuple[str, int, str], ...] = ()
        self._looked_at = -inf
        self._looked = LimitsReport(False)
        self.lists = (Lists(self._version, self._listed, self.answer, event="limits"),)

    def beat(self) -> Mapping[str, LimitsBeat]:
        """What moves. The agent keeps no history: lines over time are drawn of what a page saw (H352)."""
        report = self._lately()
        if not report.lines:
            return {}
        busiest = nsmallest(BEAT_LIMITS, (line for line in report.lines if line.state), key=_idleness)
        return {"limits": LimitsBeat(len(report.lines), report.blacklisted[:BEAT_LIMITS], tuple(map(_beat, busiest)))}

    async def limits(self, request: Request) -> Response:
        del request
        return self._web.again("limits", self.answer)  # type: ignore[no-any-return]

    async def acquire_limit(self, request: Request) -> Response:
        name, body = terms.checked_name(request.path_params["name"]), _body(await self._web.body(request))
        answered: asyncio.Future[AcquireAnswer] = asyncio.get_running_loop().create_future()

        def answer(went: bool, retry_after: float) -> None:
            if not answered.done():
                answered.set_result(AcquireAnswer(went, None if went or retry_after < 0 else retry_after))

        def ask() -> None:
            if self._agent.specs.get(name) is None:
                raise ConfigError(f"limit {shown(name)}: there is none of that name; accepted is one that GET /v1/limits lists")
            self._agent.handlers.desk(name).take(body.cost, body.wait, lambda: not answered.cancelled(), answer)

        await self._web.in_turn(ask)
        return self._web.json(await self._web.while_there(request, answered))  # type: ignore[no-any-return]

    def answer(self) -> LimitsAnswer:
        report = self._report()
        return LimitsAnswer(report.takes_part, report.blacklisted, tuple(map(_limit, report.lines)))

    def metrics(self) -> Iterable[Metric]:
        if self._agent.limiter is None:
            return
        lines = self._report().lines
        for kind, table in (("gauge", NUMBERS), ("counter", COUNTERS)):
            for field, (name, text) in table.items():
                yield labelled(name, kind, text, "limit", {line.name: getattr(line, field) for line in lines})
        yield labelled(
            "limit_workers",
            "gauge",
            "Processes of this agent that use the limit.",
            "limit",
            {line.name: len(line.workers) for line in lines},
        )
        quotas = {line.name: line.quota for line in lines if line.quota is not None}
        yield labelled("limit_quota", "gauge", "Of an exact limit: what this agent holds, in parts of one member's 1/n.", "limit", quotas)
        waits = {line.name: self._totals[line.name].waits for line in lines if line.name in self._totals}
        yield histograms("limit_wait_seconds", "How long callers waited in the processes of this agent, if they did.", "limit", waits)
        found = {name.removeprefix("limits_"): value for name, value in self._agent.counts().items()}
        for field, (name, text) in GAUGES.items():
            yield gauge(name, text, found[field])
        for field, (name, text) in SECONDS.items():
            yield counter(name, text, found[field])
        yield counter("limits_epochs_total", "Epochs of gossip of this agent.", found["epochs"])
        counts = {name: value for name, value in found.items() if name not in OWN}
        yield labelled("limits_total", "counter", "What limiters said to each other, by what became of it.", "what", counts)

    def _lately(self) -> LimitsReport:
        """For all pages, and for the list and the beat together."""
        if self._agent.now >= self._looked_at + BEAT_INTERVAL:
            self._looked_at, self._looked = self._agent.now, self._report()
        return self._looked

    def _listed(self) -> tuple[LimitLine, ...]:
        return self._lately().lines

    def _version(self) -> int:
        """Grows when a limit comes, goes, is changed, or stands otherwise."""
        now = tuple((line.name, line.version, line.state) for line in self._listed())
        if now != self._seen:
            self._seen, self._number = now, self._number + 1
        return self._number

    @property
    def _totals(self) -> Mapping[str, Totals]:
        return {} if self._agent.users is None else self._agent.users.totals

    def _report(self) -> LimitsReport:
        return LimitsReport(False) if not self._agent.has_specs else self._agent.handlers.report_of()


def _body(data: bytes) -> AcquireBody:
    try:
        body = msgspec.json.decode(data or b"{}", type=AcquireBody)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ConfigError(f"body: {error}; accepted is {ACCEPTED}") from None
    terms.checked_cost(body.cost)
    terms.number(body.wait, "wait", f"a number of seconds from 0 to {WAIT_MAX:g}", 0.0, WAIT_MAX)
    return body


def _worker(line: WorkerLine) -> WorkerAnswer:
    return WorkerAnswer(line.pid, line.program, line.rate, line.waiting, line.gone, line.waiters, line.tokens)


def _idleness(line: LimitLine) -> tuple[bool, float, str]:
    """Smallest where callers wait; then by how much of the rate is wanted."""
    return line.waiters == 0, -max(line.shared or 0.0, line.demand) / (line.rate or 1.0), line.name


def _beat(line: LimitLine) -> LimitBeat:
    given = line.terms
    workers = tuple(WorkerBeat(each.pid, each.program, each.rate, each.waiters, each.gone) for each in line.workers[:BEAT_WORKERS])
    return LimitBeat(
        name=line.name, rate=line.rate, burst=given.burst, policy=given.policy, shared_by=given.share, fleet=line.fleet,
        members=line.members, over=line.over, view=line.view, state=line.state, share=line.share, demand=line.demand, shared=line.shared,
        told=line.told, waiters=line.waiters, workers=workers, workers_of=len(line.workers), panic_for=line.panic_for,
        starved_for=line.starved_for, penalty_for=line.penalty_for,
    )  # fmt: skip


def _limit(line: LimitLine) -> LimitAnswer:
    given = line.terms
    return LimitAnswer(
        name=line.name, rate=line.rate, set_rate=given.rate, burst=given.burst, policy=given.policy, shared_by=given.share,
        aggregated_by=given.aggregate, set_fleet=given.fleet, fleet=line.fleet, members=line.members, over=line.over, view=line.view,
        state=line.state, used=line.used, share=line.share, demand=line.demand, aggregate=line.aggregate, told=line.told,
        waiting=line.waiting,
        workers=tuple(map(_worker, line.workers)),
        quota=line.quota, panic_for=line.panic_for, starved_for=line.starved_for, penalty_for=line.penalty_for, version=line.version,
        by=line.by, shared=line.shared, waiters=line.waiters, tokens=line.tokens, admitted=line.admitted, waited=line.waited,
    )  # fmt: skip
