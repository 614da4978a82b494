"""Static arbitrators: paper 000, section III.3, Algorithm 1 line by line, Corollary 2; spec ring 5.2 (CA), D24."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from holdfast.features.ring.lab.rings import Rings, arbitrators
from holdfast.features.ring.protocol import messages as m
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import Won
from holdfast.features.ring.protocol.ids import CIRCLE, RingId
from holdfast.features.ring.protocol.pair import State
from holdfast.host import NodeId
from holdfast.papers.ring.protocol.central import LISTED_MAX, CentralArbitrator
from tests.features.ring.stand import STEP, T_ARB, T_L, Stand, peer
from tests.support.fake_host import FakeHost

CONFIG = RingConfig(k=3, mode="central", arbitrators=arbitrators(3))
P, Q, R = (RingId(pos, 1) for pos in (100, 200, 300))
RING = 7


class Slot:
    """One arbitrator, and whoever asks it."""

    def __init__(self, *, up: float = T_ARB) -> None:
        self.host = FakeHost("arb0")
        self.arbitrator = CentralArbitrator(self.host, CONFIG)
        self.arbitrator.start()
        self.host.pass_time(up)

    def ask(self, accuser: RingId, accused: RingId, *, epoch: int = 1, ring: int = RING, serial: int = 1) -> bool:
        source = NodeId(f"n{accuser.pos}", 1)
        self.arbitrator.on_message(source, m.Arb(ring, accuser, 0, serial, accused, epoch, 1))
        ((to, vote),) = self.host.take(m.Vote)
        assert (to, vote.serial, vote.to) == (source, serial, accuser.inc)
        return vote.accept


def test_line_2_to_4_a_new_arbitrator_rejects() -> None:
    """Algorithm 1, lines 2-4: up for less than T_arb, it rejects."""
    assert not Slot(up=T_ARB - 0.001).ask(P, Q)
    assert Slot(up=T_ARB).ask(P, Q)


def test_line_3_both_are_listed() -> None:
    """Algorithm 1, line 3: during the start-up time suspecter and suspected are both listed, so both are rejected afterwards."""
    slot = Slot(up=T_ARB - 0.001)
    slot.ask(P, Q)
    slot.host.pass_time(1.0)
    assert not slot.ask(P, R)
    assert not slot.ask(Q, R)


def test_line_5_and_6_a_listed_accuser_is_rejected() -> None:
    """Algorithm 1, lines 5-6: P is in Recently-Failed, so whatever P says is rejected."""
    slot = Slot()
    assert slot.ask(Q, P)
    assert not slot.ask(P, Q)
    assert not slot.ask(P, R)


def test_line_7_and_8_a_listed_accused_is_accepted() -> None:
    """Algorithm 1, lines 7-8: Q is listed already, so every further suspicion of it is accepted, and again the same one."""
    slot = Slot()
    assert slot.ask(P, Q)
    assert slot.ask(R, Q)
    assert slot.ask(P, Q)


def test_line_9_to_11_first_come_first_served() -> None:
    """Algorithm 1, lines 9-11: neither is listed: the accused becomes so, and the accuser is accepted."""
    slot = Slot()
    assert slot.ask(P, Q)
    assert not slot.ask(Q, P)


def test_one_list_for_all_pairs_and_epochs() -> None:
    """III.3: the central list is about nodes, not about pairs; another instance of the pair changes nothing."""
    slot = Slot()
    assert slot.ask(P, Q)
    assert not slot.ask(Q, P, epoch=2)
    assert not slot.ask(Q, R)


def test_rings_do_not_mix() -> None:
    """D20: the same id in another ring is another node."""
    slot = Slot()
    assert slot.ask(P, Q)
    assert slot.ask(Q, P, ring=RING + 1)


def test_old_entries_are_trimmed() -> None:
    """Corollary 2: an entry may go after T_arb; it goes after ``wait``, which allows for drift (5.2)."""
    slot = Slot()
    slot.ask(P, Q)
    slot.host.pass_time(CONFIG.wait - 0.001)
    assert not slot.ask(Q, P)
    slot = Slot()
    slot.ask(P, Q)
    slot.host.pass_time(CONFIG.wait + 0.001)
    assert slot.ask(Q, P)


def test_an_entry_ages_from_the_first_accusation() -> None:
    """Algorithm 1, line 8: a repeated accusation adds nothing, so it does not make the entry younger."""
    slot = Slot()
    slot.ask(P, Q)
    slot.host.pass_time(CONFIG.wait / 2)
    slot.ask(P, Q)
    slot.host.pass_time(CONFIG.wait / 2 + 0.001)
    assert slot.ask(Q, R)


def test_requests_are_counted_once() -> None:
    """Ring E3: requests per arbitrator, repetitions of one question left out."""
    slot = Slot()
    for serial in (1, 1, 2):
        slot.ask(P, Q, serial=serial)
    assert (slot.arbitrator.counts["requests"], slot.arbitrator.counts["asked"]) == (3, 2)


def test_the_list_has_a_limit() -> None:
    """F17: a full list rejects, and counts that it did."""
    slot = Slot()
    for number in range(LISTED_MAX):
        slot.ask(RingId(1, 1), RingId(10 + number, 1))
    assert not slot.ask(RingId(2, 1), RingId(3, 1))
    assert slot.arbitrator.counts["list_full"] == 1


# Members that use them.


def placed(name: str, config: RingConfig) -> RingConfig:
    return replace(config, position=int(name[1:]) * (CIRCLE // 16))


def fleet(size: int, arbs: int, *, seed: int = 1) -> Rings:
    """A ring of n0, n1, ..., whose arbitrators have been up for long enough."""
    rings = Rings(seed, replace(CONFIG, arbitrators=arbitrators(arbs)), configure=placed)
    rings.start_arbitrators()
    rings.world.run(T_ARB)
    rings.form([f"n{i}" for i in range(size)])
    return rings


def test_members_ask_the_static_arbitrators_alone() -> None:
    """D24: need = [arbs]. One crash in a ring of 8 asks each of 3 arbitrators 2k = 6 times and no member; everybody else stays."""
    rings = fleet(8, 3)
    rings.world.at(4.0, lambda: rings.world.crash("n3"))
    rings.world.run(12.0)
    assert rings.size == 7
    assert [each.counts["asked"] for each in rings.arbitrators.values()] == [6, 6, 6]
    assert sum(ring.counts["arbs_received"] for ring in rings.members.values()) == 0


def test_there_are_no_groups_to_upgrade() -> None:
    """D24: no ver, no cfg: the crash of a neighbour changes nobody's arbitrators."""
    rings = fleet(8, 3)
    rings.world.at(4.0, lambda: rings.world.crash("n3"))
    rings.world.run(12.0)
    assert sum(ring.counts["upgrades"] for ring in rings.members.values()) == 0


@pytest.mark.parametrize("dead,left", [(1, 7), (2, 0)], ids=["a minority", "a majority"])
def test_the_arbitrators_are_what_it_hangs_on(dead: int, left: int) -> None:
    """II, III.4: while a majority of the arbitrators answers, only the dead go. Without it, whoever suspects leaves: of 8 with k = 3 all 6
    monitors do, and the one that is left loses its neighbours and goes as well."""
    rings = fleet(8, 3)
    for number in range(dead):
        rings.world.crash(f"arb{number}")
    rings.world.at(4.0, lambda: rings.world.crash("n3"))
    rings.world.run(30.0)
    assert (rings.size == left) if left else (rings.size <= 1)


@pytest.mark.parametrize("crashed", ["n0", "n1"], ids=["smaller", "larger"])
def test_two_members_survive_either_crash(crashed: str) -> None:
    """D5, E11: with 3 static arbitrators a ring of two survives the crash of either."""
    rings = fleet(2, 3)
    rings.world.at(4.0, lambda: rings.world.crash(crashed))
    rings.world.run(12.0)
    assert rings.size == 1


def test_a_half_win_lists_the_peer() -> None:
    """D24: the arbitrators cannot know that the winner of a HALF pair condemns nobody; the peer is listed, and loses its next dispute."""
    stand = Stand(config=CONFIG)
    q = peer("q", 2000)
    stand.say(q, m.Want(*stand.head(q), (q,)))
    (request,) = stand.to(q, m.LeaseRequest)
    stand.say(q, stand.ack(q, request.n, cfg=(stand.ring.id, q.id)))
    assert stand.pair(q).state is State.HALF
    stand.live(T_L + STEP, silent=[q])
    slot = Slot()
    ((_, arb), *_) = stand.take(m.Arb)
    slot.arbitrator.on_message(stand.host.me, arb)
    slot.host.take(m.Vote)
    for name in ("arb0", "arb1"):
        stand.ring.on_message(NodeId(name, 1), m.Vote(stand.ring.ring, RingId(0, 0), stand.ring.id.inc, arb.serial, accept=True))
    assert [event.entitled for event in stand.host.events(Won)] == [False]
    assert not slot.ask(q.id, P, ring=stand.ring.ring)
