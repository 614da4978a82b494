"""Gossip, the black list and reconciliation of one limiter, and of a few.  Spec: limits 5.3, 5.4, D4, D6, D14, D18, D26; RL1, RL2; F17."""

from __future__ import annotations

import pytest

from holdfast.events import LinkBlacklisted, LinkRestored
from holdfast.features.limits.protocol.blacklist import EXCHANGE, FIRST, RECONCILES_MAX, SECOND, THIRD
from holdfast.features.limits.protocol.config import QUOTA, WEIGHT
from holdfast.features.limits.protocol.facts import WentQuiet, Woke
from holdfast.features.limits.protocol.messages import Gossip, GossipAck, Probe, Reconcile
from holdfast.features.limits.protocol.pushsum import W_KEY
from holdfast.host import Carried, NodeId, ViewId
from tests.features.limits.stand import API, CONFIG, EPOCH, KEY, SERVER, A, B, C, Group, Stand, residue, view_of

INST = ViewId(5, SERVER.name, SERVER.boot)


@pytest.fixture
def stand() -> Stand:
    """In view 5 with two others; it wants 60 by share "demand"."""
    stand = Stand()
    stand.limit(600.0, arrives=60.0, share="demand")
    stand.views.install(view_of(5, (A, B, C)))
    stand.epochs(1)
    return stand


def reconcile(step: int, *, w: int = 0, seq: int = 0, ack: int = 0, q: dict[int, int] | None = None, number: int = 5) -> Reconcile:
    inst = ViewId(number, SERVER.name, SERVER.boot)
    return Reconcile(inst, step, 0, seq, w, {}, ack, 0, 1 if q else 0, q or {}, 0)


# Epochs.


def test_each_epoch_a_few_peers_get_equal_parts(stand: Stand) -> None:
    """Limits 5.3 step 3: w and p are divided by k + 1; two of two here."""
    sums = stand.limiter.sums
    assert sums is not None
    stand.sent(Gossip)
    before, held = sums.w, sums.p[KEY]
    stand.epochs(1)
    told = stand.sent(Gossip)
    assert {to for to, _ in told} == {B, C}
    assert {message.w for _, message in told} == {before // 3}
    assert sums.w == before - 2 * (before // 3)
    assert sums.p[KEY] <= held


def test_a_silent_peer_hears_everything_again(stand: Stand) -> None:
    """D6: every epoch, not at the next random choice, and with what came to it meanwhile."""
    stand.peers_answer = False
    stand.sent(Gossip)
    stand.limiter.pace._demands.epochs = stand.limiter.pace._estimates.epochs = 100  # quiet: nothing new is given
    stand.limiter.sums.spread((B,)) if stand.limiter.sums else None
    seqs = []
    for _ in range(3):
        stand.epochs(1)
        seqs.append({message.seq for to, message in stand.sent(Gossip) if to == B})
    assert all(seqs)
    assert stand.limiter.links.lost(B) >= 3


def test_an_acknowledgement_ends_that(stand: Stand) -> None:
    """Limits 5.3: what is acknowledged is forgotten, and counts as a sign of life."""
    stand.peers_answer = False
    stand.epochs(1)
    assert stand.limiter.sums is not None
    ledger = stand.limiter.sums.ledger(B)
    assert ledger.is_open
    stand.hear(B, GossipAck(INST, ledger.given))
    assert (ledger.acked, ledger.outstanding, stand.limiter.links.lost(B)) == (ledger.given, {}, 0)


def test_every_gossip_is_answered(stand: Stand) -> None:
    """Limits 5.3: the highest taken, in any case: an acknowledgement may have been lost."""
    for _ in range(2):
        stand.gossip(5, B, w=7)
        assert stand.host.take(GossipAck) == [(B, GossipAck(INST, 1))]
    assert stand.count("gossip_past") == 1


def test_gossip_of_an_older_view_is_answered_with_the_newer(stand: Stand) -> None:
    """Limits 5.3, D15: it is not taken; its sender, if it is here too, asks its server."""
    before = stand.limiter.sums.w if stand.limiter.sums else 0
    stand.gossip(4, B, w=7)
    stand.gossip(4, NodeId("z", 1), w=7)
    assert stand.host.take(GossipAck) == [(B, GossipAck(ViewId(4, "s0", 1), 0, INST))]
    assert stand.limiter.sums is not None
    assert stand.limiter.sums.w == before
    stand.hear(B, GossipAck(INST, 0, ViewId(9, "s0", 1)))
    assert stand.views.hurries == 1


def test_without_limits_nothing_is_said() -> None:
    """D26: a group without limits has no gossip and no timer; what is taken is given on."""
    stand = Stand()
    stand.views.install(view_of(5, (A, B, C)))
    stand.epochs(10)
    assert (stand.sent(Gossip), stand.host.timers) == ([], 0)
    stand.gossip(5, B, w=9, p={KEY: 900})
    stand.epochs(1)
    assert {to for to, _ in stand.sent(Gossip)} == {B, C}


def test_no_news_is_quiet_news_wakes() -> None:
    """D26: without changes one peer in every fourth epoch; a demand that changes brings back the full pace at once."""
    group = Group(8)
    group.limit(800.0, arrives=[50.0] * 8, share="demand")
    group.install(5)
    group.run(40.0)
    group.sent.clear()
    group.run(20.0)
    gossips = sum(isinstance(message, Gossip) for _, _, message in group.sent)
    assert 60 <= gossips <= 100  # 8 members, 40 epochs, one in four
    group[0].users[API].arrives = 90.0
    group.sent.clear()
    group.run(1.01)
    assert sum(isinstance(message, Gossip) for source, _, message in group.sent if source == "m00") >= 3


def test_a_step_from_quiet_is_as_quick() -> None:
    """D26: from quiet, others know a step within one epoch of the time that it takes from full pace."""

    def took(pause: float) -> float:
        group = Group(8, seed=4)
        group.limit(800.0, arrives=[50.0] * 8, share="demand")
        group.install(5)
        group.run(pause)
        group[0].users[API].arrives = 350.0
        begun = group.now
        while abs(group[5].of().aggregates[KEY] - 700.0) > 70.0:
            group.run(0.1)
            assert group.now < begun + 30.0
        return group.now - begun

    assert took(40.0) <= took(4.0) + 4 * EPOCH


def test_going_quiet_and_waking_are_facts() -> None:
    """D26: told once each, in the epoch in which it is so: `holdfast watch --internal` says why packets end."""
    group = Group(8)
    group.limit(800.0, arrives=[50.0] * 8, share="demand")
    group.install(5)
    group.run(40.0)
    host = group[0].host
    assert (host.events(WentQuiet), host.events(Woke)) == ([WentQuiet()], [])
    group[0].users[API].arrives = 90.0
    group.run(1.01)
    assert (host.events(WentQuiet), host.events(Woke)) == ([WentQuiet()], [Woke()])


def test_gossip_is_counted_by_what_became_of_it(stand: Stand) -> None:
    """Limits 9: sent, acknowledged, and lost: not acknowledged when the next one went to the same member."""
    before = {what: stand.count(what) for what in ("gossip_sent", "gossip_acked")}
    stand.epochs(3)
    assert [stand.count(what) - before[what] for what in before] == [6, 6]
    assert stand.count("gossip_lost") == 0
    stand.peers_answer = False
    stand.epochs(3)
    assert stand.count("gossip_sent") - before["gossip_sent"] == 12
    assert stand.count("gossip_lost") == 4  # of three to each, the last one may still be answered


# The black list.


def silence(stand: Stand, peer: NodeId = B) -> None:
    """It answers nothing directly; the others answer."""
    stand.silent.add(peer)
    for _ in range(20):
        stand.epochs(1)
        if peer in stand.limiter.links.black:
            return
    raise AssertionError("it was not noticed")


def test_silence_is_a_loss_event(stand: Stand) -> None:
    """Limits 5.3 step 5, paper 003, 6.2.2: after r messages without an answer the link is black-listed, and the overlay settles it."""
    silence(stand)
    ((to, message, _),) = stand.views.carried
    assert isinstance(message, Reconcile)
    assert (to, message.step, message.w > 0) == (B, FIRST, True)
    assert stand.host.events(LinkBlacklisted) == [LinkBlacklisted(B)]
    stand.sent(Gossip)
    stand.epochs(4)
    assert {to for to, _ in stand.sent(Gossip)} == {C}


def test_a_member_that_was_away_accuses_no_link(stand: Stand) -> None:
    """F11: in a late epoch acknowledgements may wait in the socket."""
    for _ in range(6):
        stand.limiter.links.sent(B)
    stand.host.pause(3.0)
    assert stand.limiter.links.black == {}


def test_what_was_stranded_comes_home(stand: Stand) -> None:
    """Limits 5.4: step 1 is answered with 2, 2 with 3, whatever is carried by the same rules; then both sides owe nothing."""
    silence(stand)
    assert stand.limiter.sums is not None
    ledger = stand.limiter.sums.ledger(B)
    stand.views.end(Carried.DELIVERED)
    stand.hear(B, reconcile(SECOND, w=11, seq=1, ack=ledger.given))
    assert (ledger.outstanding, ledger.taken) == ({}, 1)
    ((_, message, _),) = stand.views.carried
    assert isinstance(message, Reconcile)
    assert (message.step, message.ack) == (THIRD, 1)


def test_both_ends_black_list(stand: Stand) -> None:
    """D18: with a cut in one direction only one side may notice; the first step tells the other."""
    stand.hear(B, reconcile(FIRST, w=5, seq=1))
    assert set(stand.limiter.links.black) == {B}
    ((_, message, _),) = stand.views.carried
    assert isinstance(message, Reconcile)
    assert (message.step, message.ack) == (SECOND, 1)


def test_quota_on_a_cut_link_comes_home_too() -> None:
    """Limits 5.4, 5.5: the q-channel of a reconciliation, taken by a member that counts and by no other."""
    stand = Stand()
    stand.limit(600.0, policy="exact", fleet=3)
    stand.views.install(view_of(5, (A, B, C)))
    stand.settle()
    stand.hear(B, reconcile(FIRST, q={KEY: QUOTA // 2}))
    assert stand.q == 1.5
    stand.hear(B, reconcile(FIRST, q={KEY: QUOTA // 2}))
    assert stand.q == 1.5
    stand.gossip(9, C)
    stand.hear(B, reconcile(FIRST, q={KEY: QUOTA // 2}, number=9))
    assert stand.q == 1.0


def test_a_server_that_is_busy_is_asked_again(stand: Stand) -> None:
    """Limits 5.4: BUSY brought nothing; the next epoch tries again. Anything else brings a new view."""
    silence(stand)
    stand.views.end(Carried.BUSY)
    stand.epochs(3)
    assert len([message for _, message, _ in stand.views.carried if isinstance(message, Reconcile)]) == 1


def test_a_link_is_tried_again(stand: Stand) -> None:
    """Limits 5.4: every ``probe`` seconds 1 -> 2 -> 3; who hears 2 or 3 uses the link again."""
    silence(stand)
    stand.pass_time(CONFIG.probe + EPOCH)
    ((to, probe),) = [each for each in stand.sent(Probe) if each[1].step == 1]
    assert to == B
    stand.hear(B, Probe(INST, 2, probe.nonce + 1))  # of an earlier try
    assert B in stand.limiter.links.black
    stand.hear(B, Probe(INST, 2, probe.nonce))
    assert stand.limiter.links.black == {}
    assert stand.host.take(Probe) == [(B, Probe(INST, 3, probe.nonce))]
    assert stand.host.events(LinkRestored) == [LinkRestored(B)]


def test_the_other_end_hears_the_third(stand: Stand) -> None:
    """Limits 5.4: both may try at once; each counts the number that it gave out or answered."""
    silence(stand)
    stand.hear(B, Probe(INST, 1, 77))
    stand.pass_time(CONFIG.probe + EPOCH)
    stand.hear(B, Probe(INST, 3, 76))
    assert B in stand.limiter.links.black
    stand.hear(B, Probe(INST, 3, 77))
    assert stand.limiter.links.black == {}


def test_what_becomes_outstanding_meanwhile_is_settled(stand: Stand) -> None:
    """Limits 5.4: if new values are outstanding, reconcile again; a link that owes nothing is left alone."""
    silence(stand)
    assert stand.limiter.sums is not None
    ledger = stand.limiter.sums.ledger(B)
    stand.views.end(Carried.DELIVERED)
    stand.hear(B, reconcile(SECOND, ack=ledger.given))
    stand.views.carried.clear()
    stand.epochs(14)
    assert stand.views.carried == []
    ledger.give({W_KEY: 3})
    stand.epochs(14)
    assert [message.w for _, message, _ in stand.views.carried if isinstance(message, Reconcile)] == [3]


def test_one_epoch_begins_few_reconciliations() -> None:
    """F17, views H236: a server carries so many for a client in a second; the rest follows."""
    lives = [NodeId(f"m{i:03}", 1) for i in range(100)]
    stand = Stand(lives[0])
    stand.limit(600.0, arrives=60.0)
    stand.views.install(view_of(5, lives))
    stand.epochs(1)
    stand.peers_answer = False
    for peer in lives[1:]:
        for _ in range(6):
            stand.limiter.links.sent(peer)
        assert stand.limiter.sums is not None
        stand.limiter.sums.ledger(peer).give({W_KEY: 0})
    stand.epochs(1)
    assert len(stand.limiter.links.black) == 99
    assert len(stand.views.carried) == RECONCILES_MAX + 1  # and an exchange
    stand.epochs(3)
    assert len(stand.views.carried) >= 99


def test_all_links_are_cut() -> None:
    """D14: half of everything for half of what another member has, by the overlay, one at a time."""
    stand = Stand()
    stand.limit(600.0, arrives=60.0)
    stand.views.install(view_of(5, (A, B)))
    stand.epochs(1)
    silence(stand)
    sums = stand.limiter.sums
    assert sums is not None
    (_, first, _), (to, message, _) = stand.views.carried
    assert isinstance(first, Reconcile)
    assert isinstance(message, Reconcile)
    assert (first.step, message.step, to) == (FIRST, EXCHANGE, B)
    held = sums.w
    assert message.w - first.w in (held, held - 1, held + 1)
    stand.views.end(Carried.DELIVERED)
    stand.epochs(3)
    assert sums.w == held
    stand.hear(B, reconcile(SECOND, w=WEIGHT, seq=1, ack=sums.ledger(B).given))
    assert sums.w == held + WEIGHT
    stand.views.carried.clear()
    stand.epochs(1)
    assert [message.step for _, message, _ in stand.views.carried if isinstance(message, Reconcile)] == [EXCHANGE]


def test_an_exchange_is_answered_with_half(stand: Stand) -> None:
    """D14: the receiver takes it in and gives half of its own back; it black-lists no peer for it."""
    sums = stand.limiter.sums
    assert sums is not None
    before = sums.w
    stand.hear(B, reconcile(EXCHANGE, w=10, seq=1))
    ((_, message, _),) = stand.views.carried
    assert isinstance(message, Reconcile)
    assert sums.w == before + 10 - (before + 10) // 2
    assert (message.step, message.w - (before + 10) // 2 >= 0, stand.limiter.links.black) == (SECOND, True, {})


def test_a_reconciliation_of_a_newer_view(stand: Stand) -> None:
    """Limits 5.6: it says nothing of that view's size; the view itself comes by the same servers."""
    stand.hear(B, reconcile(FIRST, w=5, seq=1, number=9))
    assert (stand.views.hurries, stand.limiter.standing.inst) == (1, INST)


# Some members together.


@pytest.mark.parametrize("seed", range(4))
def test_conserved_through_everything(seed: int) -> None:
    """RL1, RL2: through loss, cuts, black lists, exchanges and probes, at every look, exactly; and the sum is found again."""
    group = Group(6, seed=seed)
    group.limit(600.0, arrives=[400.0, 200.0, 20.0, 20.0, 20.0, 20.0], share="demand")
    group.install(5)
    group.loss = 0.15
    for turn in range(30):
        group.run(1.0)
        if turn == 8:
            group.cut = {("m00", "m01"), ("m02", "m03"), ("m03", "m02")}
        if turn == 14:
            group.cut = {pair for other in group.stands for pair in (("m00", other), (other, "m00"))}
            group[0].users[API].arrives = 100.0
        if turn == 24:
            group.cut, group.loss = set(), 0.0
        assert residue(group) == (0, 0)
    group.run(15.0)
    assert all(not stand.limiter.links.black for stand in group)
    for stand in group:
        assert stand.of().aggregates[KEY] == pytest.approx(380.0, rel=0.05)
