"""NSView as a pure function of link states: edges, groups, paths, members.  Spec: views 5.3, D6, D8, D9."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.features.views.protocol import nsview
from holdfast.features.views.protocol.config import CLIENTS_MAX
from holdfast.features.views.protocol.messages import Listed, Lsa
from holdfast.features.views.protocol.nsview import (
    Graph,
    diameter,
    digest_of,
    distances,
    edges,
    group_of,
    members_of,
    network_view,
    steps_from,
    within,
)
from holdfast.host import NodeId
from tests.features.views.stand import S0, S1, S2, A, B, at, member

LIVES = tuple(NodeId(f"s{i}", 1) for i in range(7))
PAIRS = [(i, j) for i in range(7) for j in range(i)]


def lsa_of(server: NodeId, up: tuple[NodeId, ...], *clients: Listed) -> Lsa:
    return Lsa(int(server.name[1:]), server, 1, up, clients)


def graph_of(links: list[tuple[int, int]], servers: int = 7) -> Graph:
    both = [(a, b) for a, b in links if a < servers and b < servers]
    return {LIVES[i]: tuple(sorted(LIVES[b if a == i else a] for a, b in both if i in (a, b))) for i in range(servers)}


def chain(servers: int) -> Graph:
    return graph_of(list(pairwise(range(servers))), servers)


def test_an_edge_needs_the_word_of_both_ends() -> None:
    """Views 5.3, D6: a server that all others dropped must not see itself in the group."""
    said_by_one = edges({S0: lsa_of(S0, (S1,)), S1: lsa_of(S1, ())})
    assert said_by_one == {S0: (), S1: ()}
    assert edges({S0: lsa_of(S0, (S1,)), S1: lsa_of(S1, (S0,))}) == {S0: (S1,), S1: (S0,)}


def test_an_edge_is_between_present_lives() -> None:
    """Views D6: a link state that names a former life says nothing of the present one."""
    former = NodeId(S1.name, S1.boot - 1)
    assert edges({S0: lsa_of(S0, (former,)), S1: lsa_of(S1, (S0,))}) == {S0: (), S1: ()}
    assert edges({S0: lsa_of(S0, (S0, S1))}) == {S0: ()}


def test_a_chain_of_four_is_one_group() -> None:
    """Views 5.3, D8: paths over two servers in between are short enough."""
    graph = chain(4)
    assert [group_of(me, graph, 3) for me in LIVES[:4]] == [LIVES[:4]] * 4


def test_a_chain_of_five_is_cut_the_same_way_by_all() -> None:
    """Views D8: without the cut the two ends see different sets, and agreement never ends."""
    graph = chain(5)
    assert [group_of(me, graph, 3) for me in LIVES[:5]] == [LIVES[:4]] * 4 + [LIVES[4:5]]


def test_a_server_whose_links_are_all_cut_is_a_group() -> None:
    """Views 5.3: the component of this server, and no more."""
    graph = graph_of([(0, 1)], 3)
    assert group_of(LIVES[2], graph, 3) == (LIVES[2],)
    assert group_of(LIVES[0], graph, 3) == LIVES[:2]


@given(st.lists(st.sampled_from(PAIRS), unique=True))
def test_groups_of_any_graph_fit_together(links: list[tuple[int, int]]) -> None:
    """Views 5.3, D8: every server is in its own group, the members of a group agree on it, and no path in it is too long."""
    graph = graph_of(links)
    groups = {me: group_of(me, graph, 3) for me in LIVES}
    for me, group in groups.items():
        assert me in group
        assert all(groups[other] == group for other in group)
        assert diameter(graph, group) <= 3


@given(st.lists(st.sampled_from(PAIRS), unique=True), st.sampled_from(LIVES))
def test_steps_lie_on_shortest_paths(links: list[tuple[int, int]], me: NodeId) -> None:
    """Views 5.7: the next server is one nearer to the target; of equally short ways it is the smallest one of the first step."""
    graph = graph_of(links)
    steps, far = steps_from(me, graph), distances(me, graph)
    assert set(steps) == set(far) - {me}
    for target, step in steps.items():
        nearer = [other for other in graph[me] if distances(other, graph).get(target, 99) == far[target] - 1]
        assert step in nearer
        if far[target] <= 2:
            assert step == min(nearer)


def test_paths_stay_within_the_group() -> None:
    """Views 5.3, 5.7: what is outside of the group is on no way to a member of it."""
    assert within(chain(5), LIVES[1:3]) == {LIVES[1]: (LIVES[2],), LIVES[2]: (LIVES[1],)}


@pytest.mark.parametrize(
    "one, other, where",
    [
        (Listed(A, 1, at(A)), Listed(A, 2, at(A)), S1),
        (Listed(A, 2, at(A)), Listed(A, 1, at(A)), S0),
        (Listed(A, 9, at(A)), Listed(NodeId(A.name, 2), 1, at(A)), S1),
        (Listed(A, 1, at(A)), Listed(A, 1, at(A)), S1),
    ],
)
def test_a_client_in_two_places_counts_once(one: Listed, other: Listed, where: NodeId) -> None:
    """Views D9: the highest (boot, attach, server) wins, whatever the order."""
    first, second = (S0, lsa_of(S0, (), one)), (S1, lsa_of(S1, (), other))
    for order in ([first, second], [second, first]):
        members, left_out = members_of(order)
        assert [found.server for found in members] == [where]
        assert left_out == 0


def test_a_view_lists_no_more_than_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Views 10: 2,000 clients; all servers leave out the same ones."""
    assert CLIENTS_MAX == 2000
    monkeypatch.setattr(nsview, "CLIENTS_MAX", 2)
    three = [Listed(NodeId(f"c{i}", 1), 1, at(A)) for i in range(3)]
    members, left_out = members_of([(S0, lsa_of(S0, (), *three))])
    assert ([found.id.name for found in members], left_out) == (["c0", "c1"], 1)


def test_the_digest_stands_for_servers_and_members() -> None:
    """Views 3 (key): every part of a key changes it."""
    keys = [
        ((S0,), (member(A),)),
        ((S0, S1), (member(A),)),
        ((NodeId(S0.name, 101),), (member(A),)),
        ((S0,), (member(A), member(B))),
        ((S0,), (member(A, attach=2),)),
        ((S0,), (member(A, server=S1),)),
        ((S0,), (member(NodeId(A.name, 2)),)),
    ]
    digests = [digest_of(servers, members) for servers, members in keys]
    assert len(set(digests)) == len(keys)
    assert {len(digest) for digest in digests} == {16}


def test_what_a_server_would_deliver() -> None:
    """Views 5.3: servers, members and ways; a member is found by its life."""
    lsas = {
        S0: lsa_of(S0, (S1,), Listed(A, 1, at(A))),
        S1: lsa_of(S1, (S0, S2), Listed(B, 1, at(B))),
        S2: lsa_of(S2, (S1,)),
    }
    ns = network_view(S0, lsas, 3)
    assert (ns.servers, ns.members) == ((S0, S1, S2), (member(A), member(B, server=S1)))
    assert ns.steps == {S1: S1, S2: S1}
    assert ns.find(B) == member(B, server=S1)
    assert ns.find(NodeId(B.name, 2)) is None
    assert ns.digest == network_view(S2, lsas, 3).digest
