"""The members' side of a join: paper 000, section V; spec ring 5.6 (member side), D8, D9, D12, D27, D29; foundation F6, F14."""

from __future__ import annotations

import pytest

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.door import GIVEN_UP_MAX
from holdfast.features.ring.protocol.facts import Removed, Suspicion
from holdfast.features.ring.protocol.ids import Peer, RingId
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import Address, NodeId
from tests.features.ring.stand import STEP, T_L, Stand, crowd, peer

C, D, E = peer("x", 1010), peer("y", 1020), peer("z", 1030)  # candidates whose owner is the member at 1000
LOCK_TTL = 3 * T_L


def ask(stand: Stand, candidate: Peer = C, *, former: tuple[RingId, ...] = (), over: bool = False) -> m.Discovered:
    stand.say(candidate, m.Discover(1, candidate.id, former, over, candidate.address))
    (answer,) = stand.to(candidate, m.Discovered)
    return answer


def lock(stand: Stand, candidate: Peer = C) -> m.Locked:
    stand.say(candidate, m.Lock(stand.ring.ring, candidate.id, 0, 1))
    (answer,) = stand.to(candidate, m.Locked)
    return answer


def invite(stand: Stand, candidate: Peer = C, *, n: int = 1) -> None:
    """LR(1) or LR(2) of a candidate."""
    ready = n > 1
    stand.say(candidate, stand.request(candidate, n, open=not ready, join=True, ready=ready, peer=candidate, knows=0))


# Phase 1.


def test_the_owner_answers_with_its_neighbours() -> None:
    """V, phase 1: accept, with N_Q; the owner is in the view itself (5.6)."""
    stand, peers = crowd()
    answer = ask(stand)
    assert answer.answer is m.Answer.OK
    assert {each.id for each in answer.view} == {stand.ring.id, *(each.id for each in peers)}
    assert answer.ring == stand.ring.ring


def test_who_is_not_the_owner_says_who_is() -> None:
    """Ring 5.6 (Discover): redirect to the owner of the candidate's position in its own view."""
    stand, peers = crowd()
    near = peer("x", 1290)
    answer = ask(stand, near)
    assert (answer.answer, [each.id for each in answer.view]) == (m.Answer.REDIRECT, [peers[5].id])


def test_who_is_no_member_says_so() -> None:
    """D20: nobody who is in no ring can admit anybody."""
    stand = Stand()
    stand.ring.leave()
    assert ask(stand).answer is m.Answer.NO_MEMBER


def test_busy_with_another_join() -> None:
    """V, phase 1: "if Q is currently serving another node join request, it rejects"; the same candidate may ask again."""
    stand, _ = crowd()
    lock(stand, C)
    assert ask(stand, D).answer is m.Answer.BUSY
    assert ask(stand, C).answer is m.Answer.OK


def condemning(rules: Rules | None = None) -> Stand:
    """A member that has won against one of its peers and has not declared it yet."""
    stand, peers = crowd(rules=rules)
    silent = peers[0]
    while stand.pair(silent).susp is None:
        stand.live(STEP, silent=[silent])
    stand.vote(yes=peers[1:4])
    assert stand.ring.condemned
    return stand


@pytest.mark.parametrize("quiet", [True, False], ids=["on", "off"])
def test_nobody_joins_next_to_the_condemned(quiet: bool) -> None:
    """D9: Discover and Lock are refused while anything is condemned; without the rule both are granted."""
    stand = condemning(Rules(quiet_joins=quiet))
    assert ask(stand).answer is (m.Answer.BUSY if quiet else m.Answer.OK)
    assert lock(stand).granted is not quiet


def test_the_door_opens_with_the_declaration() -> None:
    """D9: busy for at most ``wait``."""
    stand = condemning()
    stand.live(stand.ring.config.wait)
    assert ask(stand).answer is m.Answer.OK


@pytest.mark.parametrize("gap", [True, False], ids=["on", "off"])
def test_nobody_joins_across_a_gap(gap: bool) -> None:
    """D29 ("same test gates join locks"): the nearest neighbour on a side has no pair with us, so we do not know who is behind it."""
    stand = Stand(rules=Rules(gap=gap))
    stand.say(D, m.Want(*stand.head(D), (D,)))
    assert not stand.pair(D).obliged
    assert ask(stand, peer("x", 900)).answer is (m.Answer.BUSY if gap else m.Answer.OK)


# Phase 2.


def test_a_lock_is_granted_with_the_view() -> None:
    """V, phase 2; D8: granted, and the grantor says whom it knows."""
    stand, peers = crowd()
    answer = lock(stand)
    assert answer.granted
    assert {each.id for each in answer.view} == {stand.ring.id, *(each.id for each in peers)}


def test_a_lock_is_one_candidates() -> None:
    """V, phase 2: rejected only if another join is under way; asked again by its holder, granted again."""
    stand, _ = crowd()
    assert lock(stand, C).granted
    assert not lock(stand, D).granted
    assert lock(stand, C).granted


def test_a_lock_ends_after_3_t_l() -> None:
    """V, phase 2: granted for 3 T_l, the time to finish phases 2 to 4."""
    stand, _ = crowd()
    lock(stand, C)
    stand.live(LOCK_TTL - STEP)
    assert not lock(stand, D).granted
    stand.live(STEP)
    assert lock(stand, D).granted


def test_a_lock_can_be_given_back() -> None:
    """V, phase 2: a candidate that fails releases its locks; nobody else can release them."""
    stand, _ = crowd()
    lock(stand, C)
    stand.say(D, m.Unlock(*stand.head(D)))
    assert not lock(stand, D).granted
    stand.say(C, m.Unlock(*stand.head(C)))
    assert lock(stand, E).granted


@pytest.mark.parametrize("word", ["Unlock", "Leave"])
def test_a_lock_that_comes_after_its_end_binds_nobody(word: str) -> None:
    """Ring 5.6 (Unlock), D12: messages overtake each other, and every attempt has an id of its own: who has given up asks for nothing."""
    stand, _ = crowd()
    stand.say(C, m.Unlock(*stand.head(C)) if word == "Unlock" else m.Leave(*stand.head(C), "join failed", 0))
    assert not lock(stand, C).granted
    assert lock(stand, D).granted


def test_so_many_that_gave_up_are_remembered() -> None:
    """F17: the oldest are forgotten; by then their Lock is somewhere or lost."""
    stand, _ = crowd()
    for number in range(GIVEN_UP_MAX + 1):
        gave_up = peer("w", 1010, inc=number + 1)
        stand.say(gave_up, m.Unlock(*stand.head(gave_up)))
    assert not lock(stand, peer("w", 1010, inc=GIVEN_UP_MAX + 1)).granted
    assert lock(stand, peer("w", 1010, inc=1)).granted


def test_who_is_in_needs_no_lock() -> None:
    """D12: an old Lock of a candidate that became a member since binds nobody."""
    stand, peers = crowd()
    assert not lock(stand, peers[0]).granted


# Phases 3 and 4.


def test_a_candidate_needs_the_lock() -> None:
    """Ring 5.6 (LR(open, join)): without our lock the invitation is refused."""
    stand, _ = crowd()
    invite(stand)
    assert len(stand.to(C, m.LeaseNak)) == 1
    assert C.id not in stand.ring.pairs


def test_phase_3_makes_a_dormant_pair() -> None:
    """V, phase 3: P creates L_PC and A_PC = P + N_P + C + N_C, marks it dormant, and answers with its neighbours; C is no member yet."""
    stand, peers = crowd()
    stand.views[C.id] = (stand.ring.me, *peers[2:4])
    lock(stand)
    invite(stand)
    pair = stand.pair(C)
    assert pair.state is State.DORMANT
    assert pair.cfg == {stand.ring.id, C.id, *(each.id for each in peers)}
    (ack,) = stand.to(C, m.LeaseAck)
    assert {each.id for each in ack.nbrs} == {each.id for each in peers}
    assert len(stand.to(C, m.LeaseRequest)) == 1
    assert C.id not in stand.ring.list


def test_a_dormant_lease_that_times_out_is_cleaned_up() -> None:
    """V, phase 3: no arbitration, no further requests, no answers; and the next candidate may come."""
    stand, _ = crowd()
    lock(stand)
    invite(stand)
    stand.live(T_L + STEP, silent=[C])
    assert C.id not in stand.ring.pairs
    assert stand.host.events(Suspicion) == []
    stand.take(m.LeaseAck)
    stand.say(C, stand.request(C, 2, ready=True, join=True, peer=C))
    assert stand.to(C, m.LeaseAck) == []
    assert lock(stand, D).granted


def test_a_dormant_pair_keeps_the_lock() -> None:
    """Ring 5.6 (Lock): valid until expiry, or as long as the candidate's pair is DORMANT here: I11, one at a time."""
    stand, _ = crowd()
    lock(stand)
    stand.live(LOCK_TTL - 4 * STEP)
    invite(stand)
    stand.live(LOCK_TTL - 2 * STEP)
    assert stand.pair(C).state is State.DORMANT
    assert not lock(stand, D).granted


def test_phase_4_makes_it_active() -> None:
    """V, phase 4: LR(2) says that C monitors all of N_C: ACTIVE, C is a member, the lock is free (5.6)."""
    stand, _ = crowd()
    lock(stand)
    invite(stand)
    invite(stand, n=2)
    assert stand.pair(C).state is State.ACTIVE
    assert C.id in stand.ring.list
    assert lock(stand, D).granted


def test_from_ready_on_the_keys_are_the_joiners() -> None:
    """Ring 5.6: from that instant the member no longer owns C's keys."""
    stand, _ = crowd()
    assert stand.ring.claims(C.id.pos)
    lock(stand)
    invite(stand)
    assert stand.ring.claims(C.id.pos)
    invite(stand, n=2)
    assert not stand.ring.claims(C.id.pos)
    assert stand.ring.claims(stand.ring.id.pos)


def test_ready_waits_for_what_was_told_to_clients() -> None:
    """F14: a client was told that it may act for one of C's keys; LR(ready) is not answered before that is over."""
    stand, _ = crowd()
    owned = stand.ring.owns(C.id.pos)
    assert owned is not None
    lock(stand)
    invite(stand)
    stand.take(m.LeaseAck)
    invite(stand, n=2)
    assert stand.to(C, m.LeaseAck) == []
    assert stand.pair(C).state is State.DORMANT
    stand.live(owned.until - stand.host.now - STEP / 2)
    assert stand.pair(C).state is State.DORMANT
    stand.live(STEP / 2)
    assert stand.pair(C).state is State.ACTIVE
    assert [ack.n for ack in stand.to(C, m.LeaseAck)] == [2]  # Whoever asks only once per session (r = 1) is answered, too.


def test_a_candidate_that_gave_up_is_not_admitted_later() -> None:
    """F14, ring 5.6: what waits for the clients' deadline ends with the candidate's pair."""
    stand, _ = crowd()
    owned = stand.ring.owns(C.id.pos)
    assert owned is not None
    lock(stand)
    invite(stand)
    invite(stand, n=2)
    stand.say(C, m.Unlock(*stand.head(C)))
    stand.live(owned.until - stand.host.now + STEP)
    assert C.id not in stand.ring.pairs
    assert C.id not in stand.ring.list


def test_keys_that_are_promised_away_are_not_published() -> None:
    """F14: while a candidate holds the lock, its future keys are told to no client; other keys are."""
    stand, _ = crowd()
    lock(stand)
    assert stand.ring.owns(C.id.pos) is None
    assert stand.ring.owns(stand.ring.id.pos) is not None


def test_a_joiner_that_may_yet_fail_teaches_nobody() -> None:
    """Ring 5.3 (piggyback): ids from a DORMANT joiner do not become members here."""
    stand, _ = crowd()
    made_up = peer("made-up", 1005)
    stand.views[C.id] = (made_up, stand.ring.me)
    lock(stand)
    invite(stand)
    assert made_up.id not in stand.ring.list


@pytest.mark.parametrize("word", ["Unlock", "Leave"])
def test_a_candidate_that_gives_up_frees_its_place(word: str) -> None:
    """Ring 5.6: Unlock or Leave of a candidate ends its pair and its lock; there is no member to remove."""
    stand, _ = crowd()
    lock(stand)
    invite(stand)
    stand.say(C, m.Unlock(*stand.head(C)) if word == "Unlock" else m.Leave(*stand.head(C), "join failed", 0))
    assert C.id not in stand.ring.pairs
    assert lock(stand, D).granted
    assert stand.host.events(Removed) == []


# D12, F6: a candidate about its own past.


def restarted(stand: Stand, over: bool, boot: int = 2, address: Address | None = None) -> None:
    """Process a, listed at 700 as its first life, knocks in another life."""
    candidate = Peer(RingId(1010, 9), NodeId("a", boot), address or Address("a", 1))
    ask(stand, candidate, over=over)


@pytest.mark.parametrize("over", [True, False], ids=["with the lock of its directory", "without"])
def test_a_new_life_buries_the_former(over: bool) -> None:
    """D12, F6: instant detection of restarts, only if the new life can know that the former one is over."""
    stand, peers = crowd()
    restarted(stand, over)
    assert [(event.id, event.certain, event.reason) for event in stand.host.events(Removed)] == (
        [(peers[0].id, True, "restarted")] if over else []
    )


def test_a_copy_of_a_machine_buries_nobody() -> None:
    """F6: a lock holds on one machine. A clone with the same name and directory, elsewhere, knows nothing about the original."""
    stand, _ = crowd()
    restarted(stand, over=True, address=Address("a's copy", 1))
    assert stand.host.events(Removed) == []


def test_a_former_life_buries_nobody() -> None:
    """F3: an old Discover of the life that is listed, or of an earlier one, says nothing about it."""
    stand, _ = crowd()
    for boot in (0, 1):
        restarted(stand, over=True, boot=boot)
    assert stand.host.events(Removed) == []


def test_a_life_buries_its_own_memberships_by_name() -> None:
    """D12: it names those that are over; a membership won since is not among them."""
    stand, peers = crowd()
    ask(stand, peers[0], former=(RingId(700, 99),))
    assert stand.host.events(Removed) == []
    ask(stand, peers[0], former=(peers[0].id,))
    assert [event.id for event in stand.host.events(Removed)] == [peers[0].id]


def test_nobody_speaks_for_another_name() -> None:
    """F6: the memberships of b cannot be buried by a."""
    stand, peers = crowd()
    ask(stand, peers[0], former=(peers[1].id,), over=True)
    assert stand.host.events(Removed) == []


def test_a_founder_admits_the_first_joiner() -> None:
    """Ring 5.7: a ring of one needs no special case: N_C is the founder alone."""
    stand = Stand(config=RingConfig(k=2))
    assert [each.id for each in ask(stand).view] == [stand.ring.id]
    assert lock(stand).granted
    invite(stand)
    invite(stand, n=2)
    assert stand.ring.list.ids == [stand.ring.id, C.id]
