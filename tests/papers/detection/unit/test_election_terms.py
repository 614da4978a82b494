"""What outlives a life or a view: terms on disk, resignations, leases across views.  One test per rule.

Spec: fast-detection 5 (enter, RESIGN, resign), G3, D17, D18.
"""

from __future__ import annotations

import pytest

from holdfast.errors import LeadershipLost, StorageDamaged
from holdfast.events import LeaderChanged
from holdfast.features.leadership.detector.config import Term
from holdfast.features.leadership.detector.messages import Resign, StartRound
from holdfast.host import NodeId
from holdfast.kit.deadline import holder_length, wait_length
from holdfast.kit.keeper import MARGIN
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.election_facts import LostLead, TermEntered
from tests.papers.detection.election_ablations import LeadsAgain, StartsOver
from tests.papers.detection.election_stand import ADDRESSES, NAMES, QUORUM, A, B, C, D, Stand, answers, newest, won
from tests.support.fake_host import FakeStorage

L, RHO = QUORUM.lease, QUORUM.rho


# D18: restarts.


def test_d18_restart_begins_at_the_stored_round() -> None:
    """D18: same id, same view: starts at the stored term; without it terms go back after a majority restarted."""
    for machine, expected in ((LeaderElection, 3), (StartsOver, 0)):
        disk = FakeStorage(auto=True)
        Stand("c", QUORUM, storage=disk).hear(D, 3)
        again = Stand("c", QUORUM, boot=2, storage=disk, machine=machine)
        assert again.round == expected


def test_d18_restart_ignores_views_before_the_stored_one() -> None:
    """D18: the layer below may be behind what the former life had installed."""
    disk = FakeStorage(auto=True)
    Stand("c", QUORUM, storage=disk, view=4)
    again = Stand("c", QUORUM, boot=2, storage=disk, view=3)
    assert (again.election.members, again.election.installed, again.election.counts["stale"]) == ((), 4, 1)
    again.install(NAMES, 4)
    assert again.election.term == Term(4, 0)


@pytest.mark.parametrize("machine", [LeaderElection, LeadsAgain], ids=["real", "LeadsAgain"])
def test_d18_new_life_never_leads_a_stored_term(machine: type[LeaderElection]) -> None:
    """enter, step 7, no_lead: a term that the former life may have led is passed on at once, announced."""
    disk = FakeStorage(auto=True)
    Stand("a", QUORUM, storage=disk)
    again = Stand("a", QUORUM, boot=2, storage=disk, machine=machine)
    again.host.pass_time(0.0)
    spent = TermEntered(Term(1, 1), "spent")
    assert (spent in again.host.events(TermEntered)) == (machine is LeaderElection)


def test_d18_restarted_voter_waits() -> None:
    """D18: how long a promise runs is not on disk, so nothing is granted for L (1 + rho)/(1 - rho), the longest that was ever asked."""
    disk = FakeStorage(auto=True)
    Stand("d", QUORUM, storage=disk).hear(A, 0, length=2.0)
    again = Stand("d", QUORUM, boot=2, storage=disk)
    again.hear(B, 1)
    ((_, refused),) = answers(again)
    assert (refused.grant, round(refused.wait, 6)) == (False, round(wait_length(2.0, RHO, MARGIN), 6))
    again.host.pass_time(refused.wait)
    again.hear(B, 1, stamp=2)
    assert answers(again)[-1][1].grant


def test_d18_voter_that_never_promised_waits_for_nothing() -> None:
    """D18: the first life has nothing to wait for."""
    stand = Stand("d", QUORUM)
    stand.hear(A, 0)
    assert answers(stand)[0][1].grant


def test_damaged_term_is_not_guessed() -> None:
    """D18: a term that cannot be read stops the process; it must come back under a new id."""
    disk = FakeStorage({"election/term": b"\xc1"})
    with pytest.raises(StorageDamaged, match="term"):
        Stand("a", QUORUM, storage=disk)


# Resignation.


def test_resign_hands_over() -> None:
    """resign(): step down, drop the own promise, RESIGN to all, enter(round + 1), announced."""
    stand, _ = won()
    stand.said()
    stand.election.resign()
    assert not stand.election.is_leader()
    said = stand.said()
    assert said[:4] == [(ADDRESSES[name], Resign("", 1, 0)) for name in "bcde"]
    assert said[4:8] == [(ADDRESSES[name], StartRound("", 1, 1)) for name in "bcde"]
    stand.hear(B, 1)
    assert answers(stand)[0][1].grant  # Its own promise is free too.
    with pytest.raises(LeadershipLost, match="nothing to resign"):
        stand.election.resign()


def test_resignation_ends_the_promise_and_the_round() -> None:
    """RESIGN: our promise to that life ends now; the next round is entered without START."""
    stand = Stand("d", QUORUM)
    stand.hear(A, 0, leading=True)
    stand.said()
    stand.election.on_message(A, Resign("", 1, 0))
    assert (stand.round, stand.election.leader(), stand.host.take(StartRound)) == (1, None, [])
    stand.hear(B, 1)
    assert answers(stand)[0][1].grant


def test_resignation_that_was_overtaken_ends_the_promise_too() -> None:
    """RESIGN: also when a START has moved us on: the START that it causes often overtakes it."""
    stand = Stand("d", QUORUM)
    stand.hear(A, 0)
    stand.election.on_message(A, StartRound("", 1, 1))
    stand.election.on_message(A, Resign("", 1, 0))
    assert stand.round == 1
    stand.said()
    stand.hear(B, 1)
    assert answers(stand)[0][1].grant


def test_old_resignation_ends_no_later_promise() -> None:
    """RESIGN: only what was given in that term or before; and only what was promised to that life."""
    for source, number in ((A, 0), (NodeId("a", 2), 5), (B, 9)):
        stand = Stand("d", QUORUM)
        stand.hear(A, 5)
        stand.election.on_message(source, Resign("", 1, number))
        stand.said()
        stand.hear(B, 6)
        assert not answers(stand)[-1][1].grant
    stand.election.on_message(A, Resign("", 2, 0))
    assert stand.election.counts["other_view"] == 1


def test_resignation_while_the_next_view_is_written() -> None:
    """resign(): what was promised in the view before is given back, although the new term is not on disk yet."""
    disk = FakeStorage()
    stand = Stand("a", QUORUM, names="a", storage=disk)
    disk.complete()
    disk.complete()
    assert stand.election.is_leader()
    stand.install("ab", 2)
    stand.election.resign()
    assert stand.host.take(Resign) == [(ADDRESSES["b"], Resign("", 1, 0))]
    disk.complete()
    assert stand.election.term == Term(2, 1)


# Views and leases.


def test_d17_leader_keeps_its_old_token_until_the_new_view_grants() -> None:
    """D17: after a view change lease and token are the old ones, until a majority of the new view granted the new term."""
    stand, left_at = won()
    stand.said()
    stand.install("abcdef", 2)
    assert (stand.election.term, stand.election.token()) == (Term(2, 0), Term(1, 0).token)
    assert stand.election.lease.until == left_at + holder_length(L, RHO)
    ok = newest(stand)
    assert not ok.leads[0].leading  # The new term is not led yet.
    for voter in (B, C):
        stand.granted_by(voter, ok.stamp, view=2)
    assert stand.election.token() == Term(1, 0).token
    stand.granted_by(D, ok.stamp, view=2)
    assert stand.election.token() == Term(2, 0).token
    assert stand.host.events(LostLead) == []
    assert [event.token for event in stand.host.events(LeaderChanged)] == [Term(1, 0).token, Term(2, 0).token]


def test_d17_old_lease_ends_at_its_time() -> None:
    """D17: if the new view does not grant, the old lease ends when it would have, and the next round begins."""
    stand, left_at = won()
    stand.install("abcdef", 2)
    stand.host.pass_time(left_at + holder_length(L, RHO) - stand.host.now)
    assert stand.host.events(LostLead) == [LostLead(Term(1, 0), "lapsed")]
    assert stand.election.term == Term(2, 1)


def test_quorum_mode_leader_stays_in_a_later_round_of_its_own() -> None:
    """enter, step 2: in quorum mode a leader steps down unless it is also leader_of(term)."""
    stand, _ = won()
    stand.election.on_message(B, StartRound("", 1, 5))
    assert stand.election.token() == Term(1, 0).token
    stand.election.on_message(B, StartRound("", 1, 6))
    assert stand.host.events(LostLead) == [LostLead(Term(1, 0), "demoted")]
