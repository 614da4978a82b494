"""``holdfast views``: the view of this agent, as it is or as it changes, and giving it up by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any

from holdfast.cli.agent_call import asked, streamed
from holdfast.cli.exits import FOUND, OK
from holdfast.cli.options import AGENT, COUNT, FOR, GROUP, checked_limits
from holdfast.cli.parser import Flag, Word
from holdfast.cli.shapes import plain, timed
from holdfast.cli.show import print_json, print_json_line, print_pairs, print_table, say
from holdfast.errors import ConfigError
from holdfast.events import Changing, Event, EventsLost, ViewChanged, ViewLost, ViewRestored, ViewTripped
from holdfast.features.views.calls import SeatOfViews, SurveyViews, TripView, ViewsReport, WatchViews
from holdfast.features.views.client_base import ViewMirror, advanced, checked_reason
from holdfast.features.views.shapes import view_json
from holdfast.host import View, ViewState


def show(
    *,
    watch: Annotated[bool, Flag("--watch", help="Take part, and print what happens to the view.")] = False,
    count: Annotated[int, COUNT] = 0,
    seconds: Annotated[float, FOR] = 0.0,
    as_json: Annotated[bool, Flag("--json", help="Print one JSON object on stdout; with --watch one per line.")] = False,
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> int:
    """The view of this agent: its members by their server, and the servers with their links.

    Exit code 1 if there is none: no client of this agent asked for views, or the view is lost. 2 and the missing setting if the group has
    no view servers. Looking does not make the agent take part; --watch does, as long as it runs."""
    if watch:
        for event, mirror in _events(agent, group, count, seconds):
            _print_event(event, mirror, as_json=as_json)
        return OK
    if count or seconds:
        raise ConfigError("--count, --for: accepted together with --watch")
    report: ViewsReport = asked(agent, group, SurveyViews)
    view = None if report.view is None else advanced(None, report.view)
    if as_json:
        print_json(_json(report, view))
    else:
        _print(report, view)
    return FOUND if view is None else OK


def trip(
    *,
    reason: Annotated[str, Word(help="Why, for the events of this agent and its log.", metavar="REASON")],
    agent: Annotated[str, AGENT] = "",
    group: Annotated[str, GROUP] = "",
) -> None:
    """Believe the present view no more, and force another one. For a member of the view that this agent does not reach. Exit code 3 if
    no client of this agent asked for views, or it was done too lately."""
    asked(agent, group, TripView, checked_reason(reason))


def _events(agent: str, group: str, count: int, seconds: float) -> Iterator[tuple[Event, ViewMirror]]:
    """Each with how the agent stands by then. The stream has other items as well, so they are counted here."""
    checked_limits(count, seconds)
    mirror, seen = ViewMirror(), 0
    for item in streamed(agent, group, 0, seconds, WatchViews):
        for event in mirror.follow(item):
            yield event, mirror
            seen += 1
            if seen == count:
                return


def _print_event(event: Event, mirror: ViewMirror, *, as_json: bool) -> None:
    at, name = time.time(), type(event).__name__
    if as_json:
        fields = {field: plain(getattr(event, field)) for field in event.__struct_fields__}
        print_json_line({"at": at, "event": name, **fields, "state": mirror.standing.word, "settled": mirror.standing.settled})
    else:
        print(timed(at, name, _text(event)), flush=True)


def _text(event: Event) -> str:
    match event:
        case ViewChanged():
            came, went = (", ".join(map(str, lives)) for lives in (event.added, event.removed))
            return f"{_named(event.view)}{f'; new: {came}' if came else ''}{f'; gone: {went}' if went else ''}"
        case ViewRestored():
            return f"{_named(event.view)} holds again"
        case Changing():
            return f"another view than {event.number} will come" if event.number else "another view will come"
        case ViewLost():
            return event.why
        case ViewTripped():
            return f"{event.why}{'' if event.peer is None else f' ({event.peer})'}"
        case EventsLost():
            return f"{event.count} events were not read in time"
    return ""


def _named(view: View) -> str:
    return f"view {view.id} of {view.size}"


def _print(report: ViewsReport, view: View | None) -> None:
    print_pairs(_pairs(report, view))
    if view is not None:
        rows = sorted((str(each.server), str(each.id), str(each.address), str(each.attach)) for each in view.members)
        print_table(("SERVER", "MEMBER", "ADDRESS", "ATTACHED"), rows)
    if report.seats:
        print_table(("SEAT", "ADDRESS", "WHO", "LINK", "SINCE", "DOWN", "WHY"), [_seat(each) for each in report.seats])
    if not report.takes_part:
        say("views: no client of this agent asked for views: `group.views()` does, and `holdfast views --watch`")


def _pairs(report: ViewsReport, view: View | None) -> dict[str, str]:
    pairs = {"view": "none" if view is None else f"{view.id}, {view.size} members"}
    pairs["state"] = _state(report)
    if view is not None and report.installed_ago is not None:
        pairs["installed"] = f"{report.installed_ago:.1f} s ago"
    if report.server is not None:
        pairs["server"] = f"{report.server}, attachment {report.attach}"
    if report.slot is not None:
        pairs["seat"] = f"{report.slot}, {_serving(report)}"
    if report.rtt_p99 is not None:
        pairs["round trip"] = f"{report.rtt_p99 * 1000:.1f} ms at most, 99 of 100"
    return pairs


def _state(report: ViewsReport) -> str:
    if not report.takes_part:
        return "takes no part"
    words = [ViewState(report.state).name.lower()]
    if report.state == ViewState.LOST:
        since = "" if report.lost_for is None else f" for {report.lost_for:.1f} s"
        return f"lost{since}{f': {report.lost_why}' if report.lost_why else ''}"
    if report.changing_for is not None:
        words.append(f"a change is under way for {report.changing_for:.1f} s")
    words.append(f"leased for another {report.leased_for:.1f} s")
    if report.settled:
        words.append("settled")
    elif report.settles_in is not None:
        words.append(f"settled in {report.settles_in:.1f} s" if report.settles_in > 0 else "not settled")
    return ", ".join(words)


def _serving(report: ViewsReport) -> str:
    if report.back_end == "zookeeper":
        return "views come from ZooKeeper"
    if not report.serves:
        return "serves no views now: no client in the group asked for them"
    refused = f", {report.quarantined} in quarantine" if report.quarantined else ""
    return f"serves views: {report.clients} clients are attached{refused}, its last number is {report.number}"


def _seat(seat: SeatOfViews) -> tuple[str, ...]:
    since = "" if seat.since is None else f"{seat.since:.1f} s"
    return str(seat.slot), seat.address, "" if seat.life is None else str(seat.life), seat.link, since, f"{seat.flaps} times", seat.why


def _json(report: ViewsReport, view: View | None) -> dict[str, Any]:
    fields = {name: plain(getattr(report, name)) for name in report.__struct_fields__}
    seats = [{name: plain(getattr(seat, name)) for name in seat.__struct_fields__} for seat in report.seats]
    links = [{"between": [a, b], "up": up} for a, b, up in report.graph]
    state = ViewState(report.state).name.lower()
    return fields | {"state": state, "view": None if view is None else view_json(view), "seats": seats, "graph": links}
