"""Algorithms 1 to 4, line by line.  Spec: election 5; paper 004, section IV."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.features.election.protocol.facts import ElectionFailed
from holdfast.features.election.protocol.manner import Manner
from holdfast.features.election.protocol.messages import Leader, NotifyLeader, OfElection, Query
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from tests.features.election.stand import BASE, HYBRID, NAME, OPTIMISTIC, PREFERRED, TIMEOUT, Stand, Town, life, ranked_names

ALL = [BASE, OPTIMISTIC, PREFERRED, HYBRID]
NODES = ranked_names(9)
INITIATOR = NODES[8]
OTHERS = NODES[:8]


def initiator(made: Manner, *, c: int = 2, f: int = 1, rules: Rules | None = None, **changes: Any) -> Stand:
    """Asks c+f+1 others, as the paper counts."""
    found = Stand(*OTHERS, me=INITIATOR, made=made, rules=rules or Rules(self_response=False), c=c, f=f, **changes).stand()
    return found.quiet()


def asked(stand: Stand) -> list[str]:
    return [str(to).split("#")[0] for to, _ in stand.host.take(Query)]


@pytest.mark.parametrize("made", ALL)
def test_query_goes_to_c_f_1_nodes(made: Manner) -> None:
    """Algorithms 1-4 line 3: "Send QUERY to arbitrary c + f + 1 nodes"."""
    stand = initiator(made)
    stand.begin()
    names = asked(stand)
    assert len(names) == len(set(names)) == 4
    assert INITIATOR not in names


@pytest.mark.parametrize("made, x, y", [(BASE, 1, 0), (OPTIMISTIC, 1, 0), (PREFERRED, 5, 5), (HYBRID, 5, 5)])
def test_query_carries_x_and_y(made: Manner, x: int, y: int) -> None:
    """Algorithms 3-4 line 3: "QUERY{x,y}"; Base asks for "lowest hash node" (Algorithm 1 line 20), which is x = 1 and y = 0."""
    stand = initiator(made)
    stand.begin()
    assert {(message.x, message.y) for _, message in stand.host.take(Query)} == {(x, y)}


@pytest.mark.parametrize("made", ALL)
def test_silence_is_asked_again(made: Manner) -> None:
    """Algorithms 1-4 lines 5-6: no new RESPONSE after TIMEOUT: c+f+1-size(receivedIds) nodes that have not answered."""
    stand = initiator(made)
    stand.begin()
    first = asked(stand)
    stand.answer(first[0], [NODES[0]])
    stand.notified()
    stand.host.pass_time(TIMEOUT + 0.001)
    again = asked(stand)
    assert len(again) == 3
    assert first[0] not in again
    assert set(again) - set(first) == set(again)  # those first that were never asked


@pytest.mark.parametrize("made", ALL)
def test_a_response_restarts_the_timeout(made: Manner) -> None:
    """Algorithms 1-4 lines 5, 8, 9: TIMEOUT counts from the last *new* RESPONSE; one of a node among receivedIds is none."""
    stand = initiator(made)
    stand.begin()
    first = asked(stand)
    stand.host.pass_time(TIMEOUT - 0.01)
    stand.answer(first[0], [NODES[0]])
    stand.host.pass_time(TIMEOUT - 0.02)
    stand.answer(first[0], [NODES[0]])
    stand.host.take(Query)
    stand.host.pass_time(0.015)
    assert asked(stand) == []
    stand.host.pass_time(0.01)
    assert len(asked(stand)) == 3


@pytest.mark.parametrize("made", [BASE, PREFERRED])
def test_c_1_responses_then_the_lowest_is_named(made: Manner) -> None:
    """Algorithm 1 lines 4, 10, 12 and Algorithm 3 lines 4, 10, 19, 20: c+1 responses, the minimum of all, one NOTIFYLEADER."""
    stand = initiator(made)
    stand.begin()
    first = asked(stand)
    stand.answer(first[0], [NODES[3]])
    stand.answer(first[1], [NODES[1]])
    assert stand.notified() == []
    stand.answer(first[2], [NODES[2]])
    assert [(name, final) for name, _, final in stand.notified()] == [(NODES[1], True)]


@pytest.mark.parametrize("made", [OPTIMISTIC, HYBRID])
def test_streaming_names_each_better_one(made: Manner) -> None:
    """Algorithm 2 lines 4, 10-12 and Algorithm 4 lines 4, 18-21: a RESPONSE that changes the leader is followed by NOTIFYLEADER at
    once, until c+1 are there."""
    stand = initiator(made)
    stand.begin()
    first = asked(stand)
    stand.answer(first[0], [NODES[3]])
    assert [(name, final) for name, _, final in stand.notified()] == [(NODES[3], False)]
    stand.answer(first[1], [NODES[4]])
    assert stand.notified() == []
    stand.answer(first[2], [NODES[1]])
    assert [(name, final) for name, _, final in stand.notified()] == [(NODES[1], True)]


def test_streaming_as_printed_tells_each_nominee_once() -> None:
    """Algorithm 2: no word of an end. In the paper's form of the machine the nominee acts at once, and hears nothing more."""
    stand = initiator(OPTIMISTIC, rules=Rules(self_response=False, confirm=False))
    stand.begin()
    first = asked(stand)
    for index, best in enumerate((1, 2, 1)):
        stand.answer(first[index], [NODES[best]])
    assert [name for name, _, _ in stand.notified()] == [NODES[1]]


@pytest.mark.parametrize("made", [PREFERRED, HYBRID])
def test_leaders_are_candidates_without_excludes(made: Manner) -> None:
    """Algorithm 3 lines 10, 11, 13, 19 and Algorithm 4 lines 10-12, 18: unions of both, then the difference: a candidate that one answer
    excludes is out, also if others name it."""
    stand = initiator(made)
    stand.begin()
    first = asked(stand)
    stand.answer(first[0], [NODES[0], NODES[1]])
    stand.answer(first[1], [NODES[0], NODES[2]], {NODES[1]: 1.0})
    stand.notified()
    stand.answer(first[2], [NODES[2]], {NODES[0]: 3.0})
    assert [name for name, _, _ in stand.notified()] == [NODES[2]]


@pytest.mark.parametrize("made", [PREFERRED, HYBRID])
def test_an_empty_set_restarts_with_next_x_and_y(made: Manner) -> None:
    """Algorithm 3 lines 2, 13-17, 39, 40 and Algorithm 4 lines 2, 12-16, 29: GETNEXTX is min(N, x+1) and GETNEXTY is max(0, y-1); at once,
    as a new election, which has no answer yet. In Hybrid, too, it is judged at c+1 answers (D7)."""
    stand = initiator(made, x=1, y=2)
    before = stand.begin()
    for name in asked(stand)[:3]:
        stand.answer(name, [NODES[0]], {NODES[0]: 1.0})
    queries = [message for _, message in stand.host.take(Query)]
    assert {(query.x, query.y) for query in queries} == {(2, 1)}
    assert all(query.eid > before for query in queries)
    for name in OTHERS[:3]:
        stand.answer(name, [NODES[0]], {NODES[0]: 1.0})
    assert {(query.x, query.y) for _, query in stand.host.take(Query)} == {(3, 0)}


@pytest.mark.parametrize("made", [PREFERRED, HYBRID])
def test_y_of_0_excludes_no_member(made: Manner) -> None:
    """Theorem 2 (3): with y = 0 the set cannot be empty, also if an answer excludes members that were not asked for."""
    stand = initiator(made, x=1, y=0)
    stand.begin()
    for name in asked(stand)[:3]:
        stand.answer(name, [NODES[0]], {NODES[0]: 1.0})
    assert [name for name, _, _ in stand.notified()][-1] == NODES[0]


def test_base_ignores_excludes() -> None:
    """Algorithms 1 and 2 know no health."""
    stand = initiator(BASE)
    stand.begin()
    for name in asked(stand)[:3]:
        stand.answer(name, [NODES[0]], {NODES[0]: 1.0})
    assert [name for name, _, _ in stand.notified()] == [NODES[0]]


@pytest.mark.parametrize("made", ALL)
def test_a_silent_leader_ends_in_a_new_election(made: Manner) -> None:
    """Algorithm 1 lines 2, 13-14, Algorithm 2 lines 2, 15-16, Algorithm 3 lines 2, 21-22 and Algorithm 4 lines 2, 24-25: no LEADER from id
    after TIMEOUT: INITIATEELECTION(), here after a pause (D12). It begins without an answer."""
    stand = initiator(made, notify_retries=0)
    eid = stand.begin()
    for name in asked(stand)[:3]:
        stand.answer(name, [NODES[0]])
    stand.host.pass_time(1.5 * TIMEOUT + 0.001)
    assert [failed.why for failed in stand.facts(ElectionFailed)] == ["notify"]  # type: ignore[attr-defined]
    stand.host.pass_time(2 * TIMEOUT)
    assert all(query.eid > eid for _, query in stand.host.take(Query))
    assert stand.machine.state(NAME).running  # type: ignore[union-attr]
    assert stand.machine.last(NAME).answers == {}  # type: ignore[union-attr]


@pytest.mark.parametrize("made", ALL)
def test_a_leader_that_answers_ends_the_election(made: Manner) -> None:
    """Algorithm 1 line 13, Algorithm 2 line 15, Algorithm 3 line 21 and Algorithm 4 line 24, the other way: LEADER from id came."""
    stand = initiator(made)
    stand.begin()
    for name in asked(stand)[:3]:
        stand.answer(name, [NODES[0]])
    term = stand.notified()[-1][1]
    stand.hear(NODES[0], Leader(NAME, made, term, life(NODES[0]), active=True, final=True))
    assert stand.machine.last(NAME).outcome == "elected"  # type: ignore[union-attr]
    stand.host.pass_time(5 * TIMEOUT)
    assert stand.host.take(Query) == []


@pytest.mark.parametrize(
    "made, x, y, names", [(BASE, 1, 0, [0]), (OPTIMISTIC, 1, 0, [0]), (PREFERRED, 3, 2, [0, 2, 3]), (HYBRID, 3, 2, [0, 2, 3])]
)
def test_query_is_answered_from_the_own_list(made: Manner, x: int, y: int, names: list[int]) -> None:
    """Algorithm 1 lines 19-20, Algorithm 2 line 20, Algorithm 3 lines 27-31 and Algorithm 4 line 29: the x lowest hashes,
    after the y most unhealthy were taken out."""
    stand = Stand(*OTHERS, me=INITIATOR, made=made).stand()
    stand.lists.health.update({NODES[1]: 4.0, NODES[5]: 2.0, NODES[6]: 1.0})
    answer = stand.ask(NODES[7], x, y)
    assert answer is not None
    assert [each.id.name for each in answer.candidates] == [NODES[index] for index in names]
    assert [each.id.name for each in answer.excluded] == ([NODES[1], NODES[5]] if y else [])


@pytest.mark.parametrize("made", ALL)
def test_notifyleader_is_followed_by_one_multicast(made: Manner) -> None:
    """Algorithm 1 lines 21-22, Algorithm 2 line 20, Algorithm 3 lines 32-33 and Algorithm 4 line 29: "Multicast
    LEADER"; one, to all that are listed, if the initiator has finished."""
    stand = Stand(*OTHERS, me=INITIATOR, made=made).stand().quiet()
    stand.hear(NODES[0], NotifyLeader(NAME, made, 7, 1_800_000_000_000, final=True))
    stand.host.pass_time(0.0)
    found = [(to, message) for to, message in stand.host.take(Leader) if message.active]
    assert sorted(str(to) for to, _ in found) == sorted(str(life(name)) for name in OTHERS)
    assert stand.role() is Role.ACTIVE


@pytest.mark.parametrize("made", ALL)
def test_leader_is_marked(made: Manner) -> None:
    """Algorithm 1 lines 23-24, Algorithm 2 line 20, Algorithm 3 lines 34-35 and Algorithm 4 line 29: "Mark node i as leader"."""
    stand = Stand(*OTHERS, me=INITIATOR, made=made)
    stand.hear(NODES[4], Leader(NAME, made, 1_700_000_000_001, life(NODES[4]), active=True))
    reign = stand.machine.leader(NAME)
    assert reign is not None
    assert (reign.leader, reign.token, reign.active) == (life(NODES[4]), 1_700_000_000_001, True)


@pytest.mark.parametrize("made", ALL)
def test_all_elect_the_lowest_hash(made: Manner) -> None:
    """Definitions 1 and 2: all live nodes set their leader to the one with the lowest hash; five nodes with equal lists."""
    town = Town(5, made=made).stand()
    town.run_until(town.agreed)
    assert town.leaders() == [town.names[0]]


def test_the_example_of_base() -> None:
    """Fig. 1: four nodes, c=2, f=0, node 3 begins: two questions and two answers beside its own list, one NOTIFYLEADER, one multicast."""
    town = Town(4, made=BASE, rules=Rules(watch=False, repeat=False), c=2, f=0).stand()
    town.run(0.02)
    town.elections[town.names[3]].elect(NAME)
    town.run_until(town.agreed)
    town.run(1.0)
    said = [(source, type(message).__name__) for source, _, message in town.sent if isinstance(message, OfElection)]
    initiator, leader = town.names[3], town.names[0]
    assert said.count((initiator, "Query")) == 2
    assert sum(kind == "Response" for _, kind in said) == 2
    assert said.count((initiator, "NotifyLeader")) == 1
    assert said.count((leader, "Leader")) == 3
    assert len(said) == 8


def test_x_never_passes_n() -> None:
    """Algorithm 3 line 39 and Algorithm 4 line 29: GETNEXTX is min(N, x+1)."""
    stand = Stand(*NODES[:2], me=INITIATOR, made=PREFERRED, rules=Rules(self_response=False), c=1, f=0, x=2, y=3).stand().quiet()
    stand.begin()
    for _ in range(3):
        for name in NODES[:2]:
            stand.answer(name, [NODES[0]], {NODES[0]: 1.0})
    assert [(query.x, query.y) for _, query in stand.host.take(Query)][::2] == [(2, 3), (3, 2), (3, 1), (3, 0)]
