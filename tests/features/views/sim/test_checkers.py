"""Every checker of views fails when what it forbids is planted, and not before.  Spec: views 1 (G1 to G7), 7 (CB1 to CB10)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace

from holdfast.events import Changing, Event, Paused, ViewChanged, ViewTripped
from holdfast.features.views.lab import mutations
from holdfast.features.views.lab.checkers import Agreed, Disjoint, Monotone, OwnView, UniqueId
from holdfast.features.views.lab.groups import NO_LINK, ViewGroup
from holdfast.features.views.lab.leases import OneGroup
from holdfast.features.views.lab.letters import Once, Trip
from holdfast.features.views.lab.settled import Convergence
from holdfast.features.views.lab.users import Answered, Habits, Heard, Said
from holdfast.features.views.protocol.config import TRIP_PAUSE, ViewsConfig
from holdfast.features.views.protocol.facts import Delivered, Detached, HopFailed, Proposed, Received
from holdfast.host import Address, Carried, NodeId, View, ViewId, ViewMember
from holdfast.lab.checker import Checker
from holdfast.lab.mutation import without
from holdfast.lab.violation import Violation

CONFIG = ViewsConfig()
SERVER, OTHER = NodeId("s0", 1), NodeId("s1", 1)
QUIET = Habits(says=0.0)
NEAR = 0.01  # seconds on either side of a bound


class Client:
    """What a checker reads of a client."""

    def __init__(self, lease_until: float) -> None:
        self.lease_until = lease_until
        self.attach = 1


class Stage:
    """Three agents that do nothing by themselves, under one checker. What they are said to do is planted."""

    def __init__(self, checker: Checker, *, rate: float = 1.0) -> None:
        self.group = ViewGroup(1, 1, 0, habits=Habits(takes_part=False), checked=False)
        self.world = self.group.world
        self.world.crash("s0")
        self.world.drift["c0"] = rate
        self.world.checkers.append(checker)
        for name in ("s1", "c0", "c1", "c2"):
            self.world.start(name)

    def tell(self, name: str, *events: Event) -> None:
        host = self.world.nodes[name]

        def plant() -> None:
            for event in events:
                host.emit(event)

        self.world.step(host, plant)

    def install(self, name: str, view: View) -> None:
        self.tell(name, ViewChanged(view, (), ()))

    def lease(self, name: str, seconds: float, *, attach: int = 1) -> None:
        """From now on, in true time."""
        host, node = self.world.nodes[name], self.group.node(name)

        def plant() -> None:
            client = Client(host.now + seconds * host.rate)
            client.attach = attach
            node.client = client  # type: ignore[assignment]

        self.world.step(host, plant)

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)
        self.world.step(None, lambda: None)


def view(number: int, *members: str, attach: int = 1, server: NodeId = SERVER, also: tuple[NodeId, ...] = ()) -> View:
    """A view of one server, or of more."""
    servers = tuple(sorted((server, *also)))
    listed = tuple(ViewMember(NodeId(name, 1), Address(name, 7946), attach, server) for name in sorted(members))
    return View(ViewId(number, servers[0].name, servers[0].boot), servers, listed)


# CB1 to CB5: what is delivered and installed.


def other_members(stage: Stage) -> None:
    stage.tell("s1", Delivered(view(1, "c0", "c1"), True, 0.1))
    stage.install("c0", view(1, "c0"))


def other_servers(stage: Stage) -> None:
    stage.install("c0", view(1, "c0", "c1"))
    stage.install("c1", view(1, "c0", "c1", also=(OTHER,)))


def number_again(stage: Stage) -> None:
    stage.install("c0", view(2, "c0"))
    stage.install("c0", view(2, "c0", "c1"))


def server_goes_back(stage: Stage) -> None:
    stage.tell("s1", Delivered(view(3, "c0"), True, 0.1), Delivered(view(2, "c1"), True, 0.1))


def not_in_it(stage: Stage) -> None:
    stage.lease("c0", 1.0)
    stage.install("c0", view(1, "c1"))


def former_attachment(stage: Stage) -> None:
    stage.lease("c0", 1.0, attach=2)
    stage.install("c0", view(1, "c0", "c1"))


def former_life(stage: Stage) -> None:
    stage.world.crash("c0")
    stage.world.start("c0")
    stage.lease("c0", 1.0)
    stage.install("c0", view(1, "c0"))


def server_in_both(stage: Stage) -> None:
    stage.tell("s1", Delivered(view(4, "c0", also=(OTHER,)), True, 0.1))
    stage.install("c1", view(4, "c1", server=OTHER))


def proposed(stage: Stage, number: int, key: bytes = b"k") -> None:
    stage.tell("s1", Proposed(number, key, (OTHER,)))


def delivered_by_none(stage: Stage) -> None:
    proposed(stage, 1)
    stage.install("c0", view(1, "c0", server=OTHER))


def not_proposed_by_all(stage: Stage) -> None:
    proposed(stage, 1)
    both = view(1, "c0", also=(OTHER,))
    stage.tell("s1", Delivered(both, True, 0.1))
    stage.install("c0", both)


def another_key(stage: Stage) -> None:
    both = view(1, "c0", server=OTHER, also=(NodeId("c2", 1),))
    stage.tell("c2", Proposed(1, b"other", both.servers))
    proposed(stage, 1)
    stage.tell("s1", Delivered(both, True, 0.1))
    stage.install("c0", both)


@pytest.mark.parametrize(
    "checker, plant, told",
    [
        (UniqueId, other_members, "CB1 unique-id"),
        (UniqueId, other_servers, "CB1 unique-id"),
        (Monotone, number_again, "CB2 monotone"),
        (Monotone, server_goes_back, "CB2 monotone"),
        (OwnView, not_in_it, "CB3 self: .* is not in it"),
        (OwnView, former_attachment, "CB3 self: .* by attachment 2, .* by attachment 1"),
        (OwnView, former_life, "CB3 self: c0#2, .* as c0#1"),
        (Disjoint, server_in_both, "CB4 disjoint: s1#1 is in"),
        (Agreed, delivered_by_none, "CB5 agreed: .* which no server delivered"),
        (Agreed, not_proposed_by_all, "CB5 agreed: .* s0#1 has not proposed it"),
        (Agreed, another_key, "CB5 agreed: .* c2#1 has not proposed it"),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_views_that_must_not_be(checker: type[Checker], plant: Callable[[Stage], None], told: str) -> None:
    """Views 7, CB1 to CB5: what is planted is found, by the checker that it is for."""
    with pytest.raises(Violation, match=told):
        plant(Stage(checker()))


def test_views_that_may_be() -> None:
    """Views 7, CB1 to CB5: servers that agreed, one view after the other, and two groups of servers with the same number."""
    for checker in (UniqueId(), Monotone(), OwnView(), Disjoint(), Agreed()):
        stage = Stage(checker)
        for name in ("c0", "c1"):
            stage.lease(name, 1.0)
        for number in (1, 2):
            here, there = view(number, "c0", server=OTHER), view(number, "c1", server=NodeId("c2", 1))
            proposed(stage, number)
            stage.tell("c2", Proposed(number, b"other", there.servers))
            stage.tell("s1", Delivered(here, True, 0.1))
            stage.tell("c2", Delivered(there, True, 0.1))
            stage.install("c0", here)
            stage.install("c1", there)


# CB6.


def left_behind(stage: Stage, over: float) -> None:
    """(a): c0 goes on to the next view; c1 counts on the one before until ``over`` seconds from then on."""
    first = view(1, "c0", "c1")
    stage.install("c0", first)
    stage.install("c1", first)
    stage.run(1.0)
    stage.install("c0", view(2, "c0"))
    stage.lease("c1", over)


def left_twice(stage: Stage, over: float) -> None:
    """(a): what counts is the first view that followed, not the last one."""
    left_behind(stage, 0.0)
    stage.lease("c1", over)
    stage.run(1.0)
    stage.install("c0", view(3, "c0"))


def two_groups(stage: Stage, over: float) -> None:
    """(b): c0 lists c1, which was never in that view; its own has been installed for ``settle`` first."""
    stage.install("c1", view(1, "c1", server=OTHER))
    stage.run(1.0)
    stage.install("c0", view(2, "c0", "c1"))
    for name in ("c0", "c1"):
        stage.lease(name, over)


def moved(stage: Stage, over: float) -> None:
    """(c): c1 leaves the attachment that the view of c0 lists, and installs no view."""
    stage.install("c0", view(1, "c0", "c1"))
    stage.run(1.0)
    stage.tell("c1", Detached(SERVER, 2, "moved"))
    stage.run(1.0)
    stage.tell("c1", Detached(SERVER, 3, "moved again"))
    stage.lease("c0", over - 1.0)


def moved_before(stage: Stage, over: float) -> None:
    """(c): c0 installs a view that lists an attachment of c1 which is over already."""
    stage.tell("c1", Detached(SERVER, 2, "moved"))
    stage.run(1.0)
    stage.install("c0", view(1, "c0", "c1"))
    stage.lease("c0", over - 1.0)


def counts_itself(stage: Stage, over: float) -> None:
    """(c): a client that left its attachment counts on the view that lists it."""
    stage.install("c0", view(1, "c0", "c1"))
    stage.tell("c0", Detached(SERVER, 2, "moved"))
    stage.lease("c0", over)


CASES = [left_behind, left_twice, two_groups, moved, moved_before, counts_itself]


@pytest.mark.parametrize("rate", [1.0, 1.01, 0.99])
@pytest.mark.parametrize("case", CASES, ids=lambda each: each.__name__)
def test_cb6_is_exact(case: Callable[[Stage, float], None], rate: float) -> None:
    """Views G6, CB6: a lease may end just before ``settle`` has passed on the clock of the client that left; not just after it."""
    on = 1.0 if case in (moved, moved_before) else rate  # whose clock counts: c0's, unless c1 moved
    bound = CONFIG.settle / on
    stage = Stage(OneGroup(CONFIG), rate=rate)
    case(stage, bound - NEAR)
    stage.run(20.0)
    stage = Stage(OneGroup(CONFIG), rate=rate)
    case(stage, bound + NEAR)
    with pytest.raises(Violation, match="CB6 one-group: "):
        stage.run(20.0)


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.__name__)
def test_cb6_comes_with_time_alone(case: Callable[[Stage, float], None]) -> None:
    """Views CB6, every step: a lease that was given long before ends a moment too late; nothing happens at that moment, and the next event
    finds it."""
    stage = Stage(OneGroup(CONFIG))
    case(stage, 8.0)
    stage.run(4.0)
    with pytest.raises(Violation, match="CB6 one-group"):
        stage.run(10.0)


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.__name__)
def test_cb6_asks_for_leases_at_the_same_time(case: Callable[[Stage, float], None]) -> None:
    """Views G6: what was given up or ended before the bound is no violation, however long it was meant to last."""
    for dies in (False, True):
        stage = Stage(OneGroup(CONFIG))
        case(stage, 8.0)
        stage.run(2.0)
        for name in ("c0", "c1"):
            if dies:
                stage.world.crash(name)
            else:
                stage.lease(name, 0.0)
        stage.run(20.0)


def test_cb6_a_lease_that_begins_anew_is_one() -> None:
    """Views G6 (a): the lease had ended in time, and comes back when it must not any more."""
    stage = Stage(OneGroup(CONFIG))
    left_behind(stage, 1.0)
    stage.run(10.0)
    with pytest.raises(Violation, match=r"CB6 one-group: c1#1 counts on 1/s0#1 .* c0#1 installed 2/s0#1 after it"):
        stage.lease("c1", 0.5)


def test_cb6_one_view_at_a_time() -> None:
    """Views G6 (b): clients in one view, and clients that do not list each other, may count on their views for ever."""
    stage = Stage(OneGroup(CONFIG))
    for name in ("c0", "c1"):
        stage.install(name, view(1, "c0", "c1"))
        stage.lease(name, 60.0)
    stage.install("c2", view(1, "c2", server=OTHER))
    stage.lease("c2", 60.0)
    stage.run(50.0)


# CB8, CB9.

TO = NodeId("c1", 1)
PATIENCE = Trip(CONFIG).patience


@pytest.mark.parametrize(
    "events, told",
    [
        ([], "told of no change"),
        ([Answered(TO, 1, Carried.TRIPPED)], "told of no change"),
        ([Changing(2)], "was never answered"),
        ([Answered(TO, 1, Carried.TRIPPED), Answered(TO, 1, Carried.TRIPPED)], "was told before"),
        ([Answered(TO, 2, Carried.TRIPPED)], "was told before or is told too late"),
    ],
    ids=["nothing", "tripped", "unanswered", "twice", "another"],
)
def test_cb8_finds_who_waits_for_nothing(events: list[Event], told: str) -> None:
    """Views G5, CB8: neither delivered nor another view nor a word of it; or never answered, or twice."""
    stage = Stage(Trip(CONFIG))
    stage.group.user("c0").here = True

    def play() -> None:
        stage.tell("c0", Said(TO, 1), *events)
        stage.run(PATIENCE + NEAR)

    with pytest.raises(Violation, match=f"CB8 trip: .*{told}"):
        play()


@pytest.mark.parametrize(
    "events",
    [
        [Answered(TO, 1, Carried.TRIPPED), Changing(2)],
        [Answered(TO, 1, Carried.TRIPPED), ViewChanged(view(2, "c0"), (), ())],
        [Answered(TO, 1, Carried.BUSY)],
        [Answered(TO, 1, Carried.NOT_IN_VIEW)],
    ],
    ids=["changing", "changed", "busy", "not in view"],
)
def test_cb8_is_content(events: list[Event]) -> None:
    """Views G5, CB8: the sender was told in time; "busy" and "not in view" are answers by themselves."""
    stage = Stage(Trip(CONFIG))
    stage.group.user("c0").here = True
    stage.tell("c0", Said(TO, 1), *events)
    stage.run(PATIENCE + NEAR)


def fail_after(stage: Stage, seconds: float, *events: tuple[str, Event]) -> None:
    """A message that is said so long after a trip, that comes to nothing a moment later, and of which nothing else is told."""
    stage.run(seconds)
    stage.tell("c0", Said(TO, 1))
    for name, event in events:
        stage.tell(name, event)
    stage.tell("c0", Answered(TO, 1, Carried.TRIPPED))
    stage.run(PATIENCE + NEAR)


def tripped(times: int) -> Stage:
    """c0 trips as often as it may."""
    stage = Stage(Trip(CONFIG))
    stage.group.user("c0").here = True
    for at in range(times):
        stage.run(TRIP_PAUSE * 2 ** (at - 1) if at else 0.0)
        stage.tell("c0", ViewTripped(None, "test"))
    return stage


@pytest.mark.parametrize("times", [1, 2, 3])
def test_cb8_knows_the_pause_between_two_trips(times: int) -> None:
    """H233, H237: in it the answer is enough. It is over after 10, 20, 40 s, and then a message that fails is a trip."""
    pause = TRIP_PAUSE * 2 ** (times - 1)
    fail_after(tripped(times), pause - NEAR)
    with pytest.raises(Violation, match=r"CB8 trip: .* told of no change"):
        fail_after(tripped(times), pause + NEAR)


@pytest.mark.parametrize("name, to", [("s1", TO), ("c0", NodeId("s1", 1))])
def test_cb8_excuses_nothing_that_a_hop_has_shown(name: str, to: NodeId) -> None:
    """Views D13, H237: a hop to the receiver failed, or one of the sender: that changes the view, in a pause as well."""
    with pytest.raises(Violation, match=r"CB8 trip: .* told of no change"):
        fail_after(tripped(1), 1.0, (name, HopFailed(to, 1)))
    fail_after(tripped(1), 1.0, ("s1", HopFailed(NodeId("s2", 1), 1)))


def test_cb8_excuses_no_silence() -> None:
    """H237: the answer itself is owed in a pause, too; and the trip of another member is no excuse."""
    stage = tripped(1)
    stage.tell("c0", Said(TO, 1))
    with pytest.raises(Violation, match=r"CB8 trip: .* told of no change"):
        stage.run(PATIENCE + NEAR)
    stage = tripped(1)
    stage.group.user("c2").here = True
    stage.tell("c2", Said(TO, 1), Answered(TO, 1, Carried.TRIPPED))
    with pytest.raises(Violation, match=r"CB8 trip: .* of c2#1"):
        stage.run(PATIENCE + NEAR)


def test_cb8_waits_for_the_stopped_and_not_for_the_dead() -> None:
    """Views G5: a stopped process learns it when it resumes; a dead one never does."""
    stage = Stage(Trip(CONFIG))
    for name in ("c0", "c2"):
        stage.group.user(name).here = True
        stage.tell(name, Said(TO, 1))
    stage.world.crash("c2")
    stage.world.stop("c0")
    stage.run(3 * PATIENCE)
    stage.world.resume("c0")
    stage.tell("c0", Paused(3 * PATIENCE))
    stage.run(PATIENCE - NEAR)
    with pytest.raises(Violation, match=r"CB8 trip: .* c0#1"):
        stage.run(2 * NEAR)


@pytest.mark.parametrize(
    "plant",
    [
        lambda stage: stage.tell("c0", Received(TO, 1), Received(TO, 1)),
        lambda stage: stage.tell("c0", Heard(TO, 1), Heard(TO, 1)),
        lambda stage: stage.tell("c0", Answered(TO, 1, Carried.DELIVERED)),
        lambda stage: (stage.tell("c1", Heard(NodeId("c2", 1), 1)), stage.tell("c0", Answered(TO, 1, Carried.DELIVERED))),
    ],
    ids=["received", "heard", "not heard", "heard of another"],
)
def test_cb9_finds_what_comes_twice_or_not_at_all(plant: Callable[[Stage], object]) -> None:
    """Views G7, CB9: twice to one life, or "delivered" without being it."""
    with pytest.raises(Violation, match="CB9 once"):
        plant(Stage(Once()))


def test_cb9_counts_by_lives() -> None:
    """Views G7, CB9: the same number of another sender, or at another receiver, is another message."""
    stage = Stage(Once())
    stage.tell("c0", Heard(TO, 1), Heard(NodeId("c2", 1), 1), Received(TO, 1), Received(TO, 2))
    stage.tell("c2", Heard(NodeId("c0", 1), 1), Received(TO, 1))
    stage.tell("c0", Answered(NodeId("c2", 1), 1, Carried.DELIVERED))


# CB7, CB10: real groups that are kept from what they should come to.


def convergence(group: ViewGroup) -> Convergence:
    return next(each for each in group.world.checkers if isinstance(each, Convergence))


def alone(group: ViewGroup) -> ViewGroup:
    """Without the other checkers, which may see the same fault before."""
    group.world.checkers[:] = [convergence(group)]
    return group


def look(group: ViewGroup, seconds: float) -> str:
    """Ask every quarter of a second, as a scenario does. What is wrong last."""
    why = "never looked"
    for _ in range(int(4 * seconds)):
        group.run(0.25)
        why = convergence(group).why(group.world)
        if not why:
            break
    return why


def no_links(group: ViewGroup, one: str, *others: str) -> None:
    for other in others:
        group.world.network.set_link(NO_LINK, one, other)
        group.world.network.set_link(NO_LINK, other, one)


def never_lets_in(group: ViewGroup) -> None:
    no_links(group, "c0", *group.servers)


def cut_in_two(group: ViewGroup) -> None:
    no_links(group, "s0", "s1", "s2")


def stands_still(group: ViewGroup) -> None:
    group.world.stop("s0")
    for client in group.clients:
        no_links(group, client, "s0")


@pytest.mark.parametrize(
    "plant, told",
    [
        (never_lets_in, r"c0#1 is attached to None|is lost"),
        (cut_in_two, r"are in 2 views"),
        (stands_still, r"s0#1 has delivered .* which has delivered"),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_cb7_finds_what_does_not_come_together(plant: Callable[[ViewGroup], None], told: str) -> None:
    """Views G4, CB7: a client that is in no view, two views of one group of servers, a server that says nothing."""
    group = alone(ViewGroup(1, 3, 5, habits=QUIET))
    group.run(3.0)
    plant(group)
    group.run(10.0)
    with pytest.raises(Violation, match=f"CB7 convergence: 15.* s after the last fault: .*{told}"):
        look(group, 30.0)


def test_cb10_finds_a_pair_that_does_not_reach_each_other() -> None:
    """Views CB10: all are in one view for ever, and what one says to another one does not arrive."""
    with without(mutations.no_failure_detection):
        group = alone(ViewGroup(1, 3, 4, habits=QUIET))
        group.run(3.0)
        for server in group.servers:
            group.hole(server, "c0", "OvData")
        with pytest.raises(Violation, match="CB10 any-to-any"):
            look(group, 60.0)


@pytest.mark.parametrize("servers, chain", [(1, False), (3, False), (5, True), (6, True)])
def test_cb7_and_cb10_are_content(servers: int, chain: bool) -> None:
    """Views CB7, CB10: groups without faults, chains that are cut into two groups (views D8) included."""
    group = ViewGroup(1, servers, 5, chain=chain, both=True)
    assert look(group, 10.0) == ""
    assert convergence(group).took < 5.0


def test_cb7_without_servers_is_the_loss_of_every_view() -> None:
    """Views D19, CB7: no server lives, so no client has a view; a client that has one is found."""
    group = alone(ViewGroup(1, 2, 2, habits=QUIET))
    group.run(3.0)
    for server in group.servers:
        group.crash(server)
    group.run(3.0)
    assert look(group, 1.0) == ""
    node = group.node("c0")
    assert node.client is not None
    node.client.lease_until = group.world.nodes["c0"].now + 100.0
    with pytest.raises(Violation, match=r"CB7 convergence: .* c0#1 has a view, and no server lives"):
        look(group, 30.0)


def test_a_quarantine_is_no_time_of_calm() -> None:
    """Views CB7, D13: while a client is kept out the time does not count, and the group converges after it."""
    group = ViewGroup(1, 1, 3, habits=QUIET)
    group.run(3.0)
    server = group.node("s0").server
    assert server is not None
    client = server.clients.all["c0"]
    group.world.step(group.world.nodes["s0"], partial(server.clients.fail, client, "planted"))
    assert look(group, 30.0) == ""


def test_a_view_is_told_with_its_members() -> None:
    """A violation says which views it means, so that a reader needs no trace for the first look."""
    stage = Stage(UniqueId())
    stage.install("c0", view(1, "c0", "c1"))
    with pytest.raises(Violation, match=r"\[s0#1: \] at c1#1, and was \[s0#1: c0#1/1@s0, c1#1/1@s0\]"):
        stage.install("c1", replace(view(1, "c0", "c1"), members=()))
