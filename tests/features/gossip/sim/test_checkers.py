"""Every checker of gossip fails when what it forbids is planted, and not before.  Spec: gossip 7 (G1 to G13)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.events import Cleared, Decided, Event, Failed, Joined, Left, Suspected, Updated
from holdfast.features.gossip.lab.checkers.entries import CalmAccuracy, LeftStaysLeft, Monotone, Ownership
from holdfast.features.gossip.lab.checkers.events import EventOrder
from holdfast.features.gossip.lab.checkers.suspicions import Bounds, LastCalls
from holdfast.features.gossip.lab.checkers.traffic import Budget, ProbeGap
from holdfast.features.gossip.lab.groups import GossipGroup, checkers_of, names_of
from holdfast.features.gossip.lab.members import WatchedNode
from holdfast.features.gossip.lab.settled import Convergence, bound
from holdfast.features.gossip.lab.watch import GossipChecker, GossipWatch, Life
from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.facts import LastCall
from holdfast.features.gossip.protocol.messages import Ack, Gossip, Ping, Rumour, Status
from holdfast.features.gossip.protocol.table import Entry, Tombstone, entry
from holdfast.host import Address, NodeId
from holdfast.lab.calm import Calm
from holdfast.lab.links import Exponential, Link, Uniform
from holdfast.lab.violation import Violation

PORT = 7946
A, B, C = "n00000", "n00001", "n00002"
LINK = Link(Uniform(0.0001, 0.002))


class Stage:
    """Three members under one checker, formed beforehand. What they hold and say is planted."""

    def __init__(self, make: Callable[[GossipWatch], GossipChecker], *, target: str = "shuffle", members: int = 3) -> None:
        self.calm, self.watch = Calm(), GossipWatch()
        self.checker = make(self.watch)
        profile = profiles.default(1.0)
        profile = profile._replace(config=replace(profile.config, target=target))
        self.group = GossipGroup(1, profile, checkers=[self.calm, self.watch, self.checker])
        self.group.form(names_of(members))
        self.world = self.group.world

    def node(self, name: str) -> WatchedNode:
        found = self.group.node(name)
        assert isinstance(found, WatchedNode)
        return found

    def life(self, name: str) -> Life:
        found = self.watch.life(self.world, self.world.nodes[name])
        assert found is not None
        return found

    def do(self, name: str, action: Callable[[], object]) -> None:
        self.world.step(self.world.nodes[name], lambda: (action(), None)[1])

    def emit(self, name: str, *events: Event) -> None:
        host = self.world.nodes[name]

        def plant() -> None:
            for event in events:
                host.emit(event)
                self.node(name).core.tell(event)  # type: ignore[arg-type]

        self.do(name, plant)

    def held(self, name: str, of: str) -> Entry:
        found = self.node(name).table.get(of)
        assert found is not None
        return found

    def hold(self, name: str, of: str, **changes: Any) -> None:
        """From now on ``name`` holds this of ``of``."""
        former = self.held(name, of)
        values = {"inc": former.inc, "status": former.status, "rows": former.rows, "rows_at": former.rows_at, **changes}
        life = values.pop("life", former.id)
        new = entry(life, former.address, values["inc"], values["status"], values["rows"], values["rows_at"])
        now = self.world.nodes[name].now
        self.do(name, lambda: self.node(name).table.put(new, None if new.listed else Tombstone(now, now)))

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)


# G1, G2, G7: what is held of others.


def goes_back(stage: Stage) -> None:
    stage.hold(A, B, inc=1, status=Status.DEAD)
    stage.hold(A, B, inc=1, status=Status.SUSPECT)


def former_life(stage: Stage) -> None:
    stage.hold(A, B, life=NodeId(B, 0))


def forgets_a_member(stage: Stage) -> None:
    stage.do(A, lambda: stage.node(A).table.drop(B))


def above_its_own(stage: Stage) -> None:
    stage.hold(A, B, inc=2)


def other_rows(stage: Stage) -> None:
    stage.hold(A, B, rows={"tag:a": b"x"})


def rows_of_no_inc(stage: Stage) -> None:
    stage.hold(A, B, rows={"tag:a": b"x"}, rows_at=0)


def never_lived(stage: Stage) -> None:
    stage.do(A, lambda: stage.node(A).table.put(entry(NodeId("x", 1), Address("x", PORT))))


def own_entry(stage: Stage) -> None:
    stage.hold(A, A, life=NodeId(A, 7))


def boot_again(stage: Stage) -> None:
    stage.do(B, lambda: stage.node(B).publish("tag:a", b"x"))
    stage.run(3.0)
    stage.world.crash(B)
    stage.group.start(B, idle=True)
    host = stage.world.nodes[B]
    stage.watch.lives.pop(host)
    host.me = NodeId(B, 1)
    stage.world.step(host, lambda: None)


def left_again(stage: Stage) -> None:
    stage.do(B, stage.node(B).leave)
    stage.hold(A, B, status=Status.LEFT)
    stage.watch.by_id[NodeId(B, 1)].inc = 9
    stage.hold(A, B, inc=2, status=Status.ALIVE)


@pytest.mark.parametrize(
    "make, plant, told",
    [
        (Monotone, goes_back, "G1 monotone: .* held n00001#1 at 1 DEAD and holds n00001#1 at 1 SUSPECT"),
        (Monotone, former_life, "G1 monotone"),
        (Monotone, forgets_a_member, "G1 monotone: .* forgot"),
        (Ownership, above_its_own, "G2 ownership: .* inc 2, and it never said more than 1"),
        (Ownership, other_rows, "G2 ownership: .* did not publish"),
        (Ownership, rows_of_no_inc, "G2 ownership: .* belong to no inc"),
        (Ownership, never_lived, "G2 ownership: .* never was such a life"),
        (Ownership, own_entry, "G2 ownership: .* its own entry"),
        (Ownership, boot_again, "G2 ownership: .* never said more than"),
        (LeftStaysLeft, left_again, "G7 left-stays-left"),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_entries_that_must_not_be(make: type[GossipChecker], plant: Callable[[Stage], None], told: str) -> None:
    """Gossip 7, G1, G2, G7: what is planted is found by the checker that it is for."""
    stage = Stage(make)
    stage.run(2.0)
    with pytest.raises(Violation, match=told):
        plant(stage)


# G5.


def suspected_in(stage: Stage) -> None:
    stage.hold(A, B, status=Status.SUSPECT)


def calm_stage(link: Link) -> Stage:
    stage = Stage(Monotone)
    CalmAccuracy(stage.watch, stage.calm, link)
    return stage


def test_a_suspicion_in_calm() -> None:
    """Gossip G5: in calm no member is suspected; where links are slow or lose messages, or once a process was stopped, one may be."""
    with pytest.raises(Violation, match="G5 calm-accuracy"):
        suspected_in(calm_stage(LINK))
    for link in (Link(LINK.delay, loss=0.01), Link(Uniform(0.001, 0.2)), Link(Exponential(0.001)), Link(LINK.delay, tail=0.1)):
        suspected_in(calm_stage(link))
    stage = calm_stage(LINK)
    stage.world.at(1.0, lambda: stage.world.stop(C))
    stage.run(2.0)
    suspected_in(stage)


# G6.


def suspect(stage: Stage) -> Any:
    """A suspicion of B at A that is as it should be."""
    node = stage.node(A)
    stage.do(A, lambda: node.merge.accuse(stage.held(A, B), (A,)))
    return node.suspicions[B]


def lhm_too_high(stage: Stage) -> None:
    stage.do(A, lambda: setattr(stage.node(A).core, "lhm", 9))


def longer_with_more(stage: Stage) -> None:
    suspicion = suspect(stage)
    stage.do(A, lambda: setattr(suspicion, "end_at", suspicion.end_at + 1))


def too_early(stage: Stage) -> None:
    suspicion = suspect(stage)
    stage.do(A, lambda: setattr(suspicion, "end_at", suspicion.end_at - 0.1))


def counted_twice(stage: Stage) -> None:
    suspicion = suspect(stage)
    stage.do(A, lambda: suspicion.confirmers.update({"nobody": None}))


def of_other_length(stage: Stage, **lengths: float) -> None:
    node = stage.node(A)

    def plant() -> None:
        node.merge.accuse(stage.held(A, B), (A,))
        for name, seconds in lengths.items():
            setattr(node.suspicions[B], name, seconds)

    stage.do(A, plant)


def short_min(stage: Stage) -> None:
    of_other_length(stage, floor=1.0)


def long_max(stage: Stage) -> None:
    of_other_length(stage, ceiling=99.0)


def buried_at_once(stage: Stage) -> None:
    suspicion = suspect(stage)
    assert suspicion.life == NodeId(B, 1)
    stage.do(A, lambda: stage.node(A).merge.bury(stage.held(A, B)))


def never_over(stage: Stage) -> None:
    suspect(stage)
    for name in (A, C):
        stage.node(name).suspicion._bury = lambda each: None
    stage.world.network.lose_if(lambda source, target, message: B in (source, target))
    stage.run(30.0)


@pytest.mark.parametrize(
    "plant, told",
    [
        (lhm_too_high, "lhm of n00000#1 is 9"),
        (longer_with_more, "waits 1 s longer"),
        (too_early, "0.1 s early"),
        (counted_twice, "counts 'nobody'"),
        (short_min, "Min of a suspicion"),
        (long_max, "Max of a suspicion"),
        (buried_at_once, "buried n00001 after 0 s"),
        (never_over, "too long"),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_bounds_that_are_broken(plant: Callable[[Stage], None], told: str) -> None:
    """Gossip G6, D7: lhm, Min and Max, and who counts as an accuser."""
    stage = Stage(Bounds)
    stage.run(2.0)
    with pytest.raises(Violation, match=f"G6 bounds: .*{told}"):
        plant(stage)


def test_a_table_beyond_its_constant() -> None:
    """Gossip G6: every table and queue stays within its constant."""
    stage = Stage(Bounds)
    stage.node(A).table.members_max = 2
    with pytest.raises(Violation, match="G6 bounds: n00000#1 has 3 entries; the limit is 2"):
        stage.do(A, lambda: None)


# G8, G9.


def test_a_rumour_that_is_told_too_often() -> None:
    """Gossip G8: ceil(lambda log10(n_max + 1)) + 1 times, and once more is found; to its subject it may always be told."""
    stage = Stage(Budget)
    stage.run(3.0)
    node = stage.node(A)
    rumour = Rumour(NodeId(B, 1), stage.held(A, B).address, 1, Status.SUSPECT, (A,), 1)
    limit = node.config.sends(3) + 1
    for _ in range(2 * limit):
        stage.do(A, lambda: node.core.send(stage.held(A, B).member, Gossip((rumour,))))
    for _ in range(limit):
        stage.do(A, lambda: node.core.send(stage.held(A, C).member, Gossip((rumour,))))
    with pytest.raises(Violation, match=f"G8 budget: n00000#1 told SUSPECT n00001#1 at 1 {limit + 1} times"):
        stage.do(A, lambda: node.core.send(stage.held(A, C).member, Gossip((rumour,))))


@pytest.mark.parametrize("target, periods", [("shuffle", 5), ("bag", 191), ("spatial", 0)])
def test_a_member_that_is_not_probed(target: str, periods: int) -> None:
    """Gossip G9: 2n-1 ticks without a probe of a listed member are found; where targets are drawn by distance there is no bound."""
    stage = Stage(ProbeGap, target=target)
    node = stage.node(A)
    node.prober._targets.next = lambda: stage.held(A, C)  # type: ignore[method-assign]
    if not periods:
        stage.run(300.0)
        return
    stage.run(periods - 1.0)
    with pytest.raises(Violation, match=f"G9 probe-gap: n00000#1 has not probed n00001 for {periods + 1} periods"):
        stage.run(5.0)


# G10.


@pytest.mark.parametrize(
    "events, told",
    [
        ((Joined,), "which is in"),
        ((Suspected, Joined), "which is suspected"),
        ((Suspected, Suspected), "which is suspected"),
        ((Cleared,), "which is in"),
        ((Failed,), "which is in"),
        ((Decided,), "before its list says so"),
        ((Left,), "before its list says so"),
        ((Updated, Cleared), "which is in"),
    ],
    ids=lambda each: "-".join(kind.__name__ for kind in each) if isinstance(each, tuple) else "",
)
def test_events_in_another_order(events: tuple[type[Any], ...], told: str) -> None:
    """Gossip G10: Joined, then suspicions and their ends, then Decided and Failed or Left; the list is changed before."""
    stage = Stage(EventOrder)
    member = stage.held(A, B).member
    made = [kind(member, certain=False) if kind is Failed else kind(member) for kind in events]
    host = stage.world.nodes[A]

    def plant() -> None:
        stage.node(A).core.turns += 1
        for event in made:
            host.emit(event)

    with pytest.raises(Violation, match=f"G10 events: .*{told}"):
        stage.do(A, plant)


def test_other_ways_to_tell_users_wrong() -> None:
    """Gossip G10: nothing is certain; the version grows; a change without an event is found, and an event that subscribers did not hear."""
    stage = Stage(EventOrder)
    with pytest.raises(Violation, match="the version of its list is"):
        stage.emit(A, Updated(stage.held(A, B).member))
    stage = Stage(EventOrder)
    host, node = stage.world.nodes[A], stage.node(A)

    def unheard() -> None:
        node.core.turns += 1
        host.emit(Updated(stage.held(A, B).member))

    with pytest.raises(Violation, match="subscribers of n00000#1 heard nothing, and its program Updated n00001#1"):
        stage.do(A, unheard)
    stage = Stage(EventOrder)
    with pytest.raises(Violation, match="is in, and in its list it is SUSPECT"):
        stage.hold(A, B, status=Status.SUSPECT)


# G13.


def called(stage: Stage) -> int:
    """A has asked B for the last time; the number of its question."""
    node = stage.node(A)
    suspect(stage)
    ping = Ping(77)

    def plant() -> None:
        stage.world.nodes[A].emit(LastCall(NodeId(B, 1)))
        node.core.send(stage.held(A, B).member, ping)

    stage.do(A, plant)
    return ping.seq


def answer(stage: Stage, seq: int) -> None:
    stage.do(A, lambda: stage.node(A).on_message(NodeId(B, 1), Ack(seq)))


def bury(stage: Stage) -> None:
    stage.do(A, lambda: stage.node(A).merge.bury(stage.held(A, B)))


def test_a_burial_after_an_answer() -> None:
    """Gossip G13: a timer that buries a member whose answer to the last call is here is found; without that answer it may."""
    stage = Stage(LastCalls)
    stage.run(2.0)
    answer(stage, called(stage))
    with pytest.raises(Violation, match="G13 last-call: n00000#1 buried n00001#1, which had answered"):
        bury(stage)
    stage = Stage(LastCalls)
    stage.run(2.0)
    answer(stage, called(stage) - 1)
    bury(stage)


def test_a_burial_by_one_that_was_away() -> None:
    """Gossip G13, F11: within Min after a pause of more than 2 T no member is buried; after a shorter one it may be."""
    for seconds, found in ((2.1, True), (1.9, False)):
        stage = Stage(LastCalls)
        stage.run(2.0)
        suspect(stage)
        stage.node(A).away = (stage.world.nodes[A].now, seconds)
        if found:
            with pytest.raises(Violation, match=r"G13 last-call: .* was away for 2\.1 s and buried"):
                bury(stage)
        else:
            bury(stage)


# G3, G4, G11.


def settled_stage() -> Stage:
    stage = Stage(Monotone)
    stage.run(2.0)
    return stage


def why(stage: Stage) -> str:
    convergence = Convergence(stage.watch)
    return convergence.why(stage.world)


def test_a_group_that_is_not_as_it_should_be() -> None:
    """Gossip G3, G4, G11: a member that is not listed, held to be dead or suspected, other rows, a strange name, a second process."""
    stage = settled_stage()
    assert why(stage) == ""
    stage.node(A).myself.rows = {"tag:a": b"x"}
    assert "holds other rows of n00000#1" in why(stage)
    stage = settled_stage()
    stage.hold(A, B, status=Status.SUSPECT)
    assert "holds n00001#1 to be SUSPECT at inc 1 (G11)" in why(stage)
    stage.hold(A, B, status=Status.DEAD)
    assert "holds n00001#1 to be DEAD at inc 1 (G11)" in why(stage)
    stage = settled_stage()
    stage.world.crash(C)
    stage.world.step(None, lambda: None)
    assert "lists n00002#1, which is gone (G4)" in why(stage)
    stage = settled_stage()
    stage.node(B).core.is_member = False
    assert "G4: n00001#1 is no member" in why(stage)


def test_a_dead_member_that_stays_listed() -> None:
    """Gossip G3: it is found when the bound is over, and not before."""
    stage = settled_stage()
    convergence = Convergence(stage.watch)
    stage.world.crash(C)
    stage.world.step(None, lambda: None)
    convergence.calm_at = stage.world.now
    most = bound(stage.node(A).config, 3)
    stage.world.clock.now += most - 0.1
    assert "which is gone" in convergence.why(stage.world)
    stage.world.clock.now += 0.2
    with pytest.raises(Violation, match="G3 completeness: n00000#1 lists n00002#1"):
        convergence.why(stage.world)


# All of them.


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    """Gossip 7: five members that join, one that is killed, one that leaves and one that changes a row, under every checker."""
    for seed in range(3):
        group = GossipGroup(seed, profiles.default(1.0), seeds=[A], checkers=checkers_of(LINK))
        for name in names_of(5):
            group.start(name)
        assert group.until(group.is_whole, 20.0)
        group.run(5.0)
        node = group.node(B)
        group.world.step(group.host(B), lambda node=node: node.publish("tag:a", b"x" * 200))  # type: ignore[misc]
        group.crash(C)
        group.run(10.0)
        leaver = group.node("n00003")
        group.world.step(group.host("n00003"), leaver.leave)
        group.run(5.0)
        group.world.crash("n00003")
        group.run(5.0)
        assert group.is_whole([A, B, "n00004"])
        convergence = next(each for each in group.world.checkers if isinstance(each, Convergence))
        assert convergence.why(group.world) == ""


def test_all_that_is_sent_is_seen() -> None:
    """Gossip 7, G8: the checkers see every message that a member sends with rumours in it."""
    group = GossipGroup(3, profiles.default(1.0), seeds=[A], checkers=[GossipWatch()])
    seen: dict[str, int] = {}

    class Count(GossipChecker):
        name = "count"

        def acted(self, world: Any, life: Life) -> None:
            for _, message in life.node.sends:
                seen[type(message).__name__] = seen.get(type(message).__name__, 0) + 1

    watch = group.world.checkers[0]
    assert isinstance(watch, GossipWatch)
    Count(watch)
    for name in names_of(6):
        group.start(name)
    group.run(10.0)
    group.crash(C)
    group.run(10.0)
    sent: dict[str, int] = {}
    for endpoint in group.world.network.endpoints.values():
        for kind, count in endpoint.sent.items():
            sent[kind.__name__] = sent.get(kind.__name__, 0) + count
    for name in ("Ping", "Ack", "Gossip", "PingReq"):
        assert seen[name] == sent[name] > 0
