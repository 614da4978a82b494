"""Limits beside a ring: six real agents whose ring is cut to pieces or loses members, with seats and without.

Spec: limits 1, 5.6, 5.7, 5.11, RL9; views D31; foundation F15. What went is read from the records of the programs alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from holdfast.net.clock import now, now_ns
from tests.features.limits.process import faults
from tests.features.limits.process.faults import Case, check
from tests.features.limits.process.fleet import SEATS, LimitFleet, LimitTerms
from tests.features.limits.process.record import SECOND, peaks
from tests.support.netns import Namespaces, unavailable

pytestmark = [pytest.mark.netns, pytest.mark.nightly, pytest.mark.timeout(400)]

RATE, BURST = 600.0, 60.0
NAMES = (*SEATS, "x", "y", "z")
WANTS = {**dict.fromkeys(NAMES, RATE / 20), "x": RATE}  # All of the limit is used only where x can have what the others leave.
RING_PATIENCE = 100.0  # seconds: leases of the ring, within which all are back in one (ring E12)
SETTLES = 5.0  # seconds beside ``settle``, from the heal on: detection, one view, the trade of quota
STEADY = 4.0  # seconds in which the parts are looked at
HALVES = (("s0", "s1", "x"), ("s2", "y", "z"))
MOST = (("s0", "s1", "x", "y"), ("s2", "z"))
THIRDS = (("s0", "x"), ("s1", "y"), ("s2", "z"))


def fleet_of(tmp_path_factory: pytest.TempPathFactory, policy: str, *, seats: bool = True) -> Iterator[LimitFleet]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    terms = LimitTerms(policy, RATE, BURST, len(NAMES))
    with Namespaces(len(NAMES)) as net, LimitFleet(tmp_path_factory.mktemp(policy), net, terms, WANTS, seats=seats) as fleet:
        fleet.until(fleet.one_view, "one view")
        yield fleet


@pytest.fixture(scope="module", params=["exact", "fair"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitFleet]:
    yield from fleet_of(tmp_path_factory, request.param)


@pytest.fixture
def fleet(running: LimitFleet) -> LimitFleet:
    running.until(running.is_ring, "a ring of six", RING_PATIENCE)
    running.until(running.one_view, "one view")
    running.whole()
    return running


@pytest.mark.parametrize("sides, need", [(HALVES, 1), (MOST, 1), (THIRDS, 3)], ids=["halves", "two of six", "thirds"])
def test_a_partition(fleet: LimitFleet, sides: tuple[tuple[str, ...], ...], need: int) -> None:
    """Limits 1 (partition), RL9: of two parts at least one is out of the ring, and of three all are. Each part goes on with |V|/n,
    as far as it wants that much. After the heal the whole limit is used within ``settle`` and 5 s, whatever the ring does."""
    since = now_ns()
    fleet.split(*sides)
    fleet.until(lambda: sum(map(fleet.no_ring, sides)) >= need, "the ring ends")
    ended = (now_ns() - since) / SECOND
    fleet.until(lambda: all(map(fleet.one_view, sides)), "each part has a view")
    time.sleep(fleet.views.settle)
    expected = [min(len(side) / len(NAMES), sum(WANTS[name] for name in side) / RATE) for side in sides]
    for side, part in zip(sides, expected, strict=True):
        fleet.whole(side, part=part)
    at = now_ns()
    time.sleep(STEADY)
    rates = fleet.rates(at, now_ns() - SECOND // 10)
    parts = [sum(rates[name] for name in side) / RATE for side in sides]
    assert sum(map(fleet.no_ring, sides)) >= need
    healed_at = now()
    fleet.net.heal()
    fleet.whole()
    took = now() - healed_at
    fleet.until(fleet.is_ring, "one ring of six", RING_PATIENCE)
    found = [(each.window, round(each.excess(RATE), 3)) for each in peaks(fleet.records(), since)]
    print(  # noqa: T201 - a measurement, told with -s
        f"{fleet.terms.policy}, {len(sides)} parts: the ring ended after {ended:.1f} s; parts of the limit {parts}; healed: the whole limit"
        f" after {took:.2f} s, one ring after {now() - healed_at:.1f} s; most of R * T {found}"
    )
    assert parts == pytest.approx(expected, rel=0.06)
    assert took <= fleet.views.settle + SETTLES
    assert fleet.terms.policy != "exact" or fleet.wrongs(since) == []


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitFleet]:
    yield from fleet_of(tmp_path_factory, "fair", seats=False)


CASES = [
    Case("kill -9 of an agent", faults.agent_killed("y", 3.0)),
    Case("SIGSTOP of an agent for 3 s", faults.agent_stopped("x", 3.0)),
    Case("one member is cut off", faults.cut_off(["z"], 8.0)),
    Case("two halves", faults.cut_off(HALVES[0], 15.0)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_without_seats(listed: LimitFleet, case: Case) -> None:
    """Limits 5.11: over the member list of the ring, policy fair. Members are killed, stopped and cut off, also so that the ring is empty:
    no member is without min(what it wants, R/n) for longer than 2 s, and all are in one list again and use the whole limit."""
    listed.until(listed.is_ring, "a ring of six", RING_PATIENCE)
    listed.until(listed.one_view, "all gossip with each other", RING_PATIENCE)
    listed.whole()
    line = listed.line("x")
    assert line is not None
    assert line.over == "members"
    check(listed, case)
