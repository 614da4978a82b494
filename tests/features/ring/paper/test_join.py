"""The candidate's side of a join: paper 000, section V, Figures 5 and 6; spec ring 5.6, D6, D8, D12, D21, D27."""

from __future__ import annotations

import pytest

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.facts import BecameMember, Departed, JoinRetry, JoinStarted, PhaseReached
from holdfast.features.ring.protocol.ids import hash_of
from holdfast.features.ring.protocol.lifecycle import PATIENT_ATTEMPTS
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.ring import Status
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import NodeId
from tests.features.ring.candidate import FIGURE_5, P11, P13, P17, P19, P23, RING, SEED, VIEW, Candidate
from tests.features.ring.stand import T_L, peer

NAMES = ["p11", "p13", "p17", "p19"]


# Phase 1: neighbour discovery.


def test_phase_1_asks_where_it_will_sit() -> None:
    """V, phase 1: the candidate sends a neighbour discovery request with its own key; its id is fresh, its place as given (D21)."""
    c = Candidate()
    ((to, discover),) = c.host.take(m.Discover)
    assert to == SEED
    assert discover.candidate == c.ring.id
    assert c.ring.id.pos == 16


def test_phase_1_is_asked_again_until_2_t_l() -> None:
    """Ring 5.6 (1), 3: every T_l/4, given up after 2 T_l; backs off and retries later."""
    c = Candidate()
    c.host.pass_time(2 * T_L - 0.01)
    assert len(c.host.take(m.Discover)) == 8
    assert c.failures() == []
    c.host.pass_time(0.01)
    assert c.failures() == ["nobody answered"]


def test_phase_1_rejected() -> None:
    """V, phase 1: the owner serves another join: the candidate backs off and retries."""
    c = Candidate()
    c.discovered(m.Answer.BUSY)
    assert c.failures() == ["busy"]


def test_phase_1_follows_the_way_to_the_owner() -> None:
    """Ring 5.6 (1): redirects are followed, five at most."""
    c = Candidate()
    asked = P17
    for hop in range(5):
        owner = peer(f"hop{hop}", 100 + hop)
        c.discovered(m.Answer.REDIRECT, (owner,), by=asked)
        assert c.host.sent[-1].to == owner.node
        asked = owner
    c.discovered(m.Answer.REDIRECT, (peer("hop5", 105),), by=asked)
    assert c.failures() == ["redirect"]


def test_phase_1_gives_the_neighbourhood_of_figure_5() -> None:
    """V, Figure 5: N_16 = {11, 13, 17, 19} from N_17 = {11, 13, 19, 23} and 17 itself, k = 2."""
    c = Candidate().until_locks()
    assert c.told(m.Lock) == NAMES


# Phase 2: lock request.


def test_phase_2_the_silent_are_asked_again() -> None:
    """Ring 5.6 (2), 3: every T_l/5, only those who have not answered."""
    c = Candidate().until_locks()
    c.locked([P11, P13])
    c.told(m.Lock)
    c.host.pass_time(T_L / 5)
    assert c.told(m.Lock) == ["p17", "p19"]


def test_phase_2_one_refusal_ends_the_attempt() -> None:
    """V, phase 2: it releases all locks, backs off and retries from phase 1."""
    c = Candidate().until_locks()
    c.locked([P11])
    c.locked([P13], granted=False)
    assert c.told(m.Unlock) == NAMES
    assert c.failures() == ["a neighbour is busy"]
    assert c.ring.status is Status.LEFT


def test_phase_2_all_locks_within_t_l() -> None:
    """Ring 5.6 (2): T_l without all grants is a failure."""
    c = Candidate().until_locks()
    c.locked(FIGURE_5[:3])
    c.host.pass_time(T_L)
    assert c.failures() == ["a neighbour is silent"]
    assert c.told(m.Unlock) == NAMES


@pytest.mark.parametrize("rules", [None, Rules(recheck=False)], ids=["on", "off"])
def test_phase_2_the_neighbourhood_is_checked_again(rules: Rules | None) -> None:
    """D8: the grantors know somebody between them who was not there in phase 1, so the attempt fails; without the check it goes on."""
    c = Candidate(rules=rules).until_locks()
    c.locked(FIGURE_5, view=(*VIEW, peer("p15", 15)))
    assert c.failures() == (["the neighbourhood has changed"] if rules is None else [])
    assert bool(c.told(m.LeaseRequest)) is (rules is not None)


def test_phase_2_what_lies_farther_changes_nothing() -> None:
    """D8: the grantors see beyond the candidate's neighbourhood; only another N_C is a reason to fail."""
    c = Candidate().until_locks()
    c.locked(FIGURE_5, view=(*VIEW, peer("p29", 29)))
    assert c.failures() == []


# Phase 3: lease invitation.


def test_phase_3_opens_a_pair_with_each() -> None:
    """V, phase 3: LR(1) to all of N_C with N_C along; LR(open, join) in the spec's words (5.6)."""
    c = Candidate().until_leases()
    requests = c.host.take(m.LeaseRequest)
    assert sorted(to.name for to, _ in requests if isinstance(to, NodeId)) == NAMES
    for _, request in requests:
        assert (request.n, request.open, request.join, request.ready) == (1, True, True, False)
        assert tuple(each.id for each in request.nbrs) == tuple(each.id for each in FIGURE_5)
    assert all(pair.state is State.DORMANT for pair in c.ring.pairs.values())


def test_phase_3_every_ack_is_needed() -> None:
    """V, phase 3: a single lease request that times out, and all leases are discarded; back to phase 1 after a while."""
    c = Candidate().until_leases()
    c.acks(FIGURE_5[:3], 1)
    c.host.pass_time(T_L)
    assert c.ring.pairs == {}
    assert c.failures() == ["a lease ran out"]
    assert c.told(m.Unlock) == NAMES
    assert c.told(m.Leave) == NAMES


def test_phase_3_a_refusal_ends_the_attempt() -> None:
    """Ring 5.6: NAK of one of them (its lock is somebody else's now)."""
    c = Candidate().until_leases()
    c.say(P13, m.LeaseNak(*c.head(P13), 1))
    assert c.failures() == ["refused"]


def test_a_candidate_monitors_symmetrically() -> None:
    """V, phase 3; Rule 1: it acks the leases that its neighbours hold on it."""
    c = Candidate().until_leases()
    c.say(P11, m.LeaseRequest(*c.head(P11), 1, 1, 1, want=True, gen=5, seen=0, view=hash_of(()), knows=0))
    assert c.told(m.LeaseAck) == ["p11"]


def test_a_candidate_is_no_judge() -> None:
    """Ring 5.6: it neither votes, nor opens its door, nor takes part in anything but its own join."""
    c = Candidate().until_leases()
    c.say(P11, m.Arb(RING, P11.id, 0, 1, P13.id, 1, 1))
    c.say(P11, m.Lock(RING, P11.id, 0, 1))
    c.say(P11, m.Vouch(*c.head(P11), P13.id))
    assert c.told(m.Vote) == c.told(m.Locked) == c.told(m.Vouched) == []
    assert c.ring.members() == ()
    assert c.ring.owns("anything") is None


# Phase 4: wrap-up.


def test_phase_4_begins_when_all_have_answered() -> None:
    """V, phase 4: LR(2) to all, after ACK(1) of the last one; here it says "ready"."""
    c = Candidate().until_leases()
    c.acks(FIGURE_5[:3], 1)
    c.host.take(m.LeaseRequest)
    c.acks(FIGURE_5[3:], 1)
    requests = c.host.take(m.LeaseRequest)
    assert sorted(to.name for to, _ in requests if isinstance(to, NodeId)) == NAMES
    assert {(request.n, request.ready) for _, request in requests} == {(2, True)}


def test_phase_4_ends_with_the_last_ack() -> None:
    """V, phase 4; ring 5.6 (4): a member when ACK(2) of all is in: pairs ACTIVE, members all that the grantors know, gen = 1 + max pgen."""
    c = Candidate().until_ready()
    c.acks(FIGURE_5[:3], 2, gen=9)
    assert c.ring.status is Status.JOINING
    c.acks(FIGURE_5[3:], 2)
    assert [event.id for event in c.host.events(BecameMember)] == [c.ring.id]
    assert all(pair.state is State.ACTIVE for pair in c.ring.pairs.values())
    assert c.ring.list.ids == [*(each.id for each in (P11, P13)), c.ring.id, *(each.id for each in (P17, P19, P23))]
    assert c.ring.fencing.gen == 10


def test_phase_4_can_still_fail() -> None:
    """V, Theorem 6: until the last ACK(2) any silence makes the candidate give up; nobody has to arbitrate."""
    c = Candidate().until_ready()
    c.acks(FIGURE_5[:3], 2)
    c.host.pass_time(T_L)
    assert c.failures() == ["a lease ran out"]
    assert c.host.events(BecameMember) == []
    assert c.told(m.Arb) == []
    assert c.told(m.Leave) == NAMES


def test_phases_are_paced_as_in_the_papers_simulator() -> None:
    """VII-D, ring 4 (join_pace): paced, each of the four phases takes T_l, so a join takes 4 T_l."""
    c = Candidate(pace=True)
    began = c.host.now
    c.until_locks()
    c.host.pass_time(T_L)
    c.locked(FIGURE_5)
    c.host.pass_time(T_L)
    c.acks(FIGURE_5, 1)
    c.host.pass_time(T_L)
    c.acks(FIGURE_5, 2)
    c.host.pass_time(T_L - 0.01)
    assert c.host.events(BecameMember) == []
    c.host.pass_time(0.01)
    assert len(c.host.events(BecameMember)) == 1
    assert c.host.now - began == pytest.approx(4 * T_L)
    assert [event.phase for event in c.host.events(PhaseReached)] == ["lock", "open", "ready"]


# Any attempt.


@pytest.mark.parametrize("phase", ["discover", "lock", "lease", "ready"])
def test_a_neighbour_that_leaves_ends_the_attempt(phase: str) -> None:
    """Theorem 6: in the phases with leases the candidate hears Leave and gives up; before, nobody has anything to tell it."""
    c = Candidate()
    if phase != "discover":
        {"lock": c.until_locks, "lease": c.until_leases, "ready": c.until_ready}[phase]()
    c.say(P11, m.Leave(*c.head(P11), "graceful", 0))
    assert c.failures() == (["a neighbour left"] if phase in ("lease", "ready") else [])


def test_a_candidate_that_oversleeps_starts_again() -> None:
    """D6: it has promised nothing yet."""
    c = Candidate().until_leases()
    c.ring.on_away(0.2)
    assert c.failures() == ["overslept"]


def test_every_attempt_has_a_new_id_at_the_old_place() -> None:
    """D12, D21: inc is drawn for every attempt, pos stays."""
    c = Candidate()
    c.host.pass_time(60 * T_L)
    ids = [event.id for event in c.host.events(JoinStarted)]
    assert len(ids) >= 4
    assert len({each.inc for each in ids}) == len(ids)
    assert {each.pos for each in ids} == {16}
    assert [event.was_member for event in c.host.events(Departed)] == [False] * len(c.host.events(Departed))


def test_backoff_grows_and_stays_within_its_bounds() -> None:
    """D27, ring 4 (backoff), H160: uniform(0.2 T_l, T_l min(8, 2^attempt)) as an upper bound; the first silent ones wait a T_l at most."""
    c = Candidate()
    c.host.pass_time(400 * T_L)
    delays = [event.delay for event in c.host.events(JoinRetry)]
    assert len(delays) > 40
    for attempt, delay in enumerate(delays, 1):
        assert 0.2 * T_L <= delay <= T_L * min(8, max(1, 2 ** (attempt - PATIENT_ATTEMPTS)))
    assert max(delays) > 6 * T_L


def test_answers_to_an_earlier_attempt_count_for_nothing() -> None:
    """D12: a grant for the former id is dropped: it names another inc."""
    c = Candidate().until_locks()
    old = c.ring.id
    lock = next(sent.message for sent in c.host.sent if isinstance(sent.message, m.Lock))
    c.locked([P13], granted=False)
    c.host.pass_time(3 * T_L)
    assert c.ring.id != old
    c.until_locks()
    for each in FIGURE_5:
        c.say(each, m.Locked(RING, each.id, old.inc, lock.serial, granted=True, view=VIEW))
    assert c.ring.pairs == {}
