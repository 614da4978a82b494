"""Every checker of elections fails when what it forbids is planted, and not before.  Spec: election 7 (E1 to E13)."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.events import Event
from holdfast.features.election.lab.checkers import (
    Asked,
    BestRanked,
    FewRestarts,
    Monotone,
    NotExcluded,
    Superseded,
    Supported,
    TermUnique,
    ToldInTime,
)
from holdfast.features.election.lab.clients import Stopped, Told
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.lab.settled import HEALED, Healed
from holdfast.features.election.lab.watch import ElectionChecker, ElectionWatch, Life
from holdfast.features.election.protocol.facts import Elected, Initiated, Nominated, Tentative
from holdfast.features.election.protocol.manner import Manner, manner
from holdfast.features.election.protocol.shown import Account, Answered, Role, State
from holdfast.host import NodeId
from holdfast.lab.violation import Violation
from holdfast.lab.world import World

NAME = "x"
RANKED = [NodeId(name, 1) for name in by_rank(NAME, ("a", "b", "c", "d"))]  # best first
BEST, SECOND, THIRD, LAST = RANKED
STATE = State(
    NAME, manner(), Role.FOLLOWER, 0, False, frozenset(), 0, False, 0, None, None, None, False, True, 1, 0, -inf
)  # fmt: skip
ACCOUNT = Account(1, "watch", 0.0, 5, 5, 1, 0, {}, {}, {}, (), None, 0, 0, 0, "", 0.0)


class Planted:
    """One member under one checker; what it holds and says is planted."""

    def __init__(self, make: Callable[[ElectionWatch], ElectionChecker], *, made: Manner | None = None, me: NodeId = SECOND) -> None:
        self.made = manner() if made is None else made
        self.watch = ElectionWatch({NAME: self.made})
        self.checker = make(self.watch)
        self.world = cast("World", SimpleNamespace(now=10.0))
        self.account, self.leads, self.state = ACCOUNT, False, STATE
        self.last: Account | None = None  # that ended
        self.known = frozenset({"a", "b", "c", "d"})
        elections = SimpleNamespace(
            last=lambda name: self.account,
            _core=SimpleNamespace(contests={NAME: self}),
            manner=lambda name: self.made,
            is_leader=lambda name: self.leads,
            state=lambda name: self.state,
        )
        node = SimpleNamespace(use=lambda kind: SimpleNamespace(known_names=lambda: self.known))
        self.life = Life(cast("Any", SimpleNamespace(me=me, now=100.0, node=node, running=True)), cast("Any", elections))

    def emit(self, *events: Event, by: NodeId | None = None) -> None:
        life = self.life
        if by is not None:
            life = Life(cast("Any", SimpleNamespace(me=by, now=100.0)), self.life.elections)
        for event in events:
            self.checker.heard(self.world, life, event)

    def hold(self, **changes: Any) -> None:
        """Another state than before."""
        before, self.state = self.state, self.state._replace(**changes)
        self.checker.changed(self.world, self.life, before, self.state)


def refused(action: Callable[[], object], rule: str) -> None:
    with pytest.raises(Violation) as found:
        action()
    assert str(found.value).startswith(rule)


def test_e1_one_leader_per_term() -> None:
    """E1: with fencing no two lead under one term; the same one may, after a pause. Without fencing it is not promised."""
    planted = Planted(TermUnique, made=manner(voters="seats"))
    planted.emit(Elected(NAME, 7), Elected(NAME, 7), Elected(NAME, 8))
    planted.emit(Elected(NAME, 9), by=LAST)
    refused(lambda: planted.emit(Elected(NAME, 7), by=LAST), "E1")
    free = Planted(TermUnique)
    free.emit(Elected(NAME, 7))
    free.emit(Elected(NAME, 7), by=LAST)


def test_e2_nothing_falls() -> None:
    """E2: the promise and the reign never fall; without fencing the better rank is larger at one term, with it terms alone count."""
    planted = Planted(Monotone)
    planted.hold(promised=5, active=(5, THIRD, False))
    planted.hold(promised=6, active=(5, SECOND, False))
    planted.hold(active=(5, SECOND, True))
    refused(lambda: planted.hold(active=(5, SECOND, False)), "E2")
    refused(lambda: planted.hold(active=(5, THIRD, False)), "E2")
    refused(lambda: planted.hold(active=None), "E2")
    planted.state = planted.state._replace(active=(7, SECOND, False))
    refused(lambda: planted.hold(promised=3), "E2")
    fenced = Planted(Monotone, made=manner(voters="members"))
    fenced.hold(active=(5, THIRD, False))
    refused(lambda: fenced.hold(active=(5, SECOND, False)), "E2")


def test_e2_later_reigns_have_higher_terms() -> None:
    """A3: who was named after term 7 was active leads under more than 7; who was named before may have less."""
    planted = Planted(Monotone, made=manner(voters="seats"))
    planted.emit(Tentative(NAME, 6))
    planted.emit(Tentative(NAME, 7), Elected(NAME, 7), by=LAST)
    planted.emit(Elected(NAME, 6))
    planted.emit(Tentative(NAME, 5), by=THIRD)
    refused(lambda: planted.emit(Elected(NAME, 5), by=THIRD), "E2")


def test_e6_a_leader_is_accepted_by_enough() -> None:
    """E6: with fencing as many acceptances as it needs; in mode members that is more than half of the names that it knows."""
    planted = Planted(lambda watch: Supported(watch, object), made=manner(voters="members"))
    planted.hold(role=Role.ACTIVE, term=3, acks=frozenset("abc"), needed=3)
    refused(lambda: planted.hold(role=Role.ACTIVE, term=4, acks=frozenset("ab"), needed=3), "E6")
    refused(lambda: planted.hold(role=Role.ACTIVE, term=5, acks=frozenset("ab"), needed=2), "E6")
    free = Planted(lambda watch: Supported(watch, object))
    free.hold(role=Role.ACTIVE, term=3)


def account(*answers: tuple[NodeId, tuple[NodeId, ...], tuple[NodeId, ...]], left: tuple[NodeId, ...] = tuple(RANKED)) -> Account:
    """``answers``: of whom, whom it offers, whom it excludes."""
    found = {source: Answered(offered, dict.fromkeys(out, 1.0), 0.1) for source, offered, out in answers}
    return ACCOUNT._replace(answers=found, candidates=left)


def named(who: NodeId, *, final: bool = True) -> Nominated:
    return Nominated(NAME, 1, who, 7, final, 2)


def test_e7_and_e9_the_last_nominee() -> None:
    """E7: no answer excludes it. E9: it is the best of all answers; one that said that it stands no more is none of them."""
    planted = Planted(lambda watch: NotExcluded(watch, sticky=False), made=manner("preferred"))
    planted.account = account((BEST, (SECOND, THIRD), ()), (LAST, (THIRD,), (SECOND,)))
    planted.emit(named(THIRD), named(SECOND, final=False))
    refused(lambda: planted.emit(named(SECOND)), "E7")
    planted.account = account((BEST, (SECOND, THIRD), ()), (LAST, (THIRD,), ()))
    planted.emit(named(SECOND))
    refused(lambda: planted.emit(named(THIRD)), "E9")
    planted.account = account((BEST, (SECOND, THIRD), ()), left=(THIRD,))
    planted.checker.name = "E7 not-excluded"
    planted.emit(named(THIRD))


def test_e10_a_superseded_leader_says_so() -> None:
    """E10: who knows of a larger reign does not say that it leads."""
    planted = Planted(Superseded)
    planted.leads = True
    planted.hold(term=5, role=Role.ACTIVE, active=(5, SECOND, False))
    planted.hold(active=(5, THIRD, False))
    refused(lambda: planted.hold(active=(5, BEST, False)), "E10")
    refused(lambda: planted.hold(active=(6, LAST, False)), "E10")
    planted.leads = False
    planted.hold(active=(7, LAST, False))


def test_e11_few_restarts() -> None:
    """E11, H410: an empty set restarts an election at most y times, and it was empty at c+1 answers that exclude the unhealthy alone."""
    planted = Planted(lambda watch: FewRestarts(watch, 2))
    begun, empty = Initiated(NAME, 1, 5, 5, (), "watch"), Initiated(NAME, 2, 5, 5, (), "empty")
    planted.emit(begun, empty, empty, begun, empty, empty)
    refused(lambda: planted.emit(empty), "E11")
    planted.last = account((BEST, (SECOND,), (SECOND,)), (LAST, (SECOND,), ()))
    planted.emit(begun, empty)
    planted.last = account((BEST, (SECOND,), (SECOND,)))
    refused(lambda: planted.emit(begun, empty), "E11")  # One answer; c is 1.
    healthy = {LAST: Answered((SECOND,), {SECOND: 0.0}, 0.1)}
    planted.last = account((BEST, (SECOND,), (SECOND,)))._replace(answers={**planted.last.answers, **healthy})
    refused(lambda: planted.emit(begun, empty), "E11")


def test_e11_the_word_of_a_liar() -> None:
    """H445: a liar may leave out members that it calls healthy; of an honest member the same is a fault, also beside a liar."""
    planted = Planted(lambda watch: FewRestarts(watch, 2))
    planted.watch.liars = frozenset({LAST})
    begun, empty = Initiated(NAME, 1, 5, 5, (), "watch"), Initiated(NAME, 2, 5, 5, (), "empty")
    healthy = Answered((SECOND,), {SECOND: 0.0}, 0.1)
    planted.last = account((BEST, (SECOND,), (SECOND,)))
    planted.last = planted.last._replace(answers={**planted.last.answers, LAST: healthy})
    planted.emit(begun, empty)
    planted.last = planted.last._replace(answers={LAST: healthy, BEST: healthy})
    refused(lambda: planted.emit(begun, empty), "E11")


def test_e12_what_a_client_is_told() -> None:
    """E12: not further ahead than its hold, under the token of a leader, and never again after the end."""
    planted = Planted(ToldInTime)
    planted.state = STATE._replace(role=Role.ACTIVE, term=7)
    planted.emit(Told(NAME, 7, 102.0, 2.0))
    refused(lambda: planted.emit(Told(NAME, 7, 102.1, 2.0)), "E12")
    refused(lambda: planted.emit(Told(NAME, 6, 102.0, 2.0)), "E12")
    planted.state = STATE._replace(role=Role.TENTATIVE, term=7)
    refused(lambda: planted.emit(Told(NAME, 7, 102.0, 2.0)), "E12")
    planted.state = STATE._replace(role=Role.ACTIVE, term=7)
    planted.emit(Stopped(NAME, 7))
    refused(lambda: planted.emit(Told(NAME, 7, 102.0, 2.0)), "E12")


def test_e13_a_leader_was_asked_for() -> None:
    """E13: a leader has a client that asked."""
    planted = Planted(Asked)
    planted.hold(role=Role.ACTIVE)
    refused(lambda: planted.hold(stands=False), "E13")


def test_e3_the_best_ranked_is_named() -> None:
    """E3: with c of the election as large as c of the lists; an election that began too early, or had to do with less, is not judged."""
    planted = Planted(lambda watch: BestRanked(watch, lambda name: BEST, 1, since=5.0))
    planted.emit(named(LAST))
    planted.emit(Initiated(NAME, 1, 1, 0, (), "elect"), named(BEST), named(LAST, final=False))
    planted.account = ACCOUNT._replace(c=0)
    planted.emit(named(LAST))
    planted.account = ACCOUNT
    refused(lambda: planted.emit(named(LAST)), "E3")


class Group:
    """Members whose lists and states are planted, for the questions of the end."""

    def __init__(self, states: dict[NodeId, State], *, lists_differ: bool = False, made: Manner | None = None) -> None:
        self.now = 0.0
        self.checkers: list[object] = []
        self.states, self.lists_differ = states, lists_differ
        self.healed = Healed({NAME: manner() if made is None else made}, cast("Any", self._lists))
        self.alive = [self._host(life) for life in states]
        self.nodes = {life.name: host for life, host in zip(states, self.alive, strict=True)}

    def why(self) -> str:
        return self.healed.why(cast("World", self))

    def _host(self, life: NodeId) -> Any:
        def reign(name: str) -> Any:
            active = self.states[life].active
            return None if active is None or active[2] else SimpleNamespace(leader=active[1])

        elections = SimpleNamespace(state=lambda name: self.states[life], leader=reign)
        return SimpleNamespace(me=life, running=True, dead=False, node=SimpleNamespace(use=lambda kind: elections))

    def _lists(self, host: Any) -> Any:
        listed = sorted(self.states) if not self.lists_differ else sorted(self.states)[1:]
        return SimpleNamespace(
            members=lambda: [SimpleNamespace(id=life) for life in listed], settled=lambda life: True, known_names=lambda: {"a", "b", "c"}
        )


def reigns(leader: NodeId, *others: NodeId) -> dict[NodeId, State]:
    active = (7, leader, False)
    found = {leader: STATE._replace(role=Role.ACTIVE, term=7, active=active)}
    return {**found, **{other: STATE._replace(active=active) for other in others}}


def test_e4_and_e5_one_leader_whom_all_know() -> None:
    """E4, E5: exactly one leads, and every member knows it."""
    assert Group(reigns(SECOND, THIRD)).why() == ""
    assert Group({**reigns(SECOND), **reigns(THIRD)}).why().startswith("E4")
    assert Group({SECOND: STATE, THIRD: STATE}).why().startswith("E4")
    assert Group({**reigns(SECOND), THIRD: STATE}).why().startswith("E5")
    over = Group(reigns(SECOND, THIRD))
    over.states[THIRD] = STATE._replace(active=(7, SECOND, True))
    assert over.why().startswith("E5")
    assert "list" in Group(reigns(SECOND, THIRD), lists_differ=True).why()


def test_e13_no_leader_where_no_client_asks() -> None:
    """E13: a name for which no client asks has no leader in the end."""
    unasked = {life: state._replace(stands=False, role=Role.FOLLOWER) for life, state in reigns(SECOND, THIRD).items()}
    assert Group(unasked).why().startswith("E13")
    assert Group({life: state._replace(active=(7, SECOND, True)) for life, state in unasked.items()}).why() == ""


def test_without_a_majority_ten_seconds_are_enough() -> None:
    """Issue 18: in mode none one leader within ten seconds of lists that agree; with voters a majority must be there first."""
    group = Group({SECOND: STATE, THIRD: STATE})
    assert group.why()
    group.now = HEALED
    assert group.why()
    group.now = HEALED + 0.1
    refused(group.why, "E4")
    fenced = Group({SECOND: STATE}, made=manner(voters="members"))
    assert fenced.why() == ""  # One of three names that it knows.
