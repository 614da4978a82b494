"""Sixteen real agents that elect, T = 0.2 s, and one fault after the other: the failure table of docs/election.md.

Spec: election 1 (A2, A4, A7), 5.8 to 5.10, D22; foundation F14, F16. ``test_elections`` has some of them in `make test`. What is cut is
cut by forwarders, and by network namespaces where root allows; there the faults of processes, which are the same, are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.features.election.process import faults
from tests.features.election.process.faults import Case, check
from tests.features.election.process.led import LedFleet
from tests.support.netns import unavailable
from tests.support.nets import Forwarders, Machines

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(900)]

NAMES = tuple(f"a{number}" for number in range(16))
MINUTE = 60.0  # seconds

CASES = [
    Case("kill -9 of the leader's agent", faults.agent_killed, of_network=True),
    Case("kill -9 of the initiator", faults.initiator_killed),
    Case("kill -9 of the leader's agent and of the initiator", faults.both_killed),
    Case("SIGSTOP of the leader's agent", faults.agent_stopped),
    Case("SIGSTOP of its client", faults.run_stopped),
    Case("kill -9 of its client", faults.run_killed),
    Case("the leader is mute", faults.mute, of_network=True),
    Case("the leader is deaf", faults.deaf, of_network=True),
    Case("20 % loss, and kill -9 of the leader's agent", faults.lossy(0.2), of_network=True),
    Case("8 and 8 for 60 s", faults.halves(MINUTE), of_network=True),
    Case("one member dies each second, for 3 minutes", faults.churned(3 * MINUTE)),
]


@pytest.fixture(scope="module", params=["none", "seats"])
def voters(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[Forwarders, pytest.param(Machines, marks=pytest.mark.netns)], ids=["forwarders", "namespaces"])
def fleet(request: pytest.FixtureRequest, voters: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LedFleet]:
    reason = unavailable() if request.param is Machines else None
    if reason is not None:
        pytest.skip(reason)
    with ExitStack() as stack:
        net = stack.enter_context(request.param(NAMES))
        running = stack.enter_context(LedFleet(tmp_path_factory.mktemp(voters), net, NAMES, voters=voters))
        yield running
        assert running.wrongs() == []  # of the whole history, also between the tests


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_a_fault(fleet: LedFleet, case: Case) -> None:
    """Election A2, A4, A7: another command acts within the bound; no command acts beyond hold and grace; no late write is let through;
    with seats no token ever acts for two lives; in the end one leader, whom all know."""
    if isinstance(fleet.net, Machines) and not case.of_network:
        pytest.skip("a fault of processes, which forwarders have shown")
    check(fleet, case)
