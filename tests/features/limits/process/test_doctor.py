"""Doctor of real agents that use limits: what programs ask for in vain, and an agent that loses its view.

Spec: limits 5.7, 5.10, 5.11, D3. What needs a network of its own is planted in the lab (``sim/test_doctor.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast.sync
from holdfast.features.limits.calls import LimitsReport, SurveyLimits
from holdfast.local.calls import Doctor, Finding
from tests.agent.raw_client import RawClient
from tests.support.agents import AgentProcess, Fleet, until

TIMEOUT = 0.5  # seconds of one examination


def found(agent: AgentProcess) -> dict[str, Finding]:
    """What doctor says about limits, by code and what it is about."""
    with RawClient(agent.socket) as client:
        findings: tuple[Finding, ...] = client.ask(Doctor, TIMEOUT)
    return {f"{each.code} {each.about}": each for each in findings if each.code.startswith("limit_") and not each.seen_ago}


def rate_at(agent: AgentProcess, name: str) -> float | None:
    with RawClient(agent.socket) as client:
        report: LimitsReport = client.ask(SurveyLimits)
    return next((line.terms.rate for line in report.lines if line.name == name), None)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path) as fleet:
        yield fleet


def test_programs_that_name_two_rates(fleet: Fleet) -> None:
    """Limits 5.10, 5.11, D3 on two agents without seats: over a member list (a note); the agent of the program that came later names both
    rates and who set the one that counts, until it is the one that was asked for; there are two members, and the limit is for one."""
    first = fleet.start(name="a")
    second = fleet.start(name="b", seeds=[first.address.replace("127.0.0.1", "localhost")])  # A name says nothing of who the seats are.
    with holdfast.sync.join(agent=first.socket) as one, holdfast.sync.join(agent=second.socket) as other:
        one.limit("api", rate=100, fleet=1)
        until(lambda: set(found(first)) == {"limit_members a"}, "only the member list is told of")
        assert found(second) == {}
        until(lambda: rate_at(second, "api") == 100.0, "b knows the limit")
        late = other.limit("api", rate=300, fleet=2)
        everything = {"limit_conflict limit api", "limit_fleet limit api", "limit_members b"}
        until(lambda: set(found(second)) == everything, "b says what is wrong")
        until(lambda: set(found(first)) == {"limit_fleet limit api", "limit_members a"}, "a does, too")
        told = found(second)
        assert [told[each].severity for each in sorted(everything)] == ["warning", "warning", "note"]
        assert "100, set by a, counts; 300 does not" in told["limit_conflict limit api"].text
        assert "There are 2 members, and the limit is divided for 1" in told["limit_fleet limit api"].text
        assert second.said("SpecConflict", name="api", by="a") is not None
        late.set_rate(200)
        until(
            lambda: "200, set by b, counts; 300 does not" in found(second)["limit_conflict limit api"].text, "another rate is none of both"
        )
        late.set_rate(300)
        late.set_fleet(2)
        until(lambda: set(found(second)) == {"limit_members b"}, "the conflict is settled")
        one.limit("both", rate=100)
        other.limit("both", rate=300)
        until(lambda: "limit_conflict limit both" in {**found(first), **found(second)}, "of two that begin at once")


def test_an_agent_that_loses_its_view(fleet: Fleet) -> None:
    """Limits 5.7: the only seat is killed, so the other agent has no view: it says since when, and what 1/n of the rate is; its program
    goes on with that."""
    seat = fleet.start(name="s")
    fleet.settings["seeds"] = [seat.address]
    seat.stop()
    seat = fleet.start(name="s", bind=seat.address)
    other = fleet.start(name="x")
    with holdfast.sync.join(agent=other.socket) as group, group.limit("api", rate=100, fleet=4) as limit:
        limit.ready(30)
        assert found(other) == {}
        seat.kill()
        until(lambda: "limit_panic x" in found(other), "no view")
        panic = found(other)["limit_panic x"]
        assert panic.severity == "error"
        assert re.match(r"For \d+ s this agent is in no view: .* of api that is 25 per second\.$", panic.text), panic.text
        until(lambda: limit.share == pytest.approx(25.0), "1/n")
        assert limit.state == "panic"
