"""Views over HTTP: ``GET /v1/views``, the panel of views, metrics.  docs/http.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from holdfast.agent.feature import HttpPart
from holdfast.agent.observe.metrics import Metric, counter, gauge, labelled
from holdfast.agent.observe.openapi import Route
from holdfast.agent.observe.sse import Lists
from holdfast.host import ViewState

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from holdfast.agent.feature import Web
    from holdfast.features.views.backend import Backend
    from holdfast.features.views.protocol.survey import LinkLook, ViewSurvey
    from holdfast.host import NodeId, View, ViewId, ViewMember

OVERLAY = "carried_"  # how the machine begins the names of what became of messages
HOPS = "overlay_hops_"
KNOWN = ("fast", "slow")
GAUGES = {
    "number": ("view_number", "Number of the present view; 0 without one."),
    "size": ("view_members", "Members of the present view."),
    "lease_margin_min": (
        "view_lease_margin_seconds_least",
        "The least that was left of a lease when it was extended, seconds.",
    ),
    "links_down": ("view_links_down", "Links of this seat's server of views that are down."),
    "clients": ("view_clients", "Clients that are attached to this seat's server of views."),
    "overlay_under_way": ("view_overlay_under_way", "Messages of this agent that are under way through the overlay."),
}
OF_ZOOKEEPER = {
    "zookeeper_connected": ("view_zookeeper_connected", "1 while this agent has a connection with the ZooKeeper ensemble."),
    "zookeeper_session_seconds": (
        "view_zookeeper_session_seconds",
        "Length of a session as the ensemble grants it; 0 before the first one.",
    ),
    "zookeeper_rtt_p99": ("view_zookeeper_rtt_seconds", "One in a hundred reads of ZooKeeper in the last minute took longer."),
}
TROUBLES = "zookeeper_", "_total"  # how the names of its counters begin and end
OF_SEATS = ("links_down", "clients")  # they say nothing about a server that has stopped
RECEIVED = "carried_received"  # by this agent; the others are of messages that it sent
COUNTERS = {
    RECEIVED: ("view_overlay_received_total", "Messages to this agent that came through the overlay."),
    "views_total": ("view_installed_total", "Views that this agent installed, from ZooKeeper."),
    "seconds_changing": ("view_changing_seconds_total", "Seconds in which a change of the view was under way at this server."),
    "seconds_lost": ("view_lost_seconds_total", "Seconds in which this agent took part and had no view."),
    "tripped": ("view_overlay_trips_total", "Messages of this agent that were not delivered in time, so that it gave its view up."),
    "hops_failed": ("view_hops_failed_total", "Hops of the overlay that used up their tries: what they led to was held to be lost."),
    "quarantines": ("view_quarantines_total", "Clients that this server shut out for a while, because a message did not reach them."),
    "link_quarantines": (
        "view_link_quarantines_total",
        "Links with other seats that this server kept down for a while, because messages or link states did not pass.",
    ),
    "lsa_bytes": ("view_link_state_bytes_total", "Bytes of link states that this server sent."),
    "proposals": ("view_proposals_total", "Proposals that this server sent or passed on."),
    "proposal_bytes": ("view_proposal_bytes_total", "Bytes of proposals that this server sent or passed on."),
}
REFUSED = (
    "stranger", "foreign_lsa", "malformed", "not_listed", "duplicate", "late", "future", "old_life", "full", "busy", "not_for_this_part",
    "deltas_refused",
)  # fmt: skip


class LifeAnswer(Struct, frozen=True):
    """One life of one agent."""

    name: str
    boot: int


class ViewMemberAnswer(Struct, frozen=True):
    """A member of the view, and the server to which it is attached."""

    name: str
    boot: int
    address: str
    attach: int
    server: LifeAnswer
    me: bool


class LinkAnswer(Struct, frozen=True):
    """A link of this seat's server with another seat."""

    slot: int
    address: str
    server: LifeAnswer | None
    state: Literal["up", "down", "quarantined"]
    since: float | None  # seconds in that state
    flaps: int  # times it went down in the last five minutes
    why: str


class EdgeAnswer(Struct, frozen=True):
    """Two seats, as this seat's server knows them."""

    a: int
    b: int
    up: bool  # both say that the link is up


class ViewsAnswer(Struct, frozen=True):
    """How this agent takes part in views, and what its seat knows of them. Ages and lengths are in seconds, as of the answer."""

    takes_part: bool
    back_end: Literal["seats", "zookeeper"]
    state: Literal["stable", "changing", "lost"]
    id: str | None
    number: int
    size: int
    fleet: int  # members of the largest view lately
    servers: tuple[LifeAnswer, ...]
    members: tuple[ViewMemberAnswer, ...]
    leased_for: float | None  # None: no lease
    settled: bool
    settles_in: float | None
    installed_for: float | None
    changing_for: float | None
    lost_for: float | None
    lost_why: str
    attached_to: LifeAnswer | None
    slot: int | None  # of this agent, if it is a seat
    serves: bool
    proposed: int  # highest number that its server proposed
    clients: int
    quarantined: int
    links: tuple[LinkAnswer, ...]
    graph: tuple[EdgeAnswer, ...]
    rtt_p99: float | None
    why: str  # which setting is missing, where this agent cannot take part


ROUTES = (Route("GET", "/v1/views", "views", "How this agent takes part in views, and what its seat knows of them.", ViewsAnswer),)


class ViewSource(Protocol):
    """What HTTP shows of views: ``running.ViewAgent``, or an agent that cannot take part."""

    why: str  # "" where it can

    @property
    def views(self) -> Backend | None: ...
    @property
    def takes_part(self) -> bool: ...
    @property
    def serves(self) -> bool: ...
    @property
    def back_end(self) -> Literal["seats", "zookeeper"]: ...
    @property
    def slot(self) -> int | None: ...
    @property
    def now(self) -> float: ...
    @property
    def me(self) -> NodeId: ...


class ViewsHttp(HttpPart):
    """Everything here only looks."""

    routes = ROUTES
    page = Path(__file__).parent / "page"

    def __init__(self, web: Web, source: ViewSource) -> None:
        self._web, self._source = web, source
        self._number = 0
        self._seen: tuple[bool, ViewId | None] = False, None
        self.lists = (Lists(self._version, self._listed, self.answer, event="views"),)

    async def views(self, request: Request) -> Response:
        return self._web.again("views", self.answer)  # type: ignore[no-any-return]

    def beat(self) -> Mapping[str, ViewsAnswer]:
        """What moves between two views. The members are in the list, which is sent when the view is another one: 2,000 of them four times
        a second would be 2 MB a second for each reader."""
        return {"views": self._answer(())} if self._is_used else {}

    def answer(self) -> ViewsAnswer:
        return self._answer(self._listed())

    def metrics(self) -> Iterable[Metric]:
        views = self._source.views
        if views is None:
            return ()
        return of_views(views.metrics(), takes_part=self._source.takes_part, serves=self._source.serves)

    @property
    def _is_used(self) -> bool:
        """Views run here: for a client of this agent, or because this seat serves them."""
        return self._source.views is not None and (self._source.takes_part or self._source.serves)

    def _view(self) -> View | None:
        return self._source.views.view if self._source.views is not None and self._is_used else None

    def _version(self) -> int:
        """Grows when another view is shown."""
        view = self._view()
        now = self._is_used, None if view is None else view.id
        if now != self._seen:
            self._seen, self._number = now, self._number + 1
        return self._number

    def _listed(self) -> tuple[ViewMember, ...]:
        view = self._view()
        return () if view is None else view.members

    def _answer(self, members: tuple[ViewMember, ...]) -> ViewsAnswer:
        source, views, view = self._source, self._source.views, self._view()
        if views is None or not self._is_used:
            return _nothing(source)
        survey, now = views.survey(), source.now
        leased = views.leased_until - now if views.leased_until > now else None
        settles_in = max(0.0, views.settled_at - now) if view is not None and isfinite(views.settled_at) else None
        return ViewsAnswer(
            takes_part=source.takes_part, back_end=source.back_end, state=_word(views.state), id=None if view is None else str(view.id),
            number=0 if view is None else view.number, size=0 if view is None else view.size, fleet=0 if view is None else view.fleet,
            servers=() if view is None else tuple(map(_life, view.servers)), members=tuple(_member(each, source.me) for each in members),
            leased_for=leased, settled=views.settled, settles_in=settles_in, installed_for=survey.installed_for,
            changing_for=survey.changing_for, lost_for=survey.lost_for, lost_why=survey.lost_why,
            attached_to=None if survey.server is None else _life(survey.server), slot=source.slot, serves=source.serves,
            proposed=survey.number, clients=survey.clients, quarantined=survey.quarantined,
            links=tuple(map(_link, survey.links)) if source.serves else (), graph=_graph(survey) if source.serves else (),
            rtt_p99=survey.rtt_p99, why="",
        )  # fmt: skip


def of_views(found: Mapping[str, float], *, takes_part: bool, serves: bool) -> Iterable[Metric]:
    """From the numbers of the machine; those that it does not have are left out. Counters stay when it is not used any more."""
    yield gauge("view_takes_part", "1 while this agent takes part in views.", float(takes_part))
    yield gauge("view_serves", "1 while this agent is a seat that serves views.", float(serves))
    for name, (metric, text) in (GAUGES | OF_ZOOKEEPER).items():
        if name in found and (serves if name in OF_SEATS else takes_part):
            yield gauge(metric, text, found[name])
    for name, (metric, text) in COUNTERS.items():
        if name in found:
            yield counter(metric, text, found[name])
    changes = {path: found[f"changes_{path}"] for path in KNOWN if f"changes_{path}" in found}
    yield labelled("view_changes_total", "counter", "Views that this server delivered, by how many proposals they took.", "path", changes)
    carried = {name.removeprefix(OVERLAY): value for name, value in found.items() if name.startswith(OVERLAY) and name != RECEIVED}
    yield labelled("view_overlay_total", "counter", "Messages of this agent through the overlay, by what became of them.", "what", carried)
    hops = {name.removeprefix(HOPS): value for name, value in found.items() if name.startswith(HOPS)}
    yield labelled("view_overlay_hops_total", "counter", "Messages of this agent that arrived, by the hops that they took.", "hops", hops)
    begin, end = TROUBLES
    troubles = {name[len(begin) : -len(end)]: value for name, value in found.items() if name.startswith(begin) and name.endswith(end)}
    yield labelled("view_zookeeper_total", "counter", "What was late, old, malformed or tidied up in ZooKeeper.", "what", troubles)
    refused = {name: found[name] for name in REFUSED if name in found}
    yield labelled("view_refused_total", "counter", "What peers said about views that could not be, or came too late.", "reason", refused)


def _nothing(source: ViewSource) -> ViewsAnswer:
    return ViewsAnswer(
        takes_part=False, back_end=source.back_end, state="lost", id=None, number=0, size=0, fleet=0, servers=(), members=(),
        leased_for=None, settled=False, settles_in=None, installed_for=None, changing_for=None, lost_for=None, lost_why="",
        attached_to=None, slot=source.slot, serves=False, proposed=0, clients=0, quarantined=0, links=(), graph=(), rtt_p99=None,
        why=source.why,
    )  # fmt: skip


def _word(state: ViewState) -> Literal["stable", "changing", "lost"]:
    return "stable" if state is ViewState.STABLE else "changing" if state is ViewState.CHANGING else "lost"


def _life(life: NodeId) -> LifeAnswer:
    return LifeAnswer(life.name, life.boot)


def _member(member: ViewMember, me: NodeId) -> ViewMemberAnswer:
    life = member.id
    return ViewMemberAnswer(life.name, life.boot, str(member.address), member.attach, _life(member.server), life == me)


def _link(look: LinkLook) -> LinkAnswer:
    state: Literal["up", "down", "quarantined"] = "up" if look.state == "up" else "down" if look.state == "down" else "quarantined"
    server = None if look.life is None else _life(look.life)
    return LinkAnswer(look.slot, str(look.address), server, state, look.since, look.flaps, look.why)


def _graph(survey: ViewSurvey) -> tuple[EdgeAnswer, ...]:
    return tuple(EdgeAnswer(a, b, up) for a, b, up in survey.graph)
