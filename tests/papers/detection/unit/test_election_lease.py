"""Quorum mode of the election: promises and lease.  One test per rule.

Spec: fast-detection 5 (tick, heartbeat, renew, MONITOR-OK, count, lease timer, grant rule), G3, G5, D14, D17, D19, D22, D26.
"""

from __future__ import annotations

from math import inf

import pytest

from holdfast.errors import LeadershipLost
from holdfast.events import LeaderChanged
from holdfast.features.leadership.detector.config import LENGTH_MAX, ElectionConfig, Term
from holdfast.features.leadership.detector.messages import Granted, MonitorOk, StartRound, WatchedOk
from holdfast.host import NodeId
from holdfast.kit.deadline import holder_length
from holdfast.papers.detection.protocol.election import ROUND_MAX, LeaderElection
from holdfast.papers.detection.protocol.election_candidate import RETRY_MARGIN
from holdfast.papers.detection.protocol.election_facts import Leading, LostLead, TermEntered
from tests.papers.detection.election_ablations import FlaggedLease, UncheckedPromises, with_promises
from tests.papers.detection.election_stand import ADDRESSES, NAMES, QUORUM, A, B, C, D, E, Stand, answers, newest, won
from tests.support.fake_host import FakeStorage

L, RHO = QUORUM.lease, QUORUM.rho


# count.


def test_majority_of_grants_leads() -> None:
    """Count: with its own voice a candidate of five needs two others; then Leading, and everybody is told at once."""
    stand = Stand("a", QUORUM, fresh=True)
    ok = newest(stand)
    assert not ok.leads[0].leading
    stand.granted_by(B, ok.stamp)
    assert (stand.election.is_leader(), stand.host.events(Leading)) == (False, [])
    stand.granted_by(C, ok.stamp)
    assert stand.host.events(Leading) == [Leading(Term(1, 0))]
    assert stand.host.events(LeaderChanged)[-1] == LeaderChanged("leader", A, 1 << 32)
    said = stand.host.take(WatchedOk)
    assert [to for to, _ in said] == [ADDRESSES[name] for name in "bcde"]
    assert all(message.leads[0].leading for _, message in said)


def test_votes_are_sets() -> None:
    """Count, D7: one voter is one voice, however often it speaks; who has no vote has none."""
    stand = Stand("a", QUORUM, fresh=True)
    stamp = newest(stand).stamp
    for _ in range(5):
        stand.granted_by(B, stamp)
    stand.election.on_message(NodeId("x", 1), MonitorOk(0, stamp, (Granted("", 1, 0, True),), 0))
    assert not stand.election.is_leader()


def test_g5_lease_counts_from_before_the_heartbeat_left() -> None:
    """Count, G5, F8: L (1 - rho)/(1 + rho), from the send time, not from when the grants came."""
    stand, left_at = won()
    assert stand.election.lease.until == left_at + holder_length(L, RHO)


def test_g5_quorum_th_newest_grant_counts() -> None:
    """Count: each voter's newest grant; the oldest of a quorum's newest decides."""
    stand, _ = won()
    stand.host.pass_time(1.0 - (stand.host.now - 1000.0))
    tick, left_at = newest(stand).stamp, stand.host.now
    until = stand.election.lease.until
    stand.granted_by(B, tick)
    assert stand.election.lease.until == until  # c's newest is still that of the first heartbeat.
    stand.granted_by(D, tick)
    assert stand.election.lease.until == left_at + holder_length(L, RHO)
    stand.granted_by(C, 1)
    assert stand.election.lease.until == left_at + holder_length(L, RHO)


@pytest.mark.parametrize("stamp", [0, 99, -1], ids=["none", "never sent", "missed"])
def test_grant_of_an_unknown_stamp_counts_nothing(stamp: int) -> None:
    """MONITOR-OK: only stamps whose send time is known count."""
    stand = Stand("a", QUORUM)
    for voter in (B, C, D, E):
        stand.granted_by(voter, stamp)
    assert not stand.election.is_leader()


def test_grant_of_another_term_counts_nothing() -> None:
    """MONITOR-OK "of our term": what was granted in a former one is over with it."""
    stand = Stand("a", QUORUM, fresh=True)
    stamp = newest(stand).stamp
    stand.election.on_message(B, StartRound("", 1, 5))
    for voter in (B, C, D, E):
        stand.granted_by(voter, stamp, number=0)
        stand.granted_by(voter, stamp, number=5)
    assert (stand.round, stand.election.is_leader()) == (5, False)


@pytest.mark.parametrize("machine, believes", [(LeaderElection, False), (FlaggedLease, True)], ids=["real", "FlaggedLease"])
def test_f9_is_leader_reads_the_clock(machine: type[LeaderElection], believes: bool) -> None:
    """is_leader(), F9, D19: no timer has run since the process was stopped, and it knows all the same."""
    stand = Stand("a", QUORUM, names="a", machine=machine)
    stand.host.clock = stand.election.lease.until
    assert stand.election.is_leader() == believes


def test_lease_that_runs_out_moves_on() -> None:
    """Lease timer: step down, LostLead, and the next round, announced."""
    stand, left_at = won()
    stand.said()
    stand.host.pass_time(left_at + holder_length(L, RHO) - stand.host.now)
    assert stand.host.events(LostLead) == [LostLead(Term(1, 0), "lapsed")]
    assert stand.host.events(TermEntered)[-1] == TermEntered(Term(1, 1), "lapsed")
    assert stand.host.take(StartRound) == [(ADDRESSES[name], StartRound("", 1, 1)) for name in "bcde"]
    with pytest.raises(LeadershipLost, match="does not lead"):
        stand.election.token()


def test_renewed_lease_runs_on() -> None:
    """Lease timer: a lease that was extended meanwhile is not over."""
    stand, _ = won()
    for _ in range(5):
        stand.host.pass_time(1.0)
        stamp = newest(stand).stamp
        for voter in (D, E):
            stand.granted_by(voter, stamp)
    assert stand.election.is_leader()
    assert stand.host.events(LostLead) == []


def test_margin_is_what_was_left() -> None:
    """Section 9, metrics: the lease margin is lease_until - now at the last renewal; it only counts real extensions."""
    stand, left_at = won()
    assert stand.election.lease.margin == inf
    stand.host.pass_time(1.0 - (stand.host.now - 1000.0) + 0.05)
    stamp = newest(stand).stamp
    stand.granted_by(B, 1)
    assert stand.election.lease.margin == inf
    for voter in (B, C):
        stand.granted_by(voter, stamp)
    assert round(stand.election.lease.margin, 6) == round(left_at + holder_length(L, RHO) - stand.host.now, 6)


def test_lease_timer_comes_back_with_the_member() -> None:
    """install_view: who left a view and came back hears of the end of its lease in time."""
    stand = Stand("a", QUORUM, names="a")
    stand.install("b", 2)
    stand.install("ab", 3)
    stamp = newest(stand).stamp
    stand.granted_by(B, stamp, view=3)
    assert stand.election.is_leader()
    stand.host.pass_time(L)
    assert stand.host.events(LostLead)[-1] == LostLead(Term(3, 0), "lapsed")


def test_rounds_of_a_view_are_limited() -> None:
    """F16: a round that does not fit a token is never entered; the next view begins with round 0."""
    stand = Stand("d", QUORUM)
    stand.hear(B, ROUND_MAX)
    for _ in range(3):
        stand.election.enter_next("reported")
    assert (stand.round, stand.election.counts["rounds_spent"]) == (ROUND_MAX + 1, 2)
    assert Term(1, stand.round).token < Term(2, 0).token
    stand.install(NAMES, 2)
    assert stand.election.term == Term(2, 0)


def test_f9_message_after_the_end_finds_a_former_leader() -> None:
    """F9: a grant that is read after the lease ended revives nothing: the term is over for this life."""
    stand, left_at = won()
    stand.host.clock = left_at + holder_length(L, RHO)
    stand.granted_by(B, 2)
    assert stand.host.events(LostLead) == [LostLead(Term(1, 0), "lapsed")]
    assert stand.round == 1


# heartbeat, renew, retry, give up.


def test_renew_repeats_to_those_who_are_missing() -> None:
    """Renew: 1.5 t_rtt apart, at most renew_tries times, only to those who did not grant, only while there is no quorum."""
    stand = Stand("a", QUORUM, fresh=True)
    first = newest(stand)
    stand.granted_by(B, first.stamp)
    stand.said()
    for _ in range(QUORUM.renew_tries):
        stand.host.pass_time(QUORUM.nag)
        said = stand.host.take(WatchedOk)
        assert [to for to, _ in said] == [ADDRESSES[name] for name in "cde"]
        assert said[0][1].seq == first.seq
    stand.host.pass_time(2 * QUORUM.nag)
    assert stand.host.take(WatchedOk) == []


def test_renew_stops_with_a_quorum() -> None:
    """Renew: "still without a quorum"; grants of repeats count with those of the first."""
    stand, _ = won()
    stamp = newest(stand).stamp
    stand.granted_by(B, stamp)
    stand.host.pass_time(QUORUM.nag)
    repeat = newest(stand)
    stand.granted_by(C, repeat.stamp)
    stand.host.pass_time(3 * QUORUM.nag)
    assert stand.host.take(WatchedOk) == []


def test_refused_candidate_asks_when_the_first_promise_ends() -> None:
    """MONITOR-OK: refused with wait, not leading: again when the first such promise ends, not at the next tick."""
    stand = Stand("a", ElectionConfig(t_itv=10.0, t_lat=0.05, length=30.0, renew_tries=0), fresh=True)
    stamp = newest(stand).stamp
    stand.granted_by(D, stamp)
    stand.refused_by(B, stamp, 3.0)
    stand.refused_by(C, stamp, 2.0)
    stand.refused_by(E, stamp, 4.0)
    stand.host.pass_time(2.0)
    assert stand.host.take(WatchedOk) == []
    stand.host.pass_time(RETRY_MARGIN)
    assert [to for to, _ in stand.host.take(WatchedOk)] == [ADDRESSES[name] for name in "bce"]


def test_own_promise_counts_among_those_that_end() -> None:
    """Heartbeat, retry: a candidate that has promised to another life does not count itself, and asks again when that ends."""
    stand = Stand("b", ElectionConfig(t_itv=10.0, t_lat=0.05, renew_tries=0))
    stand.hear(A, 0, length=1.5)
    stand.said()
    stand.election.on_message(C, StartRound("", 1, 1))
    stamp = newest(stand).stamp
    for voter in (C, D):
        stand.granted_by(voter, stamp)
    assert not stand.election.is_leader()
    stand.host.pass_time(1.5 + RETRY_MARGIN)
    assert stand.election.is_leader()


@pytest.mark.parametrize("wait", [-1.0, inf, LENGTH_MAX + 1])
def test_nonsense_waits_are_not_waited_for(wait: float) -> None:
    """A peer's bad input: a wait that no promise has arms nothing."""
    stand = Stand("a", QUORUM, fresh=True)
    timers = stand.host.timers
    stand.refused_by(B, newest(stand).stamp, wait)
    assert stand.host.timers == timers


def test_d14_candidate_that_hears_nobody_gives_up() -> None:
    """Tick, D14: without a majority for L + 2 t_itv the round is passed on, and announced."""
    stand = Stand("a", QUORUM)
    stand.host.pass_time(L + 2 * QUORUM.t_itv)
    assert stand.round == 0
    stand.host.pass_time(QUORUM.t_itv)
    assert stand.host.events(TermEntered)[-1] == TermEntered(Term(1, 1), "gave up")


# Grant rule.


def test_voter_grants_and_renews() -> None:
    """Grant rule: nothing speaks against it: granted, stamp echoed; a renewal extends the promise."""
    stand = Stand("d", QUORUM)
    for stamp in (1, 2):
        stand.hear(A, 0, stamp=stamp)
        ((to, message),) = stand.host.take(MonitorOk)
        assert (to, message.stamp, message.answers[0].grant) == (A, stamp, True)
        stand.host.pass_time(0.1)


def test_promise_to_another_life_is_kept() -> None:
    """Grant rule, D17: refused with the seconds left, whatever the term; it binds to the life."""
    stand = Stand("d", QUORUM)
    stand.hear(A, 0, length=1.5)
    stand.host.pass_time(0.5)
    stand.said()
    for source in (B, NodeId("a", 2)):
        stand.hear(source, 1 if source == B else 5, stamp=7)
        ((_, answer),) = answers(stand)
        assert (answer.grant, answer.wait) == (False, 1.0)
    stand.host.pass_time(1.0)
    stand.hear(NodeId("a", 2), 5, stamp=8)
    assert answers(stand)[-1][1].grant


def test_leader_keeps_its_promise_across_its_own_terms() -> None:
    """Grant rule: a promise binds to the life, not to the term."""
    stand = Stand("d", QUORUM)
    stand.hear(A, 0)
    stand.hear(A, 5, stamp=2)
    assert [answer.grant for _, answer in answers(stand)] == [True, True]


def test_f4_promise_is_as_long_as_it_was_asked() -> None:
    """Grant rule, F4: for the length in the message, whatever is set here; not above 60 s."""
    stand = Stand("d", QUORUM)
    stand.hear(A, 0, length=7.0)
    stand.hear(B, 1, stamp=2)
    assert [answer.wait for _, answer in answers(stand)] == [0.0, 7.0]
    other = Stand("d", QUORUM)
    other.hear(A, 0, length=LENGTH_MAX + 1)
    assert [answer.grant for _, answer in answers(other)] == [False]


@pytest.mark.parametrize("promises, grants", [(None, False), (UncheckedPromises, True)], ids=["real", "UncheckedPromises"])
def test_g3_term_is_granted_to_one_life(promises: type[UncheckedPromises] | None, grants: bool) -> None:
    """Grant rule, G3: a list that changes under one view id gives a term to somebody else; the voter remembers whom it granted it to,
    also over a restart. Without the term check two lives lead one term."""
    machine = LeaderElection if promises is None else with_promises(promises)
    disk = FakeStorage(auto=True)
    stand = Stand("d", QUORUM, storage=disk, machine=machine)
    stand.hear(A, 0)
    again = Stand("d", QUORUM, boot=2, names="bcdef", storage=disk, machine=machine)
    again.host.pass_time(10.0)
    again.host.sent.clear()
    again.hear(B, 0)
    assert [answer.grant for _, answer in answers(again)] == [grants]


def test_promise_is_durable_before_it_is_answered() -> None:
    """Grant rule: a new pair of life and term is saved, then granted; a renewal is answered at once."""
    disk = FakeStorage()
    stand = Stand("d", QUORUM, storage=disk)
    disk.complete()
    stand.hear(A, 0)
    assert answers(stand) == []
    disk.complete()
    assert [answer.grant for _, answer in answers(stand)] == [True]
    stand.hear(A, 0, stamp=2)
    assert [answer.grant for _, answer in answers(stand)] == [True]


def test_whoever_has_moved_on_grants_no_more() -> None:
    """Grant rule: a promise whose save ends in a later term is kept, and not told."""
    disk = FakeStorage()
    stand = Stand("d", QUORUM, storage=disk)
    disk.complete()
    stand.hear(A, 0)
    stand.election.on_message(C, StartRound("", 1, 1))
    disk.complete()
    assert answers(stand) == []


def test_fixed_voters_alone_vote() -> None:
    """D17: with fixed voters the others only monitor: they grant nothing, and their grants count nothing."""
    monitor = Stand("e", QUORUM, voters=("a", "b", "c"))
    monitor.hear(A, 0)
    assert [answer.grant for _, answer in answers(monitor)] == [False]
    candidate = Stand("a", QUORUM, fresh=True, voters=("a", "b", "c"))
    stamp = newest(candidate).stamp
    for source in (D, E):
        candidate.granted_by(source, stamp)
    assert not candidate.election.is_leader()
    candidate.granted_by(C, stamp)
    assert candidate.election.is_leader()


def test_candidate_without_a_vote_needs_a_majority_of_others() -> None:
    """D17: a member that is no voter may lead, with the voices of the fixed voters alone."""
    stand = Stand("e", QUORUM, voters=("a", "b", "c"))
    stand.election.on_message(B, StartRound("", 1, 4))
    stamp = newest(stand).stamp
    stand.granted_by(A, stamp)
    assert not stand.election.is_leader()
    stand.granted_by(C, stamp)
    assert stand.election.is_leader()


# Sizes and lengths.


def test_d22_one_member_leads_at_once() -> None:
    """D22: n = 1 leads at once, as soon as its disk knows the term and the promise to itself."""
    disk = FakeStorage()
    stand = Stand("a", QUORUM, names="a", storage=disk)
    assert not stand.election.is_leader()
    disk.complete()
    disk.complete()
    assert stand.election.is_leader()
    stand.host.pass_time(30.0)
    assert stand.election.is_leader()


@pytest.mark.parametrize("members, quorum", [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3), (9, 5)])
def test_d22_majorities(members: int, quorum: int) -> None:
    """D22: even n: majority n/2 + 1; of two it is both."""
    stand = Stand("a", QUORUM, names="abcdefghi"[:members])
    assert stand.election.quorum == quorum


def test_d26_default_length() -> None:
    """D26: L = 1.5 t_itv unless it is set; it travels in every heartbeat."""
    stand = Stand("a", ElectionConfig(t_itv=2.0), fresh=True)
    assert newest(stand).leads[0].length == 3.0


def test_link_and_plan_are_those_of_the_detector() -> None:
    """API: link(peer) and demand(P_m) tell what was measured, and what an accuracy would cost."""
    stand = Stand("d", QUORUM)
    stand.hear(A, 0)
    assert stand.election.link(A).p_upper == 0.1
    plan = stand.election.demand(1e-4)
    assert (plan.misses, plan.heartbeats, plan.feasible) == (4, 1, True)
