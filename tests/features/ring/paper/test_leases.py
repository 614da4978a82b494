"""Leases between neighbours: paper 000, section III.1 and Rule 1, Figure 2; spec ring 5 (entry guard), 5.1, D1, D3, D6."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Departed, Overslept, Suspicion
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.rules import Rules
from tests.features.ring.stand import STEP, T_A, T_L, Stand, crowd, peer

Q = peer("q", 2000)
SMALL = peer("o", 500)


def monitor(config: RingConfig | None = None, rules: Rules | None = None) -> Stand:
    """P, alone with Q; P opened the pair. A session has just begun, and nothing of it was answered."""
    stand = Stand(config=config or RingConfig(k=3), rules=rules)
    stand.opens(Q)
    stand.live(T_L - STEP)
    stand.host.pass_time(STEP)
    assert not stand.pair(Q).acked
    return stand


# Sessions (III.1).


def test_a_session_begins_with_a_request_and_is_pending() -> None:
    """III.1: at the beginning of session n, P sends LR(n) and marks the session pending."""
    stand = monitor()
    (request,) = stand.to(Q, m.LeaseRequest)
    pair = stand.pair(Q)
    assert (request.n, request.epoch) == (pair.n, pair.epoch)
    assert not pair.acked


def test_an_ack_in_time_establishes_the_session() -> None:
    """III.1, ring 5.1 (on ACK): ACK(n) within the session marks it established; est is the session's nominal start."""
    stand = monitor()
    pair = stand.pair(Q)
    stand.host.pass_time(0.4)
    stand.say(Q, stand.ack(Q, pair.n))
    assert pair.acked
    assert pair.est == pair.s == stand.host.now - 0.4


def test_the_next_session_follows_only_an_established_one() -> None:
    """III.1: T_l after LR(n), session n + 1 begins if session n was established."""
    stand = monitor()
    pair, n = stand.pair(Q), stand.pair(Q).n
    stand.say(Q, stand.ack(Q, n))
    stand.host.pass_time(T_L)
    assert (pair.n, pair.acked, pair.susp) == (n + 1, False, None)


def test_a_pending_session_times_out_after_t_l() -> None:
    """III.1: if the session is still pending after T_l, the lease is over and Q is suspected; no further session begins."""
    stand = monitor()
    pair, began = stand.pair(Q), stand.pair(Q).s
    stand.host.pass_time(T_L - 0.001)
    assert stand.host.events(Suspicion) == []
    stand.host.pass_time(0.001)
    (suspicion,) = stand.host.events(Suspicion)
    assert (suspicion.peer, suspicion.at) == (Q.id, began + T_L)
    assert pair.n == stand.take(m.LeaseRequest)[-1][1].n


def test_sessions_are_numbered_and_lie_end_to_end() -> None:
    """III.1: consecutive, monotonically increasing, non-overlapping sessions of T_l each."""
    stand = monitor()
    seen = []
    for _ in range(5):
        seen.append((stand.pair(Q).n, stand.pair(Q).s))
        stand.live(T_L - STEP)
        stand.host.pass_time(STEP)
    numbers = [n for n, _ in seen]
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert [later - earlier for (_, earlier), (_, later) in pairwise(seen)] == pytest.approx([T_L] * 4)


def test_late_timers_do_not_move_sessions() -> None:
    """D1: sessions start at s, s + T_l, ... whatever the timer does: 0.3 s of lateness is gone in the next session."""
    stand = monitor()
    pair, s = stand.pair(Q), stand.pair(Q).s
    stand.say(Q, stand.ack(Q, pair.n))
    stand.host.pause(T_L + 0.3)
    assert pair.s == s + T_L
    stand.answer()
    stand.host.pass_time(0.7)
    assert pair.s == s + 2 * T_L


@pytest.mark.parametrize("retry,tries", [(1.0, 1), (0.5, 2), (0.125, 8)], ids=["paper", "two", "default"])
def test_a_silent_peer_is_asked_again_inside_the_session(retry: float, tries: int) -> None:
    """Ring 5.1 (retransmit), 4 (r): LR(n) again every r T_l until it is acked; r = 1 is the paper, a single try."""
    stand = monitor(RingConfig(k=3, retry=retry))
    n = stand.pair(Q).n
    asked = []
    for _ in range(63):
        asked += [(round(stand.host.now - stand.pair(Q).s, 6), message.n) for message in stand.to(Q, m.LeaseRequest)]
        stand.host.pass_time(T_L / 64)
    assert asked == [(round(i * retry * T_L, 6), n) for i in range(tries)]


def test_nobody_is_asked_again_after_an_ack() -> None:
    """Ring 5.1 (on ACK): an acked session stops retransmitting."""
    stand = monitor()
    stand.say(Q, stand.ack(Q, stand.pair(Q).n))
    stand.take(m.LeaseRequest)
    stand.host.pass_time(T_L - 0.01)
    assert stand.take(m.LeaseRequest) == []


def test_asking_again_moves_no_bound() -> None:
    """D1: what the last of eight tries brought counts from the session's start: est + 2 T_l + T_a is no later for it."""
    stand = monitor()
    pair, s = stand.pair(Q), stand.pair(Q).s
    stand.host.pass_time(0.99)
    stand.say(Q, stand.ack(Q, pair.n))
    assert pair.est == s
    assert stand.ring.safe_until == s + 2 * T_L + T_A


@pytest.mark.parametrize("n", [-1, +1], ids=["earlier", "later"])
def test_an_ack_of_another_session_proves_nothing(n: int) -> None:
    """Ring 5.1 (on ACK): only an ACK of the current session establishes it."""
    stand = monitor()
    pair = stand.pair(Q)
    stand.say(Q, stand.ack(Q, pair.n + n))
    assert not pair.acked


def test_an_ack_of_another_instance_proves_nothing() -> None:
    """Ring 5.1 (on ACK): unknown epoch, ignored."""
    stand = monitor()
    stand.say(Q, stand.ack(Q, stand.pair(Q).n, epoch=7))
    assert not stand.pair(Q).acked


# Rule 1.


def test_both_directions_are_leases_of_their_own() -> None:
    """Rule 1: L_PQ and L_QP are independent. While Q does not answer, P acks Q's requests; acking renews nothing of P's own lease."""
    stand = monitor()
    pair, est = stand.pair(Q), stand.pair(Q).est
    stand.say(Q, stand.request(Q, 41))
    (ack,) = stand.to(Q, m.LeaseAck)
    assert ack.n == 41
    assert (pair.acked, pair.est) == (False, est)


def test_who_suspects_does_not_ack() -> None:
    """Rule 1: once L_PQ has timed out, P ignores all further requests of Q: no ACK, no NAK, whatever their number."""
    stand, peers = crowd()
    silent = peers[0]
    stand.live(2 * T_L, silent=[silent])
    assert stand.pair(silent).susp is not None
    stand.host.sent.clear()
    for n in (1, 2, 50, 51):
        stand.say(silent, stand.request(silent, n))
    assert stand.to(silent, m.LeaseAck) == []
    assert stand.to(silent, m.LeaseNak) == []


def test_a_suspicion_is_final() -> None:
    """D3: an ACK that comes after the suspicion changes nothing."""
    stand, peers = crowd()
    silent = peers[0]
    stand.live(2 * T_L, silent=[silent])
    pair = stand.pair(silent)
    susp = pair.susp
    stand.say(silent, stand.ack(silent, pair.n))
    assert (pair.acked, pair.susp) == (False, susp)
    stand.live(T_A)
    assert not stand.ring.is_member  # Nobody voted, so it had to go all the same.


# Requests for instances that are not held (5.1).


def test_an_unknown_instance_is_refused_for_good() -> None:
    """Ring 5.1 (on LR, unknown epoch): NAK after raising epochs, so that an old request to open can never be accepted later."""
    stand = Stand()
    stand.say(SMALL, stand.request(SMALL, 5, epoch=3))
    (nak,) = stand.to(SMALL, m.LeaseNak)
    assert nak.epoch == 3
    stand.say(SMALL, stand.request(SMALL, 1, epoch=3, open=True, peer=SMALL))
    assert SMALL.id not in stand.ring.pairs
    stand.say(SMALL, stand.request(SMALL, 1, epoch=4, open=True, peer=SMALL))
    assert stand.pair(SMALL).epoch == 4


@pytest.mark.parametrize("epoch,refused", [(4, True), (6, False)], ids=["lower", "higher"])
def test_an_obliged_pair_is_not_replaced(epoch: int, refused: bool) -> None:
    """Ring 5.1: while an obliged pair is held, another epoch gets a NAK if it is lower and silence if it is higher."""
    stand = Stand()
    stand.responds_to(SMALL, epoch=5)
    stand.say(SMALL, stand.request(SMALL, 1, epoch=epoch, open=True, peer=SMALL))
    assert bool(stand.to(SMALL, m.LeaseNak)) is refused
    assert stand.pair(SMALL).epoch == 5


def test_the_condemned_get_no_answer() -> None:
    """Ring 5.1: a request of a condemned peer is ignored; a NAK would free it of its duty."""
    stand, peers = crowd()
    silent = peers[0]
    stand.live(2 * T_L, silent=[silent])
    stand.vote(yes=peers[1:4])
    assert silent.id in stand.ring.condemned
    stand.host.sent.clear()
    stand.say(silent, stand.request(silent, 9))
    stand.say(silent, stand.request(silent, 1, epoch=9, open=True, peer=silent))
    assert stand.to(silent, m.LeaseNak) == []
    assert stand.to(silent, m.LeaseAck) == []


def test_requests_for_another_membership_are_dropped() -> None:
    """Ring 3, D12: another ring or another inc of the receiver, and the message is dropped."""
    stand = monitor()
    for stray in (replace(stand.request(Q, 1), ring=stand.ring.ring + 1), replace(stand.request(Q, 1), to=stand.ring.id.inc + 1)):
        stand.say(Q, stray)
    assert stand.to(Q, m.LeaseAck) == []
    assert stand.ring.counts["stray"] == 2


# Pauses (D6) and the entry guard (5).


def test_who_overslept_reads_the_socket_first() -> None:
    """D6, ring 5.1 (session timer, 2): more than T_l/16 late and not acked, it first waits ``drain`` for what is in the socket."""
    stand = monitor()
    pair = stand.pair(Q)
    stand.host.pause(T_L + 0.2)
    assert [event.seconds for event in stand.host.events(Overslept)] == [pytest.approx(0.2)]
    assert pair.susp is None
    stand.say(Q, stand.ack(Q, pair.n))
    stand.host.pass_time(stand.ring.config.drain)
    assert pair.susp is None
    assert stand.host.events(Suspicion) == []


def test_after_the_drain_silence_counts() -> None:
    """D6, D28: still nothing after ``drain``: suspected, nominally at the session's end, stopped acking only now."""
    stand = monitor()
    ends = stand.pair(Q).s + T_L
    stand.host.pause(T_L + 0.2)
    stand.host.pass_time(stand.ring.config.drain)
    (suspicion,) = stand.host.events(Suspicion)
    assert suspicion.at == ends
    assert suspicion.stop == pytest.approx(ends + 0.2 + stand.ring.config.drain)


def test_a_little_lateness_is_no_excuse() -> None:
    """D6: up to T_l/16 late, the silence is the peer's."""
    stand = monitor()
    stand.host.pause(T_L + stand.ring.config.oversleep - 0.001)
    assert len(stand.host.events(Suspicion)) == 1


def test_without_the_drain_a_stall_accuses_the_healthy() -> None:
    """D6 switched off: the same stall of 0.2 s, and the peer whose answer waits in the socket is suspected."""
    stand = monitor(rules=Rules(drain=False))
    stand.host.pause(T_L + 0.2)
    assert len(stand.host.events(Suspicion)) == 1


def test_a_session_that_nobody_renewed_ends_a_lease_later() -> None:
    """Ring 5.1 (session timer, 1): acked, but the timer runs a whole T_l late: the session that never began has run out, too."""
    stand = monitor()
    pair = stand.pair(Q)
    stand.say(Q, stand.ack(Q, pair.n))
    ends = pair.s + T_L
    stand.host.pause(2 * T_L + 0.1)
    (suspicion,) = stand.host.events(Suspicion)
    assert suspicion.at == ends + T_L


def test_too_late_to_ask_anybody() -> None:
    """Ring 5.2 (suspect): now at or after the suspicion + T_a, it departs; the guard says so before the timer does."""
    stand = monitor()
    stand.host.pause(T_L + T_A)
    assert not stand.ring.is_member


ENTRIES: dict[str, Callable[[Stand], object]] = {
    "message": lambda stand: stand.say(Q, stand.request(Q, 9)),
    "stranger": lambda stand: stand.say(SMALL, m.Discover(1, SMALL.id, (), over=False)),
    "call": lambda stand: stand.ring.owns("key"),
    "away": lambda stand: stand.ring.on_away(9.0),
    "leave": lambda stand: stand.ring.leave(),
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_deadline_is_looked_at_first(entry: str) -> None:
    """Ring 5 (entry guard), F9: whatever comes in at or after ``safe_until`` finds a departed node: no ACK, no keys, no view."""
    stand = monitor()
    stand.host.clock = stand.ring.safe_until  # Time passed, and no timer has run yet.
    assert not stand.ring.valid
    stand.host.sent.clear()
    result = ENTRIES[entry](stand)
    assert [event.reason for event in stand.host.events(Departed)] == ["deadline"]
    assert result is None
    assert stand.take(m.LeaseAck) == []
    answers = [message.answer for _, message in stand.take(m.Discovered)]
    assert answers in ([], [m.Answer.NO_MEMBER])


def test_timers_pass_the_guard() -> None:
    """Ring 5 (entry guard): a timer that runs after the deadline finds a departed node."""
    stand = monitor()
    stand.host.pause(stand.ring.safe_until - stand.host.now)
    assert [event.reason for event in stand.host.events(Departed)] == ["deadline"]
    assert stand.host.events(Suspicion) == []


def test_safe_until_is_the_least_of_all_duties() -> None:
    """Ring 5: the minimum over obliged pairs of est + 2 T_l + T_a, or susp + T_a; nothing else bounds a member."""
    assert Stand().ring.safe_until == float("inf")
    stand, peers = crowd()
    stand.live(2 * T_L - STEP, silent=peers[:1])
    pairs = [stand.pair(each) for each in peers]
    assert stand.ring.safe_until == min(pair.est for pair in pairs) + 2 * T_L + T_A
    stand.live(2 * STEP, silent=peers[:1])
    assert pairs[0].susp is not None
    assert stand.ring.safe_until == pairs[0].susp + T_A


def test_a_dormant_pair_bounds_nobody() -> None:
    """Ring 2 (rights and duties): DORMANT is neither obliged nor entitled."""
    stand = Stand()
    stand.say(SMALL, stand.request(SMALL, 1, open=True, peer=SMALL))
    assert stand.pair(SMALL).state is State.DORMANT
    assert stand.ring.safe_until == float("inf")


def test_who_has_left_answers_for_itself_only() -> None:
    """Ring 5.5, 5.1: not a member, so no ACK; a request to the former id is answered with Leave."""
    stand = monitor()
    stand.ring.leave()
    stand.host.sent.clear()
    stand.say(Q, stand.request(Q, 9))
    assert stand.take(m.LeaseAck) == []
    assert len(stand.to(Q, m.Leave)) == 1
