"""Call and Phase: asked again until answered, ended once, matched by a serial that is never used twice.  Foundation 4, F13."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host import Address, Message, NodeId
from holdfast.kit.phase import Call, Outcome, Phase, PhaseEnd, Questions, Quorum, count, joint, majority
from tests.support.fake_host import FakeHost


class Ask(Message, frozen=True, tag=9001):
    """A question of these tests."""

    serial: int


class Yes(Message, frozen=True, tag=9002):
    """An answer of these tests."""

    said: str = ""


A, B, C = NodeId("a", 1), NodeId("b", 1), NodeId("c", 1)
Ends = list[PhaseEnd[NodeId]]
Started = tuple[Phase[NodeId], Ends]


def phase(host: FakeHost, questions: Questions, *, quorum: Quorum[NodeId] | None = None, era: int | None = None) -> Started:
    ends: Ends = []
    members = {A: A, B: B, C: C}
    enough = majority(members) if quorum is None else quorum
    asked = Phase(host, questions, members, Ask, every=0.2, timeout=1.5, enough=enough, done=ends.append, era=era)
    return asked, ends


def asked(host: FakeHost) -> list[NodeId | Address]:
    return [to for to, _ in host.take(Ask)]


def test_only_the_silent_are_asked_again() -> None:
    """Foundation 4, tickets 3: resends go to those that have not answered."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    question.start()
    assert asked(host) == [A, B, C]
    questions.answer(question.serial, B, Yes())
    host.pass_time(0.45)
    assert asked(host) == [A, C, A, C]
    assert not ends


def test_it_ends_once_with_enough() -> None:
    """Foundation 4: one end, whatever arrives later; the timers are gone."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    question.start()
    questions.answer(question.serial, A, Yes("1"))
    questions.answer(question.serial, C, Yes("2"))
    questions.answer(question.serial, B, Yes("3"))
    host.pass_time(10)
    assert [(e.outcome, list(e.yes), e.silent) for e in ends] == [(Outcome.ENOUGH, [A, C], (B,))]
    assert ends[0].won
    assert ends[0].yes[C] == Yes("2")
    assert questions.late == 1
    assert host.timers == 0


def test_it_ends_when_enough_has_become_impossible() -> None:
    """Ring D4: no waiting for answers that cannot change anything."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    question.start()
    questions.answer(question.serial, A, Yes(), yes=False)
    assert not ends
    questions.answer(question.serial, B, Yes(), yes=False)
    assert [(e.outcome, list(e.no)) for e in ends] == [(Outcome.IMPOSSIBLE, [A, B])]


def test_it_ends_by_the_timeout() -> None:
    """Foundation 4: the third end."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    question.start()
    host.pass_time(1.4)
    assert not ends
    host.pass_time(0.2)
    assert [(e.outcome, e.silent) for e in ends] == [(Outcome.TIMEOUT, (A, B, C))]
    assert len(questions) == 0


def test_votes_are_sets() -> None:
    """Detection D7: a duplicate adds nothing, and the first answer of a voter stands."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    question.start()
    for _ in range(3):
        questions.answer(question.serial, A, Yes())
    questions.answer(question.serial, A, Yes(), yes=False)
    assert not ends


def test_strangers_and_other_serials_do_not_vote() -> None:
    """Tickets D18: an answer counts for the question it answers, from somebody who was asked."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    question.start()
    questions.answer(question.serial, A, Yes())
    questions.answer(question.serial, NodeId("b", 2), Yes())
    questions.answer(question.serial + 1, B, Yes())
    assert not ends
    assert (questions.strangers, questions.late) == (1, 1)


def test_serials_are_never_used_again() -> None:
    """Foundation 4, tickets D18: also when the questions are long over."""
    host, questions = FakeHost(), Questions()
    serials = []
    for _ in range(5):
        question, _ = phase(host, questions)
        question.start()
        question.cancel()
        serials.append(question.serial)
    assert serials == sorted(set(serials))
    assert host.timers == 0


def test_a_cancelled_question_never_ends() -> None:
    """A ballot that is aborted must not report later."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    question.start()
    question.cancel()
    for voter in (A, B, C):
        questions.answer(question.serial, voter, Yes())
    host.pass_time(5)
    assert not ends


def test_nobody_to_ask_ends_at_once() -> None:
    """An empty group cannot be enough: the caller hears it instead of waiting for the timeout."""
    host, questions = FakeHost(), Questions()
    ends: Ends = []
    Phase(host, questions, {}, Ask, every=0.2, timeout=1, enough=majority(frozenset[NodeId]()), done=ends.append).start()
    assert [e.outcome for e in ends] == [Outcome.IMPOSSIBLE]


def test_the_own_vote_is_brought_by_the_caller() -> None:
    """Ring 5.2: "self included (deliver locally)"; nothing is sent to oneself."""
    host, questions = FakeHost(), Questions()
    ends: list[PhaseEnd[int]] = []
    question = Phase(host, questions, {0: None, 1: Address("b", 1)}, Ask, every=0.2, timeout=1, enough=count(2, range(2)), done=ends.append)
    question.start()
    assert asked(host) == [Address("b", 1)]
    questions.answer(question.serial, 0, Yes())
    questions.answer(question.serial, 1, Yes())
    assert [e.won for e in ends] == [True]


def test_a_lease_counts_from_before_the_first_request() -> None:
    """F8: ``asked_at`` is the instant before the first send, however late the answers come."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    host.pass_time(3)
    question.start()
    started_at = host.now
    host.pass_time(1)
    questions.answer(question.serial, A, Yes())
    questions.answer(question.serial, B, Yes())
    assert ends[0].asked_at == started_at


def test_answers_of_two_eras_are_not_added_up() -> None:
    """F13: without an era of its own a phase counts in the highest era seen, and asks those who are behind again."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions)
    question.start()
    questions.answer(question.serial, A, Yes(), era=0)
    questions.answer(question.serial, B, Yes(), era=1)
    assert not ends
    asked(host)
    host.pass_time(0.25)
    assert asked(host) == [A, C]
    questions.answer(question.serial, A, Yes(), era=0)
    assert not ends
    questions.answer(question.serial, A, Yes(), era=1)
    assert [(e.won, e.era) for e in ends] == [(True, 1)]


def test_a_given_era_binds() -> None:
    """F13: an accept counts in the era of its prepare only; a voter beyond it has said no."""
    host, questions = FakeHost(), Questions()
    question, ends = phase(host, questions, era=1)
    question.start()
    questions.answer(question.serial, A, Yes(), era=0)
    questions.answer(question.serial, B, Yes(), era=2)
    assert not ends
    questions.answer(question.serial, C, Yes(), era=2)
    assert [(e.outcome, list(e.no)) for e in ends] == [(Outcome.IMPOSSIBLE, [B, C])]


votes = st.lists(st.tuples(st.sampled_from([A, B, C, NodeId("x", 1)]), st.booleans(), st.integers(0, 2)), max_size=12)


@given(votes=votes, era=st.none() | st.integers(0, 2), pauses=st.lists(st.sampled_from([0.0, 0.1, 0.3]), min_size=12, max_size=12))
def test_any_sequence_ends_exactly_once(votes: list[tuple[NodeId, bool, int]], era: int | None, pauses: list[float]) -> None:
    """Foundation 4 and F13 over all orders: one end; a win is a quorum of yes votes said in one era."""
    host, questions = FakeHost(), Questions()
    quorum = joint(majority([A, B, C]), count(1, [A, B]))
    question, ends = phase(host, questions, quorum=quorum, era=era)
    question.start()
    for (voter, yes, of), pause in zip(votes, pauses, strict=False):
        questions.answer(question.serial, voter, Yes(), yes=yes, era=of)
        host.pass_time(pause)
    host.pass_time(2)
    assert len(ends) == 1
    end = ends[0]
    assert end.won == quorum.enough(end.yes.keys())
    for voter in end.yes:
        assert (voter, True, end.era) in votes
    assert era is None or end.era == era


def call(host: FakeHost, questions: Questions, to: NodeId | Address) -> tuple[Call, list[Message | None]]:
    ends: list[Message | None] = []
    return Call(host, questions, to, Ask, every=1.0, tries=3, done=ends.append), ends


def test_a_call_asks_a_few_times_and_gives_up() -> None:
    """Gossip's MISSED: so many tries, so many seconds apart; after the last one there is still time to answer."""
    host, questions = FakeHost(), Questions()
    question, ends = call(host, questions, A)
    question.start()
    host.pass_time(2.9)
    assert asked(host) == [A, A, A]
    assert not ends
    host.pass_time(0.2)
    assert ends == [None]
    questions.answer(question.serial, A, Yes())
    assert ends == [None]


@pytest.mark.parametrize("to", [A, Address("a", 1)])
def test_a_call_ends_with_the_answer(to: NodeId | Address) -> None:
    """Foundation 4: one answer ends it; to an address, whoever lives there may answer."""
    host, questions = FakeHost(), Questions()
    question, ends = call(host, questions, to)
    question.start()
    questions.answer(question.serial, A, Yes("here"))
    host.pass_time(9)
    assert ends == [Yes("here")]
    assert host.timers == 0


def test_a_call_to_one_life_is_not_answered_by_another() -> None:
    """F3: the next life of the same name knows nothing of what was asked."""
    host, questions = FakeHost(), Questions()
    question, ends = call(host, questions, A)
    question.start()
    questions.answer(question.serial, NodeId("a", 2), Yes())
    assert not ends
    assert questions.strangers == 1
