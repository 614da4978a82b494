"""Seats tell the truth: after a kill and with a full disk, each agent says so.  Spec: foundation F12, F13; H189."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.looking_on import typed
from tests.features.leadership.process.fleet import SEATS, Leads
from tests.support.agents import AgentProcess, until

KILLED = 2


def answer(agent: AgentProcess, *words: str) -> dict[str, Any]:
    return dict(typed(*words, "--json", agent=agent, code=None).json)


def states(agent: AgentProcess) -> list[str]:
    return [seat["state"] for seat in answer(agent, "seats")["seats"]]


def codes(agent: AgentProcess) -> set[str]:
    return {finding["code"] for finding in answer(agent, "doctor")["findings"]}


def test_a_killed_seat_is_silent_at_once(tmp_path: Path) -> None:
    """H189: ``seats`` asks, so a seat that was killed a moment ago does not answer; ``doctor`` of its neighbours says what is left."""
    with Leads(tmp_path) as leads:
        first = leads.seats[0]
        until(lambda: states(first) == ["serving"] * SEATS, "all seats serve")
        assert answer(first, "seats")["voting"] == SEATS
        leads.seats[KILLED].kill()
        shown = answer(first, "seats")
        assert [seat["state"] for seat in shown["seats"]] == ["serving", "serving", "silent"]
        assert shown["seats"][KILLED]["heard_ago"] >= 0.0
        assert (shown["voting"], shown["needed"]) == (2, 2)
        said = typed("seats", agent=first)
        assert "silent, last heard" in said.out
        assert said.err == "holdfast: seats: 2 of 3 vote: one fewer, and nothing is granted\n"
        assert {"seat_gone", "few_seats"} <= codes(first)
