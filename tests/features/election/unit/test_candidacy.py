"""From NOTIFYLEADER to the end of a reign, and what the client is told.

Spec: election 5.6, 5.9, 5.10; decisions H393, H398, H441; foundation F9, F14.
"""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from holdfast.features.election.protocol import profiles
from holdfast.features.election.protocol.facts import Elected, SteppedDown, Tentative, TentativeExpired, Unsure
from holdfast.features.election.protocol.manner import Manner, manner
from holdfast.features.election.protocol.messages import Leader, LeaderAck, NotifyLeader, NotifyNack
from holdfast.features.election.protocol.rules import Rules
from holdfast.features.election.protocol.shown import Role
from holdfast.kit.broadcast import Rumour
from tests.features.election.stand import HYBRID, NAME, TIMEOUT, Stand, life, ranked_names

NODES = ranked_names(5)
TERM = 1_700_000_000_500
MEMBERS = manner("hybrid", "members")


def stand(made: Manner = HYBRID, **changes: Any) -> Stand:
    found = Stand(*NODES[1:], me=NODES[0], made=made, **changes).stand()
    if made.by_members:
        contest = found.machine._core.contests[NAME]
        contest.voter = True
    return found.quiet()


def notify(found: Stand, term: int = TERM, *, final: bool = True, source: int = 4) -> None:
    found.hear(NODES[source], NotifyLeader(NAME, found.manner, 1, term, final))


def leaders(found: Stand) -> list[tuple[int, bool]]:
    return sorted({(message.term, message.active) for _, message in found.host.take(Leader)})


def downs(found: Stand) -> list[tuple[int, str, bool]]:
    return [(fact.term, fact.why, fact.active) for fact in found.facts(SteppedDown)]  # type: ignore[attr-defined]


def test_final_at_once_is_one_multicast() -> None:
    """5.6: without voters and final at once a single LEADER(active=True), as in the paper."""
    found = stand()
    notify(found)
    assert leaders(found) == [(TERM, True)]
    assert found.role() is Role.ACTIVE
    assert found.client.granted == [TERM]
    assert [type(fact) for fact in (*found.facts(Tentative), *found.facts(Elected))] == [Tentative, Elected]


def test_an_active_leader_says_so_twice() -> None:
    """H441, 5.7: to all, TIMEOUT after the first time, and not again; the paper's profiles say it once."""
    found = stand()
    notify(found)
    assert len(found.host.take(Leader)) == 4
    found.host.pass_time(0.9 * TIMEOUT)
    assert found.host.take(Leader) == []
    found.host.pass_time(0.2 * TIMEOUT)
    again = found.host.take(Leader)
    assert {to.name for to, _ in again} == {*NODES[1:]}  # type: ignore[union-attr]
    assert [(message.term, message.active) for _, message in again] == [(TERM, True)] * 4
    found.host.pass_time(10 * TIMEOUT)
    assert found.host.take(Leader) == []
    assert not profiles.paper(c=1).rules.repeat


def test_a_leader_that_resigned_does_not_say_it_again() -> None:
    """H441: the second LEADER belongs to a reign that lasts."""
    found = stand()
    notify(found)
    found.quiet()
    found.machine.resign(NAME)
    found.host.pass_time(10 * TIMEOUT)
    assert [message for _, message in found.host.take(Leader) if message.active] == []


def test_a_streamed_nominee_waits_for_the_end() -> None:
    """5.6: TENTATIVE until the initiator has finished; without ``confirm`` (the paper) each nomination would act."""
    found = stand()
    notify(found, final=False)
    assert (found.role(), leaders(found)) == (Role.TENTATIVE, [(TERM, False)])
    assert not found.machine.is_leader(NAME)
    notify(found, final=True)
    assert (found.role(), leaders(found)) == (Role.ACTIVE, [(TERM, True)])


def test_named_twice_answers_the_initiator() -> None:
    """5.6 (1, 2): the same term again, or any term while it leads: LEADER to the initiator, no new term."""
    found = stand()
    notify(found)
    found.quiet()
    notify(found, TERM + 50, source=3)
    assert [(to, message.term, message.active) for to, message in found.host.take(Leader)] == [(life(NODES[3]), TERM, True)]
    assert found.client.granted == [TERM]


def test_without_sticky_a_higher_term_is_taken() -> None:
    """D14: as the paper: the leader is elected again under a new term, and its client loses the old one first."""
    found = stand(sticky=False)
    notify(found)
    notify(found, TERM + 50)
    assert found.client.granted == [TERM, TERM + 50]
    assert found.client.lost == ["superseded"]
    notify(found, TERM + 20)
    assert found.client.granted == [TERM, TERM + 50]


def test_a_taken_term_is_refused() -> None:
    """5.6 (3): below the highest one, or promised to another."""
    found = stand()
    found.hear(NODES[2], Leader(NAME, HYBRID, TERM, life(NODES[2]), active=False))
    for term in (TERM - 1, TERM):
        notify(found, term)
    assert [(message.term, message.gone) for _, message in found.host.take(NotifyNack)] == [(TERM, False)] * 2
    notify(found, TERM + 1)
    assert found.role() is Role.ACTIVE


def test_who_stands_no_more_says_so() -> None:
    """5.6 (4): gone."""
    found = stand()
    found.machine.withdraw(NAME)
    notify(found)
    assert [(message.term, message.gone) for _, message in found.host.take(NotifyNack)] == [(TERM, True)]


def test_an_initiator_that_is_not_listed_is_told_directly() -> None:
    """5.6: the multicast goes to those that are listed."""
    found = stand()
    found.lists.lose(NODES[4])
    notify(found)
    assert life(NODES[4]) in [to for to, _ in found.host.take(Leader)]


def test_a_nominee_expires() -> None:
    """5.6: candidacy_ttl over and still TENTATIVE: FOLLOWER; the watch is armed (D10)."""
    found = stand()
    notify(found, final=False)
    found.host.pass_time(6 * TIMEOUT + 0.01)
    assert found.role() is Role.FOLLOWER
    assert len(found.facts(TentativeExpired)) == 1
    assert found.machine._core.contests[NAME].watch is not None


def test_a_stopped_nominee_does_not_activate_late() -> None:
    """5.6: the age is compared in ``try activate``, too: a paused process runs its timers late."""
    found = stand()
    notify(found, final=False)
    found.host.clock += 6 * TIMEOUT + 0.01
    notify(found, final=True)
    assert found.role() is not Role.ACTIVE
    assert found.client.granted == []


def test_a_majority_of_names_makes_a_term() -> None:
    """5.6, D9: W = 3 of 5, this one included; an acknowledgement counts once, and only of this term."""
    found = stand(MEMBERS)
    notify(found)
    assert (found.role(), leaders(found)) == (Role.TENTATIVE, [(TERM, False)])
    found.hear(NODES[1], LeaderAck(NAME, MEMBERS, TERM, ok=True, promised=TERM, known=5))
    found.hear(NODES[1], LeaderAck(NAME, MEMBERS, TERM, ok=True, promised=TERM, known=5))
    found.hear(NODES[2], LeaderAck(NAME, MEMBERS, TERM - 1, ok=True, promised=TERM, known=5))
    assert found.role() is Role.TENTATIVE
    found.hear(NODES[2], LeaderAck(NAME, MEMBERS, TERM, ok=True, promised=TERM, known=5))
    assert found.role() is Role.ACTIVE


@pytest.mark.parametrize("quorum, acks", [("majority", 3), ("half", 2), ("one", 1)])
def test_the_controls_of_w(quorum: str, acks: int) -> None:
    """Section 7: W = 1 and W = half are the controls that E1 must catch."""
    found = stand(MEMBERS, rules=Rules(quorum=quorum))  # type: ignore[arg-type]
    notify(found)
    for index in range(1, acks):
        assert found.role() is Role.TENTATIVE
        found.hear(NODES[index], LeaderAck(NAME, MEMBERS, TERM, ok=True, promised=TERM, known=5))
    assert found.role() is Role.ACTIVE


def test_more_known_names_need_more_acceptances() -> None:
    """Section 4: N_ref is the largest ``known`` that an acknowledgement reported."""
    found = stand(MEMBERS)
    notify(found)
    for index in (1, 2):
        found.hear(NODES[index], LeaderAck(NAME, MEMBERS, TERM, ok=True, promised=TERM, known=9))
    assert found.role() is Role.TENTATIVE


def test_a_tentative_leader_repeats_itself_to_the_silent() -> None:
    """5.7: every TIMEOUT, up to 6 times, to those that have not accepted."""
    found = stand(MEMBERS, candidacy_ttl=60.0)
    notify(found)
    found.hear(NODES[1], LeaderAck(NAME, MEMBERS, TERM, ok=True, promised=TERM, known=5))
    found.quiet()
    found.host.pass_time(TIMEOUT + 0.001)
    assert sorted(to.name for to, _ in found.host.take(Leader) if not isinstance(to, str)) == sorted(NODES[2:])  # type: ignore[union-attr]
    found.host.pass_time(20 * TIMEOUT)
    assert len(found.host.take(Leader)) == 5 * 3


def test_a_refusal_ends_a_nominee_and_no_leader() -> None:
    """5.9: a higher promised term ends a TENTATIVE; an ACTIVE does not step down for one inflated node."""
    found = stand(MEMBERS)
    notify(found)
    found.hear(NODES[1], LeaderAck(NAME, MEMBERS, TERM, ok=False, promised=TERM + 9, known=5))
    assert downs(found) == [(TERM, "refused", False)]
    found = stand(MEMBERS)
    notify(found)
    for index in (1, 2):
        found.hear(NODES[index], LeaderAck(NAME, MEMBERS, TERM, ok=True, promised=TERM, known=5))
    found.hear(NODES[3], LeaderAck(NAME, MEMBERS, TERM, ok=False, promised=TERM + 9, known=5))
    assert found.role() is Role.ACTIVE


def test_a_promise_is_saved_before_it_is_said() -> None:
    """5.6: promised=(term, me), saved in ``members``: until then no LEADER leaves and the own acceptance does not count."""
    found = stand(MEMBERS)
    found.host.disk.auto = False
    notify(found)
    assert leaders(found) == []
    found.host.disk.complete()
    found.host.pass_time(0.0)
    assert leaders(found) == [(TERM, False)]


def active(made: Manner = HYBRID, **changes: Any) -> Stand:
    found = stand(made, **changes)
    notify(found)
    for index in (1, 2):
        found.hear(NODES[index], LeaderAck(NAME, made, TERM, ok=True, promised=TERM, known=5))
    assert found.role() is Role.ACTIVE
    return found.quiet()


@pytest.mark.parametrize("check", [True, False])
def test_a_leader_that_was_stopped_asks_before_it_acts(check: bool) -> None:
    """5.9: the tick is late by more than 2 s: TENTATIVE with the same term, LEADER to all; without the rule it would go on."""
    found = active(rules=Rules(pause_check=check), hold=60.0)
    found.host.pause(3.5)
    assert bool(found.facts(Unsure)) is check
    assert (found.role() is Role.TENTATIVE) is check
    assert found.machine.is_leader(NAME) is not check
    if check:
        assert found.client.risks == 1
        found.host.pass_time(TIMEOUT + 0.01)
        assert found.role() is Role.ACTIVE
        assert len(found.facts(Elected)) == 1
        assert (found.client.granted, found.client.lost) == ([TERM], [])


def test_a_larger_reign_ends_the_doubt() -> None:
    """5.9: without voters a larger reign that a member answers with ends it."""
    found = active(hold=60.0)
    found.host.pause(3.5)
    found.hear(NODES[3], Leader(NAME, HYBRID, TERM + 7, life(NODES[3]), active=True))
    assert found.client.lost == ["superseded"]
    found.host.pass_time(1.0)
    assert found.role() is Role.FOLLOWER


def test_an_unsure_leader_that_is_named_anew_loses_the_old_term() -> None:
    """5.6: its client acts under the former term: it hears ``lost`` before it is granted the new one."""
    found = active(hold=60.0)
    found.host.pause(3.5)
    notify(found, TERM + 9)
    assert (found.client.lost, found.client.granted) == (["superseded"], [TERM, TERM + 9])
    assert downs(found) == [(TERM, "superseded", True)]


def test_after_a_pause_a_majority_must_accept_again() -> None:
    """5.9: with voters empty acks, W fresh ones; candidacy_ttl without them: SteppedDown."""
    found = active(MEMBERS, hold=60.0)
    found.host.pause(3.5)
    state = found.machine.state(NAME)
    assert state is not None
    assert (state.role, state.acks) == (Role.TENTATIVE, frozenset({NODES[0]}))
    for index in (1, 2):
        found.hear(NODES[index], LeaderAck(NAME, MEMBERS, TERM, ok=True, promised=TERM, known=5))
    assert found.role() is Role.ACTIVE
    found.host.pause(3.5)
    found.host.pass_time(6 * TIMEOUT + 0.01)
    assert downs(found) == [(TERM, "unsure", True)]
    assert found.client.lost == ["unsure"]


@pytest.mark.parametrize("check", [True, False])
def test_a_leader_without_support_steps_down(check: bool) -> None:
    """5.9: two ticks in a row with fewer than W listed names; a leader without voters needs none."""
    found = active(MEMBERS, rules=Rules(support_check=check))
    for name in NODES[2:]:
        found.lists.lose(name)
    found.host.pass_time(2.1)
    assert (found.role() is Role.FOLLOWER) is check
    assert (found.client.lost == ["no support"]) is check
    alone = active()
    for name in NODES[1:]:
        alone.lists.lose(name)
    alone.host.pass_time(5.0)
    assert alone.role() is Role.ACTIVE


def test_resign_gives_it_up_at_once() -> None:
    """5.9: the row says over, the own row is withdrawn, and the client that resigned hears nothing more."""
    found = active()
    found.machine.resign(NAME)
    state = found.machine.state(NAME)
    assert state is not None
    assert state.active == (TERM, life(NODES[0]), True)
    assert (state.role, state.stands, found.client.lost) == (Role.FOLLOWER, False, [])
    assert downs(found) == [(TERM, "resigned", True)]
    found.host.pass_time(10.0)
    assert found.client.extended == 0


def test_a_leader_that_steps_down_says_so_in_the_table() -> None:
    """H398: also if only a nominee with a higher term is in the way; the nominee may die, and no list drops the former leader."""
    found = active(MEMBERS)
    found.hear(NODES[3], Leader(NAME, MEMBERS, TERM + 7, life(NODES[3]), active=False))
    state = found.machine.state(NAME)
    assert state is not None
    assert state.active == (TERM, life(NODES[0]), True)
    assert found.client.lost == ["superseded"]


def test_deadlines_are_a_hold_ahead_and_extended() -> None:
    """5.10: now + hold, extended every hold/2 while it leads."""
    found = active(hold=2.0)
    assert found.client.deadline == found.host.now + 2.0
    found.host.pass_time(4.05)
    assert found.client.extended == 4
    assert found.machine.deadline(NAME) == found.client.deadline
    assert found.client.deadline - found.host.now <= 2.0


def test_a_length_of_its_own() -> None:
    """A client may ask for another hold."""
    found = Stand(*NODES[1:], me=NODES[0])
    found.machine.campaign(NAME, 10.0, found.client)
    notify(found)
    assert found.client.deadline == found.host.now + 10.0


def test_a_deadline_that_passed_is_a_loss() -> None:
    """H393, F9: compared at the first entry after it, whatever the group believes; the reign is over, and ``valid`` never comes back."""
    found = active(hold=1.0)
    found.host.clock += 1.5
    assert not found.machine.is_leader(NAME)
    found.hear(NODES[3], Leader(NAME, HYBRID, 7, life(NODES[3]), active=False))
    assert found.client.lost == ["lapsed"]
    assert downs(found) == [(TERM, "lapsed", True)]
    found.host.pass_time(3.0)
    assert not found.client.valid or found.client.granted[-1] > TERM


def test_no_deadline_is_extended_after_a_pause() -> None:
    """E12: the tick is overdue, so the extension that runs before it waits for the check."""
    found = active(hold=8.0)
    before = found.client.deadline
    found.host.pause(4.5)
    assert found.client.deadline == before


def test_renewals_can_be_forbidden() -> None:
    """kit.hold: ``renew_allowed(False)``: no extension; it ends by itself. Allowed again in time, it goes on."""
    found = active(hold=2.0)
    found.machine.renew_allowed(NAME, False)
    found.host.pass_time(1.5)
    assert found.client.extended == 0
    found.machine.renew_allowed(NAME, True)
    found.host.pass_time(2.0)
    assert found.client.lost == []
    found.machine.renew_allowed(NAME, False)
    found.host.pass_time(2.1)
    assert found.client.lost == ["lapsed"]


def test_who_may_not_be_renewed_is_no_candidate() -> None:
    """5.2: eligible has a client that asks; the law says when a client does not any more (F14)."""
    found = stand()
    found.machine.renew_allowed(NAME, False)
    assert found.machine.candidates(NAME)[:1] == (life(NODES[1]),)
    assert found.machine._core.contests[NAME].row not in found.rows.members[NODES[0]].rows
    notify(found)
    assert [message.gone for _, message in found.host.take(NotifyNack)] == [True]
    found.machine.renew_allowed(NAME, True)
    assert found.machine.candidates(NAME)[0] == life(NODES[0])


def test_after_a_loss_it_may_lead_again() -> None:
    """The candidacy stands on: another grant, under a larger term."""
    found = active()
    found.hear(NODES[3], Leader(NAME, HYBRID, TERM + 7, life(NODES[3]), active=True))
    assert found.client.lost == ["superseded"]
    found.lists.lose(NODES[3])
    notify(found, TERM + 99)
    assert found.client.granted == [TERM, TERM + 99]
    assert found.client.deadline > -inf


def test_the_table_tells_all() -> None:
    """5.7: ACTIVE is a row of ``elected``; it leaves as a rumour at once."""
    found = stand()
    found.rows.publish(life(NODES[1]), "topic:elected", b"")
    notify(found)
    assert found.host.take(Rumour)
