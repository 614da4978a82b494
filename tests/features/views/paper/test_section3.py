"""Paper 003, section 3: what a group membership must bear.  One test per claim; the numbers follow the paper's sections."""

from __future__ import annotations

from itertools import combinations
from random import Random

from holdfast.events import ViewChanged, ViewLost
from tests.features.views.paper.groups import CHANGES, SETTLE, all_reach_all, formed, home, noted


def test_3_1_a_node_that_failed_and_one_that_is_cut_off_look_the_same() -> None:
    """Paper 003, section 3.1: "it is impossible to tell the difference between a node failure and a network partition"; both change the
    view of the others in the same way, and the one that still runs knows that it has none."""
    crashed, cut = formed(), formed()
    crashed.crash("c0")
    cut.cut(["c0"], [*cut.servers, *cut.clients[1:]])
    for group in (crashed, cut):
        group.run(3.0)
        assert group.is_one(group.clients[1:])
    assert cut.leased("c0") is None
    assert ("c0", ViewLost) in [(name, type(event)) for name, event in noted(cut, ViewLost)]


def test_3_1_both_sides_of_a_partition_are_groups() -> None:
    """Paper 003, section 3.1: "Nodes can be explicitly separated into disjoint groups on either side of the partition(s) which operate
    independently". Each side knows its size and that of the whole (``fleet``), which is what |v_i|/n needs."""
    group = formed()
    side = ["s0", *(name for name in group.clients if home(group, name) == "s0")]
    other = [name for name in [*group.servers, *group.clients] if name not in side]
    group.cut(side, other)
    group.run(SETTLE + 3)
    sizes = []
    for members in ([name for name in side if name in group.clients], [name for name in other if name in group.clients]):
        assert group.is_one(members)
        view = group.leased(members[0])
        assert view is not None
        assert view.fleet == 6
        assert all(group.node(name).settled for name in members)
        sizes.append(view.size)
    assert sum(sizes) == 6


def test_3_1_limits_that_follow_the_size_never_exceed_the_whole() -> None:
    """Paper 003, section 3.1: "ensuring that total usage across all partitions remains <= L_global". Every client may use 1/n of the limit
    for each member of its view, shared among them, once the view is settled, and 1/n before: the sum is never above one."""
    group = formed()
    for step in range(120):
        if step == 20:
            cuts = group.cut(["s0", "c0", "c1"], ["s1", "s2", "c2", "c3", "c4", "c5"])
        if step == 80:
            group.heal(cuts)
        group.run(0.25)
        used = {}
        for name in group.clients:
            node = group.node(name)
            view = node.view
            share = view.size / 6 if view is not None and node.settled else 1 / 6
            used[name] = share / (view.size if view is not None and node.settled else 1)
        assert sum(used.values()) <= 1 + 1e-9


def test_3_2_each_node_belongs_to_exactly_one_group() -> None:
    """Paper 003, section 3.2, Figure 1 (right): a and b cannot talk to each other and both talk to c; c is in one group, with both."""
    group = formed(3, 3)
    group.cut(["c0"], ["c1"])
    group.run(SETTLE)
    assert group.is_one()
    assert noted(group, *CHANGES) == []


def test_3_2_cuts_of_links_make_no_new_groups() -> None:
    """Paper 003, section 3.2: "if each change in connectivity requires new groups to be formed, the system never stabilizes". Half of all
    links between clients are cut at any time, others every second, and the view stays."""
    group, random = formed(), Random(3)
    pairs = list(combinations(group.clients, 2))
    for _ in range(20):
        cuts = [group.cut([a], [b], both=random.random() < 0.7) for a, b in random.sample(pairs, len(pairs) // 2)]
        group.run(1.0)
        for cut in cuts:
            group.heal(cut)
    assert noted(group, *CHANGES) == []
    assert group.is_one()


def test_3_2_connectivity_may_be_asymmetric() -> None:
    """Paper 003, section 3.2: "a can send messages to b, but the reverse was not true". Between clients that changes nothing; a client that
    its server hears and that does not hear its server is not in the view of others for long: it finds another server."""
    group = formed()
    group.cut(["c0"], ["c1"], both=False)
    group.cut(["c2"], ["c0"], both=False)
    group.run(3.0)
    assert noted(group, *CHANGES) == []
    assert all_reach_all(group) <= 3
    former = home(group, "c3")
    group.cut([former], ["c3"], both=False)
    group.run(4.0)
    assert group.is_one()
    assert home(group, "c3") != former
    assert ("c3", ViewLost) not in [(name, type(event)) for name, event in noted(group, ViewLost)]
    assert noted(group, ViewChanged) != []


def test_3_2_servers_hear_each_other_in_one_direction() -> None:
    """Paper 003, section 3.2, views 5.1, D6: a one-way cut between servers takes the link down at both ends; here they go round it."""
    group = formed()
    group.cut(["s0"], ["s1"], both=False)
    group.run(SETTLE)
    assert group.is_one()
    for a, b in (("s0", 1), ("s1", 0)):
        link = next(link for link in group.node(a).survey().links if link.slot == b)
        assert link.state == "down"
    assert all_reach_all(group) <= 4
