"""The calls about views.  docs/local-api.md, docs/views.md."""

from __future__ import annotations

from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from holdfast.errors import ConfigError, Unavailable, shown
from holdfast.features.views import calls
from holdfast.features.views.calls import WHY_CHARS_MAX, SeatOfViews, ViewsReport
from holdfast.features.views.streams import ViewNews, difference
from holdfast.local.frame import encoded

if TYPE_CHECKING:
    from holdfast.agent.feature import Parts
    from holdfast.agent.socket.connection import Connection
    from holdfast.features.views.backend import Backend
    from holdfast.features.views.protocol.survey import LinkLook
    from holdfast.features.views.settings import ViewsSettings


class TakingPart(Protocol):
    """The part of one agent in views."""

    parts: Parts
    settings: ViewsSettings
    views: Backend | None  # None: it was not needed yet

    @property
    def takes_part(self) -> bool: ...
    @property
    def serves(self) -> bool: ...
    def begin(self, user: object) -> Backend: ...
    def end(self, user: object) -> None: ...


class ViewHandlers:
    """Of one agent. All streams together are one user of views."""

    def __init__(self, agent: TakingPart) -> None:
        self._agent = agent
        self.news = ViewNews(agent.parts.host, agent.settings.view_heartbeat)
        self.news.empty = partial(agent.end, self)
        self._followed = False

    def watch(self, client: Connection, call: calls.WatchViews) -> None:
        client.check_room()
        views = self._agent.begin(self)
        if not self._followed:
            self._followed = True
            self.news.follow(views)
        client.open_stream(call.serial, self.news.open(partial(client.wake, call.serial)))
        client.done(call.serial)
        client.wake(call.serial)

    def trip(self, client: Connection, call: calls.TripView) -> None:
        if not call.why.isprintable() or not 1 <= len(call.why) <= WHY_CHARS_MAX:
            raise ConfigError(f"reason: {shown(call.why)}; accepted are 1 to {WHY_CHARS_MAX} characters of printable text")
        views = self._agent.views
        if views is None or not self._agent.takes_part:
            raise Unavailable("views: no client of this agent asked for views, so there is none to give up")
        if views.view is None:
            raise Unavailable("views: this agent has no view to give up; `holdfast views` says why")
        if not views.trip(call.why):
            raise Unavailable(f"views: it tripped too lately; it may again in {views.trips_again_in:.1f} s")
        client.done(call.serial)

    def survey(self, client: Connection, call: calls.SurveyViews) -> None:
        client.done(call.serial, encoded(self.report()))

    def report(self) -> ViewsReport:
        agent = self._agent
        back_end = "zookeeper" if agent.settings.zookeeper else "seats"
        if agent.views is None or not (agent.takes_part or agent.serves):
            return ViewsReport(back_end, agent.parts.slots.own)
        now = agent.parts.host.now
        mine = {"slot": agent.parts.slots.own, "takes_part": agent.takes_part, "users": len(self.news), "serves": agent.serves}
        return replace(described(agent.views, now), back_end=back_end, **mine)


def described(views: Backend, now: float) -> ViewsReport:
    """What the machine knows by itself."""
    survey, view, leased = views.survey(), views.view, views.leased_until > now
    return ViewsReport(
        "",
        None,
        state=views.state,
        view=None if view is None else difference(None, view),
        leased_for=views.leased_until - now if leased else 0.0,
        settled=views.settled,
        settles_in=max(0.0, views.settled_at - now) if isfinite(views.settled_at) else None,
        installed_ago=survey.installed_for,
        changing_for=survey.changing_for,
        lost_for=survey.lost_for,
        lost_why=survey.lost_why,
        server=survey.server,
        attach=survey.attach,
        number=survey.number,
        clients=survey.clients,
        quarantined=survey.quarantined,
        seats=tuple(map(_seat, survey.links)),
        graph=survey.graph,
        rtt_p99=survey.rtt_p99,
    )


def _seat(look: LinkLook) -> SeatOfViews:
    return SeatOfViews(look.slot, str(look.address), look.life, look.state, look.since, look.flaps, look.why)
