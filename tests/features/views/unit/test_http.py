"""Views over HTTP: the answer of ``/v1/views``, what the page is sent, events, and every metric."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from holdfast.agent.membership import kind_of
from holdfast.agent.observe.http_app import every_route
from holdfast.agent.observe.http_views import LISTED_MAX, fields_of
from holdfast.agent.observe.metrics import render
from holdfast.agent.observe.openapi import document
from holdfast.config import Config
from holdfast.events import Event, ViewChanged
from holdfast.features.views import backend
from holdfast.features.views import protocol as protocol_folder
from holdfast.features.views.agent import ViewFeature
from holdfast.features.views.http import COUNTERS, GAUGES, HOPS, KNOWN, OVERLAY, RECEIVED, REFUSED, ViewsAnswer, ViewsHttp, of_views
from holdfast.features.views.missing import NoViews
from holdfast.features.views.protocol.facts import Carried, Delivered, LinkUp, Proposed, Received
from holdfast.features.views.protocol.survey import LinkLook
from holdfast.features.views.protocol.views import ViewNode
from holdfast.features.views.running import ViewAgent
from holdfast.host import Address, NodeId, ViewState
from tests.features.views.fake_ensemble import Stand
from tests.features.views.fake_views import SERVER, FakeTurns, FakeViews, parts, view
from tests.http.test_routes import complaints

PEER = NodeId("s1", 4)
LINK = LinkLook(1, Address("127.0.0.1", 7001), PEER, "quarantined", 4.0, 2, "a message did not pass")
SERVES_ONLY, TAKES_PART, BOTH = (False, True), (True, False), (True, True)
# Counts of the machine without a metric: the first is the sum of all that ``view_overlay_total`` has, the second comes with a pause.
WITHOUT_A_METRIC = {"carried", "hops_overslept"}


class Source(NoViews):
    """What HTTP looks at, by script."""

    def __init__(self, uses: tuple[bool, bool] = BOTH) -> None:
        super().__init__(parts(FakeTurns("a")))
        self.why = ""
        self.views: Any = FakeViews(own=0)
        self.takes_part, self.serves = uses
        self.slot: Any = 0
        self.now = 100.0

    @property
    def over_http(self) -> ViewsHttp:
        return ViewsHttp(SimpleNamespace(), self)


def checked(http: ViewsHttp) -> ViewsAnswer:
    """The answer; it is what the OpenAPI document says."""
    found = http.answer()
    described = document("VERSION", every_route(kind_of(Config())))
    assert complaints(json.loads(msgspec.json.encode(found)), {"$ref": "#/components/schemas/ViewsAnswer"}, described) == []
    return found


def test_a_seat_that_takes_part() -> None:
    """Views 10: the view with its members by their server, how long it is leased, until it is settled; links and graph."""
    source = Source()
    source.views.links = (LINK,)
    source.views.stand(view(5, "a", "b"), 101.25, ViewState.CHANGING)
    found = checked(source.over_http)
    assert (found.takes_part, found.state, found.id, found.number, found.size, found.fleet) == (True, "changing", "5/s0#1", 5, 2, 2)
    assert [(each.name, each.boot, each.server.name, each.me) for each in found.members] == [("a", 1, "s0", True), ("b", 1, "s0", False)]
    assert (found.leased_for, found.settles_in, found.installed_for, found.attached_to) == (1.25, 2.25, 1.5, found.servers[0])
    assert (found.slot, found.serves, found.proposed, found.clients, found.rtt_p99) == (0, True, 9, 2, 0.004)
    (link,) = found.links
    assert (link.slot, link.state, link.since, link.flaps, link.why) == (1, "quarantined", 4.0, 2, "a message did not pass")
    assert link.server is not None
    assert (link.server.name, found.graph[0].a, found.graph[0].b, found.graph[0].up) == ("s1", 0, 1, True)


def test_a_client_that_is_no_seat() -> None:
    """Views 10: what only a server knows is not there; a lease that is over is none."""
    source = Source(TAKES_PART)
    source.views.links = (LINK,)
    source.slot = None
    source.views.stand(view(5, "a"), 99.0)
    found = checked(source.over_http)
    assert (found.takes_part, found.serves, found.slot, found.links, found.graph, found.leased_for) == (True, False, None, (), (), None)


def test_a_view_that_is_lost() -> None:
    """Views 5.6: no view, since when, and why; without one it is settled at no time."""
    source = Source(TAKES_PART)
    source.views.looks = {"lost_for": 3.0, "lost_why": "no server answers", "server": None}
    found = checked(source.over_http)
    assert (found.state, found.id, found.number, found.members, found.settles_in) == ("lost", None, 0, (), None)
    assert (found.lost_for, found.lost_why, found.attached_to) == (3.0, "no server answers", None)


@pytest.mark.parametrize("why", ["", "seats: who are the seats?"])
def test_an_agent_without_a_part(why: str) -> None:
    """Views D31, 10: one that takes no part says so; one that cannot names the setting."""
    source = Source((False, False))
    source.views, source.why, source.slot = None, why, None
    http = source.over_http
    found = checked(http)
    assert (found.takes_part, found.serves, found.state, found.why) == (False, False, "lost", why)
    assert (http.beat(), list(http.metrics())) == ({}, [])


def test_a_server_that_retired_says_nothing_old() -> None:
    """Views D1: what its machine knew last, a link that was down or a change that did not end, is not told as if it were so now."""
    source = Source((False, False))
    source.views.links = (LINK._replace(state="down"),)
    source.views.looks["changing_for"] = 1e6
    source.views.counted = {"links_down": 1.0, "clients": 3.0, "proposals": 7.0}
    found = checked(source.over_http)
    assert (found.changing_for, found.links, found.clients, source.over_http.beat()) == (None, (), 0, {})
    text = render(source.over_http.metrics())
    assert "view_links_down" not in text
    assert "view_clients" not in text
    assert "holdfast_view_proposals_total 7" in text  # Counters never fall.
    source.serves = True
    assert "holdfast_view_links_down 1" in render(source.over_http.metrics())


def test_the_page_gets_members_once() -> None:
    """Views 9: the members are sent when the view is another one; four times a second there is only what moves."""
    source = Source()
    http = source.over_http
    (members,) = http.lists
    seen = [members.version()]
    source.views.stand(view(5, "a", "b"), 200.0)
    seen.append(members.version())
    assert b'"members":[{"name":"a"' in members.frame()
    assert (http.beat()["views"].members, http.beat()["views"].size, http.beat()["views"].number) == ((), 2, 5)
    assert len(members) == 2
    source.now = 101.0  # Time passes, the lease is renewed: the list is the same.
    source.views.stand(view(5, "a", "b"), 201.0)
    seen.append(members.version())
    source.views.stand(view(6, "a"), 201.0)
    seen.append(members.version())
    source.takes_part = source.serves = False
    seen.append(members.version())
    assert seen == [1, 2, 2, 3, 4]
    assert b'"takes_part":false' in members.frame()


def told(event: Event) -> dict[str, Any]:
    """The fields of an event over HTTP; the membership has no ids of its own."""
    return fields_of(event, SimpleNamespace(plain=lambda value: None))  # type: ignore[arg-type]


def test_events_do_not_tell_a_large_view_whole() -> None:
    """F17: the buffer of /events keeps 1024 events; each names a view and a bounded number of those who came and went."""
    names = [f"m{number:04}" for number in range(2000)]
    whole = view(7, *names)
    lives = tuple(member.id for member in whole.members)
    fields = told(ViewChanged(whole, lives, lives[:3]))
    assert fields["view"] == {"id": "7/s0#1", "number": 7, "size": 2000, "fleet": 2000, "servers": [{"name": "s0", "boot": 1}]}
    assert (len(fields["added"]), fields["added_count"]) == (LISTED_MAX, 2000)
    assert (fields["removed"][0], fields["removed_count"]) == ({"name": "m0000", "boot": 1}, 3)
    assert len(msgspec.json.encode(fields)) < 16 * 1024
    assert told(Delivered(whole, fast=True, took=0.004))["view"]["size"] == 2000
    assert told(Proposed(7, b"\x01\xff", (SERVER,)))["key"] == "01ff"


def test_frequent_facts_are_not_buffered() -> None:
    """docs/http.md: a client may send 200 messages a second through the overlay, so they are counted and not kept as events."""
    silent, served = (ViewFeature().build(parts(FakeTurns(), http=http)) for http in ("", "127.0.0.1:0"))
    assert isinstance(silent, ViewAgent)
    assert (silent.frequent, served.frequent) == ((), (Carried, Received))
    assert not isinstance(LinkUp(PEER), served.frequent)


def counts_in_source() -> set[str]:
    """The names under which the protocol counts."""
    folder = Path(str(protocol_folder.__file__)).parent
    text = "".join(path.read_text() for path in sorted(folder.glob("*.py")))
    found = set(re.findall(r'_?counts\["(\w+)"\]', text))
    assert len(found) > 8
    return found


def test_every_number_has_a_metric() -> None:
    """Views 9: what the machine counts is exposed, and what is exposed is counted."""
    given = parts(FakeTurns(), own=0)
    node = backend.back_end(given.host, "g", ViewFeature().build(given).settings, given.slots)  # type: ignore[attr-defined]
    assert isinstance(node, ViewNode)
    node.take_part()
    kept = {name for name in node.metrics() if not name.startswith((OVERLAY, HOPS, "changes_"))} | {"lease_margin_min"}
    assert kept == {*GAUGES, *COUNTERS} - {"tripped", "hops_failed", "views_total", RECEIVED}
    assert {f"changes_{path}" for path in KNOWN} <= node.metrics().keys()
    assert counts_in_source() - WITHOUT_A_METRIC == {*REFUSED, "tripped", "hops_failed"}


def test_metrics_of_the_overlay() -> None:
    """Views 9: what became of messages and how many hops they took, with labels; types as Prometheus wants them."""
    source = Source()
    source.views.stand(view(5, "a", "b"), 101.25)
    source.views.counted = {
        "number": 5.0, "carried_delivered": 7.0, "carried_tripped": 1.0, "overlay_hops_3": 6.0, "changes_fast": 4.0, "changes_slow": 1.0,
        "late": 2.0, "seconds_lost": 0.5,
    }  # fmt: skip
    lines = render(source.over_http.metrics()).splitlines()
    assert {
        "holdfast_view_takes_part 1", "holdfast_view_serves 1", "holdfast_view_number 5", "holdfast_view_members 2",
        'holdfast_view_overlay_total{what="delivered"} 7', 'holdfast_view_overlay_total{what="tripped"} 1',
        'holdfast_view_overlay_hops_total{hops="3"} 6', 'holdfast_view_changes_total{path="fast"} 4',
        'holdfast_view_refused_total{reason="late"} 2', "holdfast_view_lost_seconds_total 0.5",
    } <= set(lines)  # fmt: skip
    kinds = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE"))
    assert {name for name, kind in kinds.items() if kind == "counter"} == {name for name in kinds if name.endswith("_total")}


def test_metrics_of_zookeeper() -> None:
    """Views 5Z, 9: every number of the other back end is exposed, too."""
    (seat,) = Stand("a").seats
    seat.sessions.granted = 20.0
    found = seat.views.metrics() | {"lease_margin_min": 0.5, "carried_received": 3.0}
    text = render(of_views(found, takes_part=True, serves=False))
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert len(samples) == len(found) + 2  # and whether it takes part and serves
    assert {
        f"holdfast_view_number {int(found['number'])}", "holdfast_view_installed_total 1", "holdfast_view_overlay_received_total 3",
        "holdfast_view_zookeeper_connected 1", "holdfast_view_zookeeper_session_seconds 20",
        'holdfast_view_zookeeper_total{what="older_lists"} 0',
    } <= set(samples)  # fmt: skip
