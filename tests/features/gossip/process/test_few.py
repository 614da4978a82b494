"""Eight real agents that gossip behind forwarders: one is killed, one stands still, links are cut.  ``test_faults`` has sixteen, and all.

Spec: gossip 7 (G3, G4, G10, G13), 5.7, 5.8, D5, D9; foundation F11, F15.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.features.gossip.process import faults
from tests.features.gossip.process.faults import Case, check
from tests.features.gossip.process.fleet import GossipFleet
from tests.support.member_fleet import PROBE
from tests.support.nets import Forwarders

NAMES = tuple(f"a{number}" for number in range(9))

CASES = [
    Case("kill -9, and the same name again", faults.killed("a8")),
    Case("SIGSTOP for 0.5 suspicions", faults.stood_still("a7", 0.5)),
    Case("SIGSTOP for 6 suspicions", faults.stood_still("a7", 6)),
    Case("one way is cut", faults.one_way("a7", "a8")),
    Case("6 and 3", faults.parted(NAMES[:3], 12 * 2.5 * PROBE)),
]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GossipFleet]:
    with Forwarders(NAMES) as net, GossipFleet(tmp_path_factory.mktemp("few"), net, NAMES) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_fault(fleet: GossipFleet, case: Case) -> None:
    """Gossip G3, G4: all lists are right within the bound; no live member is lost by one that can hear it; leadership and a ticket of the
    seats are not touched (F15)."""
    check(fleet, case)
