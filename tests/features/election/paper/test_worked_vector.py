"""The example of section IV-D with its numbers, in all six orders of its answers.  Spec: election 6 (Worked vector); paper 004, Fig. 2."""

from __future__ import annotations

from itertools import permutations

import pytest

from holdfast.features.election.protocol.messages import Response
from holdfast.features.election.protocol.rules import Rules
from tests.features.election.stand import HYBRID, NAME, Stand, ranked_names

NODES = ranked_names(5)  # node 0 of the paper has the lowest hash
PRINTED = {
    0: {1: 2, 2: 1, 3: 4, 4: 0},
    1: {0: 5, 2: 0, 3: 2, 4: 1},
    2: {0: 2, 1: 2, 3: 3, 4: 1},
    3: {0: 3, 1: 0, 2: 2, 4: 1},
    4: {0: 0, 1: 1, 2: 0, 3: 2},
}
SAID = {
    4: ({0, 2}, {3: 2, 1: 1}),
    0: ({0, 2}, {3: 4, 1: 2}),
    1: ({1, 2}, {0: 5, 3: 2}),
}


def node(number: int, rules: Rules | None = None) -> Stand:
    """A node of the example, with its list and metrics as printed; a candidate like all others."""
    me = NODES[number]
    found = Stand(*(each for each in NODES if each != me), me=me, made=HYBRID, rules=rules, c=2, f=0, x=2, y=2).stand()
    found.lists.health.update({NODES[other]: float(value) for other, value in PRINTED[number].items()})
    return found.quiet()


def said(number: int, rules: Rules | None = None) -> Response:
    answer = node(number, rules).ask(NODES[4] if number != 4 else NODES[3], 2, 2)
    assert answer is not None
    return answer


def numbers(answer: Response) -> tuple[set[int], dict[int, float]]:
    candidates = {NODES.index(each.id.name) for each in answer.candidates}
    return candidates, {NODES.index(each.id.name): each.value for each in answer.excluded}


def run(order: tuple[int, ...], *, confirm: bool = True) -> tuple[Stand, list[list[tuple[int, int, bool]]]]:
    """The initiator, and whom it named after each answer."""
    initiator = node(4, Rules(self_response=False, confirm=confirm))
    eid = initiator.begin()
    named = []
    for number in order:
        answer = said(number)
        initiator.hear(NODES[number], Response(NAME, HYBRID, eid, answer.candidates, answer.excluded))
        named.append([(NODES.index(name), term, final) for name, term, final in initiator.notified()])
    return initiator, named


@pytest.mark.parametrize("number", [4, 0, 1])
def test_answers_are_those_of_the_example(number: int) -> None:
    """Algorithm 3, lines 29-30, on the printed lists: 4 says {0,2} without {3,1}, 0 the same, 1 says {1,2} without {0,3}."""
    assert numbers(said(number)) == SAID[number]


def test_the_printed_order_names_0_then_2() -> None:
    """Order 4, 0, 1: node 0 is named, no change, then node 2, under a larger term; the last word is final."""
    _, (first, second, third) = run((4, 0, 1))
    assert [number for number, _, _ in first] == [0]
    assert second == []
    assert [(number, final) for number, _, final in third] == [(2, True)]
    assert third[0][1] > first[0][1]


@pytest.mark.parametrize("confirm", [True, False], ids=["ours", "paper"])
@pytest.mark.parametrize("order", sorted(permutations((4, 0, 1))))
def test_all_orders_end_with_2_after_two_notifies(order: tuple[int, ...], confirm: bool) -> None:
    """E9: node 2 is confirmed, after exactly two NOTIFYLEADERs of which the first went to 0 or 1; where nominees wait for the end of the
    election, which the paper does not have, the last may be told twice."""
    initiator, named = run(order, confirm=confirm)
    nominees = [number for step in named for number, _, _ in step]
    assert nominees[:2] in ([0, 2], [1, 2])
    assert nominees[2:] == ([2] if confirm and len(nominees) > 2 else [])
    last = initiator.machine.last(NAME)
    assert last is not None
    assert {NODES.index(life.name) for life in last.excluded} == {0, 1, 3}
    assert [NODES.index(life.name) for life in last.candidates] == [2]


def test_the_metrics_of_the_listing_are_no_sums() -> None:
    """The listing prints 3:8, 0:5, 1:3; no algorithm sums. What is kept of an excluded node is its largest value."""
    initiator, _ = run((4, 0, 1))
    last = initiator.machine.last(NAME)
    assert last is not None
    assert {NODES.index(life.name): value for life, value in last.excluded.items()} == {3: 4.0, 0: 5.0, 1: 2.0}


def test_without_self_naming_the_second_answer_is_another() -> None:
    """D1: a node whose list omits itself would answer {2,4}, and the second step's candidates would be {0,2,4}."""
    assert numbers(said(0, Rules(names_itself=False)))[0] == {2, 4}
