"""The probe, its helpers and its judgement.  Spec: gossip 5.2."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.events import Suspected
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.facts import ProbeFailed
from holdfast.features.gossip.protocol.messages import Ack, Gossip, Met, Nack, Ping, PingReq, Sync
from holdfast.features.gossip.protocol.relays import RELAYS_MAX
from holdfast.features.gossip.protocol.rules import Rules
from holdfast.host import NodeId
from tests.features.gossip.stand import LEFT, SUSPECT, Stand, life, place, rumour


@dataclass
class Open:
    """A member whose probe is open."""

    stand: Stand
    target: str
    seq: int


def probing(*others: str, rules: Rules | None = None, config: GossipConfig | None = None) -> Open:
    """Up to the first PING."""
    stand = Stand(*(others or "bcdef"), rules=rules, config=config)
    while stand.node.prober.probe is None:
        stand.host.pass_time(0.01)
    ((to, ping),) = stand.host.take(Ping)
    assert isinstance(to, NodeId)
    return Open(stand, to.name, ping.seq)


def helpers(at: Open) -> list[str]:
    at.stand.host.pass_time(0.4)
    return [to.name for to, message in at.stand.host.take(PingReq) if isinstance(to, NodeId) and message.seq == at.seq]


def test_an_answered_probe_costs_one_turn() -> None:
    """Gossip 5.2: the ACK moves the one alarm to the next tick, so no timer runs for nothing."""
    at = probing()
    ticks = at.stand.node.prober.ticks
    at.stand.hear(at.target, Ack(at.seq))
    at.stand.clear()
    at.stand.host.pass_time(0.9)
    assert at.stand.host.take(PingReq) == []
    assert at.stand.node.prober.ticks == ticks
    at.stand.host.pass_time(0.1)
    assert at.stand.node.prober.ticks == ticks + 1


def test_helpers_are_asked_after_the_timeout() -> None:
    """Gossip 5.2 step 4: k ALIVE members other than the target, once."""
    at = probing()
    asked = helpers(at)
    assert len(asked) == 3
    assert at.target not in asked
    assert set(asked) < set("bcdef")
    at.stand.host.pass_time(0.3)
    assert at.stand.host.take(PingReq) == []


def test_suspected_members_are_no_helpers() -> None:
    """Gossip 5.2 step 4: ALIVE ones alone."""
    at = probing()
    for name in sorted(set("bcdef") - {at.target})[:3]:
        at.stand.say(name, rumour(name, 0, SUSPECT, "z"))
    assert len(helpers(at)) == 1


def test_a_late_ack_by_a_helper_counts() -> None:
    """Gossip 5.2 step 4: an ACK for this seq before the next tick, from target or helper."""
    at = probing()
    asked = helpers(at)
    at.stand.hear(asked[0], Ack(at.seq))
    at.stand.host.pass_time(0.7)
    assert at.stand.host.events(ProbeFailed) == []
    assert at.stand.node.counts["probes_indirect"] == 1


def test_an_ack_of_a_stranger_does_not_count() -> None:
    """Gossip 5.2: a peer that was not asked proves nothing."""
    at = probing()
    asked = helpers(at)
    stranger = next(name for name in "bcdef" if name not in (*asked, at.target))
    at.stand.hear(stranger, Ack(at.seq))
    at.stand.host.pass_time(0.7)
    assert len(at.stand.host.events(ProbeFailed)) == 1


def test_failure_accuses_with_those_who_sent_a_nack() -> None:
    """Gossip 5.2 step 2, D16: a NACK is an independent failed probe; the accused is told at once, and one round goes out."""
    at = probing()
    asked = helpers(at)
    for name in asked[:2]:
        at.stand.hear(name, Nack(at.seq))
    at.stand.clear()
    at.stand.host.pass_time(0.65)
    assert [event.member.id.name for event in at.stand.host.events(Suspected)] == [at.target]
    assert list(at.stand.node.suspicions[at.target].confirmers) == ["a", *asked[:2]]
    direct = [message for to, message in at.stand.host.take(Gossip) if to == life(at.target)]
    assert direct[0].rumours[0].status is SUSPECT


def test_nacks_do_not_confirm_in_the_older_profiles() -> None:
    """Gossip 4 (lifeguard): one accuser."""
    at = probing(rules=Rules(nacks_confirm=False))
    for name in helpers(at):
        at.stand.hear(name, Nack(at.seq))
    at.stand.host.pass_time(0.65)
    assert list(at.stand.node.suspicions[at.target].confirmers) == ["a"]


def test_a_nack_after_the_tick_still_confirms() -> None:
    """Gossip 5.2 (receipts): its helper was only slower than the tick."""
    at = probing()
    asked = helpers(at)
    at.stand.host.pass_time(0.65)
    at.stand.hear(asked[2], Nack(at.seq))
    assert list(at.stand.node.suspicions[at.target].confirmers) == ["a", asked[2]]


def test_local_health_counts_the_nacks_that_are_missing() -> None:
    """Gossip 5.2 step 2, D12 (Lifeguard): a failed probe with all NACKs costs nothing; without helpers it costs one; success pays back."""
    at = probing()
    for name in helpers(at)[:1]:
        at.stand.hear(name, Nack(at.seq))
    at.stand.host.pass_time(0.65)
    assert at.stand.node.lhm == 2
    at.stand.answer_probe()
    at.stand.host.pass_time(3.0)
    assert at.stand.node.lhm == 1
    lonely = probing("b")
    lonely.stand.host.pass_time(1.05)
    assert lonely.stand.node.lhm == 1


def test_a_sick_member_probes_slowly_and_waits_longer() -> None:
    """Gossip 5.2: period and timeout are multiplied by lhm + 1; S bounds it."""
    at = probing()
    at.stand.node.core.worsen(50)
    assert at.stand.node.lhm == 8
    assert at.stand.node.sick
    at.stand.answer_probe()
    at.stand.host.pass_time(1.0)  # the tick of before; it pays one back
    at.stand.clear()
    at.stand.host.pass_time(0.4 * 8 - 0.1)
    assert at.stand.host.take(PingReq) == []
    at.stand.host.pass_time(0.2)
    assert len(at.stand.host.take(PingReq)) == 3
    assert at.stand.node.prober.due - at.stand.host.now > 4


def test_one_accuses_once() -> None:
    """Gossip D7: one's own later probe never counts as a second confirmation; on another's suspicion it does."""
    at = probing("b", "c")
    at.stand.say("c", rumour(at.target, 0, SUSPECT, "c" if at.target == "b" else "b"))
    found = at.stand.node.suspicions[at.target]
    for _ in range(3):
        at.stand.host.pass_time(1.1)
        others = [name for name in found.confirmers if name == "a"]
        assert len(others) <= 1


def test_own_probes_confirm_if_the_rule_is_off() -> None:
    """Gossip 7 (ablations): the wait shrinks although none other has accused."""

    def confirmers(rules: Rules) -> int:
        stand = Stand(*"bcdef", rules=rules).without_probes()
        entry = stand.node.entry("b")
        assert entry is not None
        for _ in range(3):
            stand.node.merge.accuse(stand.node.entry("b") or entry, ("a",))
            stand.host.pass_time(0.1)
        return len(stand.node.suspicions["b"].confirmers)

    assert confirmers(Rules()) == 1
    assert confirmers(Rules(own_once=False)) == 3


def test_a_member_that_refuted_since_the_ping_is_not_accused() -> None:
    """Gossip 5.2 step 2: the accusation is for the inc of the PING."""
    at = probing()
    at.stand.say("z", rumour(at.target, 3))
    at.stand.host.pass_time(1.1)
    assert at.stand.host.events(Suspected) == []


# As a helper.


def test_a_helper_asks_and_forwards_the_answer() -> None:
    """Gossip 5.2: PING under an own new seq; its ACK becomes ACK(requester's seq), also after the NACK."""
    stand = Stand("b", "c").without_probes()
    stand.hear("b", PingReq(41, life("c"), place("c")))
    ((to, ping),) = stand.host.take(Ping)
    assert to == life("c")
    assert ping.seq != 41
    stand.host.pass_time(0.33)
    assert stand.host.take(Nack) == [(life("b"), Nack(41))]
    stand.hear("c", Ack(ping.seq))
    assert [(to, each.seq) for to, each in stand.host.take(Ack)] == [(life("b"), 41)]
    stand.hear("c", Ack(ping.seq))
    assert stand.host.take(Ack) == []


def test_a_quick_answer_needs_no_nack() -> None:
    """Gossip 5.2: NACK only if the target is silent for 0.8 of a timeout."""
    stand = Stand("b", "c").without_probes()
    stand.hear("b", PingReq(41, life("c"), place("c")))
    ((_, ping),) = stand.host.take(Ping)
    stand.hear("b", Ack(ping.seq))  # not by the target
    assert stand.host.take(Ack) == []
    stand.hear("c", Ack(ping.seq))
    stand.host.pass_time(1.0)
    assert stand.host.take(Nack) == []


def test_a_helper_that_does_not_know_the_target_uses_the_place_it_is_told() -> None:
    """Gossip 3 (PINGREQ): id and address, because lists differ."""
    stand = Stand("b").without_probes()
    stand.hear("b", PingReq(41, life("x"), place("x")))
    assert stand.host.met[life("x")] == place("x")
    assert [to for to, _ in stand.host.take(Ping)] == [life("x")]


def test_relays_are_bounded() -> None:
    """Gossip 2 (relays): 256 at a time; what does not fit is counted. After 4 T they are forgotten."""
    stand = Stand("b", "c").without_probes()
    for seq in range(RELAYS_MAX + 2):
        stand.hear("b", PingReq(seq, life("c"), place("c")))
    assert len(stand.node.prober.relays) == RELAYS_MAX
    assert stand.node.counts["relays_full"] == 2
    stand.host.pass_time(4.1)
    stand.hear("b", PingReq(1, life("c"), place("c")))
    assert len(stand.node.prober.relays) == 1


# As a target.


def test_an_unknown_prober_is_answered_and_shown_the_table() -> None:
    """Gossip 5.7: ACK it, and SYNC to it; once a period."""
    stand = Stand("b").without_probes()
    for _ in range(2):
        stand.hear("x", Ping(5))
    assert [(to, ack.seq) for to, ack in stand.host.take(Ack)] == [(life("x"), 5)] * 2
    assert [(to, sync.want) for to, sync in stand.host.take(Sync)] == [(life("x"), True)]


def test_a_large_table_is_shown_to_fewer_unknown_probers() -> None:
    """H471: 256 entries in a period; a thousand newcomers that probe before the news of them is here do not cost a thousand tables."""
    names = [f"m{number:03}" for number in range(127)]
    stand = Stand(*names, members_max=600).without_probes()
    for name in ("x", "y", "z"):
        stand.hear(name, Ping(5))
    assert [to for to, _ in stand.host.take(Sync)] == [life("x"), life("y")]
    assert stand.node.core.counts["greetings_held_back"] == 1
    stand.host.clock += 1.0
    for number in range(385):
        stand.say(f"n{number:03}", rumour(f"n{number:03}"))
    stand.clear()
    for seconds in (0.0, 1.0, 1.01):
        stand.host.clock += seconds
        stand.hear(f"z{seconds}", Ping(5))
    assert [to for to, _ in stand.host.take(Sync)] == [life("z0.0"), life("z1.01")], "512 entries: one in two periods"


def test_a_life_that_left_gets_an_ack_and_nothing_else() -> None:
    """Gossip 5.7: it is leaving, and wants no news."""
    stand = Stand("b", "c").without_probes()
    stand.say("c", rumour("c", 0, LEFT))
    stand.clear()
    stand.hear("c", Ping(5, (rumour("x"),)))
    assert [(to, ack) for to, ack in stand.host.take(Ack)] == [(life("c"), Ack(5))]
    assert stand.node.entry("x") is None


def test_a_former_life_is_answered_with_its_successor() -> None:
    """Gossip 5.7, 5.1 step 2: it hears that its time is over."""
    stand = Stand("b").without_probes()
    stand.say("c", rumour("c", 0, boot=5), boot=5)
    stand.hear("c", Ping(5), boot=2)
    ((to, ack),) = stand.host.take(Ack)
    assert (to, [each.id for each in ack.rumours]) == (life("c", 2), [life("c", 5)])


def test_what_was_not_asked_for_changes_nothing() -> None:
    """Gossip 5.2: late and foreign answers."""
    stand = Stand("b").without_probes()
    stand.hear("b", Nack(7))
    stand.hear("b", Ack(7))
    stand.hear("b", Met(()))
    assert stand.host.sent == []


def test_probe_now_is_next() -> None:
    """Foundation 3 (Lists): an election asks for it; at once if no probe is open."""
    at = probing(*"bcdefghij")
    wanted = next(name for name in "jihgfedcb" if name != at.target)
    at.stand.answer_probe()
    at.stand.node.probe_now(life(wanted))
    at.stand.host.pass_time(0.0)
    assert [to for to, _ in at.stand.host.take(Ping)] == [life(wanted)]
