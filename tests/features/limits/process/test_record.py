"""The reader of permits finds what it is for: too many in an interval, and programs that get too little.  Spec: limits 1; issue 16."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.features.limits.process.record import (
    GLANCE,
    SECOND,
    STEP,
    Bound,
    Record,
    Records,
    State,
    behind,
    merged,
    peak,
    peaks,
    rate,
    too_low,
    whole_since,
    wrongs,
)

BOUND = Bound(rate=100.0, burst=5.0, workers=2)
HOUR = 3600 * SECOND  # where the records begin: instants are large numbers


def paced(per_second: float, seconds: float, start: float = 0.0) -> list[int]:
    return [HOUR + round((start + number / per_second) * SECOND) for number in range(round(per_second * seconds))]


def record(permits: list[int], member: str = "a") -> Record:
    return Record({"member": member, "want": 50.0, "at": HOUR}, permits, [])


def test_a_fleet_within_its_limit_is_in_order() -> None:
    """Limits 1: two programs with half of the rate each, and the burst at once in between, are at the bound and not above it."""
    burst = [HOUR + 3 * SECOND] * 5
    assert wrongs([record(paced(50, 20)), record(sorted(paced(50, 20, 0.003) + burst))], BOUND) == []


@pytest.mark.parametrize(
    "more, windows",
    [
        (paced(1, 12), ["10 s"]),  # one per cent too much is hidden by the burst in a second
        (paced(30, 1), ["1 s", "10 s"]),
        ([HOUR + SECOND] * 8, ["0.1 s", "1 s", "10 s"]),
    ],
)
def test_what_is_too_much_is_found(more: list[int], windows: list[str]) -> None:
    """Limits 1: above R * T + B + m in an interval of any of the three lengths, wherever it begins."""
    found = wrongs([record(paced(50, 20)), record(paced(50, 20, 0.003)), record(sorted(more))], BOUND)
    assert [each.partition(" from ")[0].partition(" in ")[2] for each in found] == windows


def test_an_interval_has_both_of_its_ends() -> None:
    """Limits 1: *any* interval: what goes at its first and at its last moment counts."""
    permits = [0, SECOND // 10, SECOND // 10 + 1]
    assert peak(permits, 0.1)[:2] == (2, 0)
    assert peak([], 0.1).most == 0
    assert peak(permits, 10.0).most == 3


def test_only_what_came_later_is_looked_at() -> None:
    """A fault is judged by what went from it on; a peak is told as a part of what the rate alone lets go in its length."""
    permits = [record([HOUR] * 9 + [HOUR + SECOND])]
    assert [found.most for found in peaks(permits, since=HOUR + 1)] == [1, 1, 1]
    assert peaks(permits)[0].excess(100.0) == pytest.approx(9 / 10)
    assert merged([record([3, 5]), record([4])]) == [3, 4, 5]
    assert rate([0, 1, SECOND], 0, SECOND) == 2.0


@pytest.mark.parametrize("gap", [0.0, 0.5, 2.0, 3.0])
def test_a_program_that_gets_nothing_is_found(gap: float) -> None:
    """Issue 16: below what it is to get for longer than 2 s. A gap is seen for its own length and up to a glance more, and it was behind by
    as much."""
    permits = paced(50, 5) + paced(50, 5, start=5 + gap)
    seconds, at = too_low(permits, 50.0, HOUR, permits[-1])
    assert max(0.0, gap - STEP) <= seconds <= (gap + GLANCE if gap else 0.0)
    assert not gap or abs(at - (HOUR + 5 * SECOND)) <= GLANCE * SECOND
    assert behind(permits, 50.0, HOUR, permits[-1]) == pytest.approx(gap, abs=0.05)


def test_a_program_that_gets_little_for_long_is_found() -> None:
    """Issue 16: half of what it is to get is below it for all the time, and it is behind by half of it."""
    permits = paced(50, 5) + paced(25, 8, start=5) + paced(50, 5, start=13)
    assert too_low(permits, 50.0, HOUR, permits[-1])[0] == pytest.approx(8.0, abs=GLANCE)
    assert behind(permits, 50.0, HOUR, permits[-1]) == pytest.approx(4.0, abs=0.1)
    assert too_low(permits, 25.0, HOUR, permits[-1])[0] == 0.0


def test_the_end_of_a_program_is_no_end_of_what_it_is_to_get() -> None:
    """A record that stops is too low until the end of the time that is looked at."""
    assert too_low(paced(50, 5), 50.0, HOUR, HOUR + 9 * SECOND)[0] == pytest.approx(4.0, abs=GLANCE)
    assert too_low([], 50.0, HOUR, HOUR + 2 * SECOND)[0] == pytest.approx(2.0, abs=GLANCE)
    assert behind([], 50.0, HOUR, HOUR + 2 * SECOND) == 2.0


def test_the_end_of_the_last_gap_is_found() -> None:
    """From then on every second has what is asked for; without a gap that is the begin of the time that is looked at."""
    permits = paced(50, 5) + paced(50, 5, start=6) + paced(50, 5, start=13)
    assert whole_since(permits, 45.0, HOUR, permits[-1]) - HOUR == pytest.approx(13.9 * SECOND, abs=0.2 * SECOND)
    assert whole_since(permits, 45.0, HOUR + 14 * SECOND, permits[-1]) == HOUR + 14 * SECOND


def test_records_are_read(tmp_path: Path) -> None:
    """What a worker writes is read back, each line once and only when it is whole."""
    path, records = tmp_path / "record", Records()
    assert records.read(path) is None
    head = json.dumps({"member": "a", "want": 50.0, "at": 7})
    path.write_text(f"{head}\n10\n11 stable 2.5 3\n1")
    found = records.read(path)
    assert found == Record({"member": "a", "want": 50.0, "at": 7}, [10], [State(11, "stable", 2.5, 3)])
    assert found is not None
    assert (found.member, found.want, found.began_at) == ("a", 50.0, 7)
    path.write_text(f"{head}\n10\n11 stable 2.5 3\n12\n")
    found = records.read(path)
    assert found is not None
    assert found.permits == [10, 12]
