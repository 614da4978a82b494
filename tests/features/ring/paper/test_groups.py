"""Arbitrator groups and how they change: paper 000, section IV, Equation 1, Figure 4; spec ring 5.3, 5.8, D7, D11, D14, D16, D17."""

from __future__ import annotations

from itertools import combinations

import pytest

from holdfast.events import Event
from holdfast.features.ring.lab.rings import Rings
from holdfast.features.ring.lab.watch import DELAY, Stage
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import GroupProposed, Suspicion, Won
from holdfast.features.ring.protocol.ids import Peer, RingId, nearest
from holdfast.features.ring.protocol.pair import Pair, State
from holdfast.features.ring.protocol.rules import Rules
from holdfast.kit.phase import Quorum, joint, weighted
from tests.features.ring.stand import STEP, T_A, T_ARB, T_L, Stand, crowd, peer

K1 = RingConfig(k=1)
LOW, Q, N = peer("o", 500), peer("q", 2000), peer("n", 800)  # predecessor, successor, and who will come between o and us


def opener(rules: Rules | None = None) -> Stand:
    """P between o and q, k = 1; P opened the pair with q and o opened the one with P. The group of (P, q) is {o, P, q}."""
    stand = Stand(config=K1, rules=rules)
    stand.responds_to(LOW, [stand.ring.me])
    stand.opens(Q, [stand.ring.me])
    stand.live(STEP)
    assert stand.pair(Q).cfg == {LOW.id, stand.ring.id, Q.id}
    stand.host.sent.clear()
    return stand


def changed(rules: Rules | None = None) -> Stand:
    """The same after n came between o and P: P's neighbours are n and q now, and the group of (P, q) is to be {n, P, q}."""
    stand = opener(rules)
    stand.views[N.id] = (stand.ring.me,)
    stand.say(N, stand.request(N, 1, open=True, peer=N))
    stand.say(N, stand.request(N, 2, ready=True, peer=N))
    return stand


def after(stand: Stand) -> frozenset[RingId]:
    return frozenset({N.id, stand.ring.id, Q.id})


# IV-A: Equation 1.


def groups_of(rings: Rings) -> list[tuple[int, Pair, Pair, frozenset[RingId]]]:
    """Every pair from both sides, how many places apart the two are, and the group that Equation 1 gives for it."""
    ids = sorted(ring.id for ring in rings.alive)
    by_id = {ring.id: ring for ring in rings.alive}
    found = []
    for one in ids:
        for other in by_id[one].pairs:
            k = by_id[one].config.k
            apart = (ids.index(other) - ids.index(one)) % len(ids)
            formula = frozenset((one, other, *nearest(ids, one, k), *nearest(ids, other, k)))
            found.append((min(apart, len(ids) - apart), by_id[one].pairs[other], by_id[other].pairs[one], formula))
    return found


@pytest.mark.parametrize("crashes", [0, 1, 3], ids=["calm", "one crash", "three crashes"])
def test_equation_1(crashes: int) -> None:
    """Equation 1: A_PQ = A_QP = P + N_P + Q + N_Q, on both sides of every pair, of 2 + 2k to 1 + 3k members (VII-C), also after repair."""
    rings = Rings(3, RingConfig(k=3))
    rings.form([f"n{i}" for i in range(20)])
    for number in range(crashes):
        rings.world.at(2.0, lambda name=f"n{number}": rings.world.crash(name))  # type: ignore[misc]
    rings.world.run(15.0)
    found = groups_of(rings)
    assert len(found) == (20 - crashes) * 6
    for apart, mine, theirs, formula in found:
        assert mine.state is State.ACTIVE
        assert mine.cfg == theirs.cfg == formula
        assert mine.ver == theirs.ver
        assert len(formula) == 2 + 2 * 3 + apart - 1


# IV-B: the upgrade, as we do it (D14).


def test_only_the_opener_proposes() -> None:
    """D7: o opened its pair with us, so the change of our neighbourhood is proposed for (P, q) and not for (o, P)."""
    stand = changed()
    assert [(event.peer, event.ver, event.size) for event in stand.host.events(GroupProposed)] == [(Q.id, 2, 3)]
    assert stand.told(m.ArbUpgrd) == ["q"]


def test_the_proposal_is_explicit_and_rides_on_every_lease_message() -> None:
    """IV-B phases 1 and 2, Figure 4 (#2, #3): said once as ArbUpgrd, and with every LR and ACK until it is confirmed."""
    stand = changed()
    ((_, upgrade),) = stand.take(m.ArbUpgrd)
    assert (upgrade.ver, frozenset(upgrade.cfg)) == (2, after(stand))
    assert upgrade.peers == (N,)  # where the new arbitrator is
    stand.say(Q, stand.request(Q, 77, ver=1))
    (ack,) = stand.to(Q, m.LeaseAck)
    assert (ack.ver, frozenset(ack.cfg)) == (2, after(stand))
    stand.host.pass_time(T_L)
    request = stand.to(Q, m.LeaseRequest)[-1]
    assert (request.ver, frozenset(request.cfg)) == (2, after(stand))


@pytest.mark.parametrize("how", ["ArbUpgrdAck", "ACK", "LR"])
def test_any_word_of_the_responder_confirms(how: str) -> None:
    """Ring 3, 5.3 (on ArbUpgrdAck): the version counts, whichever message brings it; then nothing is proposed any more."""
    stand = changed()
    pair = stand.pair(Q)
    if how == "ArbUpgrdAck":
        stand.say(Q, m.ArbUpgrdAck(*stand.head(Q), pair.epoch, 2))
    elif how == "ACK":
        stand.say(Q, stand.ack(Q, pair.n, ver=2))
    else:
        stand.say(Q, stand.request(Q, 9, ver=2))
    assert (pair.ver, pair.cfg, pair.next) == (2, after(stand), None)


@pytest.mark.parametrize("ver", [1, 3], ids=["old", "made up"])
def test_other_versions_confirm_nothing(ver: int) -> None:
    """Ring 5.3 (on ArbUpgrdAck): only the version that was proposed."""
    stand = changed()
    stand.say(Q, m.ArbUpgrdAck(*stand.head(Q), 1, ver))
    assert stand.pair(Q).next is not None
    assert stand.pair(Q).ver == 1


def responder() -> tuple[Stand, Pair, tuple[RingId, ...]]:
    """We are Q: o opened the pair with us and may propose; and the group that it will. We know where n is, not that it is a member."""
    stand = Stand(config=K1)
    stand.ring.meet(N)
    pair = stand.responds_to(LOW, [stand.ring.me])
    return stand, pair, tuple(sorted((LOW.id, stand.ring.id, N.id)))


def test_the_responder_takes_the_next_version() -> None:
    """Ring 5.3 (on ArbUpgrd): ver = own ver + 1 is adopted and acknowledged."""
    stand, pair, group = responder()
    stand.say(LOW, m.ArbUpgrd(*stand.head(LOW), 1, 2, group))
    assert (pair.ver, pair.cfg) == (2, frozenset(group))
    assert [ack.ver for ack in stand.to(LOW, m.ArbUpgrdAck)] == [2]


def test_the_responder_answers_an_old_version_with_its_own() -> None:
    """Ring 5.3 (on ArbUpgrd): ver <= own ver: the answer may have been lost, so it is given again; nothing changes."""
    stand, pair, group = responder()
    for _ in range(2):
        stand.say(LOW, m.ArbUpgrd(*stand.head(LOW), 1, 2, group))
    stand.say(LOW, m.ArbUpgrd(*stand.head(LOW), 1, 1, (LOW.id, stand.ring.id)))
    assert (pair.ver, pair.cfg) == (2, frozenset(group))
    assert [ack.ver for ack in stand.to(LOW, m.ArbUpgrdAck)] == [2, 2, 2]


def test_the_responder_skips_no_version() -> None:
    """Ring 5.3: a version beyond the next one is neither taken nor acknowledged."""
    stand, pair, group = responder()
    before = pair.cfg
    stand.say(LOW, m.ArbUpgrd(*stand.head(LOW), 1, 3, group))
    assert (pair.ver, pair.cfg) == (1, before)
    assert stand.to(LOW, m.ArbUpgrdAck) == []


def test_the_responder_takes_it_from_a_lease_request() -> None:
    """IV-B phase 2: if ArbUpgrd was lost, the next LR brings the group."""
    stand, pair, group = responder()
    stand.say(LOW, stand.request(LOW, 3, ver=2, cfg=group))
    assert (pair.ver, pair.cfg) == (2, frozenset(group))


def test_a_group_without_one_of_the_two_is_none() -> None:
    """Equation 1: P and Q are in their own group; what leaves one of them out is dropped."""
    stand, pair, group = responder()
    for missing in (LOW.id, stand.ring.id):
        stand.say(LOW, m.ArbUpgrd(*stand.head(LOW), 1, 2, tuple(each for each in group if each != missing)))
    assert pair.ver == 1


def test_a_group_is_taken_when_all_of_it_can_be_asked() -> None:
    """D14 (0 stranded): who cannot address a new arbitrator would lose its vote, so it waits for a message that says where everybody is."""
    stand = Stand(config=K1)
    pair = stand.responds_to(LOW, [stand.ring.me])
    group = tuple(sorted((LOW.id, stand.ring.id, N.id)))
    stand.say(LOW, m.ArbUpgrd(*stand.head(LOW), 1, 2, group))
    assert pair.ver == 1
    stand.views[LOW.id] = (N, stand.ring.me)
    stand.say(LOW, stand.request(LOW, 3, ver=2, cfg=group))
    assert (pair.ver, pair.cfg) == (2, frozenset(group))


def test_the_crash_of_an_opener_strands_nobody() -> None:
    """D14 (a): n03 proposes a group with a newcomer that n04 has not heard of, and crashes when n04 was told. n04 is healthy and stays."""
    stage = Stage(K1, Rules(), 1, size=6, late={"n20": 2.5})
    stage.run(2.0)
    stage.world.network.lose_if(lambda source, target, message: target == "n04" and not isinstance(message, m.OfRing))

    def crash(event: Event) -> None:
        stage.world.at(stage.now + 1.5 * DELAY, lambda: stage.world.crash("n03"))

    stage.when(GroupProposed, "n03", crash)
    stage.start("n20")
    stage.run(6.0)
    assert stage.watch.departed == []


def test_a_suspected_pair_changes_no_more() -> None:
    """D3, ring 5.3 (on ArbUpgrd: not suspected): what was asked with one group is decided with it."""
    stand, peers = crowd()
    silent = peers[0]
    while stand.pair(silent).susp is None:
        stand.live(STEP, silent=[silent])
    pair, before = stand.pair(silent), stand.pair(silent).cfg
    stand.say(silent, m.ArbUpgrd(*stand.head(silent), 1, pair.ver + 1, (silent.id, stand.ring.id)))
    assert pair.cfg == before


def suspect(stand: Stand, whom: Peer) -> Pair:
    """Let the lease on this peer run out; everybody else answers, and nobody takes a new group."""
    pair = stand.pair(whom)
    while pair.susp is None:
        stand.host.pass_time(STEP)
        stand.answer(silent=[whom], upgrades=False)
    return pair


def test_while_it_is_open_the_opener_needs_both_majorities() -> None:
    """D14, ring 5.3: with {o P q} and {n P q}, P and n are a majority of the new group only, P and o of the old only; all three win."""
    stand = changed(Rules(deaf=False))  # the group is asked at once
    suspect(stand, Q)
    assert set(stand.told(m.Arb)) == {"n", "o", "q"}
    stand.host.pass_time(T_A / 4)
    stand.vote(yes=[N])
    assert stand.host.events(Won) == []
    stand.vote(yes=[LOW])
    assert len(stand.host.events(Won)) == 1


def test_the_responder_needs_its_own_group_only() -> None:
    """Ring 5.3: a majority of what it holds. Its only neighbour is silent, so the rule of H162 would end it first."""
    stand, pair, group = responder()
    stand.ring.rules = Rules(deaf=False)
    stand.say(LOW, m.ArbUpgrd(*stand.head(LOW), 1, 2, group))
    suspect(stand, LOW)
    assert pair.cfg == frozenset(group)
    stand.vote(yes=[N])
    assert len(stand.host.events(Won)) == 1


SHAPES = {
    "one replaced": ("abcd", "bcde"),
    "all others replaced": ("abc", "abxy"),
    "grown": ("abc", "abcde"),
    "shrunk": ("abcde", "abc"),
    "two": ("ab", "abc"),
    "odd to even": ("abcde", "abcx"),
    "smallest replaced": ("abcd", "0bcd"),
}


def winning(quorum: Quorum[str], voters: str) -> list[frozenset[str]]:
    sets = [frozenset(chosen) for size in range(len(voters) + 1) for chosen in combinations(voters, size)]
    return [each for each in sets if quorum.enough(each)]


@pytest.mark.parametrize("shape", SHAPES)
def test_any_two_winning_sets_share_an_arbitrator(shape: str) -> None:
    """D14, ring 5.3: opener and responder in (v, v), (v + v', v), (v + v', v') or (v', v'): two winning sets always meet."""
    old, new = SHAPES[shape]
    everybody = "".join(sorted(set(old + new)))
    v, w = weighted(old), weighted(new)
    for mine, theirs in ((v, v), (joint(v, w), v), (joint(v, w), w), (w, w)):
        assert all(a & b for a in winning(mine, everybody) for b in winning(theirs, everybody))


@pytest.mark.parametrize("shape", ["one replaced", "all others replaced", "smallest replaced"])
def test_switching_at_once_lets_both_win(shape: str) -> None:
    """D14 switched off: the new group alone against the old one: two winning sets without a common arbitrator exist."""
    old, new = SHAPES[shape]
    assert any(not a & b for a in winning(weighted(new), new) for b in winning(weighted(old), old))


def test_groups_heal_with_the_decision() -> None:
    """D17: the condemned is out of the groups that are proposed at once, one round trip after the decision and not after ``wait``."""
    stand, peers = crowd()
    silent = peers[0]
    while stand.pair(silent).susp is None:
        stand.live(STEP, silent=[silent])
    stand.vote(yes=peers[1:4])
    assert silent.id in stand.ring.list
    proposed = [frozenset(message.cfg) for _, message in stand.take(m.ArbUpgrd)]
    assert len(proposed) == 3  # We opened three pairs.
    assert not any(silent.id in group for group in proposed)


# Dissolution (D11).


def unwanted() -> Stand:
    """P opened a pair with q; then r came closer, and neither P nor q wants the other any more. P is dissolving."""
    stand = opener()
    r = peer("r", 1500)
    stand.opens(r, [stand.ring.me, Q])
    stand.say(Q, stand.ack(Q, stand.pair(Q).n, want=False))
    stand.say(Q, stand.request(Q, 50, want=False))
    return stand


def test_a_pair_that_nobody_wants_is_dissolved_by_its_opener() -> None:
    """D11, ring 5.3 (regroup): the opener gives up its right first: HALF, still obliged, and says Dissolve."""
    stand = unwanted()
    pair = stand.pair(Q)
    assert (pair.closing, pair.state, pair.obliged, pair.entitled) == (True, State.HALF, True, False)
    assert [message.epoch for message in stand.to(Q, m.Dissolve)] == [pair.epoch]


def test_dissolve_is_said_until_it_is_answered() -> None:
    """Ring 3: every r T_l; Dissolved ends the duty as well."""
    stand = unwanted()
    stand.to(Q, m.Dissolve)
    for _ in range(2):
        stand.live(T_L / 8)
        assert len(stand.to(Q, m.Dissolve)) == 1
    stand.say(Q, m.Dissolved(*stand.head(Q), stand.pair(Q).epoch))
    assert Q.id not in stand.ring.pairs
    stand.live(T_L)
    assert stand.to(Q, m.Dissolve) == []
    assert stand.departures() == []


def test_dissolved_without_a_question_is_no_answer() -> None:
    """Ring 5.3 (on Dissolved: closing): a stray one does not free anybody of a duty while the other side is entitled."""
    stand = opener()
    stand.say(Q, m.Dissolved(*stand.head(Q), stand.pair(Q).epoch))
    assert stand.pair(Q).state is State.ACTIVE


def test_a_dormant_responder_takes_no_group() -> None:
    """Ring 5.3 (on ArbUpgrd: not DORMANT): nothing was agreed on yet, so nothing is upgraded or confirmed."""
    stand = Stand(config=K1)
    stand.say(LOW, stand.request(LOW, 1, open=True, peer=LOW))
    before = stand.pair(LOW).cfg
    for ver in (1, 2):
        stand.say(LOW, m.ArbUpgrd(*stand.head(LOW), 1, ver, (LOW.id, stand.ring.id)))
    assert (stand.pair(LOW).ver, stand.pair(LOW).cfg) == (1, before)
    assert stand.to(LOW, m.ArbUpgrdAck) == []


def test_one_side_that_wants_it_keeps_a_pair() -> None:
    """Ring 5.3, D18: a pair exists while either side wants it."""
    stand = opener()
    stand.opens(peer("r", 1500), [stand.ring.me, Q])
    stand.say(Q, stand.request(Q, 50, want=True))
    assert not stand.pair(Q).closing


def test_the_responder_drops_both_and_says_so() -> None:
    """Ring 5.3 (on Dissolve): same epoch, responder, not suspected: gone, and answered; again it is answered, nothing else."""
    stand, _, _ = responder()
    stand.say(LOW, m.Dissolve(*stand.head(LOW), 1))
    assert LOW.id not in stand.ring.pairs
    stand.say(LOW, m.Dissolve(*stand.head(LOW), 1))
    assert [message.epoch for message in stand.to(LOW, m.Dissolved)] == [1, 1]


def test_a_dissolved_instance_never_comes_back() -> None:
    """Ring 5.3, 2 (epochs): the epoch is burnt; a delayed request to open it is refused."""
    stand = Stand(config=K1)
    stand.say(LOW, m.Dissolve(*stand.head(LOW), 4))
    assert [message.epoch for message in stand.to(LOW, m.Dissolved)] == [4]
    stand.say(LOW, stand.request(LOW, 1, epoch=4, open=True, peer=LOW))
    assert LOW.id not in stand.ring.pairs


def test_who_suspects_does_not_dissolve() -> None:
    """Ring 5.3 (on Dissolve: not suspected), D3: the responder has asked its arbitrators and may win; it must not lose its right now."""
    stand, peers = crowd()
    silent = peers[0]
    while stand.pair(silent).susp is None:
        stand.live(STEP, silent=[silent])
    stand.say(silent, m.Dissolve(*stand.head(silent), 1))
    assert stand.to(silent, m.Dissolved) == []
    assert silent.id in stand.ring.pairs


def test_the_condemned_are_not_released() -> None:
    """Ring 5.3 (on Dissolve: not condemned): a loser must not be told that it is free."""
    stand, peers = crowd()
    silent = peers[0]
    while stand.pair(silent).susp is None:
        stand.live(STEP, silent=[silent])
    stand.vote(yes=peers[1:4])
    stand.say(silent, m.Dissolve(*stand.head(silent), 1))
    assert stand.to(silent, m.Dissolved) == []


def test_a_lease_that_expires_while_closing_is_arbitrated() -> None:
    """Ring 5.3 (last rule): closing, but not answered: it must win its stay like any other, and condemns nobody by it."""
    stand = unwanted()
    stand.ring.rules = Rules(deaf=False)  # the group is asked at once
    r = stand.ring.list.peer(RingId(1500, 1))
    assert r is not None
    suspect(stand, Q)
    assert [event.entitled for event in stand.host.events(Suspicion)] == [False]
    stand.vote(yes=[LOW, r])
    assert [event.entitled for event in stand.host.events(Won)] == [False]
    assert stand.ring.condemned == {}


# 5.8: the paper's own two phases, in the laboratory.

PROPOSAL = Rules(upgrade="proposal")


def test_the_old_group_is_asked_first() -> None:
    """IV-B, phase 1: Propose(ver, Q) goes to the current group, and nothing is upgraded before a majority of it has accepted."""
    stand = changed(PROPOSAL)
    assert stand.told(m.ArbUpgrd) == []
    proposals = [message for _, message in stand.take(m.Propose)]
    assert {(message.peer, message.ver) for message in proposals} == {(Q.id, 2)}
    stand.say(LOW, m.Proposed(*stand.head(LOW), proposals[0].serial, accept=True))
    assert stand.told(m.ArbUpgrd) == ["q"]


def test_a_majority_of_rejects_aborts() -> None:
    """IV-B, outcome 2: P aborts, keeps its group, and tries again later."""
    stand = changed(PROPOSAL)
    proposals = [message for _, message in stand.take(m.Propose)]
    for voter in (LOW, Q):
        stand.say(voter, m.Proposed(*stand.head(voter), proposals[0].serial, accept=False))
    pair = stand.pair(Q)
    assert (pair.ver, pair.next) == (1, None)
    stand.live(T_L)
    assert stand.told(m.Propose) != []


def test_a_majority_of_timeouts_is_tried_again() -> None:
    """IV-B, outcome 1: the paper makes P leave; we retry (D14 e, 5.8)."""
    stand = changed(PROPOSAL)
    stand.live(2 * T_L)
    assert stand.departures() == []
    assert stand.pair(Q).cfg != after(stand)


def propose(stand: Stand, proposer: Peer, about: Peer, ver: int = 2) -> bool:
    stand.say(proposer, m.Propose(stand.ring.ring, proposer.id, 0, 1, about.id, 1, ver))
    (answer,) = stand.to(proposer, m.Proposed)
    return answer.accept


A, B = peer("a", 100), peer("b", 200)


def test_an_arbitrator_accepts_and_remembers() -> None:
    """IV-B, modified arbitration policy: without anything against it, the version is stored and accepted; the same one again, too."""
    stand = Stand(rules=PROPOSAL)
    assert propose(stand, A, B)
    assert propose(stand, A, B)


def test_an_arbitrator_rejects_after_the_peers_arbitration() -> None:
    """IV-B: it has seen Arb(Q -> P), so P's proposal is rejected."""
    stand = Stand(rules=PROPOSAL)
    assert stand.arb(B, A)
    assert not propose(stand, A, B)


def test_an_arbitrator_rejects_after_the_peers_proposal() -> None:
    """IV-B: it has seen Propose(Q*, P) within T_arb, so P's is rejected; after T_arb it is not."""
    stand = Stand(rules=PROPOSAL)
    assert propose(stand, B, A)
    assert not propose(stand, A, B)
    stand.host.pass_time(T_ARB + 0.01)
    assert propose(stand, A, B)


def test_stale_requests_are_rejected() -> None:
    """IV-B, handling the stale group: version 2 was promised to P, so Q's request with version 1 is rejected, with 2 accepted. P's own
    old version is never stale (5.8)."""
    stand = Stand(rules=PROPOSAL)
    assert propose(stand, A, B)
    assert not stand.arb(B, A, ver=1)
    assert stand.arb(A, B, ver=1)
    fresh = Stand(rules=PROPOSAL)
    assert propose(fresh, A, B)
    assert fresh.arb(B, A, ver=2)
