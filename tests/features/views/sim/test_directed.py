"""Schedules made for one rule each: what happens with it, and what breaks without it.

Spec: views 5.8, 7 (CB6 to CB8), D8, D11-D13, D24-D28. All runs are under the checkers CB1 to CB6, CB8 and CB9 of ``features/views/lab``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest

from holdfast.events import Changing, ViewChanged, ViewLost
from holdfast.features.views.lab import mutations
from holdfast.features.views.lab.groups import ViewGroup
from holdfast.features.views.lab.users import Answered, Habits
from holdfast.features.views.protocol.client import MISSING
from holdfast.features.views.protocol.facts import Carried as CarriedFact
from holdfast.features.views.protocol.facts import Delivered, Detached, LinkDown
from holdfast.host import Carried, NodeId
from holdfast.lab.mutation import without
from holdfast.lab.violation import Violation

CALM = 6.0  # seconds until a group has a view that is settled
SOON = 15.0  # seconds: CB-H1 and CB7
SETTLE = 5.5  # seconds: G6 at ``lan`` numbers, and a little


TWO_GROUPS = r"CB6 one-group: .*(installed .* after it|both count on settled views)"
QUIET = Habits(says=0.0)  # no messages: what does not arrive would be noticed (D13), and another view would come


def formed(group: ViewGroup) -> ViewGroup:
    group.run(CALM)
    assert group.is_one()
    return group


def split(group: ViewGroup, *sides: Iterable[str]) -> bool:
    """These views, and no other ones."""
    return all(group.is_one(side) for side in sides) and len(group.views()) == len(sides)


def at_homes(group: ViewGroup, *servers: str) -> list[str]:
    """The clients that are attached to these servers."""
    return [name for name in group.participants if str(group.node(name).survey().server).partition("#")[0] in servers]


# Failure cases of the paper's Figure 5, with the sizes of its Table 1: three servers, two clients each that reach no other server.


def figure_5() -> ViewGroup:
    group = formed(ViewGroup(5, 3, 6, homes=True))
    assert [at_homes(group, server) for server in group.servers] == [["c0", "c3"], ["c1", "c4"], ["c2", "c5"]]
    group.note(ViewChanged, Changing, ViewLost)
    return group


def test_case_1_a_server_with_its_clients_is_cut_off() -> None:
    """Views 5.8, case 1: two views, of two and of four; and one of six when the cut is healed."""
    group = figure_5()
    cuts = group.cut(["s0", "c0", "c3"], ["s1", "s2", "c1", "c2", "c4", "c5"])
    group.run(SETTLE)
    assert split(group, ["c0", "c3"], ["c1", "c2", "c4", "c5"])
    group.heal(cuts)
    assert group.until(group.is_one, 3.0)


def test_case_2_clients_are_cut_from_each_other() -> None:
    """Views 5.8, case 2: no view change; the overlay carries what cannot go directly."""
    group = figure_5()
    group.note(Answered)
    group.cut(["c0", "c3"], ["c1", "c2", "c4", "c5"])
    number = group.say("c0", "c5")
    group.run(SETTLE)
    assert group.is_one()
    assert not [event for _, _, event in group.events if not isinstance(event, Answered)]
    assert ("c0", number, Carried.DELIVERED) in [(name, e.number, e.outcome) for _, name, e in group.events if isinstance(e, Answered)]


def test_case_3_servers_are_cut_from_each_other() -> None:
    """Views 5.8, case 3: two views, although all clients could still talk to each other."""
    group = figure_5()
    group.cut(["s0"], ["s1", "s2"])
    group.run(SETTLE)
    assert split(group, ["c0", "c3"], ["c1", "c2", "c4", "c5"])


def test_case_4_one_link_of_servers_is_cut() -> None:
    """Views 5.8, case 4: no view change; the third server brings messages round the cut, over one hop more."""
    group = figure_5()
    group.cut(["s0"], ["s2"])
    group.run(SETTLE)
    assert group.is_one()
    assert group.events == []
    group.note(CarriedFact)
    group.say("c0", "c5")
    group.run(1.0)
    assert 4 in [event.hops for _, name, event in group.events if name == "c0" and isinstance(event, CarriedFact)]


# Link states that do not pass.


@pytest.mark.parametrize("servers", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_hole_for_link_states_makes_two_clean_views(servers: int, seed: int) -> None:
    """Views D24, D25, CB-H1: heartbeats pass, link states of s0 do not, for 60 s. CB6 holds, and 15 s later each client is leased in one of
    two views; from then on no client loses its view, although the servers try their link again and again."""
    group = formed(ViewGroup(seed, servers, 6))
    hear_nothing_of_s0(group)
    group.run(SOON)
    behind = at_homes(group, *group.servers[1:])
    assert split(group, at_homes(group, "s0"), behind)
    group.note(ViewLost)
    group.run(60.0 - SOON)
    assert split(group, at_homes(group, "s0"), behind)
    assert group.events == []
    group.world.network.clear()
    assert group.until(group.is_one, SOON)


def hear_nothing_of_s0(group: ViewGroup) -> None:
    """Link states of s0 reach no server from now on, and change with the death of a client of it."""
    for server in group.servers[1:]:
        group.hole("s0", server, "Lsa")
    group.crash(at_homes(group, "s0")[0])


def round_about() -> ViewGroup:
    """The link state of s0 changes although no view does: its link to s2 is cut, and s1 links both. s1 does not hear of it."""
    group = formed(ViewGroup(1, 3, 6, habits=QUIET))
    group.hole("s0", "s1", "Lsa")
    group.cut(["s0"], ["s2"])
    return group


def test_what_s1_does_not_hear_makes_two_clean_views() -> None:
    """Views D24, D25, D26: the schedule of the next test harms nothing when no rule is missing."""
    group = round_about()
    group.run(SOON)
    assert split(group, at_homes(group, "s0"), at_homes(group, "s1", "s2"))


def test_without_numbers_two_groups_live_for_ever() -> None:
    """Views D24, D26: s1 and s2 go on without s0, which has no reason to change its view and vouches for it. CB6 sees clients of s0
    count on a view that the other members have left."""
    with without(mutations.no_numbers), pytest.raises(Violation, match=TWO_GROUPS):
        round_about().run(SOON)


def test_link_states_that_do_not_change_need_not_pass() -> None:
    """Views D24: heartbeats say that the link state of s0 is still the one that s1 holds, so nothing happens."""
    group = formed(ViewGroup(1, 2, 6, habits=QUIET))
    group.note(ViewChanged, ViewLost)
    group.hole("s0", "s1", "Lsa")
    group.run(60.0)
    assert group.is_one()
    assert group.events == []


def test_with_ages_from_arrival_two_groups_live_for_ever() -> None:
    """Views D24, the first version: s1 lets the link state of s0 expire and goes on alone; s1 still lists s0, which vouches for ever."""
    with without(mutations.ages_from_arrival):
        group = formed(ViewGroup(1, 2, 6, habits=QUIET))
        group.hole("s0", "s1", "Lsa")
        with pytest.raises(Violation, match=TWO_GROUPS):
            group.run(60.0)


def test_without_d25_the_other_side_has_no_view() -> None:
    """Views D25: a link that carries heartbeats and no link states stays up. That is safe by D24 and D26, but s0 waits for s1 for ever."""
    with without(mutations.keeps_links):
        group = round_about()
        group.run(60.0)
        assert [group.leased(name) for name in at_homes(group, "s0")] == [None] * len(at_homes(group, "s0"))
        assert group.is_one(at_homes(group, "s1", "s2"))


# Chains, deaf clients, dead servers, paths that pass heartbeats alone.


@pytest.mark.parametrize("servers, sizes", [(4, [4]), (5, [4, 1]), (6, [4, 2])])
def test_a_chain_is_cut_the_same_way_everywhere(servers: int, sizes: list[int]) -> None:
    """Views 5.3, D8: up to four servers in a row make one group; of a longer row the first four do, and the rest another one."""
    group = ViewGroup(2, servers, 9, chain=True)
    group.run(CALM)
    parts, rest = [], list(group.servers)
    for size in sizes:
        parts.append(at_homes(group, *rest[:size]))
        rest = rest[size:]
    assert split(group, *[part for part in parts if part])
    assert {len(view.servers) for name in group.participants if (view := group.leased(name)) is not None} == set(sizes)


def test_without_the_cut_a_chain_never_agrees() -> None:
    """Views D8, CB7: with the paper's reachability the two ends of a row of five see other servers than its middle, for ever."""
    with without(mutations.whole_neighbourhood):
        group = ViewGroup(2, 5, 9, chain=True)
        group.run(30.0)
        assert [group.leased(name) for name in group.participants] == [None] * 9


def changes_by_a_deaf_client() -> int:
    """Views that a server delivers in 20 s in which one client hears none of them."""
    group = formed(ViewGroup(3, 3, 4))
    group.note(Delivered)
    group.cut(group.servers, ["c0"], both=False)
    group.run(20.0)
    return sum(name == "s0" for _, name, _ in group.events)


def test_a_deaf_client_changes_no_views() -> None:
    """Views D11: attaching is a handshake, so a client that hears no server leaves the view once and is not let in again."""
    assert changes_by_a_deaf_client() == 1


def test_without_the_handshake_a_deaf_client_changes_views_for_ever() -> None:
    """Views D11: the client tries one server after the other, and is in a view each time."""
    with without(mutations.no_handshake):
        assert changes_by_a_deaf_client() > 5


def views_lost_with_a_server(seed: int) -> int:
    """Of 12 clients of three servers, when one server is killed."""
    group = formed(ViewGroup(seed, 3, 12, habits=QUIET))
    group.note(ViewLost)
    assert len(at_homes(group, "s1")) > 0
    survivors = NodeId("s0", 1), NodeId("s2", 1)
    group.crash("s1")
    assert group.until(lambda: group.is_one() and {view.servers for view in map(group.leased, group.clients) if view} == {survivors}, 1.5)
    group.run(SETTLE)
    return len(group.events)


def test_no_lease_ends_when_a_server_dies() -> None:
    """Views D28: its clients are with another server before their leases end, and all are in one view within 1.5 s."""
    assert [views_lost_with_a_server(seed) for seed in range(5)] == [0] * 5


@pytest.mark.parametrize("seed", range(5))
def test_a_dead_server_is_left_out_when_its_silence_is_long_enough(seed: int) -> None:
    """H255, D28: all have a view without it ``link_timeout`` after the last question that it answered, and the time of a few messages. So
    half a heartbeat of the lease is left at least: it may count from a ping of one heartbeat before the death, and 6 - 1 - 4 are one."""
    group = formed(ViewGroup(seed, 3, 12, habits=QUIET))
    group.note(Delivered)
    group.crash("s1")
    killed_at, config = group.world.now, group.config
    group.run(SETTLE)
    assert group.is_one()
    views = [(at, event.view) for at, _, event in group.events if isinstance(event, Delivered)]
    without = next(at for at, view in views if len(view.servers) == 2)
    assert without - killed_at <= config.link_timeout + 0.2 * config.heartbeat
    assert config.held - config.heartbeat - (without - killed_at) >= 0.5 * config.heartbeat


def test_without_early_fail_over_leases_end() -> None:
    """Views D28: with a silence of a whole lease before the next server is tried, every client of the dead one loses its view."""
    with without(mutations.late_fail_over):
        group = formed(ViewGroup(0, 3, 12, habits=QUIET))
        group.note(ViewLost)
        orphans = at_homes(group, "s1")
        group.crash("s1")
        group.run(SETTLE)
        assert sorted({name for _, name, _ in group.events}) == sorted(orphans)


def views_do_not_arrive(servers: int, *silent: str) -> ViewGroup:
    """c0 gets no view from these servers from now on (none: from its own), everything else passes, and another member dies."""
    group = formed(ViewGroup(1, servers, 4, habits=QUIET))
    group.note(ViewLost, Detached)
    for server in silent or (home(group, "c0"),):
        group.hole(server, "c0", "ViewMsg")
    group.crash("c3")
    return group


def home(group: ViewGroup, client: str) -> str:
    return str(group.node(client).survey().server).partition("#")[0]


def moves(group: ViewGroup) -> list[float]:
    """When c0 left its server because no view arrived."""
    return [at for at, name, event in group.events if name == "c0" and isinstance(event, Detached) and event.why == MISSING]


def test_a_view_that_does_not_arrive_is_had_from_the_next_server() -> None:
    """H235: pongs pass and name a view that does not arrive, as where TCP is closed and a view is larger than a datagram."""
    group = views_do_not_arrive(3)
    former = home(group, "c0")
    assert group.until(group.is_one, 2 * SETTLE)
    assert len(moves(group)) == 1
    assert home(group, "c0") != former
    (why,) = [event.why for _, _, event in group.events if isinstance(event, ViewLost)]
    assert "its view does not arrive" in why
    group.events.clear()
    group.run(30.0)
    assert group.events == []


def test_without_that_a_client_waits_for_ever() -> None:
    """H235: its server answers, so it never tries another one."""
    with without(mutations.patient_clients):
        group = views_do_not_arrive(3)
        group.run(30.0)
        assert group.leased("c0") is None
        assert moves(group) == []


def test_a_client_of_one_server_waits() -> None:
    """H235: there is no other server, and a new attachment would change the view of all. It says why it has none; then it gets one."""
    group = views_do_not_arrive(1)
    group.run(30.0)
    assert group.leased("c0") is None
    assert moves(group) == []
    assert "its view does not arrive" in group.node("c0").survey().lost_why
    group.world.network.clear()
    assert group.until(group.is_one, 1.0)


def test_a_client_that_no_view_reaches_moves_less_and_less_often() -> None:
    """H235: each move changes the view of all other members, so the pause between two of them doubles."""
    group = views_do_not_arrive(3, "s0", "s1", "s2")
    group.run(200.0)
    at = moves(group)
    pauses = [later - earlier for earlier, later in pairwise(at)]
    assert [round(pause / group.config.heartbeat) for pause in pauses] == [10, 16, 32, 64, 128, 256]
    assert {name for _, name, event in group.events if isinstance(event, ViewLost)} == {"c0"}
    assert group.views() == [["c0", "c1", "c2"], ["c0 alone"]]


def talk_to_the_deaf(seconds: float) -> ViewGroup:
    """Overlay messages do not reach c0, and everything else does; c1 goes on talking to it while it is in its view."""
    group = formed(ViewGroup(4, 3, 4, habits=QUIET))
    group.note(ViewChanged, Answered)
    for server in group.servers:
        group.hole(server, "c0", "OvData")
    for _ in range(int(2 * seconds)):
        group.say("c1", "c0")
        group.run(0.5)
    return group


def test_a_message_that_does_not_pass_changes_the_view() -> None:
    """Views D13, G5: a hop that uses up its tries is a failure detection, so another view comes, and c0 is not in it."""
    group = talk_to_the_deaf(20.0)
    views = [event.view for _, name, event in group.events if name == "c1" and isinstance(event, ViewChanged)]
    assert views[0].find("c0") is None
    outcomes = {event.outcome for _, _, event in group.events if isinstance(event, Answered)}
    assert outcomes == {Carried.TRIPPED, Carried.NOT_IN_VIEW}


def test_without_failure_detection_the_sender_waits_for_nothing() -> None:
    """Views D13, CB8: heartbeats keep c0 in the view. The sender trips once, and what it says afterwards changes nothing."""
    with without(mutations.no_failure_detection), pytest.raises(Violation, match=r"CB8 trip: .* told of no change"):
        talk_to_the_deaf(20.0)


# Faults that the lab found.


def quarantines(group: ViewGroup, *servers: str) -> list[float]:
    """How long each link of these servers that went down is kept down."""
    return [event.quarantine for _, name, event in group.events if name in servers and isinstance(event, LinkDown)]


def are_linked(group: ViewGroup) -> bool:
    """The servers are in one view with each other."""
    return {len(view.servers) for name in group.clients if (view := group.leased(name)) is not None} == {len(group.servers)}


@pytest.mark.parametrize("seed", range(3))
def test_what_is_under_way_fails_once(seed: int) -> None:
    """Views D13: messages do not pass between two servers for a second. That is one failure however many there are, so the link is in
    quarantine for two seconds and not for four, eight, sixteen or sixty."""
    group = formed(ViewGroup(seed, 2, 6, habits=Habits(says=0.05)))
    group.note(LinkDown)
    group.hole("s0", "s1", "OvData", seconds=1.0)
    group.run(1.0)
    assert quarantines(group, "s0") == [2.0]
    assert group.until(lambda: are_linked(group) and group.is_one(), 4.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_server_that_restarts_is_linked_at_once(seed: int) -> None:
    """Views D13: messages did not reach its former life; its next one is in no quarantine."""
    group = formed(ViewGroup(seed, 3, 6, habits=Habits(says=0.05)))
    group.note(LinkDown)
    group.crash("s1")
    group.run(1.0)
    assert 2.0 in quarantines(group, "s0", "s2")
    group.start("s1")
    assert group.until(lambda: are_linked(group), 1.0)


def test_a_client_that_restarts_in_heavy_traffic_is_let_in_at_once() -> None:
    """Views D13: the next life of a client is in no quarantine, although messages did not reach the former one."""
    group = formed(ViewGroup(1, 1, 6, habits=Habits(says=0.05)))
    for _ in range(4):
        group.crash("c1")
        group.run(1.0)
        group.start("c1")
        assert group.until(lambda: group.leased("c1") is not None and group.is_one(), 0.5)
        group.run(1.0)


def test_what_came_before_a_client_left_does_not_come_again() -> None:
    """Views G7, CB9: the sender hears no acknowledgement and repeats itself, while the receiver leaves the view and comes back."""
    group = formed(ViewGroup(1, 1, 2, habits=Habits(says=0.0)))
    group.hole("c1", "s0", "HopAck")
    group.note(Answered)
    group.say("c0", "c1")
    group.run(0.1)
    host = group.world.nodes["c1"]
    group.world.step(host, group.node("c1").withdraw)
    group.world.step(host, group.node("c1").take_part)
    group.run(10.0)
    assert [event.outcome for _, _, event in group.events if isinstance(event, Answered)] == [Carried.TRIPPED]


def test_a_client_that_left_does_not_fail_over() -> None:
    """Views 5.6, 5.7: a message that was on its way to the server when the agent left the view fails later. The client that is over
    attaches nowhere, and attach numbers of the agent only grow (views G2)."""
    group = formed(ViewGroup(1, 3, 2, habits=QUIET))
    group.note(Detached)
    for server in group.servers:
        group.hole("c0", server, "OvData")
    group.say("c0", "c1")
    group.run(0.5)
    host = group.world.nodes["c0"]
    group.world.step(host, group.node("c0").withdraw)
    group.world.step(host, group.node("c0").take_part)
    group.run(5.0)
    assert [event.why for _, name, event in group.events if name == "c0" and isinstance(event, Detached)] == ["it begins"]
    assert group.is_one()
