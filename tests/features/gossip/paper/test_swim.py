"""SWIM, sections 3.1 and 4.1 to 4.3: detector, rumours, suspicion, rounds.  Spec: gossip 5, D2; A. Das, I. Gupta, A. Motivala, 2002."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, log10

import pytest

from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.config import GossipConfig
from holdfast.features.gossip.protocol.messages import Ack, Gossip, Ping, PingReq, Status
from holdfast.features.gossip.protocol.probe import Probe
from tests.features.gossip.stand import ALIVE, DEAD, SUSPECT, Stand, life, place, rumour

OTHERS = tuple(f"m{number:02}" for number in range(9))


def swim(*others: str) -> Stand:
    """The profile with which the laboratory compares; rumours ride on probes alone, as SWIM has it."""
    found = profiles.swim()
    config = GossipConfig(lhm_max=0, confirmations=0, patience=found.config.patience, beta=found.config.beta, gossip_fanout=0)
    return Stand(*others, config=config, rules=found.rules)


def probing(stand: Stand) -> Probe:
    """Up to the first ping."""
    while stand.node.prober.probe is None:
        stand.host.pass_time(0.01)
    return stand.node.prober.probe


def live(stand: Stand, periods: int) -> list[str]:
    """The members that are probed; each answers."""
    asked: list[str] = []
    for _ in range(periods * 100):
        stand.host.pass_time(0.01)
        for to, message in stand.host.take(Ping):
            asked.append(str(to).split("#")[0])
            stand.hear(asked[-1], Ack(message.seq))
    return asked


@pytest.mark.parametrize("n", [3, 10, 60])
def test_one_ping_a_period_whatever_the_size(n: int) -> None:
    """SWIM 3.1: "a random member is selected [...] and a ping message sent to it", once per period of T; the load does not grow with n."""
    stand = swim(*(f"m{number:02}" for number in range(n - 1)))
    assert len(live(stand, 20)) == 20


@pytest.mark.parametrize("k", [0, 1, 3])
def test_k_members_are_asked_for_a_silent_one(k: int) -> None:
    """SWIM 3.1: after a timeout "Mi selects k members at random and sends each a ping-req(Mj) message"; they are not the target."""
    stand = Stand(*OTHERS, config=GossipConfig(k_indirect=k))
    probe = probing(stand)
    stand.host.pass_time(0.4)
    asked = stand.host.take(PingReq)
    assert len({to for to, _ in asked}) == k
    assert all(message.target == probe.target != to for to, message in asked)


def test_an_indirect_ack_is_as_good_as_a_direct_one() -> None:
    """SWIM 3.1: members that got a ping-req ping the target and forward its ack; any ack until the end of the period is enough."""
    helper = swim("b", "c").without_probes()
    helper.hear("b", PingReq(7, life("c"), place("c")))
    ((to, ping),) = helper.host.take(Ping)
    assert to == life("c")
    helper.hear("c", Ack(ping.seq))
    assert [(to, ack.seq) for to, ack in helper.host.take(Ack)] == [(life("b"), 7)]

    asker = swim(*OTHERS)
    probe = probing(asker)
    asker.host.pass_time(0.45)
    asker.hear(probe.asked[0].name, Ack(probe.seq))
    asker.host.pass_time(0.6)
    assert asker.status(probe.target.name) is ALIVE


def test_silence_until_the_end_of_the_period_is_a_suspicion() -> None:
    """SWIM 3.1, 4.2: no ack, direct or indirect, until the period is over: the member is suspected, and stays in the list."""
    stand = swim(*OTHERS)
    probe = probing(stand)
    stand.host.pass_time(probe.sent_at + 1.0 - stand.host.now - 0.001)
    assert stand.status(probe.target.name) is ALIVE
    stand.host.pass_time(0.002)
    assert stand.status(probe.target.name) is SUSPECT
    assert probe.target.name in stand.names


def test_rumours_ride_on_the_messages_of_the_detector() -> None:
    """SWIM 4.1: they are piggybacked on ping, ping-req and ack, and have no datagrams of their own."""
    stand = swim(*OTHERS)
    stand.say("m00", rumour("newcomer"))
    probing(stand)
    stand.hear("m01", Ping(1))
    stand.host.pass_time(0.4)
    carried = [(type(message), message.rumours) for _, message in stand.host.sent if isinstance(message, Ping | Ack | PingReq)]
    assert {kind for kind, _ in carried} == {Ping, Ack, PingReq}
    assert all("newcomer" in [each.id.name for each in rumours] for _, rumours in carried)
    assert stand.host.take(Gossip) == []


@pytest.mark.parametrize("n", [4, 20, 200])
def test_a_rumour_is_told_a_logarithmic_number_of_times(n: int) -> None:
    """SWIM 4.1: each member piggybacks an event at most lambda log n times; those told fewer times are preferred."""
    stand = Stand(*(f"m{number:03}" for number in range(n - 2)), members_max=300).without_probes()
    stand.node.rumours.clear()
    stand.say("m000", rumour("old"))
    told = 0
    while [each.id.name for each in stand.node.rumours.pick(life("m001"))] == ["old"]:
        told += 1
        if told == 2:
            stand.say("m000", rumour("young"))
            assert [each.id.name for each in stand.node.rumours.pick(life("m001"))] == ["young", "old"]
            stand.node.rumours.discard("young")
            told += 1
    assert told == ceil(4 * log10(stand.node.table.n + 1))


# What is held, what is said, and whether it overrides: SWIM 4.2 prints these as a list of preferences.
OVERRIDES = [
    ((0, ALIVE), (1, ALIVE), True), ((1, SUSPECT), (1, ALIVE), False), ((1, SUSPECT), (2, ALIVE), True),
    ((1, SUSPECT), (1, SUSPECT), False), ((1, SUSPECT), (2, SUSPECT), True), ((1, ALIVE), (1, SUSPECT), True),
    ((2, ALIVE), (1, SUSPECT), False), ((1, DEAD), (1, SUSPECT), False), ((1, DEAD), (1, ALIVE), False),
]  # fmt: skip


@pytest.mark.parametrize("held, said, wins", OVERRIDES)
def test_the_order_of_messages(held: tuple[int, Status], said: tuple[int, Status], wins: bool) -> None:
    """SWIM 4.2: {Alive, inc=i} overrides suspect and alive of j < i; {Suspect, inc=i} alive of j <= i and suspect of j < i."""
    stand = swim("b", "c", "d").without_probes()
    stand.say("b", rumour("c", *held, "b"))
    stand.say("d", rumour("c", *said, "d"))
    found = stand.node.entry("c")
    assert found is not None
    assert (found.inc, found.status) == (said if wins else held)


def test_a_death_is_not_the_end_of_a_life() -> None:
    """SWIM 4.2, gossip D2: Confirm overrides every inc there; here a larger inc revives, or a false one would need a restart."""
    stand = swim("b", "c").without_probes()
    stand.say("b", rumour("c", 0, DEAD, "b"))
    assert stand.status("c") is DEAD
    stand.say("c", rumour("c", 1))
    assert stand.status("c") is ALIVE


def test_a_suspicion_ends_with_a_death_or_an_answer() -> None:
    """SWIM 4.2: a suspected member that is not heard of within the timeout is declared faulty; an Alive with a larger inc cancels it."""
    stand = swim("b", "c", "d").without_probes()
    for name in ("b", "c"):
        stand.say("d", rumour(name, 0, SUSPECT, "d"))
    wait = stand.node.config.suspicion_min
    stand.host.pass_time(wait / 2)
    stand.say("c", rumour("c", 1))
    stand.host.pass_time(wait / 2 + 0.001)
    assert [stand.status(name) for name in "bc"] == [DEAD, ALIVE]
    assert stand.names == ["a", "c", "d"]


def test_only_its_owner_raises_an_incarnation() -> None:
    """SWIM 4.2: a member increments its own number, when it hears that it is suspected in its present incarnation, and no other one."""
    stand = swim("b", "c").without_probes()
    before = stand.node.inc
    stand.say("b", rumour("a", before, SUSPECT, "b"))
    assert stand.node.inc == before + 1
    stand.say("c", rumour("a", before, SUSPECT, "c"))
    assert stand.node.inc == before + 1
    stand.say("b", rumour("c", 0, SUSPECT, "b"))
    found = stand.node.entry("c")
    assert found is not None
    assert found.inc == 0


def test_rounds_bound_the_time_to_the_next_probe() -> None:
    """SWIM 4.3: round-robin over a list that is shuffled anew: two probes of one member are at most 2n-1 periods apart."""
    stand = swim(*OTHERS)
    asked = live(stand, 40 * len(OTHERS))
    n = len(OTHERS) + 1
    gaps = [later - earlier for name in OTHERS for earlier, later in pairwise(at for at, each in enumerate(asked) if each == name)]
    assert max(gaps) <= 2 * n - 1
    assert max(gaps) > n  # the rounds differ
