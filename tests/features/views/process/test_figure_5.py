"""The four failure cases of the paper's Figure 5 with real agents, and the views of its Table 1.  Spec: views 5.8, 8 (views/T1).

Three servers and two clients of each; every process is on a machine of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import holdfast.sync
from tests.agent.raw_client import now
from tests.features.views.process.fleet import SEATS, ViewFleet, clients_of
from tests.support.netns import Namespaces, unavailable

pytestmark = [pytest.mark.netns, pytest.mark.timeout(240)]

EACH = 2  # clients of a server
HEARTBEAT = 0.5  # twice that of `lan`: a client of a server that is late for 1.5 s moves, and the sizes would be others
STAYS = 3.0  # seconds for which "no change" is looked at, when what is cut was noticed
# How many are in the views that there are in each case: the column "Moshe". ``test_zookeeper_table`` has the other one.
TABLE_1 = {1: [2, 4], 2: [6], 3: [2, 4], 4: [6]}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewFleet]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    others = [name for seat in SEATS for name in clients_of(seat, EACH)]
    folder = tmp_path_factory.mktemp("figure")
    with Namespaces(len(SEATS) + len(others)) as net, ViewFleet(folder, net, others, heartbeat=HEARTBEAT, silent_seats=True) as fleet:
        yield fleet


@pytest.fixture
def fleet(running: ViewFleet) -> Iterator[ViewFleet]:
    """All six settled in one view, two at each server; in the end again, and there were settled clients to compare."""
    at_home(running)
    since = running.settled()
    yield running
    running.net.heal()
    print(f"healed, and in one view after {running.together():.2f} s")  # noqa: T201 - a measurement, told with -s
    assert running.check(since) > 0


def at_home(fleet: ViewFleet) -> None:
    fleet.together()
    away = [name for number, name in enumerate(fleet.clients) if fleet.server_of(name) != SEATS[number // EACH]]
    for name in away:
        fleet.again(name)
    fleet.together()
    assert [fleet.server_of(name) for name in fleet.clients] == [seat for seat in SEATS for _ in range(EACH)]


def sizes(fleet: ViewFleet) -> list[int]:
    """Of the views in which clients are leased now, none changing."""
    views = {view.id: len(view.members) for view in map(fleet.view, fleet.clients) if view is not None}
    return sorted(views.values())


def becomes(fleet: ViewFleet, case: int) -> None:
    """The views of the table come about and stay."""
    expected = TABLE_1[case]
    fleet.until(lambda: sizes(fleet) == expected and None not in map(fleet.view, fleet.clients), f"views of {expected}")
    since = now()
    fleet.never(lambda: any(fleet.told(name, since) for name in fleet.clients), "another view", STAYS)
    assert sizes(fleet) == expected


def test_case_1_a_server_with_its_clients_is_cut_off(fleet: ViewFleet) -> None:
    """Views 5.8, case 1: two views, of two and of four."""
    side = {"s0", *fleet.clients[:EACH]}
    fleet.split(side, [name for name in fleet.names if name not in side])
    becomes(fleet, 1)


def test_case_2_clients_are_cut_from_each_other(fleet: ViewFleet) -> None:
    """Views 5.8, case 2: no view changes, and a letter of one to another goes by the servers."""
    before = fleet.view(fleet.clients[0])
    first, last = fleet.clients[0], fleet.clients[-1]
    fleet.split(fleet.clients[:EACH], fleet.clients[EACH:])
    with holdfast.sync.join(agent=fleet.agents[last].socket) as receiver, holdfast.sync.join(agent=fleet.agents[first].socket) as sender:
        letters = receiver.messages()
        sender.send(last, b"round", timeout=20)
        assert letters.next(timeout=20).data == b"round"
    becomes(fleet, 2)
    assert fleet.view(first) == before


def test_case_3_servers_are_cut_from_each_other(fleet: ViewFleet) -> None:
    """Views 5.8, case 3: two views, of two and of four, although all clients could talk to each other."""
    fleet.split(["s0"], ["s1", "s2"])
    becomes(fleet, 3)


def test_case_4_one_link_of_servers_is_cut(fleet: ViewFleet) -> None:
    """Views 5.8, case 4: no view changes; the third server is the way round."""
    before = fleet.view(fleet.clients[0])
    fleet.split(["s0"], ["s2"])
    fleet.noticed("s0", "s2")
    becomes(fleet, 4)
    assert fleet.view(fleet.clients[0]) == before
