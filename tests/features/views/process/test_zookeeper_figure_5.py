"""The four failure cases of the paper's Figure 5 on a real ensemble, and the views of its Table 1.  Spec: views 5.8, 5Z, 8, D21.

Three servers and two agents of each; every process is on a machine of its own, and cuts are silent. An outside recorder looks on: CB1, CB2,
CB3, CB6 (a) and (b).
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast.sync
from holdfast.features.views.lab.ensemble import missing
from tests.agent.raw_client import now
from tests.features.views.process.fleet import SEATS
from tests.features.views.process.zookeeper_fleet import ZooKeeperFleet
from tests.support.netns import Namespaces, unavailable

pytestmark = [
    pytest.mark.nightly, pytest.mark.netns, pytest.mark.skipif(bool(missing()), reason=missing()), pytest.mark.timeout(400),
]  # fmt: skip

HOMES = {"a": "s0", "b": "s0", "c": "s1", "d": "s1", "e": "s2", "f": "s2"}
HEARTBEAT = 0.5  # twice that of `lan`: leases last 3 s on machines that are busy
STAYS = 3.0  # seconds for which "no change" is looked at, when what is cut was noticed
CUT_OFF = ["a", "b"]  # agents of the server that the cuts are about


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperFleet]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("znodes")
    with Namespaces(len(SEATS) + len(HOMES)) as net, ZooKeeperFleet(folder, net, HOMES, heartbeat=HEARTBEAT) as fleet:
        yield fleet


@pytest.fixture
def fleet(running: ZooKeeperFleet, request: pytest.FixtureRequest) -> Iterator[ZooKeeperFleet]:
    """All six settled in one view while the server that the case names leads; in the end again, and there were clients to compare."""
    running.lead(getattr(request, "param", "s2"))
    since = running.settled()
    yield running
    running.net.heal()
    print(f"healed, and in one view after {running.together():.2f} s")  # noqa: T201 - a measurement, told with -s
    assert running.check(since) > 0


def is_lost(fleet: ZooKeeperFleet, names: list[str]) -> bool:
    return all(fleet.view(name) is None for name in names)


def becomes(fleet: ZooKeeperFleet, names: list[str]) -> None:
    """These are in one view, the others in none, and it stays so."""
    others = [name for name in HOMES if name not in names]
    fleet.until(lambda: fleet.one_view(names) and is_lost(fleet, others), f"{names} in one view, {others} in none")
    since = now()
    fleet.never(lambda: any(fleet.told(name, since) for name in names), "another view", STAYS)
    assert fleet.one_view(names)
    assert is_lost(fleet, others)


MAJORITY = [name for name in HOMES if name not in CUT_OFF]


def test_case_1_a_server_with_its_clients_is_cut_off(fleet: ZooKeeperFleet) -> None:
    """Views 5.8, case 1: the majority goes on in a view of four, the minority panics."""
    side = ["s0", *CUT_OFF]
    fleet.split(side, [name for name in fleet.names if name not in side])
    becomes(fleet, MAJORITY)


def test_case_2_clients_are_cut_from_each_other(fleet: ZooKeeperFleet) -> None:
    """Views 5.8, case 2: no view changes, and a letter of one to another goes by the ensemble."""
    before = fleet.view("a")
    fleet.split(["a"], ["f"])
    with holdfast.sync.join(agent=fleet.agents["f"].socket) as receiver, holdfast.sync.join(agent=fleet.agents["a"].socket) as sender:
        letters = receiver.messages()
        sender.send("f", b"round", timeout=30)
        assert letters.next(timeout=30).data == b"round"
    becomes(fleet, list(HOMES))
    assert fleet.view("a") == before


def test_case_3_servers_are_cut_from_each_other(fleet: ZooKeeperFleet) -> None:
    """Views 5.8, case 3: the minority panics although all clients could still talk to each other."""
    fleet.split(["s0"], ["s1", "s2"])
    becomes(fleet, MAJORITY)


@pytest.mark.parametrize("fleet, names", [("s2", MAJORITY), ("s1", list(HOMES))], ids=["it_leads", "the_third_leads"], indirect=["fleet"])
def test_case_4_one_link_of_servers_is_cut(fleet: ZooKeeperFleet, names: list[str]) -> None:
    """Views 5.8, case 4, D21: the minority panics if one of the two leads; if the third one does, no view changes."""
    before = fleet.view("a")
    fleet.split(["s0"], ["s2"])
    becomes(fleet, names)
    if "a" in names:
        assert fleet.view("a") == before
