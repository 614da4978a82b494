"""A member that hears too few of its neighbours suspects itself first.  Spec: ring 5.2; docs/decisions.md H162."""

from __future__ import annotations

import pytest

from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.arbitration import DEAF
from holdfast.features.ring.protocol.facts import Suspicion
from holdfast.features.ring.protocol.hearing import LISTEN, TESTS, Hearing
from holdfast.features.ring.protocol.ids import Peer
from tests.features.ring.stand import STEP, T_A, T_L, Stand, crowd, suspecting


def listening(stand: Stand, silent: list[Peer]) -> None:
    """``silent`` do not answer, until one of them is suspected and all tests are over."""
    stand.live(T_L)
    stand.take(m.Arb)
    stand.take(m.Leave)
    while not stand.host.events(Suspicion):
        stand.live(STEP / 4, silent=silent)
    for _ in range(8 * TESTS + 1):
        stand.live(LISTEN * T_A / 8, silent=silent)


@pytest.mark.parametrize("silent, accuses", [(1, True), (3, True), (4, True), (5, False), (6, False)])
def test_who_hears_nobody_suspects_itself(silent: int, accuses: bool) -> None:
    """H162: if five or six of its six neighbours are silent it leaves, says so, and asks no arbitrator. If more answer, they crashed."""
    stand, peers = crowd()
    listening(stand, peers[:silent])
    assert bool(stand.take(m.Arb)) is accuses
    assert stand.ring.is_member is accuses
    assert stand.departures() == ([] if accuses else [DEAF])
    assert bool(stand.take(m.Leave)) is not accuses


def test_who_hears_a_majority_asks_at_once() -> None:
    """H162: one silent neighbour of six, all others as always: nothing is repeated, and the arbitrators are asked with the suspicion."""
    stand, _, _ = suspecting()
    assert stand.take(m.Arb) != []
    assert stand.ring.counts["listened"] == 0


def test_a_slow_neighbour_is_no_deafness() -> None:
    """H162: three of six are silent, and another one was slow a moment ago. It answers now, so the silent ones are accused."""
    stand, peers = crowd()
    stand.live(T_L)
    stand.take(m.Arb)
    slow = peers[3]
    while not stand.host.events(Suspicion):
        stand.live(STEP / 4, silent=[*peers[:3], *([slow] if stand.pair(slow).tries < 3 else [])])
    assert stand.take(m.Arb) == []
    for _ in range(9):
        stand.live(LISTEN * T_A / 8, silent=peers[:3])
    assert stand.take(m.Arb) != []
    assert stand.ring.is_member


@pytest.mark.parametrize(
    "answers, deaf",
    [
        ((0, 0, 0, 5, 5, 5), False),  # a majority, ourselves counted
        ((0, 0, 0, 4, 4, 4), False),
        ((0, 0, 0, 3, 3, 3), True),
        ((0, 0, 0, 0, 5, 5), False),  # four crashed
        ((0, 0, 0, 1, 5, 5), True),  # one lives and is hardly heard
        ((0, 0, 0, 0, 0, 5), True),  # one of six is luck
        ((1, 1, 1, 1, 1, 1), True),
        ((0, 0, 0, 0, 0, 0), True),
    ],
)
def test_what_is_deaf(answers: tuple[int, ...], deaf: bool) -> None:
    """H162: of six repeated requests so many were answered by each of the six neighbours."""
    stand, peers = crowd()
    for each, number in zip(peers, answers, strict=True):
        stand.pair(each).answers = number
    assert Hearing(stand.ring).is_deaf(list(stand.ring.pairs.values())) is deaf


def doubting(silent: int) -> tuple[Stand, list[Peer]]:
    """A member that has just begun to listen: one of its six peers is suspected, ``silent`` of them do not answer."""
    stand, peers = crowd()
    stand.live(T_L)
    while not stand.host.events(Suspicion):
        stand.live(STEP / 4, silent=peers[:silent])
    assert stand.ring.counts["listened"] == 1
    return stand, peers


def test_who_is_late_itself_listens_as_long() -> None:
    """H162: it stood still for T_a / 4 after its first request. The others go out later, and are answered: its four neighbours crashed."""
    stand, peers = doubting(4)
    stand.answer(silent=peers)
    stand.host.pause(LISTEN * T_A)
    for _ in range(8):
        stand.answer(silent=peers[:4])
        stand.host.pass_time(LISTEN * T_A / 8)
    assert stand.ring.counts["listened"] == 1
    assert stand.take(m.Arb) != []
    assert stand.ring.is_member


def test_suspicions_that_come_together_share_two_tests() -> None:
    """H162: six leases run out within one test. The next test is one for all of them, too."""
    stand, _ = doubting(6)
    stand.host.pass_time(LISTEN * T_A * 0.99)
    assert len(stand.host.events(Suspicion)) > 1
    assert stand.ring.is_member
    stand.host.pass_time(LISTEN * T_A)
    assert stand.ring.is_member
    assert stand.ring.counts["listened"] == TESTS
    stand.host.pass_time(LISTEN * T_A * 0.03)
    assert stand.departures() == [DEAF]


def test_a_peer_that_leaves_during_the_test_is_not_counted() -> None:
    """H162: five of six are silent. Four of them say that they leave, so of the two that remain one is heard: that is a majority."""
    stand, peers = doubting(5)
    for each in peers[1:5]:
        stand.say(each, m.Leave(*stand.head(each), "graceful", 0))
    for _ in range(9):
        stand.live(LISTEN * T_A / 8, silent=peers[:5])
    assert stand.ring.is_member
    assert stand.ring.counts["listened"] == 1
    assert stand.take(m.Arb) != []


def test_what_comes_by_others_is_not_heard() -> None:
    """H162, P1: an answer that another neighbour passes on does not count, or a deaf member would hear one request several times."""
    stand, (other, asked, *_) = crowd()
    pair = stand.pair(asked)
    before, ack = pair.answers, stand.ack(asked, pair.n)
    stand.say(other, m.RelayedAck(*stand.head(other), stand.ring.id, ack))
    assert pair.answers == before
    stand.say(asked, ack)
    assert pair.answers == before + 1


@pytest.mark.parametrize("what", ["a retry", "an old retry", "no request", "no answer yet"])
def test_what_makes_a_peer_unheard(what: str) -> None:
    """H162: two sessions answered at the first try, and a request of its own since then; anything less may be luck and needs a test."""
    stand, peers = crowd()
    stand.live(2 * T_L + STEP)
    pair = stand.pair(peers[0])
    assert pair.acked
    assert pair.is_heard(stand.host.now - T_L)
    if what == "a retry":
        pair.tries = 2
    elif what == "an old retry":
        pair.easy = False
    elif what == "no request":
        pair.asked_at -= T_L
    else:
        pair.acked = False
    assert not pair.is_heard(stand.host.now - T_L)
