"""Lists that differ between members, and keys all the same.  docs/keys.md; gossip 10, H354."""

from __future__ import annotations

from holdfast.features.keys.protocol.keys import SILENT, KeyKeeper
from holdfast.features.keys.protocol.lists import OtherLists
from holdfast.features.keys.protocol.messages import KeyAnswer, KeyNamed, Named
from holdfast.host import Address, Host, Machine, Member, NodeId
from tests.features.keys.fake_keys import FakeKeys
from tests.features.keys.stand import ALL, NEW, NEW_KEY, OLD, A, B, C, Group, done
from tests.support.fake_host import FakeHost
from tests.support.fake_members import FakeMembers


class WeakMembers(FakeMembers):
    """A list that may differ from those of others, and says who was given up."""

    def __init__(self, *lives: NodeId) -> None:
        super().__init__(*lives)
        self.dead: set[NodeId] = set()

    def gave_up(self, member: NodeId) -> bool:
        return member in self.dead

    def die(self, life: NodeId) -> None:
        self.dead.add(life)
        self.fail(life)


class WeakGroup(Group):
    """Lists that may differ. All of them list all, unless a test says otherwise."""

    def _build(self, host: Host, members: list[Member]) -> list[Machine]:
        self.members[host.me.name] = WeakMembers(*(each.id for each in members))
        return [KeyKeeper(host, self.members[host.me.name], self.keys[host.me.name], sealed=True)]

    def list_of(self, name: str) -> WeakMembers:
        found = self.members[name]
        assert isinstance(found, WeakMembers)
        return found


D = NodeId("d", 1)


def test_a_list_that_differs_is_no_obstacle() -> None:
    """H354, gossip 10: b lists d, which this member does not know; d is named, asked, and changed with the others."""
    group = WeakGroup("abcd")
    for name in "ac":
        group.members[name].fail(D)
    for action, key in (("install", NEW_KEY), ("use", NEW), ("remove", OLD)):
        assert done(group.step(action, key)) == dict.fromkeys("abcd", True)
    assert {keys.ids() for keys in group.keys.values()} == {(NEW,)}


def test_one_that_is_named_counts_as_one_that_is_listed() -> None:
    """H354: as long as it is silent, or lacks the key, no member uses it."""
    group = WeakGroup("abcd")
    for name in "ac":
        group.members[name].fail(D)
    for name in "abc":
        group.keys[name].install(NEW_KEY)
    reports = group.step("use", NEW)
    assert done(reports) == dict.fromkeys("abcd", False)
    assert reports["d"].text == f"does not hold key {NEW}; install it first"
    group.mesh.down.add("d")
    assert group.step("use", NEW)["d"].text == SILENT
    assert [keys.ids()[0] for keys in group.keys.values()] == [OLD] * 4


def test_one_that_is_dead_here_is_not_waited_for() -> None:
    """H354, gossip 10: ready are all that were named and have answered, or are dead here; also one that dies while it is asked."""
    group = WeakGroup("abcd")
    for name in "abcd":
        group.keys[name].install(NEW_KEY)
    group.list_of("a").die(D)
    group.mesh.down.add("d")
    assert done(group.step("use", NEW)) == ALL
    group.mesh.down.add("c")
    group.ask("remove", OLD)
    group.mesh.deliver()
    group.list_of("a").die(C)
    for _ in range(20):
        group.mesh.pass_time(0.25)
        group.mesh.deliver()
    (reports,) = group.reports
    assert [(each.member.name, each.done) for each in reports] == [("a", True), ("b", True)]


def test_a_list_that_is_named_by_no_member_is_an_obstacle() -> None:
    """H354: d may list others still, and says no more."""
    group = WeakGroup("abcd")
    for name in "abcd":
        group.keys[name].install(NEW_KEY)
    group.members["d"].join(NodeId("e", 1))
    group.mesh.lose = lambda message: isinstance(message, KeyNamed)
    reports = group.step("use", NEW)
    assert reports["d"].text.startswith("lists other members")
    assert [keys.ids()[0] for keys in group.keys.values()] == [OLD] * 4


def test_long_lists_are_named_in_pages() -> None:
    """H354: 128 members in each; a list that changes between two pages is begun anew."""
    lives = [NodeId(f"n{number:03}", 1) for number in range(300)]
    keeper = FakeHost("b")
    members = WeakMembers(A, B, *lives)
    named = KeyKeeper(keeper, members, FakeKeys(OLD), sealed=True)
    lists = OtherLists(A, WeakMembers(A, B))
    held = {B: KeyAnswer(1, True, "", (OLD,), 77)}
    pages = []
    while (found := lists.to_ask(held))[1]:
        page, whom = found
        named.on_message(A, lists.question(page)(page))
        ((_, part),) = keeper.take(KeyNamed)
        lists.take(held, whom, {B: part})
        pages.append(page)
        if len(pages) == 2:
            members.join(D)
    assert pages == [0, 1, 2, 0, 1, 2]
    assert set(lists.strangers) == {B, *lives, D}


def test_what_no_member_can_be_is_not_asked() -> None:
    """H354: lives and places are what another member says."""
    lists = OtherLists(A, WeakMembers(A, B))
    held = {B: KeyAnswer(1, True, "", (OLD,), 77)}
    names = [Named(NodeId("a", 9), Address("a", 1)), Named(NodeId("", 1), Address("x", 1)), Named(NodeId("x\n", 1), Address("x", 1))]
    names += [Named(NodeId("x", 0), Address("x", 1)), Named(NodeId("x", 1), Address("", 1)), Named(NodeId("x", 1), Address("x", 0))]
    lists.take(held, [B], {B: KeyNamed(1, 0, 1, 5, tuple(names))})
    assert lists.strangers == {}
