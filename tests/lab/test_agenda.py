"""What happens next is what is due first, and among equals what was asked for first."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.lab.agenda import Agenda

# Times on a coarse grid meet each other; fine ones share a day with others; far ones skip many days.
TIMES = st.one_of(st.integers(0, 8).map(lambda n: n / 4), st.floats(0, 0.01), st.floats(0, 1e6))


def drain(agenda: Agenda, until: float = inf) -> list[int]:
    served = []
    while agenda.next_due() <= until and agenda.today:
        served.append(agenda.today[0][2])
        agenda.forget(1)
    return served


@given(st.lists(TIMES))
def test_serves_like_a_sorted_list(times: list[float]) -> None:
    """Determinism: order by due time, first pushed first served among equals."""
    agenda = Agenda()
    for number, due in enumerate(times):
        agenda.push((due, None, number))
    assert sorted(entry[0] for entry in agenda.entries()) == sorted(times)
    assert drain(agenda) == sorted(range(len(times)), key=lambda number: times[number])


@given(st.lists(st.tuples(TIMES, st.booleans()), max_size=60))
def test_pushing_while_serving_keeps_the_order(steps: list[tuple[float, bool]]) -> None:
    """Determinism: whatever is pushed later, but not into the past, comes in its place."""
    agenda, model = Agenda(), []
    now, served, expected = 0.0, [], []
    for number, (delay, serve) in enumerate(steps):
        agenda.push((now + delay, None, number))
        model.append((now + delay, number))
        if serve:
            due = agenda.next_due()
            served.append(agenda.today[0][2])
            agenda.forget(1)
            model.sort()
            expected.append(model.pop(0)[1])
            now = due
    assert served + drain(agenda) == expected + [number for _, number in sorted(model)]


@given(st.lists(TIMES), TIMES)
def test_counts_what_is_due(times: list[float], until: float) -> None:
    """The bare loop forgets exactly what it served."""
    agenda = Agenda()
    for number, due in enumerate(times):
        agenda.push((due, None, number))
    first = agenda.next_due()
    today = [entry[0] for entry in agenda.today]
    assert agenda.served(until) == sum(due <= until for due in today)
    assert first == min(times, default=inf)


@pytest.mark.parametrize("rate, direction", [(20.0, "longer"), (500_000.0, "shorter")])
def test_days_fit_the_traffic_and_keep_the_order(rate: float, direction: str) -> None:
    """Days become longer in small groups and shorter in large ones; what is served, and in which order, stays."""
    random, agenda = Random(f"agenda {rate}"), Agenda()
    heap: list[tuple[float, int]] = []
    served: list[int] = []
    expected: list[int] = []
    number, now = 0, 0.0
    scale = agenda._scale
    for _ in range(60_000):
        for _ in range(1 if heap and len(heap) >= 500 else 2):
            due = round(now + random.expovariate(rate / 500), 9)
            agenda.push((due, None, number))
            heappush(heap, (due, number))
            number += 1
        assert agenda.next_due() == heap[0][0]
        now = agenda.today[0][0]
        served.append(agenda.today[0][2])
        agenda.forget(1)
        expected.append(heappop(heap)[1])
    assert served == expected
    assert agenda._scale < scale if direction == "longer" else agenda._scale > scale
