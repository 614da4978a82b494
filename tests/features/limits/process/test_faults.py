"""Eight real agents on machines of their own, three of them seats, programs that use one limit under load, and one fault after the other.

Spec: limits 1, 5.1, 5.5, 5.7, D3, D22, H310. ``test_shares_move`` has a few of them in `make test`. What went is read from the records of
the programs alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from holdfast.net.clock import now_ns
from tests.features.limits.process import faults
from tests.features.limits.process.faults import Case, check
from tests.features.limits.process.fleet import SEATS, LimitFleet, LimitTerms
from tests.features.limits.process.record import SECOND, merged, peaks, too_low
from tests.support.netns import Namespaces, unavailable
from tests.support.realtime import repeated

pytestmark = [pytest.mark.netns, pytest.mark.nightly, pytest.mark.timeout(400)]

RATE, BURST = 1000.0, 100.0
OTHERS = ("hog", "a", "b", "c", "d")
WANTS = {**dict.fromkeys((*SEATS, *OTHERS), 50.0), "hog": 900.0}
LOAD = 60.0  # seconds
STARTED = 3.0  # seconds that a program needs to begin, on a busy machine
CUT = 10.0  # seconds: three times as long as six unanswered messages take
HALVES = 15.0  # seconds

CASES = [
    Case("kill -9 of a worker", faults.worker_killed("a"), "a", STARTED),
    *(Case(f"SIGSTOP of a worker for {each:g} s", faults.worker_stopped("b", each), "b", each) for each in (0.5, 3.0, 20.0)),
    Case("kill -9 of an agent", faults.agent_killed("c", 0.5), "c", restarts=True),
    Case("kill -9 of the agent of the busiest program", faults.agent_killed("hog", 0.5), "hog", restarts=True),
    Case("SIGSTOP of an agent for 0.5 s", faults.agent_stopped("d", 0.5)),
    Case("SIGSTOP of an agent for 3 s", faults.agent_stopped("d", 3.0)),
    Case("SIGSTOP of an agent for 20 s", faults.agent_stopped("d", 20.0), "d", 20.0),
    Case("kill -9 of a seat", faults.agent_killed("s1", 0.5), "s1", restarts=True),
    Case("SIGSTOP of a seat for 0.5 s", faults.agent_stopped("s0", 0.5)),
    Case("SIGSTOP of a seat for 3 s", faults.agent_stopped("s0", 3.0)),
    Case("SIGSTOP of a seat for 20 s", faults.agent_stopped("s2", 20.0), "s2", 20.0),
    Case("a seat is cut off", faults.cut_off(["s2"], CUT)),
    Case("one way is cut between two agents", faults.one_way("hog", "a", CUT)),
    Case("the other way is cut", faults.one_way("a", "hog", CUT)),
    Case("two halves", faults.cut_off(["s0", "s1", "a", "b"], HALVES)),
]


@pytest.fixture(scope="module", params=[("exact", 1), ("exact", 3), ("strict", 1), ("fair", 1)], ids=lambda each: f"{each[0]}-{each[1]}")
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitFleet]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    policy, workers = request.param
    terms = LimitTerms(policy, RATE, BURST, len(WANTS))
    folder = tmp_path_factory.mktemp(policy)
    with Namespaces(len(WANTS)) as net, LimitFleet(folder, net, terms, WANTS, workers=workers) as fleet:
        yield fleet
        assert policy != "exact" or fleet.wrongs() == []  # of the whole run, also between the tests


@pytest.fixture
def fleet(running: LimitFleet) -> LimitFleet:
    """All eight use the whole limit together."""
    running.rest()
    return running


def test_load(fleet: LimitFleet) -> None:
    """Limits 1: a minute without a fault. Every member has what it wants, or its part, all the time, and the sum is the limit."""

    def attempt(number: int) -> str:
        if number:
            fleet.rest()
        since = now_ns()
        time.sleep(LOAD)
        until = now_ns() - SECOND // 10
        found = [(each.window, each.most) for each in peaks(fleet.records(), since)]
        rates = {name: round(each, 1) for name, each in fleet.rates(since, until).items()}
        print(f"{fleet.terms.policy}, {fleet.workers} per agent, {LOAD:g} s: {rates}, most {found}")  # noqa: T201 - told with -s
        assert fleet.terms.policy != "exact" or fleet.wrongs(since) == []
        assert sum(rates.values()) <= RATE + BURST / LOAD + 1
        low = {name: too_low(merged(fleet.records(name), since), fleet.least(name), since, until)[0] for name in fleet.names}
        if max(low.values()) > faults.LOW_MAX:
            return f"below min(want, R/n) for too long: {low}"
        return "" if sum(rates.values()) >= 0.95 * RATE else f"the limit is not used: {rates}"

    repeated(attempt, margin=faults.MARGIN)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_fault(fleet: LimitFleet, case: Case) -> None:
    """Limits 1: ``exact`` never lets more go than R * T + B + m in any interval; of the others the excess is told. No member is below
    min(what it wants, R/n) for longer than 2 s, but for the one whose program or agent stood still itself."""
    check(fleet, case)
