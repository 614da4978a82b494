"""Four real agents, three of them seats, and programs that use one exact limit: faults one after the other, and a planted one.

Spec: limits 1, 5.1, 5.5, D11, D22, H310. A reader of the permits alone says what went. ``test_faults`` has the whole matrix.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from holdfast.net.clock import now_ns
from tests.features.limits.process import faults
from tests.features.limits.process.faults import Case, check
from tests.features.limits.process.fleet import SEATS, LimitFleet, LimitTerms
from tests.support.netns import Namespaces, unavailable

pytestmark = [pytest.mark.netns, pytest.mark.timeout(240)]

RATE, BURST = 200.0, 20.0
WANTS = {**dict.fromkeys(SEATS, RATE / 10), "x": RATE}
STARTED = 3.0  # seconds that a program needs to begin, on a busy machine
GOES_ON = 2.0  # seconds: what is too much by half is above the bound of a second
ALONE = 0.75  # of the limit: one member that wants all of it has at least this much when the others want nothing


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitFleet]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    terms = LimitTerms("exact", RATE, BURST, len(WANTS))
    with Namespaces(len(WANTS)) as net, LimitFleet(tmp_path_factory.mktemp("four"), net, terms, WANTS) as fleet:
        yield fleet


@pytest.fixture
def fleet(running: LimitFleet) -> LimitFleet:
    """All four use the whole limit together."""
    for name in running.names:
        if not running.running(name):
            running.load(name)
    running.until(running.all_go, "all programs have begun")  # What dead ones let go just before is no sign of that.
    running.counts_from = now_ns()  # A careless program was there before, perhaps.
    running.whole()
    return running


CASES = [
    Case("kill -9 of a worker", faults.worker_killed("s0"), "s0", STARTED),
    Case("kill -9 of an agent", faults.agent_killed("x", 0.5), "x", restarts=True),
    Case("a seat is cut off", faults.cut_off(["s1"], 3.0)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_fault(fleet: LimitFleet, case: Case) -> None:
    """Limits 1: never above R * T + B + m in any interval; every member goes on, and the whole limit is used again."""
    check(fleet, case)


def test_a_worker_that_keeps_its_share_after_a_give_is_seen(fleet: LimitFleet) -> None:
    """Limits D22: x has the whole limit while no other wants it, then gives most of it back. The reader finds the program that goes on with
    what it had, and nothing where it does not."""
    assert gives_back(fleet) == []
    fleet.kill_worker("x")
    fleet.load("x", module="tests.features.limits.process.careless_worker")
    assert gives_back(fleet) != []
    fleet.kill_worker("x")


def gives_back(fleet: LimitFleet) -> list[str]:
    """What the reader finds wrong while x gives."""
    for name in SEATS:
        if fleet.running(name):
            fleet.kill_worker(name)
    fleet.until(lambda: fleet.used(["x"]) >= ALONE, "x has the limit for itself")
    since = now_ns()
    for name in SEATS:
        fleet.load(name, want=RATE)
    fleet.until(lambda: fleet.used(SEATS) >= ALONE / 2, "x gave what others want")
    time.sleep(GOES_ON)
    found = fleet.wrongs(since)
    for name in SEATS:
        fleet.kill_worker(name)
    return found
