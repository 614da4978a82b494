"""Paper 003, section 5.1: Moshe with an integrated messaging overlay.  One test per rule. (5.2 is in
``test_section5_zookeeper``.)"""

from __future__ import annotations

from itertools import combinations

import pytest

from holdfast.events import Changing, ViewChanged
from holdfast.features.views.protocol.facts import ClientRemoved, Delivered, LinkDown, Proposed
from holdfast.features.views.protocol.messages import StartChange
from tests.features.views.paper.groups import CHANGES, SETTLE, all_reach_all, formed, home, noted


def test_5_1_servers_monitor_their_clients() -> None:
    """Paper 003, section 5.1: "Moshe servers monitor the liveness of their attached clients"; a failure is an event of that server alone,
    and changes the view of all."""
    group = formed()
    group.note(ClientRemoved)
    server = home(group, "c0")
    group.crash("c0")
    group.run(3.0)
    assert {name for name, _ in noted(group, ClientRemoved)} == {server}
    assert {name for name, _ in noted(group, Proposed)} == set(group.servers)
    assert group.is_one()


def test_5_1_a_join_is_propagated_to_all_servers() -> None:
    """Paper 003, section 5.1: a server that generates a client join "propagates it to all other servers and starts a view change"."""
    group = formed()
    group.clients.append("c9")
    group.start("c9")
    group.run(1.0)
    for server in group.servers:
        last = [event for name, event in noted(group, Delivered) if name == server][-1]
        assert isinstance(last, Delivered)
        assert last.view.find("c9") is not None


def test_5_1_the_proposal_is_what_is_not_suspected() -> None:
    """Paper 003, section 5.1: the NSView "is the set of group members that are not currently suspect", and the server's proposal: all
    servers of a delivered view proposed the same under its number."""
    group = formed()
    group.crash("c0")
    group.crash("c1")
    group.run(3.0)
    for _, event in noted(group, Delivered):
        assert isinstance(event, Delivered)
        said = {
            (name, each.key) for name, each in noted(group, Proposed) if isinstance(each, Proposed) and each.number == event.view.number
        }
        assert {name for name, _ in said} == {server.name for server in event.view.servers}
        assert len({key for _, key in said}) == 1


def test_5_1_the_fast_path_is_one_round() -> None:
    """Paper 003, section 5.1: "whose fast path can converge in a single communication round": one proposal of each server, and the view is
    there after one way for the link state and one for the proposal."""
    group = formed(3, 9)
    group.crash("c0")
    group.run(3.0)
    assert len(noted(group, Proposed)) == 3
    took = [event.took for _, event in noted(group, Delivered) if isinstance(event, Delivered) and event.fast]
    assert len(took) == 3
    assert max(took) < 0.011  # two ways of at most 5 ms


def test_5_1_each_server_tells_its_clients_that_it_starts() -> None:
    """Paper 003, section 5.1: "each Moshe server issues a startChange event to its clients". While s1 and s2 do not agree, all clients are
    careful, for as long as it takes; a view ends that."""
    group = formed()
    group.hole("s1", "s2", "Propose", seconds=1.5)
    group.hole("s1", "s0", "Propose", seconds=1.5)
    group.crash("c0")
    group.run(3.0)
    assert sum(group.world.nodes[name].endpoint.sent[StartChange] for name in group.servers) >= 5
    for name in group.participants:
        heard = [type(event) for who, event in noted(group, Changing, ViewChanged) if who == name]
        assert heard == [Changing, ViewChanged]


def test_5_1_no_stale_view_is_delivered() -> None:
    """Paper 003, section 5.1: Moshe "is designed to avoid delivering stale views and will thus wait until all servers agree on the set of
    known failures" (views D5): a server that knows of a failure delivers no view with the failed client any more."""
    group = formed(3, 9)
    group.note(ClientRemoved)
    known: dict[str, set[str]] = {server: set() for server in group.servers}
    for name in group.clients[:4]:
        group.crash(name)
        group.run(0.3)
    group.run(3.0)
    for _, name, event in group.events:
        if isinstance(event, ClientRemoved):
            known[name].add(event.client.name)
        if isinstance(event, Delivered):
            assert not known[name] & {member.id.name for member in event.view.members}
    assert group.is_one()


def test_5_1_messages_go_through_the_client_s_server() -> None:
    """Paper 003, section 5.1: "Moshe relays the message through the client's membership server". With a hole between a client and its own
    server nothing goes by another one; the client moves instead (views D13)."""
    group = formed()
    server = home(group, "c0")
    group.hole("c0", server, "OvData", seconds=10.0)
    group.say("c0", "c1")
    group.run(3.0)
    assert home(group, "c0") != server
    assert group.is_one()


def test_5_1_clients_send_and_receive_datagrams() -> None:
    """Paper 003, section 5.1: "This API allows client applications to send and receive datagrams between each other": in every direction
    between any two, and what no datagram of the network holds as well (D30)."""
    group = formed()
    assert all_reach_all(group) == 3
    group.say("c0", "c5", large=True)
    group.run(1.0)
    assert noted(group, *CHANGES) == []


@pytest.mark.parametrize("cut", list(combinations(range(3), 2)))
def test_5_1_agreement_survives_a_cut_between_servers(cut: tuple[int, int]) -> None:
    """Paper 003, section 5.1: "In contrast, the original Moshe design fails to reach agreement if any link between servers fails"."""
    group = formed()
    group.cut([f"s{cut[0]}"], [f"s{cut[1]}"])
    group.run(2.0)
    group.crash("c0")
    group.run(3.0)
    assert group.is_one()


def test_5_1_a_significant_fraction_of_the_links_may_be_cut() -> None:
    """Paper 003, section 5.1: "allows Moshe servers to reach agreement even if a significant fraction of the inter-server links are cut
    (but do not create a partition)": six of ten links of five servers."""
    group = formed(5, 5)
    group.note(LinkDown)
    for a, b in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):  # a star round s4 is left
        group.cut([f"s{a}"], [f"s{b}"])
    group.run(SETTLE)
    assert len(noted(group, LinkDown)) == 12
    assert group.is_one()
    group.crash("c0")
    group.run(3.0)
    assert group.is_one()
    assert all_reach_all(group) <= 4


def test_5_1_paths_have_up_to_two_intermediate_servers() -> None:
    """Paper 003, section 5.1: "supports paths with up to two intermediate servers": a row of four servers is one group, and its ends reach
    each other over five hops (D7); a row of five is cut (views D8)."""
    group = formed(4, 8, chain=True)
    assert all_reach_all(group) == 5
    assert group.is_one()
