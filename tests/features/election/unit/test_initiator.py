"""The initiator's decisions.  Spec: election 5.3, 5.5, D3-D7, D11, D12, D14, D15, D18; decisions H391, H395, H396, H400."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from holdfast.features.election.protocol.facts import ElectionFailed, Initiated, Nominated, Yielded
from holdfast.features.election.protocol.messages import Crown, Leader, NotifyLeader, NotifyNack, Query, Response
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from holdfast.host import Address, NodeId
from tests.features.election.stand import (
    BASE,
    HYBRID,
    NAME,
    OPTIMISTIC,
    PREFERRED,
    TIMEOUT,
    Stand,
    Town,
    by_hash,
    life,
    ranked_names,
    standing,
)

NODES = ranked_names(7)
TERM = 1_700_000_000_500


def stand(at: int = 6, **changes: Any) -> Stand:
    """A member of the seven; all stand."""
    others = [name for index, name in enumerate(NODES) if index != at]
    return Stand(*others, me=NODES[at], **changes).stand().quiet()


def outcome(found: Stand) -> str:
    last = found.machine.last(NAME)
    assert last is not None
    return last.outcome


@pytest.mark.parametrize("own, asked, needed", [(True, 2, 2), (False, 3, 3)])
def test_the_own_list_is_the_first_answer(own: bool, asked: int, needed: int) -> None:
    """D3: c+f others are asked and the own answer counts; without, c+f+1 others and c+1 of their answers."""
    found = stand(made=BASE, rules=Rules(self_response=own))
    found.begin()
    assert len(found.host.take(Query)) == asked
    for index in range(needed):
        assert found.notified() == []
        found.answer(NODES[index], [NODES[0]])
    assert len(found.notified()) == 1


def test_what_the_own_list_lacks_is_no_veto() -> None:
    """D4: a candidate that another list has is named although the own one dropped it; with the veto it would be skipped."""
    for no_veto, best in ((True, 0), (False, 1)):
        found = stand(made=BASE, rules=Rules(no_veto=no_veto))
        found.lists.lose(NODES[0])
        found.begin()
        for index in (1, 2):
            found.answer(NODES[index], [NODES[0]])
        named = [name for name, _, _ in found.notified()]
        assert named == ([NODES[best]] if no_veto else named)
        assert (NODES[0] in named) is no_veto


def test_a_nominee_that_is_not_listed_is_met() -> None:
    """H395: an answer says where it is; for a listed one the list says it."""
    found = stand(made=BASE)
    found.lists.lose(NODES[0])
    found.begin()
    for index in (1, 2):
        found.answer(NODES[index], [NODES[0]])
    assert found.host.met[life(NODES[0])] == Address(NODES[0], 1)


def test_every_nominee_has_a_new_term() -> None:
    """D5; without the rule all nominations of one run share one."""
    for rule in (True, False):
        found = stand(made=OPTIMISTIC, c=4, rules=Rules(nomination_terms=rule, self_response=False))
        found.begin()
        for index, best in ((1, 3), (2, 2), (3, 1)):
            found.answer(NODES[index], [NODES[best]])
        terms = [term for _, term, _ in found.notified()]
        assert len(terms) == 3
        assert (terms[0] < terms[1] < terms[2]) is rule


def test_a_term_is_above_what_answers_know_and_the_clock() -> None:
    """D21, D22: at least the wall clock's milliseconds, above each answer's; in the paper's form above answers alone."""
    for clock in (True, False):
        found = stand(made=BASE, rules=Rules(clock_terms=clock))
        found.begin()
        found.answer(NODES[1], [NODES[0]], term=41)
        found.answer(NODES[2], [NODES[0]], term=7)
        assert [term for _, term, _ in found.notified()] == ([1_700_000_000_000] if clock else [42])


def test_terms_stay_above_tokens_of_another_way() -> None:
    """F16: what ``exceed`` said."""
    found = stand(made=BASE)
    found.machine.exceed(NAME, 1_900_000_000_000)
    found.begin()
    for index in (1, 2):
        found.answer(NODES[index], [NODES[0]])
    assert found.notified()[0][1] == 1_900_000_000_001


def test_an_empty_set_early_is_no_failure() -> None:
    """D7: later answers add candidates; judged at each answer (Algorithm 4, line 13) the election restarts four times for nothing."""
    for rule, restarts in ((True, 0), (False, 1)):
        found = stand(made=HYBRID, rules=Rules(empty_at_end=rule, self_response=False), x=1, y=1)
        found.begin()
        found.answer(NODES[1], [NODES[0]], {NODES[0]: 1.0})
        assert found.machine.counts["restarts"] == restarts


@pytest.mark.parametrize("rule", [True, False])
def test_a_tentative_initiator_may_restart(rule: bool) -> None:
    """D7: N=3, one is dead; the two survivors exclude each other, and the initiator has named itself."""
    town = Town(3, made=HYBRID, rules=Rules(restart_tentative=rule), c=1, f=1, x=5, y=1)
    first, second, third = town.names
    town.crash(third)
    town.lists[first].health[second] = town.lists[second].health[first] = 3.0
    town.stand(first, second)
    town.run(0.02)
    town.elections[first].elect(NAME)
    town.run(0.5)
    assert bool(town.leaders()) is rule


@pytest.mark.parametrize("made", [BASE, PREFERRED, OPTIMISTIC, HYBRID])
def test_the_order_of_answers_does_not_matter(made: object) -> None:
    """E9: all orders of four answers end with one nominee."""
    ends = set()
    answers = [([0, 1], {2: 1.0}), ([1, 2], {0: 2.0}), ([3], {}), ([1, 4], {3: 1.0})]
    for order in permutations(range(4)):
        found = stand(made=made, c=3, rules=Rules(self_response=False))
        found.begin()
        for index in order:
            names, excluded = answers[index]
            found.answer(NODES[index], [NODES[each] for each in names], {NODES[each]: value for each, value in excluded.items()})
        ends.add(found.notified()[-1][0])
    assert len(ends) == 1


def test_answers_are_taken_once_and_only_of_this_election() -> None:
    """D18: eid and sender dedupe; a late one, a doubled one, one of another election."""
    found = stand(made=BASE)
    eid = found.begin()
    found.answer(NODES[1], [NODES[3]])
    found.answer(NODES[1], [NODES[0]])
    found.answer(NODES[2], [NODES[0]], eid=eid + 7)
    assert found.notified() == []
    found.answer(NODES[2], [NODES[2]])
    assert [name for name, _, _ in found.notified()] == [NODES[0]]
    found.answer(NODES[4], [NODES[0]])
    assert found.machine.counts["late"] == 3


def test_who_is_not_listed_may_answer() -> None:
    """5.5 (1): it answered, so it lives."""
    found = stand(made=BASE)
    found.begin()
    found.answer("stranger", [NODES[0]])
    found.answer(NODES[2], [NODES[0]])
    assert len(found.notified()) == 1


@pytest.mark.parametrize("sticky, best", [(True, 3), (False, 0)])
def test_the_incumbent_comes_first(sticky: bool, best: int) -> None:
    """D14: an answer with the highest term lists the leader; sticky off restores the paper."""
    found = stand(made=BASE, sticky=sticky)
    found.machine._initiator.begin(found.machine._core.contests[NAME], "watch")
    found.host.pass_time(0.0)
    found.answer(NODES[1], [NODES[0]], term=TERM, active=Crown(TERM, life(NODES[3])), leader_listed=True)
    found.answer(NODES[2], [NODES[0]], term=5)
    assert [name for name, _, _ in found.notified()] == [NODES[best]]


def test_an_incumbent_below_a_higher_term_is_not_first() -> None:
    """5.5 (4): an answer that knows a higher term speaks of a later nomination."""
    found = stand(made=BASE)
    found.machine._initiator.begin(found.machine._core.contests[NAME], "watch")
    found.host.pass_time(0.0)
    found.answer(NODES[1], [NODES[0]], term=TERM, active=Crown(TERM, life(NODES[3])), leader_listed=True)
    found.answer(NODES[2], [NODES[0]], term=TERM + 1)
    assert [name for name, _, _ in found.notified()] == [NODES[0]]


@pytest.mark.parametrize("yields", [True, False])
def test_a_better_ranked_initiator_ends_the_own_run(yields: bool) -> None:
    """D11: by its QUERY, and by ``busy`` in an answer."""
    for how in ("query", "busy"):
        found = stand(made=BASE, rules=Rules(yields=yields))
        found.begin()
        if how == "query":
            found.hear(NODES[1], Query(NAME, BASE, 1, 1, 0, 0))
        else:
            found.answer(NODES[2], [NODES[0]], busy=life(NODES[1]))
        assert (outcome(found) == "yielded") is yields
        assert bool(found.facts(Yielded)) is yields


def test_a_worse_ranked_initiator_ends_nothing() -> None:
    """D11: compared by hash, not by arrival."""
    found = stand(1, made=BASE)
    found.begin()
    found.hear(NODES[2], Query(NAME, BASE, 1, 1, 0, 0))
    found.answer(NODES[3], [NODES[0]], busy=life(NODES[4]))
    assert outcome(found) == ""


def test_three_yields_in_a_row_are_enough() -> None:
    """H396: an initiator that is only heard of stops no other for ever."""
    found = stand(made=BASE)
    for round_ in range(4):
        found.begin()
        found.answer(NODES[2], [NODES[0]], busy=life(NODES[1]))
        assert outcome(found) == ("yielded" if round_ < 3 else "")


def test_a_busy_initiator_that_was_heard_delays_a_start() -> None:
    """D11: who has just heard a better-ranked one does not begin."""
    found = stand(made=BASE)
    found.hear(NODES[1], Query(NAME, BASE, 1, 1, 0, 0))
    contest = found.machine._core.contests[NAME]
    assert not found.machine._initiator.begin(contest, "watch")
    found.host.pass_time(2 * TIMEOUT + 0.01)
    assert found.machine._initiator.begin(contest, "watch")


def test_rounds_are_counted_and_end() -> None:
    """5.3: beyond query_rounds the run is dropped, with what came and what was needed; the watch is armed."""
    found = stand(made=BASE, query_rounds=3)
    found.begin()
    found.host.pass_time(3 * TIMEOUT + 0.01)
    assert outcome(found) == ""
    found.host.pass_time(TIMEOUT)
    assert outcome(found) == "responses"
    assert [(fact.got, fact.needed) for fact in found.facts(ElectionFailed)] == [(1, 3)]  # type: ignore[attr-defined]
    assert found.machine._core.contests[NAME].watch is not None


def test_late_answers_of_an_earlier_round_count() -> None:
    """5.3: the same eid."""
    found = stand(made=BASE)
    found.begin()
    found.host.pass_time(2.5 * TIMEOUT)
    for index in (1, 2):
        found.answer(NODES[index], [NODES[0]])
    assert len(found.notified()) == 1


def test_preconditions() -> None:
    """5.3: who takes part; no run; FOLLOWER; a listed member is eligible."""
    found = Stand(*NODES[1:], me=NODES[0], candidates=[])
    found.hear(NODES[1], Query(NAME, HYBRID, 1, 1, 0, 0))
    contest = found.machine._core.contests[NAME]
    begin = found.machine._initiator.begin
    found.host.pass_time(1.0)
    assert not begin(contest, "watch")  # No candidate.
    found.stand()
    found.lists.unsettled[NODES[0]] = None
    assert not begin(contest, "watch")
    found.lists.unsettled.clear()
    assert begin(contest, "watch")
    assert not begin(contest, "watch")  # It runs.


def finished(**changes: Any) -> tuple[Stand, int]:
    """c+1 answers; the nominee was told."""
    found = stand(made=BASE, **changes)
    found.begin()
    for index in (1, 2):
        found.answer(NODES[index], [NODES[0], NODES[3]])
    return found, found.notified()[-1][1]


def test_a_nominee_whose_term_is_taken_is_told_a_higher_one() -> None:
    """5.5: NOTIFYNACK(term >= nterm) of the nominee: nterm is one more, and NOTIFYLEADER again."""
    found, term = finished()
    eid = found.machine.last(NAME).eid  # type: ignore[union-attr]
    found.hear(NODES[2], NotifyNack(NAME, BASE, eid, term + 9))
    found.hear(NODES[0], NotifyNack(NAME, BASE, eid, term - 9))
    assert found.notified() == []
    found.hear(NODES[0], NotifyNack(NAME, BASE, eid, term + 9))
    assert found.notified() == [(NODES[0], term + 10, True)]


def test_a_nominee_that_is_gone_is_left_out() -> None:
    """5.6 (4): it stands no more, and the initiator chooses again among the answers that it has."""
    found = stand(made=PREFERRED, c=1)
    eid = found.begin()
    found.answer(NODES[1], [NODES[0], NODES[1]])
    term = found.notified()[-1][1]
    found.hear(NODES[0], NotifyNack(NAME, PREFERRED, eid, term, gone=True))
    assert [name for name, _, _ in found.notified()] == [NODES[1]]


def test_refusals_are_bounded() -> None:
    """H396: a nominee that refuses for ever is heard eight times."""
    found, term = finished()
    eid = found.machine.last(NAME).eid  # type: ignore[union-attr]
    for number in range(20):
        found.hear(NODES[0], NotifyNack(NAME, BASE, eid, term + 100 * (number + 1)))
    assert len(found.notified()) == 8


def test_a_tentative_word_ends_a_finished_run_only_if_it_is_final() -> None:
    """H391: the LEADER that answers an earlier NOTIFYLEADER may come after the last one was lost."""
    found, term = finished()
    found.hear(NODES[0], Leader(NAME, BASE, term, life(NODES[0]), active=False, final=False))
    assert outcome(found) == ""
    found.hear(NODES[0], Leader(NAME, BASE, term, life(NODES[0]), active=False, final=True))
    assert outcome(found) == "elected"


def test_an_incumbent_that_answers_ends_the_run() -> None:
    """5.5: any ACTIVE one from the nominee; 5.6 (1): under its own term."""
    found = stand(made=OPTIMISTIC)
    found.begin()
    assert len(found.notified()) == 1
    found.hear(NODES[0], Leader(NAME, OPTIMISTIC, TERM, life(NODES[0]), active=True, final=True))
    assert outcome(found) == "overtaken"


def test_a_larger_reign_ends_the_run() -> None:
    """5.7: learn drops a run; one below the last nomination does not (H400)."""
    found = stand(made=OPTIMISTIC)
    found.begin()
    term = found.notified()[-1][1]
    found.hear(NODES[4], Leader(NAME, OPTIMISTIC, term - 5, life(NODES[4]), active=True))
    assert outcome(found) == ""
    found.hear(NODES[4], Leader(NAME, OPTIMISTIC, term + 5, life(NODES[4]), active=True))
    assert outcome(found) == "overtaken"


def test_an_earlier_nominee_that_leads_ends_no_run() -> None:
    """H400: in the paper's form the first nominee acts at once; its LEADER comes while the run names a better one."""
    found = stand(made=OPTIMISTIC, rules=Rules(confirm=False, self_response=False), c=3)
    found.begin()
    found.answer(NODES[1], [NODES[2]])
    found.answer(NODES[2], [NODES[1]])
    (_, first, _), (_, second, _) = found.notified()
    found.hear(NODES[2], Leader(NAME, OPTIMISTIC, first, life(NODES[2]), active=True))
    assert outcome(found) == ""
    found.hear(NODES[1], Leader(NAME, OPTIMISTIC, second, life(NODES[1]), active=True))
    found.answer(NODES[3], [NODES[0]])
    assert [name for name, _, _ in found.notified()] == [NODES[0]]


def test_a_nominee_silent_in_four_elections_is_left_out() -> None:
    """H396: until then its name is repeated, whatever the initiator's own list says (D4)."""
    found = stand(made=PREFERRED, notify_retries=0, c=1)
    found.begin()
    named = []
    for _ in range(5):
        found.answer(NODES[1], [NODES[0], NODES[1]])
        named += [name for name, _, _ in found.notified()]
        found.host.pass_time(1.5 * TIMEOUT + 0.001)
        start = found.machine._core.contests[NAME].start
        if start is not None:
            found.host.pass_time(start.due_at - found.host.now + 0.001)
    assert named[:4] == [NODES[0]] * 4
    assert named[4] == NODES[1]


def test_facts_say_how_it_went() -> None:
    """Section 9: Initiated, Nominated; the page's account: who was asked, who answered, who was excluded and why."""
    found = stand(made=HYBRID, c=2)
    found.begin()
    found.answer(NODES[1], [NODES[0]], {NODES[2]: 4.0})
    found.answer(NODES[2], [NODES[1]], {NODES[0]: 1.5})
    assert len(found.facts(Initiated)) == 1
    assert [fact.nominee.name for fact in found.facts(Nominated)] == [NODES[0], NODES[1]]  # type: ignore[attr-defined]
    last = found.machine.last(NAME)
    assert last is not None
    assert set(last.asked.values()) == {1}
    assert list(last.answers) == [life(NODES[6]), life(NODES[1]), life(NODES[2])]
    assert last.excluded == {life(NODES[2]): 4.0, life(NODES[0]): 1.5}
    assert (last.nominee, last.outcome, last.c, last.f) == (life(NODES[1]), "", 2, 0)


def test_the_initiator_may_name_itself() -> None:
    """5.5: a local call."""
    found = stand(0, made=BASE)
    found.begin()
    for index in (1, 2):
        found.answer(NODES[index], [NODES[0]])
    assert found.host.take(NotifyLeader) == []
    assert found.role() is Role.ACTIVE
    assert outcome(found) == "elected"


def test_more_candidates_than_asked_for_do_not_count() -> None:
    """Section 3: x candidates and y excluded (and the responder itself) count, what is beyond is a lie."""
    found = stand(made=PREFERRED, c=1, x=1, y=1, rules=Rules(self_response=False))
    found.begin()
    found.answer(NODES[1], [NODES[3], NODES[0]], {NODES[4]: 1.0, NODES[5]: 1.0, NODES[3]: 1.0})
    found.answer(NODES[2], [NODES[2]])
    assert found.notified()[-1][0] == NODES[2]
    assert by_hash(NAME, [NODES[2], NODES[3]]) == [NODES[2], NODES[3]]


def test_standing_of_a_peer_needs_no_row_here() -> None:
    """5.5 (4): ranks come with the answers, not from the own list."""
    found = stand(made=BASE, c=1)
    eid = found.begin()
    found.hear(NODES[1], Response(NAME, BASE, eid, (standing("unknown", b""),)))
    best = by_hash(NAME, ["unknown", NODES[0]])[0]
    assert found.notified()[-1][0] == best
    assert NodeId("unknown", 1) not in found.machine.candidates(NAME)


@pytest.mark.parametrize("clock", [True, False])
def test_terms_after_a_full_restart(clock: bool) -> None:
    """D21: all restart, and nothing was saved. Counters alone begin at 1 again, and resources would refuse the new leader for ever."""
    town = Town(3, made=BASE, rules=Rules(clock_terms=clock)).stand()
    town.run_until(town.agreed)
    before = town.clients[town.leaders()[0]].token
    for name in town.names:
        town.crash(name)
    for name in town.names:
        town.restart(name)
    town.stand()
    town.run_until(town.agreed)
    assert (town.clients[town.leaders()[0]].token > before) is clock


def test_answers_without_a_candidate_are_asked_again_later() -> None:
    """5.5 (6): with y = 0 the set is empty only if no answer has a candidate: another election follows, with x and y as configured."""
    found = stand(made=PREFERRED, c=1, y=0, rules=Rules(self_response=False))
    found.begin()
    found.answer(NODES[1])
    found.answer(NODES[2])
    assert outcome(found) == "empty"
    found.host.take(Query)
    found.host.pass_time(2 * TIMEOUT + 0.001)
    assert {(query.x, query.y) for _, query in found.host.take(Query)} == {(5, 0)}


def test_a_silent_one_that_all_answers_name_alone_is_asked_again() -> None:
    """H396, Theorem 2: with x = 1 all lists that have it name no other; it may be alive behind a bad link, and is told once more."""
    found = stand(made=BASE, notify_retries=0, c=1)
    found.begin()
    named = []
    for _ in range(6):
        found.answer(NODES[1], [NODES[0]])
        named += [name for name, _, _ in found.notified()]
        found.host.pass_time(1.5 * TIMEOUT + 0.001)
        start = found.machine._core.contests[NAME].start
        if start is not None:
            found.host.pass_time(start.due_at - found.host.now + 0.001)
    assert named == [NODES[0]] * 6


def test_a_nominee_that_says_not_yet_is_not_silent() -> None:
    """H396: a joiner that is no voter yet refuses term 0; it is named again until it is one (E3)."""
    found = stand(made=PREFERRED, notify_retries=0, c=1)
    found.begin()
    named = []
    for _ in range(6):
        found.answer(NODES[1], [NODES[0], NODES[1]])
        named += [name for name, _, _ in found.notified()]
        eid = found.machine.last(NAME).eid  # type: ignore[union-attr]
        found.hear(NODES[0], NotifyNack(NAME, PREFERRED, eid, 0))
        found.host.pass_time(1.5 * TIMEOUT + 0.001)
        start = found.machine._core.contests[NAME].start
        if start is not None:
            found.host.pass_time(start.due_at - found.host.now + 0.001)
    assert named == [NODES[0]] * 6
