"""`tickets-load` without its processes: what its numbers mean.  Short, with real agents: tests/features/tickets."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import tickets_load
from benchmarks.ring_fleet import NeverHappened
from benchmarks.tickets_load import GOALS, QUICK, SIZE, ratios, shared

GOOD: dict[str, Any] = {"lost": 0, "not_granted": 0, "handovers_per_second": 40.0, "agent_cpu": 0.1}


def test_sizes_are_those_that_are_promised() -> None:
    """docs/tickets.md ("How many"): 100, 300 and 1000 tickets, 200 clients."""
    assert (SIZE.tickets, SIZE.clients) == ((100, 300, 1000), 200)


def test_clients_and_tickets_are_shared_evenly() -> None:
    """Whatever their number."""
    assert shared(200) == [67, 67, 66]
    assert [sum(shared(count)) for count in (1, 2, 100, 1000)] == [1, 2, 100, 1000]


@pytest.mark.parametrize(
    "one, missed",
    [
        ({}, []),
        ({"lost": 1}, ["lost"]),
        ({"not_granted": 2}, ["not_granted"]),
        ({"handovers_per_second": 9.0}, ["least_handovers_per_second"]),
        ({"agent_cpu": 0.6}, ["most_agent_cpu"]),
    ],
)
def test_the_worst_size_counts(one: dict[str, Any], missed: list[str]) -> None:
    """A loss at any size is a loss."""
    found = ratios([GOOD, {**GOOD, **one}])
    assert [name for name, goal in GOALS.items() if not goal.met_by(found[name])] == missed


def test_what_was_not_seen_to_its_end_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says why."""

    def broken(*_: Any) -> dict[str, Any]:
        raise NeverHappened("an agent ended")

    monkeypatch.setattr(tickets_load, "load_apart", broken)
    report = tickets_load.run(1, QUICK)
    assert report.exit_code == 1
    assert report.problems == ["30 tickets: an agent ended"]
