"""Theorems 1 to 4 and Lemma 1, by the obligations of D24.  Spec: election 6; paper 004, section V."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.features.election.protocol.facts import Initiated
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.messages import Leader, NotifyLeader, OfElection, Query, Response
from holdfast.features.election.protocol.rules import Rules
from holdfast.host import Message
from tests.features.election.stand import BASE, HYBRID, NAME, OPTIMISTIC, PREFERRED, Stand, Town, ranked_names

ALL = [BASE, OPTIMISTIC, PREFERRED, HYBRID]


def one_election(town: Town, initiator: str) -> None:
    """All stand, none starts by itself, and this member begins."""
    town.stand()
    town.run(0.02)
    town.elections[initiator].elect(NAME)
    town.run_until(town.agreed, 20.0)


def counted(town: Town, kind: type[Message]) -> int:
    return sum(isinstance(message, kind) for _, _, message in town.sent)


@pytest.mark.parametrize("made", [BASE, OPTIMISTIC])
@pytest.mark.parametrize("seed", range(12))
def test_theorem_1_lists_that_lack_at_most_c(made: Manner, seed: int) -> None:
    """Safety: each member is missing in at most c lists, and the best-ranked one is confirmed (E3). The lists do not move."""
    random, c = Random(seed), 2
    town = Town(9, made=made, rules=Rules(watch=False), c=c, f=0, seed=seed)
    for member in town.names:
        for viewer in random.sample([name for name in town.names if name != member], c):
            town.lists[viewer].lacks[member] = None
    _until_led(town, random.choice(town.names))
    assert town.leaders() == [town.names[0]]


@pytest.mark.parametrize("names_itself, elected", [(True, 0), (False, 1)])
def test_theorem_1_needs_responders_that_name_themselves(names_itself: bool, elected: int) -> None:
    """D1: N=5, c=1; node 1 lacks node 0, and these two answer. A node 0 that does not name itself makes node 1 the leader."""
    rules = Rules(names_itself=names_itself, watch=False, self_response=False)
    town = Town(5, made=BASE, rules=rules, c=1, f=0)
    first, second = town.names[:2]
    town.lists[second].lacks[first] = None
    town.lost = lambda source, target, message: isinstance(message, Query) and target not in (first, second)
    _until_led(town, town.names[4])
    assert town.leaders() == [town.names[elected]]


def _until_led(town: Town, initiator: str) -> None:
    town.stand()
    town.run(0.02)
    town.elections[initiator].elect(NAME)
    town.run_until(lambda: bool(town.leaders()))


@pytest.mark.parametrize("made", ALL)
def test_theorem_2_f_silent_members_cost_no_round(made: Manner) -> None:
    """Liveness (1): f of c+f+1 are down and listed; c+1 answers come, and no member is asked twice."""
    town = Town(7, made=made, rules=Rules(watch=False), c=3, f=3)
    for name in town.names[4:]:
        town.crash(name)
    one_election(town, town.names[3])
    assert town.leaders() == [town.names[0]]
    assert counted(town, Query) == 6


@pytest.mark.parametrize("made", ALL)
@pytest.mark.parametrize("died_at", ["query", "response", "notify", "leader"])
def test_theorem_2_a_would_be_leader_that_dies(made: Manner, died_at: str) -> None:
    """Liveness (2): it dies at any step; once the lists drop it, a restarted election names the next one."""
    kinds: dict[str, type[OfElection]] = {"query": Query, "response": Response, "notify": NotifyLeader, "leader": Leader}
    town = Town(5, made=made, c=2, f=1)
    first = town.names[0]

    def lost(source: str, target: str, message: Message) -> bool:
        if isinstance(message, kinds[died_at]) and first not in town.down:
            town.crash(first)
        return False

    town.lost = lost
    town.stand()
    town.run(1.0)
    town.detect(first)
    town.run_until(town.agreed)
    assert town.leaders() == [town.names[1]]


@pytest.mark.parametrize("made", [PREFERRED, HYBRID])
def test_theorem_2_x_and_y_end_at_n_and_0(made: Manner) -> None:
    """Liveness (3): every list holds all others to be unhealthy, so every union is empty until y is 0; x never passes N (E11)."""
    town = Town(4, made=made, c=3, f=0, x=1, y=3, rules=Rules(watch=False))
    for viewer in town.names:
        town.lists[viewer].health.update({name: 1.0 for name in town.names if name != viewer})
    for viewer, worst in zip(town.names, (*town.names[1:], town.names[0]), strict=True):
        town.lists[viewer].health[worst] = 2.0
    began: list[tuple[int, int]] = []
    town.stand()
    town.run(0.02)
    town.elections[town.names[3]].elect(NAME)
    town.run_until(town.agreed)
    began = [(fact.x, fact.y) for fact in town.hosts[town.names[3]].events(Initiated)]
    assert began == [(1, 3), (2, 2), (3, 1), (4, 0)]
    assert town.leaders() == [town.names[0]]


@pytest.mark.parametrize("c, f", [(0, 0), (1, 0), (2, 1), (4, 2), (5, 2)])
@pytest.mark.parametrize("own", [True, False], ids=["ours", "paper"])
def test_lemma_1_messages(c: int, f: int, own: bool) -> None:
    """Base: 2(c+f)+1 unicasts and one multicast; 2(c+f+1)+1 where the initiator's own list is no answer (E8, D3)."""
    town = Town(9, made=BASE, rules=Rules(self_response=own, watch=False, repeat=False), c=c, f=f)
    one_election(town, town.names[8])
    town.run(1.0)
    asked = c + f + (not own)
    assert (counted(town, Query), counted(town, Response), counted(town, NotifyLeader)) == (asked, asked, 1)
    assert counted(town, Leader) == 8
    leaders = {(source, message.term) for source, _, message in town.sent if isinstance(message, Leader)}
    assert len(leaders) == 1


@pytest.mark.parametrize("extra, elected", [(True, 0), (False, 1)], ids=["c+f+1", "c+f"])
def test_theorem_3_one_question_less_is_unsafe(extra: bool, elected: int) -> None:
    """The proof's schedule: f of those asked are silent, and c that answer lack the would-be leader. With c+f questions another one is."""
    names = ranked_names(8)
    stand = Stand(*names[:7], me=names[7], made=BASE, rules=Rules(self_response=False, extra=extra), c=2, f=1).stand().quiet()
    stand.begin()
    asked = [str(to).split("#")[0] for to, _ in stand.host.take(Query)]
    assert len(asked) == (4 if extra else 3)
    for name in asked[1:3]:
        stand.answer(name, [names[1]])
    if extra:
        stand.answer(asked[3], [names[0]])
    assert [name for name, _, _ in stand.notified()] == [names[elected]]


@pytest.mark.parametrize("made", [PREFERRED, HYBRID])
@pytest.mark.parametrize("seed", range(6))
def test_theorem_4_no_answer_excludes_the_leader(made: Manner, seed: int) -> None:
    """Preference: who is named in the end is among the unhealthy of no answer that was used (E7)."""
    random = Random(seed)
    town = Town(8, made=made, rules=Rules(watch=False), c=3, f=0, x=5, y=2, seed=seed)
    for viewer in town.names:
        town.lists[viewer].health.update({name: random.random() for name in random.sample(town.names, 3)})
    initiator = random.choice(town.names)
    one_election(town, initiator)
    last = town.elections[initiator].last(NAME)
    assert last is not None
    assert last.nominee is not None
    assert [last.nominee.name] == town.leaders()
    assert all(last.nominee not in answer.excluded for answer in last.answers.values())


def test_theorem_4_the_known_sick_one_does_not_lead() -> None:
    """Preference: the member with the lowest hash is the most unhealthy in all lists; Preferred and Hybrid leave it out, Base does not."""
    for made, first in ((BASE, 0), (PREFERRED, 1), (HYBRID, 1)):
        town = Town(6, made=made, rules=Rules(watch=False), c=2, f=0, x=3, y=1)
        for viewer in town.names:
            town.lists[viewer].health[town.names[0]] = 5.0
        one_election(town, town.names[5])
        assert town.leaders() == [town.names[first]]


@pytest.mark.parametrize("made", ALL)
def test_f_more_may_fail_after_it_quiesced(made: Manner) -> None:
    """III.A: "after the protocol quiesces, further f nodes may fail": f die during the election and f more, with the leader, later."""
    town = Town(9, made=made, c=2, f=2).stand()
    town.run(0.05)
    for name in town.names[5:7]:
        town.crash(name)
    town.run_until(town.agreed)
    for name in (*town.names[5:7], town.names[0], town.names[7]):
        town.crash(name)
    for name in list(town.down):
        town.detect(name)
    town.run_until(town.agreed)
    assert town.leaders() == [town.names[1]]
