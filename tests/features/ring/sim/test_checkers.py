"""Every checker of the ring fails when what it forbids is planted, and none of them fails without.  Spec: ring 7 (I1 to I15), F14, F16."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from holdfast.events import Event
from holdfast.features.ring.lab.checkers.keys import OnePublisher, arcs, sampled_keys
from holdfast.features.ring.lab.checkers.ring import Life, RingWatch
from holdfast.features.ring.lab.checkers.settled import unsettled
from holdfast.features.ring.lab.checkers.time import JoinTime
from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.lab.scenarios.ring import RingScenario
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.door import Held
from holdfast.features.ring.protocol.facts import BecameMember, GroupProposed, Removed, Suspicion, Won
from holdfast.features.ring.protocol.ids import CIRCLE, Peer, RingId, owner_of
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.features.ring.protocol.ring import RingNode
from holdfast.host import MemberStatus, Ownership
from holdfast.lab.checker import Checker
from holdfast.lab.links import Link, Uniform
from holdfast.lab.scenario import Setup
from holdfast.lab.violation import Violation

NAMES = ("a", "b", "c", "d", "e", "f")
T_L = 1.0
CALM = 3.0  # seconds until a ring that was formed beforehand runs evenly
STRANGERS = tuple(RingId(1 << bits, 7) for bits in (40, 41))


class Stage:
    """Six members with two neighbours per side, in order of their ids, under all checkers of the scenario."""

    def __init__(self) -> None:
        self.checkers: list[Checker] = list(RingScenario().checkers(Setup(NAMES, 1.0, 1.0)))
        self.rings = Rings(1, RingConfig(k=2), link=Link(Uniform(0.001, 0.005)), seeds=NAMES[:1], checkers=self.checkers)
        self.world = self.rings.world
        self.rings.form(NAMES)
        self.world.run(CALM)
        watch = self.checkers[0]
        assert isinstance(watch, RingWatch)
        self.watch = watch
        self.members = sorted(self.rings.alive, key=lambda ring: ring.id)

    def life(self, member: RingNode) -> Life:
        return self.watch.by_id[member.id]

    def step(self, member: RingNode, action: Callable[[], object]) -> None:
        """Something happens in that process, and checkers look after it."""
        self.world.step(self.life(member).host, lambda: (action(), None)[1])

    def emit(self, member: RingNode, *events: Event) -> None:
        def tell() -> None:
            for event in events:
                member.raw.emit(event)

        self.step(member, tell)

    def only(self, name: str) -> None:
        """What is planted violates more than one invariant; this one is meant."""
        self.watch.checkers = [each for each in self.watch.checkers if each.name == name]

    def run(self, seconds: float) -> None:
        self.world.run(self.world.now + seconds)

    def crash(self, member: RingNode) -> None:
        self.world.crash(member.raw.me.name)

    def forget(self, dead: RingNode) -> None:
        """Nobody monitors it any more."""
        for member in self.members:
            pair = member.pairs.get(dead.id)
            if pair is not None and member is not dead:
                self.step(member, partial(member.opening.drop, pair))

    def opener(self) -> tuple[RingNode, RingNode, Pair]:
        """A pair as its opener has it, and both of its ends."""
        one = self.members[0]
        pair = next(each for each in one.pairs.values() if each.opener)
        return one, next(each for each in self.members if each.id == pair.peer.id), pair


@pytest.fixture
def stage() -> Stage:
    return Stage()


def own(member: RingNode, before: float = 0.0) -> float:
    return member.raw.now - before


def both_win(stage: Stage) -> None:
    one, other, pair = stage.opener()
    stage.emit(one, Won(other.id, pair.epoch, entitled=True, stop=own(one)))
    stage.emit(other, Won(one.id, pair.epoch, entitled=True, stop=own(other)))


def declares_the_living(stage: Stage) -> None:
    one, other, _ = stage.members[:3]
    stage.step(one, lambda: one.changes.remove(other.id, certain=True, reason="failed"))


def lives_on_after_declaration(stage: Stage) -> None:
    one, other = stage.members[:2]
    stage.world.stop(other.raw.me.name)
    stage.run(3.0)  # Its deadline passes, and nobody tells it.
    stage.emit(one, Removed(other.id, certain=True, reason="failed", gen=1))
    host = stage.life(other).host
    host.running = True
    for pair in other.pairs.values():
        pair.est = own(other)
    stage.step(other, lambda: None)


def drops_its_duty(stage: Stage) -> None:
    _, other, _ = stage.opener()
    stage.step(other, lambda: other.opening.drop(next(iter(other.pairs.values()))))


def has_an_old_group(stage: Stage) -> None:
    one, other, pair = stage.opener()
    theirs = other.pairs[one.id]
    stage.step(other, lambda: setattr(theirs, "ver", pair.ver + 3))


def both_opened(stage: Stage) -> None:
    one, other, _ = stage.opener()
    theirs = other.pairs[one.id]

    def claim() -> None:
        theirs.opener, theirs.ver = True, theirs.ver + 1

    stage.step(other, claim)


def never_suspects(stage: Stage) -> None:
    one, other, pair = stage.opener()
    stage.crash(other)
    stage.step(one, pair.quiet)
    stage.run(2.5)


def suspects_too_late(stage: Stage) -> None:
    one, other, pair = stage.opener()
    stage.crash(other)
    stage.forget(other)
    stage.run(2.1)
    stage.emit(one, Suspicion(other.id, pair.epoch, own(one), own(one), entitled=True))


def never_declares(stage: Stage) -> None:
    one, other, _ = stage.opener()
    stage.crash(other)
    while other.id not in one.condemned:
        stage.run(0.1)
    for member in stage.members:
        if member is not other:
            stage.step(member, member.condemned.clear)
    stage.run(4.0)


def declares_too_late(stage: Stage) -> None:
    one, other, pair = stage.opener()
    stage.crash(other)
    stage.run(1.0)
    stage.emit(one, Won(other.id, pair.epoch, entitled=True, stop=own(one)))
    stage.watch._due.clear()  # Nobody notices that the declaration does not come, until it comes.
    stage.forget(other)
    stage.run(4.0)
    stage.emit(one, Removed(other.id, certain=True, reason="failed", gen=1))


def loser_outlives_the_wait(stage: Stage) -> None:
    one, other, pair = stage.opener()
    stage.emit(one, Won(other.id, pair.epoch, entitled=True, stop=own(one, one.config.wait - 0.5)))
    stage.run(1.0)


def claims_across(stage: Stage) -> None:
    """One forgets its neighbour and takes over its keys."""
    one, other = stage.members[:2]

    def forget() -> None:
        one.list._drop(other.id)
        one.nbrs = tuple(each for each in one.nbrs if each != other.id)

    stage.step(one, forget)


def joins_unknowing(stage: Stage) -> None:
    one, other = stage.members[:2]

    def forget() -> None:
        one.list._drop(other.id)
        one.raw.emit(BecameMember(one.ring, one.id, founded=False))

    stage.only("I10 join-known")  # Its keys are not in order either.
    stage.step(one, forget)


def joins_unknown(stage: Stage) -> None:
    one, other = stage.members[:2]
    stage.only("I10 join-known")
    stage.step(other, lambda: setattr(other.pairs[one.id], "state", State.HALF))

    def join() -> None:
        one.condemnations += 1  # So that the watch looks: the same id becomes a member once more.
        one.raw.emit(BecameMember(one.ring, one.id, founded=False))

    stage.step(one, join)


def serves_two(stage: Stage) -> None:
    one = stage.members[0]

    def serve() -> None:
        for each in STRANGERS:
            one.pairs[each] = Pair(Peer(each, one.raw.me, one.raw.address), 1, opener=False, now=own(one), lease=1.0)

    stage.step(one, serve)


def join_takes_long(stage: Stage) -> None:
    """A candidate that does not hear that its locks are granted."""
    stage.run(25.0)
    joiner = stage.rings.start("late", idle=True)
    joiner._on[m.Locked] = lambda source, message: None
    joiner.config = RingConfig(k=2, seeds=stage.rings.seeds)
    stage.world.step(stage.world.nodes["late"], joiner.join)
    stage.run(4.0)


def token_falls(stage: Stage) -> None:
    one = stage.members[0]
    stage.step(one, lambda: setattr(one.fencing, "gen", one.fencing.gen - 1))


def token_stays_with_the_next(stage: Stage) -> None:
    """A neighbour dies, and whoever inherits its keys did not raise its generation."""
    one, other = stage.members[:2]
    stage.step(one, lambda: setattr(one.fencing, "raise_above", lambda *_, **__: None))
    stage.crash(other)
    stage.run(6.0)


def token_of_a_new_ring_is_old(stage: Stage) -> None:
    for member in stage.members:
        stage.crash(member)
    founder = stage.rings.start("new", idle=True)

    def found() -> None:
        founder._draw_id()
        founder.ring = 1
        founder.become_member((), 1, founded=True)

    stage.world.step(stage.world.nodes["new"], found)


def never_confirms(stage: Stage) -> None:
    one, other, pair = stage.opener()

    def propose() -> None:
        pair.next = pair.ver + 2, pair.cfg  # The responder takes the next version only, and this is the one after it.
        one.raw.emit(GroupProposed(other.id, pair.epoch, pair.ver + 2, len(pair.cfg)))

    stage.step(one, propose)
    stage.run(2.1)


def doubts_for_ever(stage: Stage) -> None:
    one, other = stage.members[:2]
    stage.step(one, lambda: one.list.mark(other.id, MemberStatus.DECIDED))
    stage.run(one.config.t_a + 2 * one.config.wait + 3 * T_L - 0.1)  # Nothing is found yet.
    stage.run(0.2)


def asked(stage: Stage, member: RingNode) -> OnePublisher:
    """A client was told by this member that it owns its own position."""
    publisher = next(each for each in stage.checkers if isinstance(each, OnePublisher))
    stage.step(member, lambda: publisher.ask(stage.world, stage.life(member), member.id.pos))
    assert publisher.granted
    return publisher


def tells_as_well(stage: Stage, wait: float, more: int) -> None:
    one, other = stage.members[:2]
    publisher = asked(stage, one)
    stage.run(wait)
    token = one.fencing.gen + more
    other.owns = lambda key: Ownership(token, own(other) + 0.1)  # type: ignore[method-assign]
    stage.step(other, lambda: publisher.ask(stage.world, stage.life(other), one.id.pos))


def tells_while_another_has_told(stage: Stage) -> None:
    tells_as_well(stage, wait=0.4, more=1)


def tells_the_same_token(stage: Stage) -> None:
    tells_as_well(stage, wait=0.6, more=0)


def declared_while_a_client_may_act(stage: Stage) -> None:
    one, other = stage.members[:2]
    asked(stage, one)
    stage.crash(one)
    stage.emit(other, Removed(one.id, certain=True, reason="restarted", gen=1))


PLANTED: dict[Callable[[Stage], None], str] = {
    both_win: "I1 one-winner",
    declares_the_living: "I2 no-false-declaration",
    lives_on_after_declaration: "I2 no-false-declaration",
    drops_its_duty: "I3 right-needs-duty",
    has_an_old_group: "I4 config-skew",
    both_opened: "I4 config-skew",
    never_suspects: "I5 detection",
    suspects_too_late: "I5 detection",
    never_declares: "I6 declaration",
    declares_too_late: "I6 declaration",
    loser_outlives_the_wait: "I7 lifespan",
    claims_across: "I8 one-owner",
    joins_unknowing: "I10 join-known",
    joins_unknown: "I10 join-known",
    serves_two: "I11 one-lock",
    join_takes_long: "I12 join-time",
    token_falls: "I13 token-order",
    token_stays_with_the_next: "I13 token-order",
    token_of_a_new_ring_is_old: "I13 token-order",
    never_confirms: "I14 upgrade-lag",
    doubts_for_ever: "I15 doubt-ends",
    tells_while_another_has_told: "F14 one-publisher",
    tells_the_same_token: "F14 one-publisher",
    declared_while_a_client_may_act: "F14 one-publisher",
}


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_planted_violation_is_found(stage: Stage, plant: Callable[[Stage], None]) -> None:
    """Ring 7: what an invariant forbids is found by the checker that is for it, and by no other first."""
    with pytest.raises(Violation) as found:
        plant(stage)
    assert found.value.invariant == PLANTED[plant]


def test_every_invariant_has_a_planted_violation(stage: Stage) -> None:
    """Ring 7: I1 to I8 and I10 to I15 stop a run; I9 is the scenario's own question, below."""
    named = {each.name for each in stage.checkers if not isinstance(each, RingWatch)}
    assert named == set(PLANTED.values())
    assert {name.split()[0] for name in named} == {f"I{i}" for i in range(1, 16)} - {"I9"} | {"F14"}


def test_nothing_is_found_where_nothing_is_planted(stage: Stage) -> None:
    """Ring 7: a calm ring, a crash, a stop and a join violate nothing, and the join is judged (I12)."""
    asked(stage, stage.members[0])
    stage.run(25.0)
    joiner = stage.rings.start("late")
    stage.run(5.0)
    assert joiner.is_member
    assert next(each for each in stage.checkers if isinstance(each, JoinTime)).judged == 1
    stage.crash(stage.members[1])
    stage.world.stop(stage.members[3].raw.me.name)
    stage.run(1.5)
    stage.world.resume(stage.members[3].raw.me.name)
    stage.run(10.0)
    assert stage.rings.size == 6


def test_a_stopped_member_is_valid_until_its_deadline(stage: Stage) -> None:
    """Ring 5 (valid): no event tells that a stopped process is no member any more; the watch knows the instant."""
    life = stage.life(stage.members[0])
    stage.world.stop(life.host.me.name)
    until = life.until
    assert stage.world.now < until <= stage.world.now + 2.5
    stage.run(5.0)
    assert life.valid(until - 0.001)
    assert not life.valid(until)
    assert life.ring.is_member


Tamper = Callable[[RingNode], object]
UNSETTLED: list[tuple[str, Tamper]] = [
    ("lists 5 members", lambda ring: ring.list._drop(ring.list.ids[0])),
    ("has 3 pairs", lambda ring: ring.pairs.popitem()),
    ("in doubt", lambda ring: ring.list.mark(ring.list.ids[0], MemberStatus.SUSPECTED)),
    ("has condemned 1", lambda ring: ring.condemned.update({STRANGERS[0]: 0.0})),
    ("holds a lock", lambda ring: setattr(ring.door, "lock", Held(STRANGERS[0], 0.0))),
    ("HALF", lambda ring: setattr(next(iter(ring.pairs.values())), "state", State.HALF)),
    ("suspected", lambda ring: setattr(next(iter(ring.pairs.values())), "susp", own(ring))),
    ("is proposed", lambda ring: setattr(next(iter(ring.pairs.values())), "next", (9, frozenset()))),
    ("by the formula", lambda ring: setattr(next(iter(ring.pairs.values())), "cfg", frozenset())),
    ("has no token", lambda ring: setattr(ring.fencing, "token", lambda: None)),
    ("is claimed by 0 members", lambda ring: setattr(ring, "claims", lambda pos: False)),
    ("wants to be a member", lambda ring: ring.depart("tampered")),
    ("there are 2 rings", lambda ring: setattr(ring, "ring", 1)),
]


@pytest.mark.parametrize("why, tamper", UNSETTLED, ids=[why for why, _ in UNSETTLED])
def test_what_is_not_settled_is_named(stage: Stage, why: str, tamper: Tamper) -> None:
    """I9: each part of the statement, lists, pairs, groups, locks, owners, is looked at."""
    keys = [member.id.pos for member in stage.members]
    assert unsettled(stage.watch, stage.world, keys) == ""
    stage.watch.checkers.clear()
    last = stage.members[-1]
    last.condemnations += 1  # So that the watch looks.
    stage.step(last, lambda: tamper(last))
    assert why in unsettled(stage.watch, stage.world, keys)


def test_arcs_are_what_members_claim() -> None:
    """Ring 5.7: the arcs that I8 compares hold exactly the keys whose owner a member is, ties and equal positions included."""
    random = Random(5)
    for _ in range(300):
        spots = [random.randrange(CIRCLE) for _ in range(random.randint(1, 4))]
        spots += [(spots[0] + random.randint(1, 3)) % CIRCLE]
        ids = sorted({RingId(random.choice(spots), random.randint(1, 9)) for _ in range(random.randint(1, 6))})
        middles = [(a.pos + b.pos + step) // 2 + half for a in ids for b in ids for step in (-1, 0, 1) for half in (0, CIRCLE // 2)]
        for key in (*sampled_keys(random, spots), *(middle % CIRCLE for middle in middles)):
            claimants = [each for each in ids if any(key in arc for arc in arcs(ids, each))]
            assert claimants == [owner_of(ids, key)]
