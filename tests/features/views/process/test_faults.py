"""Nine real agents on machines of their own, three of them seats, and one fault after the other.  Spec: views 7 (CB1 to CB7), D24, D25.

``test_six`` has a few of them in `make test`. After each fault all are leased in one view within the bound, and a reader of everything that
clients were told finds nothing wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import combinations, permutations

import pytest

from tests.agent.raw_client import now
from tests.features.views.process.fleet import LONG_NAME, SEATS, ViewFleet
from tests.support.netns import Namespaces, unavailable

pytestmark = [pytest.mark.netns, pytest.mark.nightly, pytest.mark.timeout(400)]

OTHERS = 6
HALVES = 30.0  # seconds
ROUNDS = 3  # of kills: the records differ in where a heartbeat was
DOUBLINGS = 3  # of a quarantine within ``HOLE``: it lasts for 8 heartbeats, and is told anew 8 heartbeats after it ended
HOLE = 15.0  # seconds


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewFleet]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    names = [f"m{number}{LONG_NAME}" for number in range(OTHERS)]
    with Namespaces(len(SEATS) + OTHERS) as net, ViewFleet(tmp_path_factory.mktemp("nine"), net, names) as fleet:
        yield fleet


@pytest.fixture
def fleet(running: ViewFleet) -> Iterator[ViewFleet]:
    """All nine settled in one view; in the end the record of this test shows nothing wrong, and settled clients to compare."""
    since = running.settled()
    yield running
    assert running.check(since) > 0


def told(what: str, took: list[float]) -> None:
    print(f"{what}: one view after {', '.join(f'{each:.2f}' for each in took)} s")  # noqa: T201 - a measurement, told with -s


@pytest.mark.parametrize("who", ["seat", "member"])
def test_killed(fleet: ViewFleet, who: str) -> None:
    """Views D28, G4: kill -9. The others are in one view in time, and so are all when its next life runs."""
    took = []
    for name in SEATS if who == "seat" else fleet.others[:ROUNDS]:
        at = now()
        fleet.kill(name)
        took.append(fleet.together([each for each in fleet.names if each != name], since=at))
        fleet.start(name)
        took.append(fleet.together(since=now()))
    assert max(took) <= fleet.bound
    told(f"kill -9 of a {who}, and its next life", took)


@pytest.mark.parametrize("leases", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("who", ["seat", "member"])
def test_stopped(fleet: ViewFleet, who: str, leases: float) -> None:
    """Views D17, G6: SIGSTOP for less than a lease, for more, and for longer than ``settle``."""
    fleet.stop_for("s1" if who == "seat" else fleet.others[0], leases * fleet.config.lease)
    took = fleet.together(since=now())
    assert took <= fleet.bound
    told(f"SIGSTOP of a {who} for {leases:g} leases", [took])


def test_links_of_seats_are_cut(fleet: ViewFleet) -> None:
    """Views 5.8 case 4, 5.1: every pair of seats both ways, and every ordered pair one way. The third seat is the way round, so all are in
    one view before the cut is healed as well."""
    took = []
    for one, other in combinations(range(len(SEATS)), 2):
        fleet.net.cut_both(one, other)
        fleet.lasts(fleet.config.lsa_max_age)
        took.append(fleet.healed())
    for one, other in permutations(range(len(SEATS)), 2):
        fleet.net.cut(one, other)
        fleet.lasts(fleet.config.lsa_max_age)
        took.append(fleet.healed())
    told("links of seats, healed", took)


@pytest.mark.parametrize("others", [1, 2])
def test_holes(fleet: ViewFleet, others: int) -> None:
    """Views D24, D25, H1: heartbeats of a seat pass, what is large does not reach one other seat, or both. By the end of the hole every
    client is leased in a clean view; with a way round that is one view of all."""
    fleet.hole("s0", *SEATS[1 : 1 + others])
    at = now()
    if others == 1:
        fleet.lasts(HOLE)
    else:
        fleet.noticed("s0", "s1", "s2")
        fleet.until(lambda: fleet.in_clean_views() and fleet.view("s0") != fleet.view("s1"), "two clean views")
        clean = now() - at
        assert clean <= fleet.bound
        told("a hole to both others, clean views", [clean])
        time.sleep(max(0.0, at + HOLE - now()))
    told(f"a hole to {others}, healed", [fleet.healed(fleet.config.quarantine * 2**DOUBLINGS)])


@pytest.mark.parametrize("who", ["seat", "member"])
def test_deaf(fleet: ViewFleet, who: str) -> None:
    """Views D11, G6: nothing reaches one that all hear. It is out of the view of the others in time, and holds no lease."""
    name = "s2" if who == "seat" else fleet.others[0]
    rest = [each for each in fleet.names if each != name]
    at = now()
    fleet.deafen(name)
    out = fleet.together(rest, since=at)
    assert out <= fleet.bound
    fleet.never(lambda: not fleet.one_view(rest), "the others lost their view", fleet.config.settle)
    told(f"a deaf {who}, and healed", [out, fleet.healed()])


def test_two_halves(fleet: ViewFleet) -> None:
    """Views G4, G6: a side with two seats and one with one, for 30 s: each has one view of its own, and both are settled."""
    large, small = ["s0", "s1", *fleet.others[:2]], ["s2", *fleet.others[2:]]
    at = now()
    fleet.split(large, small)
    took = [fleet.together(large, since=at), fleet.together(small, since=at)]
    assert max(took) <= fleet.bound
    fleet.never(lambda: not (fleet.one_view(large) and fleet.one_view(small)), "a half lost its view", HALVES)
    told("two halves, and healed", [*took, fleet.healed()])
