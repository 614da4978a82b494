"""Doctor and HTTP of real agents that use views: three seats and another agent, and what is said when seats are killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast.sync
from holdfast.local.calls import Doctor, Finding
from tests.agent.raw_client import RawClient
from tests.features.views.process.test_processes import Views, free_ports, together
from tests.http.test_metrics import parsed
from tests.http.wire import ask
from tests.support.agents import AgentProcess, Fleet, until

OF_VIEWS = ("view_", "zookeeper_")
TIMEOUT = 0.5  # seconds of one examination


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path, preset="lan", http="127.0.0.1:0") as fleet:
        yield fleet


def found(agent: AgentProcess) -> dict[str, Finding]:
    """What doctor says about views, by code."""
    with RawClient(agent.socket) as client:
        findings: tuple[Finding, ...] = client.ask(Doctor, TIMEOUT)
    return {each.code: each for each in findings if each.code.startswith(OF_VIEWS)}


def shown(agent: AgentProcess) -> dict[str, Any]:
    answer = ask(str(agent.ready["http"]), "/v1/views")
    assert answer.status == 200
    return dict(answer.json)


def edges(agent: AgentProcess) -> list[tuple[int, int, bool]]:
    return [(edge["a"], edge["b"], edge["up"]) for edge in shown(agent)["graph"]]


def metrics(agent: AgentProcess) -> dict[str, float]:
    return parsed(ask(str(agent.ready["http"]), "/metrics").body.decode())[1]


def test_seats_that_are_killed(fleet: Fleet) -> None:
    """Views 9: nothing is found while all is well; then a link that is down, named by the seats that are left; then no view.
    /v1/views and the metrics say the same."""
    all_of = Views(fleet, "x")
    first, second, third = all_of.seats
    (other,) = all_of.others
    assert not any(name.startswith("holdfast_view_") for name in metrics(other))
    assert (shown(other)["takes_part"], shown(first)["serves"], shown(first)["slot"]) == (False, False, 0)
    views = [all_of.groups[name].views() for name in ("s0", "x")]
    together(views)
    until(lambda: [link["state"] for link in shown(first)["links"]] == ["up", "up"], "both links are up")
    until(lambda: edges(first) == [(0, 1, True), (0, 2, True), (1, 2, True)], "the link states of all seats are here, too")
    assert {member["name"]: member["me"] for member in shown(other)["members"]} == {"s0": False, "x": True}
    assert (shown(other)["slot"], shown(other)["links"], shown(other)["state"]) == (None, [], "stable")
    until(lambda: found(first) == {} and found(other) == {}, "doctor is content")
    third.kill()
    until(lambda: "view_links" in found(first), "the link that is down")
    link = found(first)["view_links"]
    assert (link.severity, link.about, "silent" in link.text) == ("note", f"seat 2 ({third.address})", True)
    assert "view_lost" not in found(other)
    assert [each["state"] for each in shown(first)["links"]] == ["up", "down"]
    assert metrics(first)["holdfast_view_links_down"] == 1
    assert metrics(other)["holdfast_view_members"] == 2
    for seat in (first, second):
        seat.kill()
    until(lambda: "view_lost" in found(other), "no view")
    lost = found(other)["view_lost"]
    assert (lost.severity, lost.about) == ("error", "x")
    assert shown(other)["state"] == "lost"
    assert shown(other)["lost_why"] in lost.text
    assert (metrics(other)["holdfast_view_takes_part"], metrics(other)["holdfast_view_number"]) == (1, 0)
    assert metrics(other)["holdfast_view_lost_seconds_total"] > 1.0


def test_an_ensemble_that_does_not_answer(fleet: Fleet) -> None:
    """Views 5Z: with the view from ZooKeeper as the member list, doctor looks for an ensemble and not for seats."""
    pytest.importorskip("kazoo", reason="kazoo is an extra: zookeeper")
    agent = fleet.start(membership="views", zookeeper="127.0.0.1:1")
    with RawClient(agent.socket) as client:
        findings: tuple[Finding, ...] = client.ask(Doctor, TIMEOUT)
    (advice,) = [each.advice for each in findings if each.code == "not_a_member"]
    assert "Start the ensemble" in advice


def test_another_heartbeat(fleet: Fleet) -> None:
    """Foundation F4, views 4: the agent that asks and the seat that is asked count with other numbers, so the one has no view, and both
    logs name the setting and both values. They are members of one ring all the time."""
    (port,) = free_ports(1)
    seat = fleet.start(name="s", bind=f"127.0.0.1:{port}", seeds=[f"127.0.0.1:{port}"])
    other = fleet.start(name="x", view_heartbeat=0.5, seeds=[seat.address])
    seat.until_said("Joined", member=other.id)
    with holdfast.sync.join(agent=other.socket) as group, group.views() as views:
        lines = [agent.until_said("ConfigMismatch", field="view_heartbeat") for agent in (seat, other)]
        assert [(line["peer"], line["ours"], line["theirs"]) for line in lines] == [(other.id, "0.25", "0.5"), (seat.id, "0.5", "0.25")]
        assert views.view is None
        assert group.members.names == ("s", "x")
