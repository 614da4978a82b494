"""What ``doctor`` says about views.  Spec: views 9, D13, D25, D27; docs/operations.md has one entry for each code."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

from holdfast.agent.observe.findings import error, note, warning
from holdfast.config import PRESETS

if TYPE_CHECKING:
    from holdfast.features.views.backend import Backend
    from holdfast.features.views.protocol.config import ViewsConfig
    from holdfast.features.views.protocol.survey import LinkLook, ViewSurvey
    from holdfast.features.views.settings import ViewsSettings
    from holdfast.local.calls import Finding

FLAPS = 3  # times in five minutes; a seat that was restarted once is no flapping link
HEARTBEAT_MOST = 5.0  # seconds; the setting accepts no longer one


def of_views(views: Backend, settings: ViewsSettings, name: str, *, serves: bool) -> Iterator[Finding]:
    """Of the machine that is used here. ``serves``: it is the server of a seat now, and not only the client of one."""
    survey, config = views.survey(), settings.views_config()
    if settings.zookeeper:
        granted = getattr(views, "session_granted", None)  # only a back end with sessions has it
        yield from of_session(settings.zk_session, granted, settings.zookeeper)
    else:
        yield from _slow_network(survey, config, name)
    if serves:
        for look in survey.links:
            yield from _link(look)
    if survey.changing_for is not None and survey.changing_for > config.change_warn:
        yield warning(
            "view_slow", name, f"A change of the view has been under way for {survey.changing_for:.0f} s.",
            "See `holdfast views` on the seats: a link that goes up and down, or members that come and go, keep it from ending.",
        )  # fmt: skip
    if survey.lost_for is not None and survey.lost_for > config.lease:
        why = f": {survey.lost_why}" if survey.lost_why else ""
        servers = "ZooKeeper servers" if settings.zookeeper else "seats"
        yield error(
            "view_lost", name, f"This agent takes part in views and has had none for {survey.lost_for:.0f} s{why}.",
            f"Start the {servers} that are down, or mend the way to one of them; leaders, tickets and the ring do not need a view.",
        )  # fmt: skip


def of_session(asked: float, granted: float | None, ensemble: str) -> Iterator[Finding]:
    """ZooKeeper decides how long a member that is gone stays in the view."""
    if granted is not None and granted > asked:
        yield warning(
            "zookeeper_session", ensemble,
            f"The ensemble grants sessions of {granted:g} s, and {asked:g} s were asked for: a dead member stays in the view for as long.",
            "Lower minSessionTimeout of the ensemble (it is two ticks unless it is set), or set zk_session to what it grants.",
        )  # fmt: skip


def _slow_network(survey: ViewSurvey, config: ViewsConfig, name: str) -> Iterator[Finding]:
    most = config.link_timeout / 2
    if survey.rtt_p99 is not None and survey.rtt_p99 > most:
        yield warning(
            "view_rtt", name,
            f"One in a hundred round trips of views takes {survey.rtt_p99:.2g} s or longer; a heartbeat of {config.heartbeat:g} s allows"
            f" {most:.2g} s.",
            _slower(survey.rtt_p99, config),
        )  # fmt: skip


def _slower(rtt: float, config: ViewsConfig) -> str:
    """The fastest preset that allows such round trips, and a heartbeat that allows twice as long ones."""
    allowed = config.link_timeout / 2 / config.heartbeat  # in heartbeats
    heartbeats = sorted((timing.view_heartbeat, preset) for preset, timing in PRESETS.items())
    fits = next((preset for heartbeat, preset in heartbeats if heartbeat * allowed > rtt), None)
    change = f"view_heartbeat = {min(HEARTBEAT_MOST, ceil(rtt / allowed * 2 * 100) / 100):g}"
    if fits is not None:
        change = f'preset = "{fits}", or {change},'
    return f"Set {change} on all agents: views need the same everywhere."


def _link(look: LinkLook) -> Iterator[Finding]:
    about = f"seat {look.slot} ({look.address})"
    if look.hole:
        yield warning(
            "view_hole", about, f"Heartbeats of views pass to this seat, and {look.why}: something between the two eats large messages.",
            "Let TCP pass on the same port as UDP between all agents, and look for an MTU that is too small on the way.",
        )  # fmt: skip
    if look.flaps >= FLAPS:
        yield warning(
            "view_links", about, f"The link with this seat went down {look.flaps} times in five minutes, the last time: {look.why}.",
            "Look at the load of both machines and at the network between them: each time views are agreed on anew.",
        )  # fmt: skip
    elif look.state != "up":
        since = "" if look.since is None else f" for {look.since:.0f} s"
        yield note(
            "view_links", about, f"There has been no link of views with this seat{since}{f': {look.why}' if look.why else ''}.",
            "Start that agent, or mend the way to it: its clients are in another view, or are served by other seats.",
        )  # fmt: skip
