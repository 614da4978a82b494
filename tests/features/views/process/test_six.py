"""Six real agents, three of them seats, on machines of their own: views beside a ring while processes and links fail.

Spec: views 1 (G5, G6), 5.7, 7 (CB1 to CB7), D13, D25, D28, D31; foundation F15. A recorder outside sees all that clients were told.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import ExitStack

import pytest

import holdfast.sync
from holdfast.errors import JoinTimeout, NotAMember
from holdfast.local import calls
from holdfast.local.calls import GroupView, SeatView
from holdfast.sync import Group
from tests.agent.raw_client import RawClient, now
from tests.features.views.process.fleet import LONG_NAME, SEATS, ViewFleet, first_server
from tests.support.netns import Namespaces, unavailable

pytestmark = [pytest.mark.netns, pytest.mark.timeout(240)]

OTHERS = ("x", "y", "z")
LETTER_TIMEOUT = 20.0  # seconds: the fourth part of a second is enough where no process waits for a core
RING_PATIENCE = 100.0  # seconds: leases of the ring, within which all are back in one (ring E12)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewFleet]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    names = [name + LONG_NAME for name in OTHERS]
    with Namespaces(len(SEATS) + len(names)) as net, ViewFleet(tmp_path_factory.mktemp("six"), net, names) as fleet:
        yield fleet


@pytest.fixture
def fleet(running: ViewFleet) -> Iterator[ViewFleet]:
    """All six settled in one view and in one ring; in the end its record shows nothing wrong, and settled clients to compare."""
    running.until(lambda: is_ring(running, running.names), "a ring of six", RING_PATIENCE)
    since = running.settled()
    yield running
    assert running.check(since) > 0


@pytest.fixture
def groups(fleet: ViewFleet) -> Iterator[dict[str, Group]]:
    """A client of each."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(holdfast.sync.join(agent=fleet.agents[name].socket)) for name in fleet.names}


def look(fleet: ViewFleet, name: str) -> GroupView:
    with RawClient(fleet.agents[name].socket) as client:
        found: GroupView = client.ask(calls.Look)
        return found


def is_ring(fleet: ViewFleet, names: Collection[str]) -> bool:
    """These are members, and each of them lists these."""
    views = [look(fleet, name) for name in names]
    lives = {fleet.agents[name].id for name in names}
    return all(view.state == "member" and {str(member.id) for member in view.members} == lives for view in views)


def no_ring(fleet: ViewFleet, names: Collection[str]) -> bool:
    """None of these is a member of a ring."""
    return all(look(fleet, name).state != "member" for name in names)


def healed(fleet: ViewFleet) -> tuple[float, float]:
    """Seconds until one view of six, at most the bound, and until one ring of six."""
    at = now()
    took = fleet.healed()
    fleet.until(lambda: is_ring(fleet, fleet.names), "one ring of six", RING_PATIENCE)
    return took, now() - at


def told(what: str, *seconds: float) -> None:
    print(what.format(*(f"{each:.3f} s" for each in seconds)))  # noqa: T201 - a measurement, told with -s


def letter(groups: dict[str, Group], sender: str, receiver: str) -> float:
    """It arrives; seconds until the receiver has it."""
    letters, sent_at = groups[receiver].messages(), now()
    try:
        groups[sender].send(receiver, b"letter", timeout=LETTER_TIMEOUT)
        assert letters.next(timeout=LETTER_TIMEOUT).data == b"letter"
    finally:
        letters.close()
    return now() - sent_at


@pytest.mark.parametrize("parts", [2, 3])
def test_a_partition(fleet: ViewFleet, groups: dict[str, Group], parts: int) -> None:
    """Views D31, ring D5: of two halves, one with two seats and one with one, at least one is out of the ring; of three parts all are. Each
    part keeps a view of its own until the end, and letters inside it go on. Healed, there are one view of six and one ring of six."""
    x, y, z = fleet.others
    sides = [["s0", "s1", x], ["s2", y, z]] if parts == 2 else [["s0", x], ["s1", y], ["s2", z]]
    cut_at = now()
    fleet.split(*sides)
    took = [fleet.together(side, since=cut_at) for side in sides]
    assert max(took) <= fleet.bound
    need = 1 if parts == 2 else parts  # With six members of a ring all decide on all, and of two halves that with the smallest id wins.
    fleet.until(lambda: sum(no_ring(fleet, side) for side in sides) >= need, "the ring ends")
    ended = now() - cut_at
    letters = [letter(groups, side[-1], side[0]) for side in sides]
    settled_in = cut_at + max(took) + fleet.config.settle - now()
    fleet.never(lambda: not all(map(fleet.one_view, sides)), "a part lost its view", max(settled_in, 0.0) + 1.0)
    assert sum(no_ring(fleet, side) for side in sides) >= need
    assert fleet.check(cut_at + max(took) + fleet.config.settle) > 0  # in the parts, beside each other
    view, ring = healed(fleet)
    told(f"{parts} parts: views after {{}}, the ring ended after {{}}, the longest way of a letter {{}}", max(took), ended, max(letters))
    told("healed: one view of six after {}, one ring of six after {}", view, ring)
    assert fleet.wrongs(settle=0.0) != []  # The record is fine enough to show the old lease of one beside the new view of another.


def test_clients_that_come_during_a_partition(fleet: ViewFleet) -> None:
    """Views D31, H248: the ring is empty in all three parts. New clients attach, get the view of their part, and send inside it; what needs
    the ring is refused. An agent that restarts meanwhile is in the view again, and so is its client, which reconnects. After the heal all
    have the member list, without another call."""
    x, y, z = fleet.others
    sides = [["s0", x], ["s1", y], ["s2", z]]
    cut_at = now()
    fleet.split(*sides)
    for side in sides:
        fleet.together(side, since=cut_at)
    fleet.until(lambda: no_ring(fleet, fleet.names), "the ring ends")
    took = []
    with ExitStack() as stack:
        came = {}
        for name in (x, "s0", y):
            with pytest.raises(JoinTimeout, match="the agent is 'joining'"):
                holdfast.sync.join(agent=fleet.agents[name].socket, timeout=0.5)
            at = now()
            group = came[name] = stack.enter_context(holdfast.sync.join(agent=fleet.agents[name].socket, wait=False))
            view = stack.enter_context(group.views()).ready(timeout=LETTER_TIMEOUT)
            took.append(now() - at)
            assert {str(member.id) for member in view.members} == {fleet.agents[each].id for side in sides if name in side for each in side}
            assert (group.state, group.members.names) == ("joining", ())
        way = letter(came, x, "s0")
        with pytest.raises(NotAMember, match="this agent is in no group now"):
            came[x].send(y, b"another part", timeout=LETTER_TIMEOUT)
        group = stack.enter_context(holdfast.sync.join(agent=fleet.agents[z].socket, wait=False, reconnect=True))
        views = stack.enter_context(group.views())
        former = views.ready(timeout=LETTER_TIMEOUT)
        fleet.kill(z)
        fleet.start(z)
        fleet.until(lambda: views.view is not None and views.view.number > former.number, "another life of an agent has a view")
        fleet.until(lambda: group.state == "joining", "its client follows it")
        came[z] = group
        assert no_ring(fleet, fleet.names)
        view_of_six, ring_of_six = healed(fleet)
        fleet.until(lambda: all(set(group.members.names) == set(fleet.names) for group in came.values()), "clients have the list")
        letter(came, x, y)
    told("new clients of agents outside the ring: their view after {}, a letter after {}", max(took), way)
    told("healed: one view of six after {}, one ring of six after {}", view_of_six, ring_of_six)


def test_grants_stay_and_an_expelled_seat_serves(fleet: ViewFleet, groups: dict[str, Group]) -> None:
    """Foundation F15, views D31: what a member of the majority leads and holds stays held through two changes of the view. A seat that is
    out of the ring goes on to serve a view to those that reach it."""
    x, y, z = fleet.others
    many, few = ["s0", "s1", x, y], ["s2", z]
    with groups[x].lead("job", timeout=60) as term, groups[x].ticket("gpu", of=2, timeout=60) as ticket:
        tokens = term.token, ticket.token
        first = fleet.view(x)
        cut_at = now()
        fleet.split(many, few)
        took = fleet.together(many, since=cut_at), fleet.together(few, since=cut_at)
        fleet.until(lambda: is_ring(fleet, many) and no_ring(fleet, few), "two are out of the ring")
        assert fleet.report("s2").serves
        assert fleet.server_of(z) == "s2"
        fleet.never(lambda: not (term.valid and ticket.valid and fleet.one_view(few)), "a grant or a view was lost", fleet.config.settle)
        second = fleet.view(x)
        view, ring = healed(fleet)
        third = fleet.view(x)
        assert first is not None
        assert second is not None
        assert third is not None
        assert first.number < second.number < third.number
        assert term.valid
        assert ticket.valid
        assert (term.token, ticket.token) == tokens
    told("two of six cut off: views after {} and {}; one view after {}, one ring after {}", *took, view, ring)


def test_a_seat_whose_journal_is_lost_serves(fleet: ViewFleet) -> None:
    """Views D31, D1: its next life promises nothing any more as a seat, and serves a view to its clients."""
    fleet.kill("s2")
    rest = [name for name in fleet.names if name != "s2"]
    fleet.together(rest)
    shutil.rmtree(fleet.folder / "state-s2")
    fleet.start("s2")
    fleet.together()
    with RawClient(fleet.agents["s2"].socket) as client:
        seat = next(each for each in client.ask(calls.Seats) if each.own)
    assert isinstance(seat, SeatView)
    assert seat.state != "serving"
    assert fleet.report("s2").serves
    assert fleet.server_of("s2") == "s2"
    view = fleet.view("s2")
    assert view is not None
    assert fleet.agents["s2"].id in view.servers


def test_a_letter_round_a_cut(fleet: ViewFleet, groups: dict[str, Group]) -> None:
    """Views 5.7, D30: the way between two members is cut in both directions. The view stays, and letters go by the servers, both ways."""
    x, y, _ = fleet.others
    before = fleet.view(x)
    fleet.net.cut_both(fleet.at(x), fleet.at(y))
    first, second, back = letter(groups, x, y), letter(groups, x, y), letter(groups, y, x)
    assert fleet.view(x) == before
    healed(fleet)
    told("letters round a cut: the first after {}, the next after {}, back after {}", first, second, back)


def test_faults_one_after_the_other(fleet: ViewFleet) -> None:
    """Views CB1 to CB4, CB6, CB7, D25, D28: a seat and a member are killed, each is stopped for two leases, the link of two seats is cut in
    both ways and in one way. After each, all are leased in one view again, in time."""
    took: dict[str, float] = {}
    for name in ("s0", fleet.others[1]):
        at = now()
        fleet.kill(name)
        took[f"kill {name[:2]}"] = fleet.together([each for each in fleet.names if each != name], since=at)
        fleet.start(name)
        fleet.together()
    for name in ("s1", fleet.others[0]):
        fleet.stop_for(name, 2 * fleet.config.lease)
        took[f"stop {name[:2]}"] = fleet.together(since=now())
    for cut in (fleet.net.cut_both, fleet.net.cut):
        cut(1, 2)
        fleet.lasts(fleet.config.lsa_max_age)
        took[f"{cut.__name__}, healed"] = fleet.healed()
    assert max(took.values()) <= fleet.bound
    told("one view after: " + ", ".join(f"{what} {{}}" for what in took), *took.values())


def test_a_hole(fleet: ViewFleet) -> None:
    """Views D24, D25, H1: heartbeats of a seat pass, its link states reach no other seat. Every client is leased again in one of two clean
    views; the end of the hole and of the quarantine makes one of them."""
    seat = first_server(fleet.others[0])
    fleet.come_home(seat)  # Its link state names clients with long names, so it is a large one.
    fleet.together()
    one, other = (each for each in SEATS if each != seat)
    fleet.hole(seat, one, other)
    at = now()
    fleet.noticed(seat, one, other)
    noticed = now() - at
    fleet.until(lambda: fleet.in_clean_views() and fleet.view(seat) != fleet.view(one), "two clean views")
    clean = now() - at
    assert clean <= fleet.bound
    quarantine = fleet.config.quarantine * 2  # it may have come a second time by now
    told("a hole noticed after {}, clean views after {}, healed after {}", noticed, clean, fleet.healed(quarantine))
