"""What doctor says about views: each fault is planted, seen under its code, and not said without the fault.  docs/operations.md."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.config import Config
from holdfast.features.views import backend
from holdfast.features.views.agent import ViewFeature
from holdfast.features.views.calls import SurveyViews, ViewsReport, WatchViews
from holdfast.features.views.findings import FLAPS, of_views
from holdfast.features.views.protocol.links import NO_LINK_STATE, NO_MESSAGES
from holdfast.features.views.protocol.survey import LinkLook
from holdfast.features.views.running import ViewAgent
from holdfast.features.views.settings import ViewsSettings
from holdfast.host import Address, NodeId
from holdfast.local.calls import Finding
from tests.features.views.fake_ensemble import ASKED, Stand
from tests.features.views.fake_views import FakeClient, FakeTurns, FakeViews, parts

UP = LinkLook(1, Address("127.0.0.1", 7001), NodeId("s1", 4), "up", 400.0, 0)
DOWN = UP._replace(state="down", since=12.0, flaps=1, why="silent")


def found(views: FakeViews, *, serves: bool = True, **settings: Any) -> list[Finding]:
    return list(of_views(views, ViewsSettings.of(Config(**settings)), "a", serves=serves))


def codes(views: FakeViews, **how: Any) -> list[tuple[str, str]]:
    return [(each.code, each.severity) for each in found(views, **how)]


@pytest.fixture
def views() -> FakeViews:
    """Of a seat that is well."""
    views = FakeViews(own=0)
    views.links = (UP,)
    assert found(views) == []
    return views


@pytest.mark.parametrize(
    "preset, rtt, advice",
    [
        ("local", 0.3, 'preset = "lan", or view_heartbeat = 0.3,'),
        ("lan", 0.74, 'preset = "wan", or view_heartbeat = 0.74,'),
        ("wan", 2.5, "Set view_heartbeat = 2.5 on all agents"),
        ("wan", 30.0, "Set view_heartbeat = 5 on all agents"),
    ],
)
def test_a_slow_network(views: FakeViews, preset: str, rtt: float, advice: str) -> None:
    """Views D27: round trips above half of ``link_timeout``; the finding names the preset that allows them."""
    views.looks["rtt_p99"] = rtt
    (finding,) = found(views, preset=preset)
    assert (finding.code, finding.severity, finding.about) == ("view_rtt", "warning", "a")
    assert advice in finding.advice
    most = 2 * Config(preset=preset).view_heartbeat  # type: ignore[attr-defined]
    views.looks["rtt_p99"] = most
    assert codes(views, preset=preset) == []
    views.looks["rtt_p99"] = most + 0.001
    assert codes(views, preset=preset) == [("view_rtt", "warning")]


def test_a_link_that_is_down(views: FakeViews) -> None:
    """Views 9: a note, because the seat may be stopped on purpose; since when and why. Only a server speaks of links."""
    views.links = (UP, DOWN)
    (finding,) = found(views)
    assert (finding.code, finding.severity, finding.about) == ("view_links", "note", "seat 1 (127.0.0.1:7001)")
    assert "for 12 s: silent" in finding.text
    assert codes(views, serves=False) == []
    views.links = (DOWN._replace(since=None, flaps=0, why=""),)
    assert found(views)[0].text == "There has been no link of views with this seat."


def test_a_link_that_flaps(views: FakeViews) -> None:
    """Views 9: up now, and down several times lately; once or twice is a restart."""
    views.links = (UP._replace(flaps=FLAPS - 1, why="silent"),)
    assert codes(views) == []
    views.links = (UP._replace(flaps=FLAPS, why="silent"),)
    (finding,) = found(views)
    assert (finding.code, finding.severity) == ("view_links", "warning")
    assert f"{FLAPS} times in five minutes, the last time: silent" in finding.text


@pytest.mark.parametrize("why", [NO_LINK_STATE, NO_MESSAGES])
def test_a_hole(views: FakeViews, why: str) -> None:
    """Views D13, D25: heartbeats pass and large messages do not."""
    views.links = (UP._replace(flaps=1, why=why, hole=True),)
    (finding,) = found(views)
    assert (finding.code, finding.severity) == ("view_hole", "warning")
    assert why in finding.text
    assert "TCP" in finding.advice


def test_a_change_that_does_not_end(views: FakeViews) -> None:
    """Views 4 (``change_warn``): a change older than 20 heartbeats, 5 s at lan."""
    views.looks["changing_for"] = 4.9
    assert codes(views) == []
    views.looks["changing_for"] = 5.1
    assert codes(views) == [("view_slow", "warning")]
    assert codes(views, preset="wan") == []


def test_no_view(views: FakeViews) -> None:
    """Views 9: since when, and why. Not in the moments in which the first view of an agent is agreed."""
    views.looks.update(lost_for=1.4, lost_why="")
    assert codes(views) == []
    views.looks.update(lost_for=61.0, lost_why="no server of views answers")
    (finding,) = found(views)
    assert (finding.code, finding.severity, finding.about) == ("view_lost", "error", "a")
    assert "for 61 s: no server of views answers" in finding.text


def test_a_session_that_is_longer(views: FakeViews) -> None:
    """Views 5Z: the ensemble grants more than was asked for. Round trips of ZooKeeper are no matter of a preset."""
    how: dict[str, Any] = {"serves": False, "zookeeper": "zk1:2181,zk2:2181", "zk_session": 4.0}
    assert codes(views, **how) == []
    views.session_granted = None  # type: ignore[attr-defined]  # not connected yet
    assert codes(views, **how) == []
    views.session_granted = 4.0  # type: ignore[attr-defined]
    views.looks["rtt_p99"] = 9.0
    assert codes(views, **how) == []
    views.session_granted = 6.0  # type: ignore[attr-defined]
    (finding,) = found(views, **how)
    assert (finding.code, finding.severity, finding.about) == ("zookeeper_session", "warning", "zk1:2181,zk2:2181")
    assert "sessions of 6 s, and 4 s were asked for" in finding.text


def test_the_session_of_the_back_end() -> None:
    """Views 5Z: doctor reads what the machine of ZooKeeper really has."""
    (seat,) = Stand("a").seats
    given: dict[str, Any] = {"zookeeper": "zk1:2181", "zk_session": ASKED}
    settings = ViewsSettings.of(Config(**given))
    assert list(of_views(seat.views, settings, "a", serves=False)) == []
    seat.sessions.granted = 20.0
    assert [each.code for each in of_views(seat.views, settings, "a", serves=False)] == ["zookeeper_session"]


def test_only_of_a_machine_that_is_used(views: FakeViews, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views D1, D31: an agent without a part in views says nothing; neither does a server that retired, whatever it knew last."""
    monkeypatch.setattr(backend, "back_end", lambda *parts: views)
    host = FakeTurns()
    feature = ViewFeature().build(parts(host, own=0))
    assert isinstance(feature, ViewAgent)
    host.node.add(*feature.machines)
    views.links = (DOWN,)
    views.looks["changing_for"] = 1e6
    assert list(feature.findings()) == []
    handlers, client = feature.calls().in_turn, FakeClient()
    handlers[WatchViews](client, WatchViews(1))  # type: ignore[arg-type]
    assert {each.code for each in feature.findings()} == {"view_links", "view_slow"}
    client.streams[1].close()
    host.turn()
    views.idle_since = 0.0
    feature._retire()
    assert list(feature.findings()) == []
    assert feature._handlers is not None
    assert feature._handlers.report() == ViewsReport("seats", 0)
    assert SurveyViews in handlers
