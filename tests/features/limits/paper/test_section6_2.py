"""Paper 003, section 6.2: gossip that survives loss, and cuts with the help of the overlay."""

from __future__ import annotations

import pytest

from holdfast.events import LinkBlacklisted, LinkRestored
from holdfast.features.limits.lab.mutations import no_black_list, without
from holdfast.features.limits.protocol.config import UNIT, WEIGHT
from holdfast.features.limits.protocol.messages import Gossip, GossipAck, Reconcile
from holdfast.features.limits.protocol.pushsum import W_KEY, PushSum
from holdfast.kit.ledger import Batch
from tests.features.limits.stand import API, CONFIG, EPOCH, KEY, LIVES, A, B, C, Group, Stand, residue, view_of


def test_the_limit_follows_the_view() -> None:
    """6.2: the aggregate limit is set in proportion to the limiters that are in the view."""
    stand = Stand()
    stand.limit(600.0, fleet=6)
    stand.views.install(view_of(5, (A, B, C)))
    assert stand.limiter.allocator.whole_of(stand.of()) == 300.0
    stand.views.install(view_of(6, (A, B)))
    assert stand.limiter.allocator.whole_of(stand.of()) == 200.0


def test_values_are_kept_until_they_are_acknowledged() -> None:
    """6.2.1: a limiter records the outstanding portion and weight for each peer, and frees it when the peer says so."""
    it = PushSum(view_of(1, LIVES).id, 8, {KEY: 8 * UNIT})
    it.spread((B,))
    it.spread((B,))
    assert it.ledger(B).outstanding == {KEY: 6 * UNIT, W_KEY: WEIGHT * 3 // 4}
    it.ledger(B).ack(1)
    assert it.ledger(B).outstanding == {KEY: 2 * UNIT, W_KEY: WEIGHT // 4}


def test_messages_carry_what_is_unacknowledged() -> None:
    """6.2.1: this round's values and those of previous rounds, with the last acknowledged number and the current one, per destination."""
    it = PushSum(view_of(1, LIVES).id, 8, {KEY: 8 * UNIT})
    it.spread((B,))
    it.ledger(B).ack(1)
    it.spread((B, C))
    it.spread((B,))
    batch = it.ledger(B).message()
    assert (batch.lb, batch.seq) == (1, 3)
    assert batch.amounts[KEY] == it.ledger(B).outstanding[KEY]
    assert it.ledger(C).message().seq == 1


def test_the_two_numbers_say_what_is_new() -> None:
    """6.2.1: the receiver determines how much of a message to take, so nothing is lost or doubled."""
    it = PushSum(view_of(1, LIVES).id, 8, {})
    assert it.take(B, Batch(0, 1, {KEY: 5 * UNIT})) is None
    assert it.take(B, Batch(0, 3, {KEY: 9 * UNIT})) is None
    assert it.take(B, Batch(1, 3, {KEY: 4 * UNIT})) is not None
    assert it.p[KEY] == 9 * UNIT


@pytest.mark.parametrize("loss", [0.0, 0.05, 0.25])
def test_it_converges_whatever_is_lost(loss: float) -> None:
    """6.2.1, 7.1.2: portions and weight are never lost, also with a quarter of all messages."""
    group = Group(6)
    group.limit(1e6, arrives=[0.0] * 6, share="demand")
    for stand in group:
        stand.users[API].user = 1.0
    group.install(5)
    group.loss = loss
    group.run(10.0)
    for stand in group:
        stand.users[API].user = 10.0
    group.run(8.0)
    assert residue(group) == (0, 0)
    for stand in group:
        assert stand.of().aggregates[KEY] == pytest.approx(60.0, rel=0.03)


def test_r_messages_without_an_acknowledgement() -> None:
    """6.2.2: a loss event; the black list needs no messages of its own."""
    stand = Stand()
    stand.limit(600.0, arrives=60.0)
    stand.views.install(view_of(5, (A, B, C)))
    stand.silent = {B}
    sent = 0
    while not stand.host.events(LinkBlacklisted):
        stand.epochs(0.5)
        sent += sum(to == B for to, _ in stand.sent(Gossip))
    assert sent == CONFIG.loss
    assert stand.host.events(LinkBlacklisted) == [LinkBlacklisted(B)]


def cut(seconds: float) -> Group:
    """The link between two of six is cut, and values change."""
    group = Group(6)
    group.limit(1e6, arrives=[0.0] * 6, share="demand")
    for stand in group:
        stand.users[API].user = 10.0
    group.install(5)
    group.run(5.0)
    group.cut = {("m00", "m01"), ("m01", "m00")}
    for turn in range(int(seconds)):
        for number, stand in enumerate(group):
            stand.users[API].user = 10.0 + (turn // 9 * 7 + number) % 5
        group.run(1.0)
    return group


def test_the_black_list_keeps_the_aggregate() -> None:
    """6.2.2, Figure 9: both reconcile over the overlay and go on without each other; without that the aggregate diverges."""
    group = cut(30)
    total = sum(stand.users[API].user or 0.0 for stand in group)
    assert [set(map(str, stand.limiter.links.black)) for stand in group] == [{"m01#1"}, {"m00#1"}, *([set()] * 4)]
    for stand in group:
        assert stand.of().aggregates[KEY] == pytest.approx(total, rel=0.1)
    assert sum(isinstance(message, Reconcile) for _, _, message in group.sent) >= 3
    with without(no_black_list):
        group = cut(30)
        errors = [abs(stand.of().aggregates[KEY] / total - 1) for stand in group]
        assert max(errors) > 0.3


def test_excluded_peers_are_no_gossip_partners() -> None:
    """6.2.2: both limiters exclude each other."""
    group = cut(15)
    group.sent.clear()
    group.run(4 * EPOCH)
    pairs = {(source, to) for source, to, message in group.sent if isinstance(message, Gossip | GossipAck)}
    assert not pairs & {("m00", "m01"), ("m01", "m00")}


def test_the_link_is_tried_periodically() -> None:
    """6.2.2: they attempt to reestablish direct communication, and then the link leaves the black list."""
    group = cut(15)
    group.cut = set()
    group.run(CONFIG.probe + 1.0)
    assert all(not stand.limiter.links.black for stand in group)
    assert [len(stand.host.events(LinkRestored)) for stand in group] == [1, 1, 0, 0, 0, 0]


def test_out_of_the_view_a_limiter_panics() -> None:
    """6.2.2, 4.1: a limiter that is not included in a view enforces 1/n."""
    stand = Stand()
    users = stand.limit(600.0, fleet=6)
    stand.views.install(view_of(5, (A, B, C)))
    stand.epochs(2)
    stand.views.lose()
    assert users.usable == pytest.approx(100.0)
