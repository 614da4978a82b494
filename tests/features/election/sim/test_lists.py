"""Scripted lists, traces and what is measured of them.  Spec: election 1 (c), 8; foundation 3 (Lists)."""

from __future__ import annotations

from collections.abc import Callable
from gc import collect
from weakref import ref

from holdfast.events import Event, Failed, Joined, Updated
from holdfast.features.election.lab.fields import Drops, cluster_sizes, field
from holdfast.features.election.lab.groups import NAME, ElectionGroup, names_of
from holdfast.features.election.lab.healths import ordered, p_of, r_of, system_wide, top
from holdfast.features.election.lab.lists import Board, Detector, Holes, ScriptedLists, board_of, components
from holdfast.features.election.lab.paper import TABLE_I, TABLE_II
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.lab.schedules import TURN, Asked, open_holes
from holdfast.features.election.lab.traces import Replay, Trace, record
from holdfast.features.election.protocol import profiles
from holdfast.host import Address, Lists, Member, NodeId
from holdfast.lab.fake_host import FakeHost
from holdfast.lab.host import Around, LabHost
from holdfast.lab.world import World

A, B, C = (NodeId(name, 1) for name in "abc")


def member(life: NodeId, **rows: bytes) -> Member:
    return Member(life, Address(life.name, 1), rows)


def test_a_list_shows_what_it_is_told() -> None:
    """Foundation 3: a listener hears each change once, after the list has it; names that were listed are known until they are forgotten."""
    host, board = FakeHost("a"), Board()
    lists = ScriptedLists(host, board)
    assert isinstance(lists, Lists)
    heard: list[tuple[Event, bool]] = []
    lists.subscribe(lambda event: heard.append((event, lists.get(event.member.name) is not None)))
    lists.show({"b": member(B), "c": member(C)})
    version = lists.version
    lists.publish("e:1", b"x")
    assert lists.version > version
    lists.show({"c": member(C, row=b"1")})
    assert heard == [
        (Joined(member(B)), True),
        (Joined(member(C)), True),
        (Failed(member(B), certain=False), False),
        (Updated(member(C, row=b"1")), True),
    ]
    assert [each.id for each in lists.members()] == [A, C]
    assert dict(lists.members()[0].rows) == {"e:1": b"x"} == board.rows[A]
    assert lists.known_names() == {"a", "b", "c"}
    lists.forget("bc")
    assert lists.known_names() == {"a", "c"}
    assert not lists.settled(C)
    board.settled.add(C)
    assert lists.settled(C)
    assert not lists.settled(NodeId("c", 2))


def world_of(names: str = "abcd") -> World:
    return World(1, lambda host: [ScriptedLists(host, board_of(host.world))] if isinstance(host, LabHost) else [], names=list(names))


def listed(world: World, name: str) -> str:
    return "".join(each.id.name for each in world.nodes[name].node.use(ScriptedLists).members())


def test_a_detector_follows_the_faults() -> None:
    """Election 7: who cannot be reached is dropped in time, and listed again; a one-way cut that others get round changes nothing."""
    world = world_of()
    Detector(world, board_of(world), up=0.5, down=3.0, settling=1.0)
    world.run(2.0)
    assert [listed(world, name) for name in "abcd"] == ["abcd"] * 4
    world.network.cut("one way", "a", "b")
    assert len(set(components(world).values())) == 1
    world.run(8.0)
    assert listed(world, "b") == "abcd"
    world.network.heal("one way")
    world.network.partition("halves", ("ab", "cd"))
    world.run(12.0)
    assert [listed(world, name) for name in "abcd"] == ["ab", "ab", "cd", "cd"]
    world.network.heal()
    world.crash("d")
    world.run(16.0)
    assert [listed(world, name) for name in "abc"] == ["abc"] * 3
    world.start("d")
    assert not world.nodes["d"].node.use(ScriptedLists).settled(world.nodes["d"].me)
    world.run(19.0)
    assert listed(world, "a") == "abcd"
    assert world.nodes["a"].node.use(ScriptedLists).settled(NodeId("d", 2))


def test_a_life_that_met_no_member_is_none() -> None:
    """Election D19: a process that starts behind a partition is settled when it has met a member, who tells it which names are known."""
    world = world_of("abcde")
    Detector(world, board_of(world), settling=1.0)
    world.run(2.0)
    world.crash("e")
    world.bury("e")
    world.crash("a")
    world.network.partition("alone", ("a", "bcde"))
    world.start("a")
    world.run(10.0)
    lists = world.nodes["a"].node.use(ScriptedLists)
    assert not lists.settled(world.nodes["a"].me)
    assert lists.known_names() == {"a"}
    world.network.heal()
    world.run(13.0)
    assert lists.settled(world.nodes["a"].me)
    assert lists.known_names() == set("abcde")


def test_holes_are_bounded_as_they_say() -> None:
    """Election 8 (L2), D2: static and windowed holes are those of the same c lists; at an instant there are c, over time more."""
    others = [f"n{number}" for number in range(9)]
    for kind, most in (("static", 3), ("windowed", 3), ("instant", 9)):
        holes = open_holes(kind, "best", others, 3, 5)
        at = [holes(number * TURN) for number in range(60)]
        assert max(map(len, at)) <= 3
        union = frozenset[tuple[str, str]]().union(*at)
        assert len(union) == 3 if most == 3 else len(union) > 5
        assert {missing for _, missing in union} == {"best"}


def test_an_adversary_takes_those_that_are_asked_first() -> None:
    """Election 8 (L2): the first c that are asked lack the best-ranked before they answer; it is elected all the same."""
    names = by_rank(NAME, names_of(8))
    profile = profiles.paper("base", c=2, f=0)
    group = ElectionGroup(3, names, profile, lambda world, board: Asked(world, board, names[0], 2))
    group.elect(names[-1])
    assert group.until(lambda: group.settled(names[-1]), 10.0)
    lacking = [name for name in names if group.lists(name).get(names[0]) is None]
    assert len(lacking) == 2
    answers = group.account(names[-1]).answers
    assert {life.name for life in answers} >= set(lacking)
    assert group.agreed() == names[0]


def test_drops_and_fields() -> None:
    """Election 8: the node of hash rank i drops d (1 + 1.5 / 2^i), at both ends of a datagram; places are connected."""
    from random import Random

    names = names_of(49)
    drops = Drops(0.2, names)
    assert drops.of[names[0]] == 0.5
    assert abs(drops.of[names[40]] - 0.2) < 1e-6
    assert abs(drops.pair(names[40], names[41]) - 0.2) < 1e-6
    assert drops.pair(names[0], names[40]) > 0.3
    assert cluster_sizes(49) == (7, 7, 9, 10, 16)
    assert sum(cluster_sizes(16)) == 16
    for kind in ("grid", "random", "cluster"):
        found = field(kind, names, Random(1))
        assert found.connected
        assert set(found.points) == set(names)
    assert max(x for x, _ in field("grid", names, Random(1)).points.values()) > 14


def test_a_trace_is_replayed_as_it_was() -> None:
    """Election 8: lists and healths are those of the recorded group at each sample, for all members; past its end it begins again."""
    names = names_of(16)
    trace = record(3, "random", 16, 0.3, names, 12.0, warm_up=8.0)
    assert trace.seconds == 12.0
    assert any(trace.lacking), "no list lacked any member: the trace shows nothing"
    assert record(3, "random", 16, 0.3, names, 12.0, warm_up=8.0) == trace
    world = World(1, lambda host: [ScriptedLists(host, board_of(world_at(host)))], names=names)
    Replay(world, board_of(world), trace, 2.0)
    for seconds in (0.1, 3.6, 7.1, 11.1):
        world.run(seconds)
        sample = int((2.0 + seconds) / trace.step) % len(trace.lacking)
        for number, name in enumerate(names):
            missing = trace.lacking[sample].get(number, frozenset())
            assert listed(world, name) == "".join(each for place, each in enumerate(names) if place not in missing)
    assert trace.c(0.0, 12.0) >= max(trace.c(at, at + 0.4) for at in range(12))
    health = world.nodes[names[0]].node.use(ScriptedLists).health
    assert {life.name: value for life, value in health.items()} == {
        names[number]: value for number, value in trace.health[int((2.0 + 11.0) / 2.5) % len(trace.health)][0].items()
    }


def world_at(host: object) -> Around:
    assert isinstance(host, LabHost)
    return host.world


def test_the_p_and_r_of_theorem_4() -> None:
    """Paper 004, Theorem 4, Table II: p by hand, and r as the next whole number above log_{1/p} N (D16)."""
    lists = [{1: 3.0, 2: 1.0}, {2: 2.0}, {1: 1.0}, {0: 5.0, 1: 2.0}]
    assert system_wide(lists) == {1: 6.0, 2: 3.0, 0: 5.0}
    assert top(system_wide(lists), 2) == [1, 0]
    assert top({1: 1.0, 2: 1.0, 3: 0.0}, 2) == [2, 1]  # ties: the worse rank first; none that is healthy
    assert ordered({1: 6.0, 2: 3.0, 0: 5.0}, 4) == [1, 0, 2, 3]
    # The top two are 1 and 0, and no list is asked about itself. List 0 has 1; 1 lacks 0; 2 lacks 0; 3 has both.
    assert p_of(lists, 2) == 2 / 6
    assert p_of([{}, {}], 5) is None
    assert [r_of(column.p, column.members) for column in TABLE_II] == [4, 5, 6, 8, 9]
    assert [column.r for column in TABLE_II] == [3, 5, 6, 7, 8]
    assert [setting.c for setting in TABLE_I] == [4, 4, 4, 7, 10, 13, 2, 5, 9, 17]
    assert Trace("grid", 0.1, ["a"], {}, ["a"]).seconds == 0.0


def test_holes_write_lists_of_a_group() -> None:
    """Election 8: all list all but for the holes; who is down may stay listed, as a failure that is not found out."""
    world = world_of()
    Holes(world, board_of(world), lambda now: frozenset({("a", "b")}), down=True)
    world.run(0.1)
    assert (listed(world, "a"), listed(world, "b")) == ("acd", "abcd")
    world.crash("c")
    world.run(1.0)
    assert listed(world, "d") == "abcd"


def listener_in(world: World) -> Callable[[NodeId], None]:
    """As that of a member, it leads to its world."""
    return lambda life: world.run(world.now)


def test_a_world_that_is_over_is_garbage() -> None:
    """H472: what members of a world publish ends with the world; a hundred elections of 256 members kept 16 GB."""
    world = world_of("ab")
    board_of(world).on_change.append(listener_in(world))
    gone = ref(world)
    del world
    collect()
    assert gone() is None
