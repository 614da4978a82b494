"""Answers: whom a list names, whom it leaves out, and what nothing changes.  Spec: election 5.4, D1, D4, D8, D11, D14."""

from __future__ import annotations

from typing import Any

from holdfast.events import ConfigMismatch
from holdfast.features.election.protocol.config import UNANSWERED_MAX, XY_MAX
from holdfast.features.election.protocol.messages import Leader, Query, Response
from holdfast.features.election.protocol.rules import Rules
from holdfast.host import NodeId
from tests.features.election.stand import BASE, HYBRID, NAME, PREFERRED, TIMEOUT, Stand, by_hash, life, post, ranked_names

NODES = ranked_names(6)


def stand(**changes: Any) -> Stand:
    return Stand(*NODES[1:], me=NODES[0], **changes).stand().quiet()


def named(answer: Response | None) -> list[int]:
    assert answer is not None
    return [NODES.index(each.id.name) for each in answer.candidates]


def out(answer: Response | None) -> dict[int, float]:
    assert answer is not None
    return {NODES.index(each.id.name): each.value for each in answer.excluded}


def test_a_responder_names_itself() -> None:
    """D1; without the rule it does not."""
    assert named(stand().ask(NODES[5], 2, 0)) == [0, 1]
    assert named(stand(rules=Rules(names_itself=False)).ask(NODES[5], 2, 0)) == [1, 2]


def test_who_does_not_stand_names_others() -> None:
    """5.2: eligible is who has a client that asks."""
    found = Stand(*NODES[1:], me=NODES[0])
    assert named(found.ask(NODES[5], 2, 0)) == [1, 2]


def test_only_candidates_that_are_settled_are_named() -> None:
    """D19: eligible, and settled; a suspect is listed and stays."""
    found = stand(candidates=[NODES[2], NODES[3], NODES[4]])
    found.lists.unsettled[NODES[2]] = None
    found.lists.suspects[NODES[3]] = None
    found.lists.bumps += 1
    assert named(found.ask(NODES[5], 5, 0)) == [0, 3, 4]


def test_the_most_unhealthy_are_left_out() -> None:
    """5.4 (3): the y largest values, of equal ones the worse rank first."""
    found = stand(made=PREFERRED)
    found.lists.health.update({NODES[1]: 1.0, NODES[2]: 1.0, NODES[3]: 3.0})
    answer = found.ask(NODES[5], 3, 2)
    assert out(answer) == {3: 3.0, 2: 1.0}
    assert named(answer) == [0, 1, 4]


def test_the_healthy_are_never_left_out() -> None:
    """D8: "top y" of zeros would leave out two healthy ones."""
    assert out(stand().ask(NODES[5], 5, 2)) == {}
    assert len(out(stand(rules=Rules(only_unhealthy=False)).ask(NODES[5], 5, 2))) == 2


def test_its_own_sickness_is_told_by_itself() -> None:
    """5.4 (3): self joins excl if its own probes fail; its own list says nothing else about it."""
    found = stand()
    found.lists.health[NODES[0]] = 9.0
    assert 0 in named(found.ask(NODES[5]))
    found.lists.sick = True
    answer = found.ask(NODES[5])
    assert 0 in out(answer)
    assert 0 not in named(answer)


def test_health_comes_from_where_the_name_says() -> None:
    """Section 4: by the membership's counts, or by a tag that the candidate publishes."""
    from holdfast.features.election.protocol.manner import manner

    made = manner(health="tag:sick")
    found = Stand(*NODES[1:], me=NODES[0], made=made).stand().quiet()
    found.lists.health[NODES[1]] = 7.0
    found.rows.publish(life(NODES[2]), found.machine._core.contests[NAME].row, post(made, health=2.0))
    assert out(found.ask(NODES[5])) == {2: 2.0}


def test_base_excludes_none() -> None:
    """Algorithm 1 has no health; a QUERY that asks for it all the same gets none."""
    found = stand(made=BASE)
    found.lists.health[NODES[1]] = 7.0
    assert out(found.ask(NODES[5], 2, 2)) == {}


def test_x_and_y_are_bounded() -> None:
    """Section 3: at most 32 of each."""
    many = [f"p{number}" for number in range(60)]
    found = Stand(*many).stand().quiet()
    found.lists.health.update(dict.fromkeys(many, 1.0))
    answer = found.ask("p1", XY_MAX, XY_MAX)
    assert answer is not None
    assert (len(answer.excluded), len(answer.candidates)) == (XY_MAX, 60 + 1 - XY_MAX)


def test_a_question_changes_no_list() -> None:
    """D4: nothing in a QUERY is applied to the list; two equal questions get equal answers."""
    found = stand()
    version = found.lists.version
    assert found.ask(NODES[5]) == found.ask(NODES[4])
    assert found.lists.version == version


def test_the_leader_that_is_listed() -> None:
    """5.4 (3): leader_listed needs the leader in the list, and no higher term heard of."""
    found = stand()
    term = 1_700_000_000_000
    found.hear(NODES[3], Leader(NAME, HYBRID, term, life(NODES[3]), active=True))
    answer = found.ask(NODES[5])
    assert answer is not None
    assert answer.active is not None
    assert (answer.leader_listed, answer.active.leader, answer.term) == (True, life(NODES[3]), term)
    found.hear(NODES[4], Leader(NAME, HYBRID, term + 5, life(NODES[4]), active=False))
    assert found.ask(NODES[5]).leader_listed is False  # type: ignore[union-attr]


def test_a_busy_initiator_is_told() -> None:
    """D11: the best-ranked one that was heard within 2 TIMEOUT and ranks before the asking one."""
    found = stand()
    assert found.ask(NODES[2]).busy is None  # type: ignore[union-attr]
    assert found.ask(NODES[4]).busy == life(NODES[2])  # type: ignore[union-attr]
    assert found.ask(NODES[1]).busy is None  # type: ignore[union-attr]
    found.host.pass_time(2 * TIMEOUT + 0.01)
    assert found.ask(NODES[4]).busy is None  # type: ignore[union-attr]


def test_who_does_not_take_part_is_silent() -> None:
    """5.2, D19: no settled member answers no election; a sync question is answered always."""
    found = stand()
    found.lists.unsettled[NODES[0]] = None
    assert found.ask(NODES[5]) is None
    assert found.ask(NODES[5], sync=True) is not None
    assert stand(rules=Rules(settled=False)).ask(NODES[5]) is not None


def test_sync_tells_terms_and_no_candidates() -> None:
    """5.4 (1)."""
    answer = stand().ask(NODES[5], sync=True)
    assert answer is not None
    assert (answer.candidates, answer.excluded, answer.known) == ((), (), 6)


def test_another_manner_is_told_both_ways() -> None:
    """F4: a candidate that elects otherwise emits ConfigMismatch once per peer and value, and answers with its own manner alone."""
    found = stand()
    for _ in range(3):
        found.hear(NODES[5], Query(NAME, BASE, 1, 1, 0, 0))
    events = found.host.events(ConfigMismatch)
    assert [(event.peer, event.field, event.ours, event.theirs) for event in events] == [
        (life(NODES[5]), f"variant of {NAME}", "hybrid", "base")
    ]
    answers = found.host.take(Response)
    assert {(message.manner, message.candidates) for _, message in answers} == {(HYBRID, ())}


def test_unanswered_questions_are_bounded() -> None:
    """Section 2: 256 answers wait to be sent; more questions are counted and dropped."""
    found = stand()
    for number in range(UNANSWERED_MAX + 10):
        found.machine.on_message(NodeId("p", number), Query(NAME, HYBRID, number, 1, 0, 0))
    found.host.pass_time(0.0)
    assert len(found.host.take(Response)) == UNANSWERED_MAX
    assert found.machine.counts["unanswered"] == 10


def test_names_rank_by_name() -> None:
    """D13: the order of candidates is that of the hash for this name."""
    assert by_hash(NAME, NODES) == NODES
