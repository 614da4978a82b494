"""Sixteen real agents that gossip, T = 0.2 s, and one fault after the other: the failure table of docs/gossip.md.

Spec: gossip 7 (G3, G4, G7, G10, G11, G13), 5.7, 5.8, D5, D9, D16; foundation F11, F15. ``test_few`` has a few of them in `make test`. What
is cut is cut by forwarders, and by network namespaces where root allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.features.gossip.process import faults
from tests.features.gossip.process.faults import Case, check
from tests.features.gossip.process.fleet import GossipFleet
from tests.support.gossip_record import wrongs
from tests.support.member_fleet import PROBE
from tests.support.netns import unavailable
from tests.support.nets import Forwarders, Machines

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600)]

NAMES = tuple(f"a{number}" for number in range(16))
NEW = "b0"
LONGEST = 6 * 2.5 * PROBE * 1.21  # Max of gossip 5.4 in a group of 16
HALF, FEW = NAMES[8:], NAMES[13:]
MINUTE = 60.0  # seconds

CASES = [
    Case("kill -9, and the same name again", faults.killed("a12")),
    Case("kill -9 of a seed, and the same name again", faults.killed("a1")),
    Case("kill -9 of four at once", faults.killed("a9", "a10", "a12", "a15")),
    Case("kill -9, and the same name at once", faults.restarted("a11")),
    Case("kill -9, and a new name", faults.replaced("a14", NEW)),
    *(Case(f"SIGSTOP for {each:g} suspicions", faults.stood_still("a8", each)) for each in (0.5, 1.5, 20)),
    Case("SIGSTOP of a seed for 20 suspicions", faults.stood_still("a0", 20)),
    Case("all seeds dead, and back", faults.seeds_lost("a13")),
    Case("one way is cut", faults.one_way("a9", "a10")),
    Case("the other way is cut", faults.one_way("a10", "a9")),
    *(
        Case(f"{16 - len(few)} and {len(few)} for {seconds:.3g} s", faults.parted(few, seconds))
        for few in (HALF, FEW)
        for seconds in (2 * 2.5 * PROBE, 2 * LONGEST, MINUTE)
    ),
]


@pytest.fixture(scope="module", params=[Forwarders, pytest.param(Machines, marks=pytest.mark.netns)], ids=["forwarders", "namespaces"])
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GossipFleet]:
    reason = unavailable() if request.param is Machines else None
    if reason is not None:
        pytest.skip(reason)
    with ExitStack() as stack:
        net = stack.enter_context(request.param((*NAMES, NEW)))
        running = stack.enter_context(GossipFleet(tmp_path_factory.mktemp("sixteen"), net, NAMES))
        yield running
        assert wrongs(running.recorder.lines()) == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_fault(fleet: GossipFleet, case: Case) -> None:
    """Gossip G3, G4: all lists are right within the bound; no live member is lost by one that can hear it; leadership and a ticket of the
    seats are not touched (F15)."""
    check(fleet, case)
