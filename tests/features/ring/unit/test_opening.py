"""Pairs between members: who opens them, when each side gets its duties and its rights.  Spec: ring 2 (rule RO), 5.3, 5.4, D10, D18.

The paper has only the pairs of a join (section V); between members they appear when somebody fails, and a dormant side is unsafe there.
"""

from __future__ import annotations

import pytest

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import NeighbourhoodChanged, Suspicion
from holdfast.features.ring.protocol.opening import PAIRS_MAX
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import Address, Message, NodeId
from tests.features.ring.stand import STEP, T_A, T_L, Stand, crowd, peer

LOW, Q = peer("low", 500), peer("q", 2000)


def wanted(rules: Rules | None = None, config: RingConfig | None = None) -> tuple[Stand, Pair]:
    """Want came from q, and we have opened: DORMANT, LR(1) is out."""
    stand = Stand(rules=rules, config=config or RingConfig(k=3))
    stand.say(Q, m.Want(*stand.head(Q), (Q,)))
    return stand, stand.pair(Q)


def half(rules: Rules | None = None) -> tuple[Stand, Pair]:
    """LR(1) was answered by q, with the group."""
    stand, pair = wanted(rules)
    stand.say(Q, stand.ack(Q, 1, cfg=(stand.ring.id, Q.id)))
    return stand, pair


# The opener (5.4, steps 1, 3, 5).


def test_step_1_the_opener_begins_dormant() -> None:
    """Ring 5.4 (1): epoch = ++epochs[peer], DORMANT, session 1 with LR(open), its neighbours and its address."""
    stand, pair = wanted()
    (request,) = stand.to(Q, m.LeaseRequest)
    assert (request.epoch, request.n, request.open, request.ready, request.join) == (1, 1, True, False, False)
    assert request.peer == stand.ring.me
    assert (pair.state, pair.opener, stand.ring.epochs[Q.id]) == (State.DORMANT, True, 1)


def test_step_3_the_opener_is_obliged_before_it_says_ready() -> None:
    """Ring 5.4 (3), rule RO, D10: ACK(1) brings the group; the opener is HALF when LR(2, ready) leaves, at once."""
    stand, pair = wanted()
    states: list[tuple[bool, State]] = []
    send = stand.host.send

    def note(to: NodeId | Address, message: Message) -> None:
        if isinstance(message, m.LeaseRequest):
            states.append((message.ready, pair.state))
        send(to, message)

    stand.ring.raw.send = note  # type: ignore[method-assign]
    stand.say(Q, stand.ack(Q, 1, cfg=(stand.ring.id, Q.id)))
    assert states == [(True, State.HALF)]
    assert pair.cfg == {stand.ring.id, Q.id}
    assert pair.n == 2


def test_step_5_ack_2_makes_the_opener_active() -> None:
    """Ring 5.4 (5): ACK(n >= 2): the other side is obliged, so this one may be entitled."""
    stand, pair = half()
    stand.say(Q, stand.ack(Q, 2))
    assert pair.state is State.ACTIVE


def test_paced_opening_waits_for_the_session() -> None:
    """Ring 5.4 (3): with join_pace, session 2 begins at s + T_l and not at once."""
    stand, pair = wanted(config=RingConfig(k=3, join_pace=True))
    stand.say(Q, stand.ack(Q, 1, cfg=(stand.ring.id, Q.id)))
    assert (pair.state, pair.n) == (State.HALF, 1)
    stand.host.pass_time(T_L)
    assert pair.n == 2


def test_a_group_that_leaves_one_out_is_none() -> None:
    """Equation 1: an ACK(1) whose group lacks one of the two is dropped and counted; the session may still be answered properly."""
    stand, pair = wanted()
    stand.say(Q, stand.ack(Q, 1, cfg=(Q.id,)))
    assert (pair.state, pair.acked, stand.ring.counts["malformed"]) == (State.DORMANT, False, 1)
    stand.say(Q, stand.ack(Q, 1, cfg=(stand.ring.id, Q.id)))
    assert pair.obliged


def test_without_half_the_opener_is_free_to_go() -> None:
    """D10 switched off: the opener says "ready" and may still drop the pair without a word, while the other side is entitled."""
    stand, pair = half(Rules(half=False))
    (*_, request) = stand.to(Q, m.LeaseRequest)
    assert request.ready
    assert not pair.obliged
    stand.live(T_L, silent=[Q])
    assert Q.id not in stand.ring.pairs or stand.pair(Q) is not pair
    assert stand.host.events(Suspicion) == []


def test_a_dormant_opener_drops_silently_and_tries_again() -> None:
    """Ring 5.2 (suspect, DORMANT), 5.4: nobody is entitled, so there is no arbitration; next try after 0.5 to 1.5 T_l, new epoch."""
    stand, pair = wanted()
    stand.live(T_L, silent=[Q])
    assert stand.host.events(Suspicion) == []
    assert not stand.ring.holds(pair)
    stand.live(0.5 * T_L - STEP, silent=[Q])
    assert Q.id not in stand.ring.pairs
    stand.live(2 * T_L + STEP, silent=[Q])  # 1.5 T_l, and the next tick of T_l.
    assert stand.ring.epochs[Q.id] >= 2


@pytest.mark.parametrize("state", ["DORMANT", "HALF"])
def test_a_refused_opener_drops(state: str) -> None:
    """Ring 5.4 (NAK): in DORMANT and HALF the other side will never hold this instance, so it is dropped; tried again later."""
    stand, pair = wanted() if state == "DORMANT" else half()
    stand.say(Q, m.LeaseNak(*stand.head(Q), 1))
    assert not stand.ring.holds(pair)
    stand.live(3 * T_L)
    assert stand.pair(Q).epoch == 2


def test_an_active_pair_cannot_be_refused() -> None:
    """Ring 5.4 (NAK otherwise): ignored; so is one of another epoch."""
    stand, pair = half()
    stand.say(Q, m.LeaseNak(*stand.head(Q), 7))
    assert stand.ring.holds(pair)
    stand.say(Q, stand.ack(Q, 2))
    stand.say(Q, m.LeaseNak(*stand.head(Q), 1))
    assert stand.ring.holds(pair)


def test_a_half_pair_is_a_duty() -> None:
    """Ring 2, 5.3 (last rule): HALF and the lease runs out: win or leave."""
    stand, pair = half()
    assert stand.ring.safe_until == pair.est + 2 * T_L + T_A
    stand.live(T_L + STEP, silent=[Q])
    assert len(stand.host.events(Suspicion)) == 1


# The responder (5.4, steps 2, 4).


def test_step_2_the_responder_forms_the_group() -> None:
    """Ring 5.4 (2): DORMANT, ver 1, cfg = both and the neighbours of both; ACK(1) carries it, and a session of its own begins."""
    stand = Stand()
    friend = peer("friend", 300)
    stand.views[LOW.id] = (friend,)
    stand.say(LOW, stand.request(LOW, 1, open=True, peer=LOW))
    pair = stand.pair(LOW)
    assert (pair.state, pair.opener, pair.ver) == (State.DORMANT, False, 1)
    assert pair.cfg >= {stand.ring.id, LOW.id, friend.id}
    (ack,) = stand.to(LOW, m.LeaseAck)
    assert (ack.n, frozenset(ack.cfg)) == (1, pair.cfg)
    (request,) = stand.to(LOW, m.LeaseRequest)
    assert (request.n, request.open) == (1, False)


def test_step_4_ready_makes_the_responder_active() -> None:
    """Ring 5.4 (4), rule RO: the opener says that it is obliged, so the responder becomes entitled."""
    stand = Stand()
    stand.say(LOW, stand.request(LOW, 1, open=True, peer=LOW))
    stand.say(LOW, stand.request(LOW, 2, ready=True, peer=LOW))
    assert stand.pair(LOW).state is State.ACTIVE
    assert [ack.n for ack in stand.to(LOW, m.LeaseAck)] == [1, 2]


def test_an_ack_of_the_opener_entitles_nobody() -> None:
    """Rule RO: the responder's own session being answered says nothing about the opener's duty."""
    stand = Stand()
    stand.say(LOW, stand.request(LOW, 1, open=True, peer=LOW))
    stand.say(LOW, stand.ack(LOW, 1))
    assert stand.pair(LOW).state is State.DORMANT


def test_a_responder_that_was_never_told_ready_drops() -> None:
    """Ring 5.4: still DORMANT after 3 T_l, although its own sessions are answered."""
    stand = Stand()
    stand.say(LOW, stand.request(LOW, 1, open=True, peer=LOW))
    pair = stand.pair(LOW)
    stand.live(3 * T_L - STEP)
    assert stand.ring.holds(pair)
    stand.live(2 * STEP)
    assert not stand.ring.holds(pair)
    assert stand.departures() == []


def test_a_dormant_leftover_is_replaced() -> None:
    """Ring 5.4 (2): nobody has rights or duties in it, so the newer instance takes its place."""
    stand = Stand()
    for epoch in (1, 2):
        stand.say(LOW, stand.request(LOW, 1, epoch, open=True, peer=LOW))
    assert stand.pair(LOW).epoch == 2


def test_who_opens_must_say_who_it_is() -> None:
    """Ring 3: the address of an unknown peer comes with LR(open); one for somebody else's id or life is refused."""
    stand = Stand()
    for made_up in (None, peer("low", 501), peer("other", 500)):
        stand.say(LOW, stand.request(LOW, 1, epoch=1 + stand.ring.epochs.get(LOW.id, 0), open=True, peer=made_up))
    assert LOW.id not in stand.ring.pairs
    assert stand.ring.counts["malformed"] == 3


def test_a_dormant_responder_can_be_silenced_by_time() -> None:
    """Section V ("dormant"): the lease of a dormant side runs out: no arbitration, the pair is cleaned up."""
    stand = Stand()
    stand.say(LOW, stand.request(LOW, 1, open=True, peer=LOW))
    pair = stand.pair(LOW)
    stand.live(T_L, silent=[LOW])
    assert not stand.ring.holds(pair)
    assert stand.host.events(Suspicion) == []


# The neighbourhood (5.3, D18).


def test_the_lower_id_opens_and_the_higher_asks_for_it() -> None:
    """D18, ring 5.3 (recompute): of two that want each other, the lower one opens, the higher one says Want."""
    stand = Stand()
    stand.ring.list.hear([LOW, Q])
    stand.live(1.5 * T_L, silent=[LOW, Q])
    assert stand.pair(Q).opener
    assert LOW.id not in stand.ring.pairs
    (first, *_) = stand.to(LOW, m.Want)
    assert {each.id for each in first.nbrs} >= {stand.ring.id, Q.id, LOW.id}


def test_want_is_said_once_per_lease() -> None:
    """Ring 5.3 (recompute): at most once per T_l and peer."""
    stand = Stand()
    stand.ring.list.hear([LOW])
    stand.live(5 * T_L, silent=[LOW])
    assert 4 <= len(stand.to(LOW, m.Want)) <= 5


def test_want_teaches_and_is_obeyed() -> None:
    """Ring 5.3 (on Want): the sender and its neighbours become known, and the pair is opened even if it is not wanted here."""
    stand, _ = crowd()
    far, friend = peer("far", 9000), peer("friend", 9100)
    stand.say(far, m.Want(*stand.head(far), (far, friend)))
    assert far.id in stand.ring.list
    assert friend.id in stand.ring.list
    assert stand.pair(far).opener


def test_want_is_understood_before_it_is_obeyed() -> None:
    """Ring 5.3 (on Want: merge, recompute, then open): the request that opens the pair carries the neighbourhood that Want taught."""
    stand = Stand()
    stand.say(Q, m.Want(*stand.head(Q), (LOW, Q)))
    (request,) = stand.to(Q, m.LeaseRequest)
    assert tuple(each.id for each in request.nbrs) == (LOW.id, Q.id)


def test_want_of_a_stranger_in_another_name() -> None:
    """Ring 3: whoever wants says who it is and where; otherwise it is dropped and counted."""
    stand = Stand()
    stand.say(Q, m.Want(*stand.head(Q), (LOW,)))
    assert stand.ring.pairs == {}
    assert stand.ring.counts["malformed"] == 1


def test_the_k_nearest_on_each_side_are_wanted() -> None:
    """Section II, Figure 1; ring 2 (nbrs): k successors and k predecessors; of ten known ones, the six nearest."""
    stand, peers = crowd()
    stand.ring.list.hear([peer(f"far{i}", 5000 + i) for i in range(4)])
    stand.live(STEP)
    assert stand.ring.nbrs == tuple(each.id for each in peers)


def test_a_small_ring_wants_everybody() -> None:
    """Ring 2 (nbrs), 5.7: up to 2k others, all of them are neighbours."""
    stand = Stand()
    stand.say(Q, m.Want(*stand.head(Q), (LOW, Q)))
    assert stand.ring.nbrs == (LOW.id, Q.id)
    assert stand.host.events(NeighbourhoodChanged)[-1].nbrs == (LOW.id, Q.id)


def test_a_neighbours_word_is_believed_about_the_living() -> None:
    """Ring 5.3 (piggyback): unknown ids among nbrs become members here, tombstoned ones never again."""
    stand = Stand()
    gone, fresh = peer("gone", 300), peer("fresh", 400)
    stand.responds_to(LOW, [gone, stand.ring.me])
    stand.say(gone, m.Leave(*stand.head(gone), "graceful", 0))
    stand.views[LOW.id] = (gone, fresh, stand.ring.me)
    stand.say(LOW, stand.request(LOW, 3))
    assert fresh.id in stand.ring.list
    assert gone.id not in stand.ring.list


def test_a_list_that_does_not_fit_its_hash_is_dropped() -> None:
    """Ring 3 (nbrs as a hash): a message that contradicts itself is not acked, and counted."""
    stand = Stand()
    stand.responds_to(LOW)
    stand.take(m.LeaseAck)
    stand.say(LOW, stand.request(LOW, 3, nbrs=(Q,), view=12345))
    assert stand.to(LOW, m.LeaseAck) == []
    assert Q.id not in stand.ring.list
    assert stand.ring.counts["malformed"] == 1


def test_the_list_travels_only_while_it_is_news() -> None:
    """Ring 3: nbrs as a 64-bit hash when the peer is known to hold the list; the list itself when the hash is new."""
    stand, peers = crowd()
    stand.say(peers[0], stand.request(peers[0], 9, knows=stand.ring.view))
    stand.say(peers[0], stand.request(peers[0], 10, knows=1))
    known, unknown = stand.to(peers[0], m.LeaseAck)
    assert known.nbrs == ()
    assert tuple(each.id for each in unknown.nbrs) == stand.ring.nbrs
    assert known.view == unknown.view == stand.ring.view


def test_there_is_a_limit_to_what_others_may_want() -> None:
    """F17: a pair costs a timer and messages every T_l, so strangers that open pairs are served up to a limit, and refused beyond."""
    stand = Stand()
    for number in range(PAIRS_MAX + 5):
        one = peer(f"x{number}", 5000 + number)
        stand.say(one, stand.request(one, 1, open=True, peer=one))
    assert len(stand.ring.pairs) <= PAIRS_MAX
    assert stand.ring.counts["pairs_full"] >= 5
