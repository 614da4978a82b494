"""Paper 003, section 4: the circuit breaker.  One test per rule, and per failure case of Figure 5."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.events import Changing, ViewChanged, ViewLost, ViewTripped
from holdfast.features.views.lab.users import Heard
from holdfast.features.views.protocol.facts import Carried as CarriedFact
from holdfast.features.views.protocol.facts import Delivered
from holdfast.host import Carried, ViewId, ViewMember, ViewState
from tests.features.views.paper.groups import CHANGES, SETTLE, all_reach_all, figure_5, formed, home, noted, outcomes


def test_4_all_members_believe_they_are_members() -> None:
    """Paper 003, section 4: "all members of a group believe they are members, and no non-member nodes do"."""
    group = formed()
    group.crash("c0")
    group.cut(["c1"], group.servers)
    group.run(SETTLE)
    views = {name: group.leased(name) for name in group.participants}
    for name, view in views.items():
        assert (view is None) == (name == "c1")
        if view is not None:
            assert [member.id.name for member in view.members] == ["c2", "c3", "c4", "c5"]


def test_4_any_two_members_can_communicate() -> None:
    """Paper 003, section 4: "any two members of a group are able to communicate with one another over a messaging overlay, even in the
    face of asymmetric or non-transitive network cuts". No two clients reach each other directly here."""
    group = formed()
    for at, name in enumerate(group.clients):
        group.cut([name], [other for other in group.clients if other != name], both=at % 2 == 0)
    assert all_reach_all(group) <= 3
    assert noted(group, *CHANGES) == []


def test_4_a_path_has_at_most_three_hops() -> None:
    """Paper 003, section 4: "at most three hops consisting of the links to their respective membership servers and possibly a link between
    the membership servers (if they do not share the same server)"."""
    group = formed(3, 9)
    assert all_reach_all(group) == 3
    for _, event in noted(group, CarriedFact):
        assert isinstance(event, CarriedFact)
    hops = {
        (home(group, name) == home(group, event.to.name), event.hops)
        for name, event in noted(group, CarriedFact)
        if isinstance(event, CarriedFact)
    }
    assert hops == {(True, 2), (False, 3)}


def test_4_each_node_has_exactly_one_server() -> None:
    """Paper 003, section 4: "Each node in the system associates with exactly one membership server", also while it moves."""
    group = formed()
    group.crash("s0")
    for _ in range(40):
        group.run(0.1)
        for view in {view.id: view for name in group.clients if (view := group.leased(name)) is not None}.values():
            assert len({member.id for member in view.members}) == view.size
    homes = [home(group, name) for name in group.clients]
    assert set(homes) <= {"s1", "s2"}
    listed = [listed.life.name for server in ("s1", "s2") for listed in group.node(server).server.states.mine.clients]  # type: ignore[union-attr]
    assert sorted(listed) == group.clients


def test_4_1_views_have_unique_and_increasing_identifiers() -> None:
    """Paper 003, section 4.1: "views have unique, monotonically increasing identifiers within a partition"; across a merge, too
    (views D20)."""
    group = formed()
    for _ in range(3):
        cuts = group.cut(["s0"], ["s1", "s2"])
        group.run(3.0)
        group.heal(cuts)
        group.run(3.0)
    assert group.is_one()
    for name in group.clients:
        ids = [event.view.id for who, event in noted(group, ViewChanged) if who == name and isinstance(event, ViewChanged)]
        assert len(ids) >= 6
        assert all(a.number < b.number for a, b in pairwise(ids))
    known: dict[ViewId, tuple[ViewMember, ...]] = {}
    for _, event in noted(group, ViewChanged, Delivered):
        assert isinstance(event, ViewChanged | Delivered)
        assert known.setdefault(event.view.id, event.view.members) == event.view.members


def test_4_1_updates_come_from_the_own_server_only() -> None:
    """Paper 003, section 4.1: a participant "receives group membership updates from that server only". A view of another server is none."""
    group = formed()
    group.crash("c5")
    group.run(3.0)
    for name, event in noted(group, ViewChanged):
        assert isinstance(event, ViewChanged)
        mine = event.view.find(name)
        assert mine is not None
        assert mine.server.name == home(group, name)
        assert mine.server in event.view.servers


def test_4_1_participants_fail_over() -> None:
    """Paper 003, section 4.1: "though they may fail over to other servers"; without losing their view on the way (views D28)."""
    group = formed(3, 12)
    moved = [name for name in group.clients if home(group, name) == "s0"]
    assert moved
    group.crash("s0")
    group.run(3.0)
    assert group.is_one()
    assert all(home(group, name) in ("s1", "s2") for name in moved)
    assert noted(group, ViewLost) == []


def test_4_1_join_and_leave_are_explicit() -> None:
    """Paper 003, section 4.1: "Participants inform their server of potential changes in group membership with explicit join/leave
    requests". Either is a view of the others within a round trip or two, and not after a timeout."""
    group = formed()
    group.clients.append("c9")
    group.start("c9")
    began = group.world.now
    assert group.until(group.is_one, 1.0)
    host = group.world.nodes["c9"]
    group.run(1.0)
    group.world.step(host, group.node("c9").withdraw)
    left = group.world.now
    assert group.until(lambda: group.is_one(group.clients[:-1]), 1.0)
    assert group.world.now - left < 0.3
    assert left - began < 2.3


def test_4_1_views_are_delivered_to_all_members() -> None:
    """Paper 003, section 4.1: "The group membership service delivers a succession of views to all of the members"."""
    group = formed()
    group.crash("c5")
    group.run(3.0)
    last = {name: group.leased(name) for name in group.participants}
    assert len({view.id for view in last.values() if view is not None}) == 1
    assert {name for name, _ in noted(group, ViewChanged)} == set(group.participants)


def test_4_1_members_are_told_when_there_can_be_no_view() -> None:
    """Paper 003, section 4.1: "The membership service will inform the impacted group members" when it cannot agree: no server answers."""
    group = formed()
    for server in group.servers:
        group.crash(server)
    group.run(3.0)
    assert {name for name, _ in noted(group, ViewLost)} == set(group.clients)
    assert all(group.node(name).state is ViewState.LOST and group.node(name).view is None for name in group.clients)


def test_4_2_a_message_that_cannot_be_delivered_changes_the_view() -> None:
    """Paper 003, section 4.2: a node that cannot reach another one through the overlay "is guaranteed to receive a new view", from which
    "likely the previously troublesome node" is gone. Heartbeats pass here, only what the overlay carries does not."""
    group = formed()
    for server in group.servers:
        group.hole(server, "c5", "OvData", seconds=4.0)
    number = group.say("c0", "c5")
    group.run(2.0)
    changed = [event for name, event in noted(group, ViewChanged) if name == "c0"]
    assert isinstance(changed[0], ViewChanged)
    assert [life.name for life in changed[0].removed] == ["c5"]
    group.run(3.0)
    assert outcomes(group, "c0")[number] is Carried.TRIPPED


def test_4_2_the_overlay_succeeds_while_the_view_is_valid() -> None:
    """Paper 003, section 4.2: "the messaging overlay will always succeed when the view is valid and fail when a new view must be
    delivered". The clients of a server that is cut off: the message fails, and the sender's next view is without the receiver."""
    group = figure_5()
    group.cut(["s0"], ["s1", "s2"])
    number = group.say("c0", "c1")
    group.run(SETTLE)
    assert outcomes(group, "c0")[number] is Carried.TRIPPED
    view = group.leased("c0")
    assert view is not None
    assert view.find("c1") is None


def test_4_2_the_breaker_resets_with_a_new_view_for_all() -> None:
    """Paper 003, section 4.2, Figure 4: the breaker trips "and resets by presenting a new view to each node in the old group": here a user
    says so; the events of every member come in the order of the figure, and the view lists them all again."""
    group = formed()
    host = group.world.nodes["c0"]
    group.world.step(host, lambda: None if group.node("c0").trip("it was said so") else pytest.fail("refused"))
    group.run(2.0)
    assert group.is_one()
    for name in group.clients:
        heard = [type(event) for who, event in noted(group, *CHANGES) if who == name]
        # A view that is agreed at once takes the place of the word that a change begins.
        assert heard in ([[ViewTripped, ViewLost, ViewChanged]] if name == "c0" else [[Changing, ViewChanged], [ViewChanged]])


def test_4_2_the_sequence_of_figure_4() -> None:
    """Paper 003, Figure 4: cut; a message by the overlay instead; the failure; startChange; a new view."""
    group = formed(3, 3)
    group.cut(["c0"], ["c1"])
    first = group.say("c0", "c1")
    group.run(1.0)
    assert ("c1", Heard) in [(name, type(event)) for name, event in noted(group, Heard)]
    group.cut(group.servers, ["c1"])
    group.cut(["c1"], group.servers)
    second = group.say("c0", "c1")
    group.run(4.5)
    assert (outcomes(group, "c0")[first], outcomes(group, "c0")[second]) == (Carried.DELIVERED, Carried.TRIPPED)
    told = [type(event) for name, event in noted(group, Heard, Changing, ViewChanged) if name == "c0"]
    assert told.index(Changing) < told.index(ViewChanged)
    view = group.leased("c0")
    assert view is not None
    assert view.find("c1") is None


def test_4_3_case_1_a_server_and_its_nodes_are_cut_off() -> None:
    """Paper 003, section 4.3, Figure 5 case 1, Table 1: trips, two views of 2 and 4; one of 6 again after the heal."""
    group = figure_5()
    cuts = group.cut(["s0", "c0", "c3"], ["s1", "s2", "c1", "c2", "c4", "c5"])
    group.run(SETTLE)
    assert group.views() == [["c0", "c3"], ["c1", "c2", "c4", "c5"]]
    assert noted(group, ViewLost) == []
    group.heal(cuts)
    assert group.until(group.is_one, 3.0)


def test_4_3_case_2_nodes_are_cut_from_each_other() -> None:
    """Paper 003, section 4.3, Figure 5 case 2, Table 1: "exploit the circuit breaker's messaging overlay while preserving the group
    membership": one view of 6, and no event."""
    group = figure_5()
    group.cut(["c0"], ["c1", "c2"])
    group.cut(["c3"], ["c4"])
    assert all_reach_all(group) == 3
    group.run(SETTLE)
    assert group.views() == [group.clients]
    assert noted(group, *CHANGES) == []


def test_4_3_case_3_the_servers_are_partitioned() -> None:
    """Paper 003, section 4.3, Figure 5 case 3, Table 1: {S_a} and {S_b, S_c}: trips, two views of 2 and 4, although all nodes could still
    talk to each other directly."""
    group = figure_5()
    group.cut(["s0"], ["s1", "s2"])
    group.run(SETTLE)
    assert group.views() == [["c0", "c3"], ["c1", "c2", "c4", "c5"]]


def test_4_3_case_4_one_link_of_the_mesh_is_cut() -> None:
    """Paper 003, section 4.3, Figure 5 case 4, Table 1: with Moshe it does not trip: one view of 6, and servers route round the cut."""
    group = figure_5()
    group.cut(["s0"], ["s2"])
    group.run(SETTLE)
    assert group.views() == [group.clients]
    assert noted(group, *CHANGES) == []
    assert all_reach_all(group) == 4


def test_4_3_servers_may_be_nodes_as_well() -> None:
    """Paper 003, section 4.3: servers are co-located with application nodes; a full partition then takes a server with its node."""
    group = formed(3, 0, both=True)
    assert [home(group, name) for name in group.servers] == group.servers
    group.cut(["s0"], ["s1", "s2"])
    group.run(SETTLE)
    assert group.views() == [["s0"], ["s1", "s2"]]
    group.heal()
    assert group.until(group.is_one, 3.0)


def test_4_3_nodes_without_a_server_are_removed() -> None:
    """Paper 003, section 4.3: "Nodes not connected to a membership server are removed from the current view" and know it."""
    group = formed()
    group.cut(["c0"], group.servers)
    group.run(3.0)
    assert group.is_one(group.clients[1:])
    assert group.node("c0").state is ViewState.LOST
