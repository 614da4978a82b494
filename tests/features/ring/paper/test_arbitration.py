"""Suspicion, arbitration, declaration: paper 000, sections III.2 to III.4, Rule 2, Algorithm 1.

Spec: ring 5 (quorum), 5.2, D3, D4, D5, D12, D16, D22, D25, D26, D28.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.events import Decided, Failed, Left, Suspected
from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.arbitration import VOTES_MAX
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Lost, Removed, Suspicion, Won
from holdfast.features.ring.protocol.ids import CIRCLE, Peer, RingId
from holdfast.features.ring.protocol.pair import State
from holdfast.features.ring.protocol.rules import Rules
from holdfast.host import MemberStatus
from holdfast.kit.phase import weighted
from tests.features.ring.stand import STEP, T_A, T_ARB, T_L, Stand, crowd, peer, suspecting

P, Q, R = peer("p", 100), peer("q", 2000), peer("r", 3000)


def names(*peers: Peer) -> list[str]:
    return sorted(each.node.name for each in peers)


# Rule 2 and III.4: the accuser.


def test_the_request_goes_out_at_once_and_to_the_whole_group() -> None:
    """Rule 2, ring 5.2 (suspect): immediately Arb(P -> Q) to every arbitrator, the accused among them; the own vote needs no message."""
    stand, silent, others = suspecting()
    asked = [sent.message for sent in stand.host.sent if isinstance(sent.message, m.Arb)]
    assert {(message.source, message.accused, message.epoch) for message in asked} == {(stand.ring.id, silent.id, 1)}
    assert stand.told(m.Arb) == names(silent, *others)
    assert stand.ring.counts["arb_addressed"] == 7
    assert [event.member.id for event in stand.host.events(Suspected)] == [silent.node]


def test_only_the_silent_are_asked_again() -> None:
    """Ring 5.2: Arb again every T_a/4, to those who have not voted."""
    stand, silent, others = suspecting()
    stand.vote(yes=others[:1], no=others[1:2])
    stand.take(m.Arb)
    stand.host.pass_time(T_A / 4)
    assert stand.told(m.Arb) == names(silent, *others[2:])


def test_without_answers_it_leaves_after_t_a() -> None:
    """Rule 2: no response within T_a, and P leaves voluntarily."""
    stand, silent, _ = suspecting()
    susp = stand.pair(silent).susp
    assert susp is not None
    stand.live(susp + T_A - stand.host.now - 0.001, silent=[silent])
    assert stand.departures() == []
    stand.live(0.001, silent=[silent])
    assert len(stand.departures()) == 1
    assert stand.host.now == pytest.approx(susp + T_A)


def test_a_majority_of_accepts_wins_at_once() -> None:
    """III.4, D4: P marks Q failed at the quorum (4 of 7), without waiting for the others or for T_a."""
    stand, silent, others = suspecting()
    stand.vote(yes=others[:2])
    assert stand.host.events(Won) == []
    stand.vote(yes=others[2:3])
    (won,) = stand.host.events(Won)
    assert (won.peer, won.entitled) == (silent.id, True)


def test_a_quorum_that_became_impossible_loses_at_once() -> None:
    """III.4, D4: with 4 of 7 against, no quorum can come, and P leaves without waiting."""
    stand, silent, others = suspecting()
    stand.vote(no=others[:3])
    assert stand.ring.is_member
    stand.vote(no=others[3:4])
    assert stand.departures() == ["rejected"]
    assert [(event.peer, event.why) for event in stand.host.events(Lost)] == [(silent.id, "rejected")]


def test_reject_and_timeout_together_lose() -> None:
    """III.4: a majority that is (reject or timeout) makes P leave: 3 accepts, 1 reject, 3 silent."""
    stand, silent, others = suspecting()
    stand.vote(yes=others[:2], no=others[2:3])
    stand.live(T_A, silent=[silent])
    assert not stand.ring.is_member


def test_a_vote_counts_once_and_the_first_stands() -> None:
    """Ring 5.2 (on Vote): one arbitrator saying yes four times is one vote, and it cannot change it."""
    stand, _, others = suspecting()
    for _ in range(4):
        stand.vote(yes=others[:1])
    stand.vote(no=others[:1])
    stand.vote(yes=others[1:2])
    assert stand.host.events(Won) == []
    stand.vote(yes=others[2:3])
    assert len(stand.host.events(Won)) == 1


def test_strangers_do_not_vote() -> None:
    """Ring 5.2 (on Vote): only whoever is in the pair's group counts."""
    stand, _, others = suspecting()
    stand.vote(yes=others[:2])
    stand.vote(yes=[peer(f"x{i}", 5000 + i) for i in range(4)])
    assert stand.host.events(Won) == []


def test_late_votes_change_nothing() -> None:
    """D3, D4: after the decision every further answer is dropped."""
    stand, _, others = suspecting()
    stand.vote(yes=others[:3])
    stand.vote(no=others[3:])
    assert stand.ring.is_member
    assert len(stand.host.events(Won)) == 1


# quorum (5), D4, D5.


@pytest.mark.parametrize(
    "size,yes,wins",
    [(7, "abcd", True), (7, "abc", False), (8, "abcde", True), (8, "bcde", False), (8, "abcd", True), (2, "a", True), (2, "b", False)],
    ids=["4 of 7", "3 of 7", "5 of 8", "half without the smallest", "half with the smallest", "smaller of 2", "larger of 2"],
)
def test_quorum(size: int, yes: str, wins: bool) -> None:
    """Ring 5 (quorum), D4, D5: more than half; in an even group the smallest id counts twice, so exactly half without it has lost."""
    group = [RingId(ord(name), 1) for name in "abcdefgh"[:size]]
    assert weighted(group).enough({RingId(ord(name), 1) for name in yes}) is wins


@pytest.mark.parametrize("crashed,left", [("n1", 1), ("n0", 0)], ids=["larger", "smaller"])
def test_two_members(crashed: str, left: int) -> None:
    """D5: a ring of two survives the crash of its larger id; if the smaller one crashes, the other leaves."""
    rings = Rings(1, RingConfig(k=3), configure=_placed)
    rings.form(["n0", "n1"])
    rings.world.at(1.5, lambda: rings.world.crash(crashed))
    rings.world.run(8.0)
    assert rings.size == left


def _placed(name: str, config: RingConfig) -> RingConfig:
    return replace(config, position=int(name[1:]) * (CIRCLE // 8))


# Algorithm 1 as members execute it.


def test_first_come_first_served() -> None:
    """Algorithm 1, lines 9-11: neither is listed, so the first accuser is accepted, and its accused is listed."""
    stand = Stand()
    assert stand.arb(P, Q)


def test_the_listed_accuser_is_rejected() -> None:
    """Algorithm 1, lines 5-6: Q was accused first, so Q's own request about the same pair is rejected."""
    stand = Stand()
    assert stand.arb(P, Q)
    assert not stand.arb(Q, P, serial=2)


def test_the_same_request_gets_the_same_answer() -> None:
    """Algorithm 1, lines 7-8; ring 5.2: Q is listed already, P is accepted again: duplicates are harmless, for the loser too."""
    stand = Stand()
    assert [stand.arb(P, Q) for _ in range(3)] == [True, True, True]
    assert [stand.arb(Q, P) for _ in range(3)] == [False, False, False]


def test_a_young_arbitrator_decides() -> None:
    """Algorithm 1, lines 2-4, dropped in DA (D12): a member accepts in the very instant it became one."""
    stand = Stand()
    assert stand.host.now == stand.ring.since
    assert stand.arb(P, Q)


def test_the_start_up_rule_for_comparison() -> None:
    """D12 switched off: with Algorithm 1's rule a member rejects everything until it has been up for T_arb."""
    stand = Stand(rules=Rules(start_up=True))
    stand.host.pass_time(T_ARB - 0.01)
    assert not stand.arb(P, Q)
    stand.host.pass_time(0.01)
    assert stand.arb(P, R)


def test_votes_are_per_pair_and_epoch() -> None:
    """D16: another pair, or the same pair reopened, starts clean."""
    stand = Stand()
    assert stand.arb(P, Q)
    assert stand.arb(Q, R)
    assert stand.arb(Q, P, epoch=2)
    assert not stand.arb(Q, P, epoch=1)


def test_the_accused_votes_like_everybody_else() -> None:
    """D26: asked about itself, it accepts the first accuser."""
    stand = Stand()
    me = stand.ring.me
    assert stand.arb(P, me)


def test_a_vote_for_oneself_comes_first() -> None:
    """D26, ring 5.2: who has accused has given its own vote to itself, so the other side is rejected."""
    stand, silent, _ = suspecting()
    me = stand.ring.me
    assert not stand.arb(silent, me)


def test_decisions_are_kept_for_vote_ttl() -> None:
    """Corollary 2: what is older than T_arb is not asked about any more; kept twice the waiting time all the same (4, vote_ttl)."""
    stand = Stand()
    assert stand.arb(P, Q)
    stand.host.pass_time(stand.ring.config.vote_ttl)
    assert not stand.arb(Q, P)
    stand.host.pass_time(2 * T_L)
    assert stand.ring.arbitration.votes == {}
    assert stand.arb(Q, P)
    assert stand.ring.config.vote_ttl > T_ARB


@pytest.mark.parametrize("kept", [True, False], ids=["on", "off"])
def test_the_tombstoned_win_nothing(kept: bool) -> None:
    """D25: an accuser that is gone is rejected even when all votes are forgotten; without the rule the zombie is accepted."""
    stand = Stand(rules=Rules(old_accusers=kept))
    stand.responds_to(P)
    stand.say(P, m.Leave(*stand.head(P), "graceful", 0))
    stand.host.pass_time(2 * stand.ring.config.vote_ttl)
    assert stand.arb(P, Q) is not kept
    assert [message.id for message in stand.to(P, m.Gone)] == [P.id]


def test_only_members_vote() -> None:
    """Ring 5.2 (on Arb): a departed process says nothing."""
    stand = Stand()
    stand.ring.leave()
    stand.say(P, m.Arb(stand.ring.ring, P.id, 0, 1, Q.id, 1, 1))
    assert stand.take(m.Vote) == []


def test_the_list_of_votes_has_a_limit() -> None:
    """F17: a table that is full rejects what is new, answers what it knows, and counts."""
    stand = Stand()
    for number in range(VOTES_MAX):
        stand.say(P, m.Arb(stand.ring.ring, P.id, 0, 1, Q.id, number, 1))
    stand.take(m.Vote)
    assert not stand.arb(P, Q, epoch=VOTES_MAX)
    assert stand.arb(P, Q, epoch=0)
    assert stand.ring.counts["votes_full"] == 1


# After the decision.


def test_repair_begins_with_the_decision() -> None:
    """Ring 5.2 (win), D17: the pair is gone, the loser is condemned and no neighbour any more, but listed, and the owner of its keys."""
    stand, silent, others = suspecting()
    stand.vote(yes=others[:3])
    assert silent.id not in stand.ring.pairs
    assert silent.id not in stand.ring.nbrs
    assert silent.id in stand.ring.condemned
    assert silent.id in stand.ring.list
    owner = stand.ring.owner(silent.id.pos)
    assert owner is not None
    assert owner.id == silent.node


def test_recovery_begins_when_the_loser_must_have_left() -> None:
    """Corollary 3, III.4: Q is declared 2 T_l + T_a after P stopped acking, stretched for drift (4, wait), not earlier."""
    stand, silent, others = suspecting()
    stop = stand.pair(silent).stop
    stand.vote(yes=others[:3])
    wait = stand.ring.config.wait
    assert wait == pytest.approx(T_ARB * 1.001 / 0.999 + 0.01)
    stand.live(stop + wait - 0.001 - stand.host.now)
    assert stand.host.events(Removed) == []
    stand.live(0.001)
    (removed,) = stand.host.events(Removed)
    assert (removed.id, removed.certain, removed.reason) == (silent.id, True, "failed")
    (failed,) = stand.host.events(Failed)
    assert (failed.member.id, failed.certain) == (silent.node, True)
    assert silent.id not in stand.ring.list
    assert stand.ring.condemned == {}


@pytest.mark.parametrize("from_stop", [True, False], ids=["on", "off"])
def test_two_suspicion_times(from_stop: bool) -> None:
    """D28: after 0.2 s of oversleep the own duty counts from the nominal time and the declaration from when acking stopped; without
    the rule the declaration comes too early by as much."""
    stand, peers = crowd(rules=Rules(from_stop=from_stop))
    silent, others = peers[0], peers[1:]
    while stand.pair(silent).acked:
        stand.live(STEP, silent=[silent])
    ends = stand.pair(silent).s + T_L
    stand.live(ends - STEP - stand.host.now, silent=[silent])
    stand.host.clock = ends + 0.2
    for each in others:
        stand.say(each, stand.ack(each, stand.pair(each).n))
    stand.host.pass_time(0)
    stand.answer(silent=[silent])
    stand.host.pass_time(stand.ring.config.drain)
    pair = stand.pair(silent)
    assert pair.susp == ends
    assert pair.stop == pytest.approx(ends + 0.2 + stand.ring.config.drain)
    assert stand.ring.safe_until == pair.susp + T_A
    stand.vote(yes=others[:3])
    since = pair.stop if from_stop else ends
    stand.live(since + stand.ring.config.wait - stand.host.now - 0.01)
    assert stand.host.events(Removed) == []
    stand.live(0.02)
    assert len(stand.host.events(Removed)) == 1


def test_who_loses_after_winning_declares_nobody() -> None:
    """Ring 5.2 (declaration): a node that departs after it won never declares."""
    stand, _, others = suspecting()
    stand.vote(yes=others[:3])
    stand.ring.depart("test")
    stand.host.pass_time(2 * stand.ring.config.wait)
    assert stand.host.events(Removed) == []


def test_a_declaration_belongs_to_one_membership() -> None:
    """Ring 5.2 (declaration), D12: out and in again, and the same peer condemned again: what the former id has waited does not count."""
    stand = Stand()
    stops = []
    for _ in range(2):
        stand.opens(Q)  # In a ring of two the own vote is enough for the smaller id (D5).
        while Q.id not in stand.ring.condemned:
            stand.live(STEP, silent=[Q])
        stops.append(stand.ring.condemned[Q.id])
        if len(stops) == 1:
            stand.ring.depart("test")
            stand.ring.lifecycle.stop()
            stand.ring.found()
    stand.live(stops[0] + stand.ring.config.wait + STEP - stand.host.now)
    assert stand.host.events(Removed) == []
    stand.live(stops[1] + stand.ring.config.wait + STEP - stand.host.now)
    assert len(stand.host.events(Removed)) == 1


def test_a_lost_arbitration_removes_nobody() -> None:
    """D22: whoever loses about a peer that is really dead leaves, and the peer stays in the list for its neighbours to judge."""
    stand, silent, others = suspecting()
    stand.vote(no=others[:4])
    assert stand.host.events(Removed) == []
    assert silent.id in stand.ring.list


def test_winning_a_half_pair_says_nothing_about_the_peer() -> None:
    """Ring 5.2 (win), 5.3: an opener that is only obliged wins its stay; the peer is neither condemned nor declared."""
    stand = Stand()
    stand.say(Q, m.Want(*stand.head(Q), (Q,)))
    (request,) = stand.to(Q, m.LeaseRequest)
    stand.say(Q, stand.ack(Q, request.n, cfg=(Q.id, stand.ring.id)))
    pair = stand.pair(Q)
    assert pair.state is State.HALF
    stand.live(T_L - STEP, silent=[Q])
    stand.live(2 * STEP, silent=[Q])
    assert [(event.peer, event.entitled) for event in stand.host.events(Suspicion)] == [(Q.id, False)]
    assert stand.host.events(Suspected) == []
    stand.vote(yes=[Q])
    assert [event.entitled for event in stand.host.events(Won)] == [False]
    assert stand.ring.condemned == {}
    stand.host.pass_time(STEP)
    assert stand.ring.is_member


def test_a_loser_that_speaks_first_is_removed_at_once() -> None:
    """Ring 5.5, D13: Leave of a condemned peer ends the waiting, because it says itself that it is out."""
    stand, silent, others = suspecting()
    stand.vote(yes=others[:3])
    stand.say(silent, m.Leave(*stand.head(silent), "rejected", 7))
    assert [(event.id, event.reason) for event in stand.host.events(Removed)] == [(silent.id, "left")]
    assert [event.member.id for event in stand.host.events(Left)] == [silent.node]
    stand.live(2 * stand.ring.config.wait)
    assert len(stand.host.events(Removed)) == 1


def test_removal_raises_the_generation_and_says_so() -> None:
    """Ring 5.2 (remove), G9: gen becomes larger than any the dead one had, and every ACTIVE peer is told."""
    stand, silent, others = suspecting()
    before = stand.ring.fencing.gen
    stand.pair(silent).pgen = before + 40
    stand.vote(yes=others[:3])
    stand.take(m.Gen)
    stand.live(stand.ring.config.wait)
    assert stand.ring.fencing.gen == before + 41
    assert stand.told(m.Gen) == names(*others)


def test_a_decision_is_early_news() -> None:
    """P4: a win marks the member DECIDED and says so at once; nothing is removed."""
    stand, silent, others = suspecting()
    stand.vote(yes=others[:3])
    assert [event.member.id for event in stand.host.events(Decided)] == [silent.node]
    member = stand.ring.get(silent.node.name)
    assert member is not None
    assert member.status is MemberStatus.DECIDED
