"""Agreement: one key per number, and a delivery when all servers of a key proposed it.  Spec: views 5.4, D2-D5, D19, D20, D24, D26."""

from __future__ import annotations

import pytest

from holdfast.features.views.protocol.agreement import FLEET_MAX, PEAKS_MAX, Agreement
from holdfast.features.views.protocol.config import PEAK_SECONDS
from holdfast.features.views.protocol.facts import Delivered, Proposed, SlowChange
from holdfast.features.views.protocol.messages import Propose
from holdfast.features.views.protocol.nsview import NSView, digest_of
from holdfast.host import NodeId, View, ViewId
from tests.features.views.stand import CONFIG, HB, S0, S1, S2, A, B, C, member
from tests.support.fake_host import FakeHost


class Stand:
    """The agreement of s0; what it asks of its server is recorded, and numbers are known of whom the test says."""

    def __init__(self) -> None:
        self.host = FakeHost(*S0)
        self.numbers: dict[NodeId, int] = {}
        self.sent: list[Propose] = []
        self.delivered: list[View] = []
        self.begun = 0
        self.agreement = Agreement(self.host, CONFIG, 0, self, self)

    def has_number(self, life: NodeId, num: int) -> bool:
        return self.numbers.get(life) == num

    def saw(self, slot: int, life: NodeId, num: int) -> None:
        """Nothing is known of its moment."""

    def propose(self, proposal: Propose) -> None:
        self.sent.append(proposal)

    def on_begin(self) -> None:
        self.begun += 1

    def on_delivered(self, view: View) -> None:
        self.delivered.append(view)

    # What tests do.

    def hear(self, life: NodeId, num: int, ns: NSView, *, done: bool = False, number_known: bool = True, peak: int = 0) -> None:
        if number_known:
            self.numbers[life] = num
        self.agreement.on_propose(Propose(int(life.name[1:]), life, num, ns.digest, peak, done, 3, S0))

    def take(self) -> list[tuple[NodeId, int, bytes, bool]]:
        """What was proposed since the last look."""
        found, self.sent = [(each.dst, each.num, each.key, each.done) for each in self.sent], []
        return found

    @property
    def proposed(self) -> dict[int, bytes]:
        """Keys by number."""
        return {fact.number: fact.key for fact in self.host.events(Proposed)}


def ns_of(*clients: NodeId, servers: tuple[NodeId, ...] = (S0, S1)) -> NSView:
    members = tuple(member(life) for life in sorted(clients))
    return NSView(servers, members, digest_of(servers, members), {}, 0)


ALONE, TWO, THREE = ns_of(A, servers=(S0,)), ns_of(A), ns_of(A, B)


@pytest.fixture
def stand() -> Stand:
    return Stand()


def test_one_server_delivers_at_once(stand: Stand) -> None:
    """Views 5.4, D19: a key with only this server needs no other word; the first client is a view of one."""
    stand.agreement.recompute(ALONE)
    assert stand.delivered == [View(ViewId(1, *S0), (S0,), ALONE.members, 1)]
    assert stand.sent == []
    assert stand.agreement.vouches()


def test_a_change_is_proposed_to_all_servers_of_the_key(stand: Stand) -> None:
    """Views 5.4 (begin): a number above the last one; the clients are told."""
    three = ns_of(A, servers=(S0, S1, S2))
    stand.agreement.recompute(three)
    assert stand.take() == [(S1, 1, three.digest, False), (S2, 1, three.digest, False)]
    assert (stand.begun, stand.agreement.sc, stand.agreement.stable) == (1, 1, False)


def test_the_same_key_changes_nothing(stand: Stand) -> None:
    """Views 5.4 (recompute): other paths are taken in, nothing is proposed."""
    stand.agreement.recompute(TWO)
    stand.take()
    stand.agreement.recompute(TWO._replace(steps={S1: S2}))
    assert stand.take() == []
    assert stand.agreement.ns is not None
    assert stand.agreement.ns.steps == {S1: S2}


def test_a_server_has_one_key_per_number(stand: Stand) -> None:
    """Views 5.4, D3: every new key takes a new number, whatever the others said meanwhile. Tried: another key under the same number."""
    stand.agreement.recompute(TWO)
    stand.hear(S1, 1, THREE)
    stand.agreement.recompute(THREE)
    stand.agreement.recompute(TWO)
    numbers = [fact.number for fact in stand.host.events(Proposed)]
    assert numbers == [1, 2, 3]
    assert stand.proposed == {1: TWO.digest, 2: THREE.digest, 3: TWO.digest}


def test_the_counterexample_of_d3(stand: Stand) -> None:
    """Views D3: this server proposed (1, X), sees a client join and is at Y. The other one delivered (1, X). It must not deliver (1, Y)."""
    stand.agreement.recompute(TWO)
    stand.agreement.recompute(THREE)
    stand.hear(S1, 1, TWO)
    stand.hear(S1, 1, THREE)
    assert stand.delivered == []
    stand.hear(S1, 2, THREE)
    assert [(view.number, view.size) for view in stand.delivered] == [(2, 2)]


def test_it_delivers_when_all_proposed_the_same(stand: Stand) -> None:
    """Views 5.4, G3: the same key under the same number, from the present life of every server of the key."""
    three = ns_of(A, servers=(S0, S1, S2))
    stand.agreement.recompute(three)
    stand.hear(S1, 1, three)
    stand.hear(S2, 1, TWO)
    assert stand.delivered == []
    stand.hear(NodeId(S2.name, S2.boot - 1), 1, three)
    assert stand.delivered == []
    stand.agreement.recompute(TWO)
    stand.agreement.recompute(three)
    stand.hear(S1, 3, three)
    stand.hear(S2, 3, three)
    assert [view.id for view in stand.delivered] == [ViewId(3, *S0)]


def test_no_delivery_by_overtaken_proposals(stand: Stand) -> None:
    """Views 5.4, D24, D26: a kept proposal may be long overtaken; whether its server is still at that number decides."""
    stand.agreement.recompute(TWO)
    stand.hear(S1, 1, TWO, number_known=False)
    assert stand.delivered == []
    stand.numbers[S1] = 2
    stand.agreement.try_to_deliver()
    assert stand.delivered == []
    stand.numbers[S1] = 1
    stand.agreement.try_to_deliver()
    assert len(stand.delivered) == 1


def test_it_vouches_only_while_all_are_at_its_number(stand: Stand) -> None:
    """Views 5.4 (vouch), D26: a server that went on to another number takes its word with it."""
    stand.agreement.recompute(TWO)
    assert not stand.agreement.vouches()
    stand.hear(S1, 1, TWO)
    assert stand.agreement.vouches()
    stand.numbers[S1] = 2
    assert not stand.agreement.vouches()
    stand.numbers[S1] = 1
    stand.agreement.recompute(THREE)
    assert not stand.agreement.vouches()


def test_it_follows_a_higher_number_with_the_same_key(stand: Stand) -> None:
    """Views 5.4 (Propose): and delivers it, without a third exchange."""
    stand.agreement.recompute(TWO)
    stand.take()
    stand.hear(S1, 7, TWO)
    assert stand.take() == [(S1, 7, TWO.digest, False)]
    assert [view.number for view in stand.delivered] == [7]


def test_a_stable_server_follows_as_well(stand: Stand) -> None:
    """Views 5.4, D20: after a merge one side may be above the other; the same key gets a higher number."""
    stand.agreement.recompute(TWO)
    stand.hear(S1, 1, TWO)
    stand.hear(S1, 5, TWO)
    assert [view.number for view in stand.delivered] == [1, 5]
    assert stand.agreement.sc == 2


def test_a_higher_number_with_another_key_is_only_stored(stand: Stand) -> None:
    """Views 5.4, D3: either its key or ours is about to change; joining early would burn the number."""
    stand.agreement.recompute(TWO)
    stand.take()
    stand.hear(S1, 7, THREE)
    assert (stand.agreement.num, stand.take()) == (1, [])
    stand.agreement.recompute(THREE)
    assert stand.agreement.num == 7
    assert [view.number for view in stand.delivered] == [7]


def test_proposals_of_servers_outside_of_the_key_do_not_count(stand: Stand) -> None:
    """Views 5.4 (recompute): the highest number that a server of the new key proposed."""
    stand.agreement.recompute(TWO)
    stand.hear(S2, 99, THREE)
    stand.take()
    stand.agreement.recompute(THREE)
    assert stand.agreement.num == 2
    assert all(dst == S1 for dst, *_ in stand.take())


def test_a_client_lifts_the_next_number(stand: Stand) -> None:
    """Views D20, G2: it installed 41 elsewhere, so the view with it is above; no number is claimed before it is proposed."""
    stand.agreement.recompute(ALONE)
    stand.agreement.floor = 41
    assert stand.agreement.num == 1
    assert stand.agreement.vouches()
    stand.agreement.recompute(ns_of(A, B, servers=(S0,)))
    assert [view.number for view in stand.delivered] == [1, 42]


def test_older_words_of_a_server_are_dropped(stand: Stand) -> None:
    """Views 5.4 (Propose): by boot and number; datagrams overtake each other."""
    stand.agreement.recompute(TWO)
    newer = NodeId(S1.name, S1.boot + 1)
    stand.hear(newer, 3, THREE)
    stand.hear(S1, 9, TWO)
    stand.hear(newer, 2, THREE)
    assert stand.agreement._proposals[1].life == newer
    assert stand.agreement._proposals[1].num == 3
    assert stand.agreement.num == 1


def test_a_server_that_says_two_keys_under_one_number_is_held_to_the_first(stand: Stand) -> None:
    """Views 5.4, D3: no honest server does; what it said first stays."""
    stand.agreement.recompute(TWO)
    stand.hear(S1, 1, THREE)
    stand.hear(S1, 1, TWO)
    assert stand.delivered == []


def test_who_is_behind_is_told(stand: Stand) -> None:
    """Views 5.4 (Propose): a lower number, or the same one while we are stable; ``done`` ends the conversation."""
    stand.agreement.recompute(TWO)
    stand.hear(S1, 4, TWO)
    stand.take()
    stand.hear(S1, 4, TWO)
    assert stand.take() == [(S1, 4, TWO.digest, True)]
    stand.hear(S1, 4, TWO, done=True)
    assert stand.take() == []


def test_a_restarted_server_is_told(stand: Stand) -> None:
    """Views 5.4: its first proposal has a low number; the answer brings it up."""
    stand.agreement.recompute(TWO)
    stand.hear(S1, 4, TWO)
    stand.take()
    newer = NodeId(S1.name, S1.boot + 1)
    again = ns_of(A, servers=(S0, newer))
    stand.agreement.recompute(again)
    assert stand.take() == [(newer, 5, again.digest, False)]
    stand.hear(newer, 1, again)
    assert stand.take() == [(newer, 5, again.digest, False)]


def test_two_agreements_end_their_conversation() -> None:
    """Views 5.4: proposals that answer proposals stop, in any order of arrival; no storm."""
    one, other = Stand(), Stand()
    other.host.me = S1
    other.agreement._slot = 1
    for stand, peer in ((one, S1), (other, S0)):
        stand.numbers = {peer: 5}
        stand.agreement.num = 3 if stand is one else 4
        stand.agreement.recompute(TWO)
    rounds = 0
    while True:
        mail = [(other, one.sent), (one, other.sent)]
        one.sent, other.sent = [], []
        if not any(sent for _, sent in mail):
            break
        rounds += 1
        assert rounds < 6
        for stand, sent in mail:
            for proposal in sent:
                stand.agreement.on_propose(proposal)
    assert one.agreement.view == other.agreement.view
    assert one.agreement.vouches()


def test_what_was_lost_is_said_again_while_it_changes(stand: Stand) -> None:
    """Views 5.4 (tick): to all servers, every heartbeat, and no more when it is stable."""
    stand.agreement.recompute(TWO)
    stand.take()
    stand.agreement.on_tick()
    assert stand.take() == [(S1, 1, TWO.digest, False)]
    stand.hear(S1, 1, TWO)
    stand.take()
    stand.agreement.on_tick()
    assert stand.take() == []


def test_a_slow_change_is_told_once(stand: Stand) -> None:
    """Views 4 (change_warn), 9: once per change, also if it moves to higher numbers."""
    stand.agreement.recompute(TWO)
    for _ in range(30):
        stand.host.pass_time(HB)
        stand.agreement.on_tick()
    stand.agreement.recompute(THREE)
    stand.agreement.on_tick()
    (slow,) = stand.host.events(SlowChange)
    assert slow.seconds > CONFIG.change_warn


def test_fast_and_slow_are_told_apart(stand: Stand) -> None:
    """Views 5.4: fast is one exchange; slow if this server had to propose again before it delivered."""
    stand.agreement.recompute(TWO)
    stand.hear(S1, 1, TWO)
    stand.agreement.recompute(THREE)
    stand.host.pass_time(0.5)
    stand.agreement.recompute(ns_of(A, B, C))
    stand.hear(S1, 3, ns_of(A, B, C))
    assert [(fact.view.number, fact.fast, fact.took) for fact in stand.host.events(Delivered)] == [(1, True, 0.0), (3, False, 0.5)]
    assert stand.agreement.counts == {"fast": 1, "slow": 1}
    assert stand.agreement.seconds_changing == 0.5


def test_the_fleet_is_the_largest_view_lately(stand: Stand) -> None:
    """Views 2 (peak): over all servers and ten minutes; it is fixed with the proposal, so all servers count with the same."""
    many = ns_of(*(NodeId(f"c{i}", 1) for i in range(9)), servers=(S0,))
    stand.agreement.recompute(many)
    stand.agreement.recompute(ALONE)
    stand.agreement.recompute(TWO)
    stand.hear(S1, 3, TWO, peak=12)
    assert [view.fleet for view in stand.delivered] == [9, 9, 12]
    stand.host.pass_time(PEAK_SECONDS + 1)
    stand.agreement.recompute(ALONE)
    assert stand.delivered[-1].fleet == 1


def test_peaks_have_a_limit(stand: Stand) -> None:
    """Views 2 (peak): rising sizes take the place of smaller ones, falling ones have a limit; what travels fits its field."""
    for size in (3, 2, 1, 2):
        stand.agreement._remember_size(size)
    assert [size for _, size in stand.agreement._peaks] == [3, 2]
    for size in range(2 * PEAKS_MAX, 0, -1):
        stand.agreement._remember_size(size)
    assert len(stand.agreement._peaks) == PEAKS_MAX
    assert stand.agreement._largest(10**6) == FLEET_MAX
