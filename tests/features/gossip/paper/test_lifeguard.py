"""Lifeguard: LHA-Probe, LHA-Suspicion and the buddy system.  Spec: gossip 5.2, 5.4, 5.6, D12; A. Dadgar, J. Phillips, J. Currey, 2017."""

from __future__ import annotations

from math import log

import pytest

from holdfast.features.gossip.protocol import profiles
from holdfast.features.gossip.protocol.messages import Ack, Nack, Ping, PingReq
from tests.features.gossip.stand import SUSPECT, Stand, life, place, rumour

OTHERS = tuple(f"m{number:02}" for number in range(9))
S = 8  # the limit of the local health multiplier
K = 3  # confirmations that bring a suspicion to its shortest


def lifeguard(*others: str) -> Stand:
    """The profile with which the laboratory compares: alpha 4, and none of gossip D16."""
    found = profiles.lifeguard()
    return Stand(*(others or OTHERS), config=found.config, rules=found.rules)


def fail(stand: Stand, nacks: int) -> None:
    """One probe that has no answer but so many NACKs of the three helpers."""
    while (probe := stand.node.prober.probe) is None or probe.asked:
        stand.host.pass_time(0.01)
    while not probe.asked:
        stand.host.pass_time(0.01)
    for helper in probe.asked[:nacks]:
        stand.hear(helper.name, Nack(probe.seq))
    while stand.node.prober.probe is probe:
        stand.host.pass_time(0.01)


@pytest.mark.parametrize("nacks, lhm", [(3, 0), (2, 1), (0, 3)])
def test_a_missed_nack_is_a_mark_against_oneself(nacks: int, lhm: int) -> None:
    """LHA-Probe: each nack that is missed costs one; a helper that answers at all shows that this member is heard."""
    stand = lifeguard()
    fail(stand, nacks)
    assert stand.node.lhm == lhm


def test_success_is_minus_one_and_refuting_plus_one() -> None:
    """LHA-Probe, the table of events: a successful probe takes one off, refuting a suspicion of oneself adds one."""
    stand = lifeguard()
    stand.say("m00", rumour("a", stand.node.inc, SUSPECT, "m00"))
    stand.say("m00", rumour("a", stand.node.inc, SUSPECT, "m00"))
    assert stand.node.lhm == 2
    while stand.node.prober.probe is None:
        stand.host.pass_time(0.01)
    stand.answer_probe()
    stand.host.pass_time(3.0)
    assert stand.node.lhm == 1


def test_the_multiplier_saturates() -> None:
    """LHA-Probe: a saturating counter, never below 0, never above S = 8."""
    stand = lifeguard()
    fail(stand, 3)
    assert stand.node.lhm == 0
    for _ in range(4):
        fail(stand, 0)
    assert stand.node.lhm == S


@pytest.mark.parametrize("lhm", [0, 1, S])
def test_period_and_timeout_grow_with_it(lhm: int) -> None:
    """LHA-Probe: ProbeInterval = Base (LHM + 1) and ProbeTimeout = Base (LHM + 1): both nine times as long at most."""
    stand = lifeguard()
    stand.node.core.worsen(lhm)
    while (probe := stand.node.prober.probe) is None:
        stand.host.pass_time(0.01)
    timeout, period = (base * (lhm + 1) for base in (stand.node.config.timeout, stand.node.config.period))
    stand.host.pass_time(probe.sent_at + timeout - 0.001 - stand.host.now)
    assert stand.host.take(PingReq) == []
    stand.host.pass_time(0.002)
    assert len(stand.host.take(PingReq)) == 3
    stand.host.pass_time(probe.sent_at + period - 0.001 - stand.host.now)
    assert stand.node.prober.probe is probe
    stand.host.pass_time(0.002)
    assert stand.node.prober.probe is not probe


def test_a_nack_comes_at_four_fifths_of_the_timeout() -> None:
    """LHA-Probe: a helper sends a nack at 80 % of the probe timeout if it was not answered, and forwards what comes after it."""
    stand = lifeguard().without_probes()
    stand.hear("m00", PingReq(7, life("m01"), place("m01")))
    ((_, ping),) = stand.host.take(Ping)
    stand.host.pass_time(0.8 * stand.node.config.timeout - 0.001)
    assert stand.host.take(Nack) == []
    stand.host.pass_time(0.002)
    assert stand.host.take(Nack) == [(life("m00"), Nack(7))]
    stand.hear("m01", Ack(ping.seq))
    assert [(to, ack.seq) for to, ack in stand.host.take(Ack)] == [(life("m00"), 7)]


@pytest.mark.parametrize("confirmations", range(K + 2))
def test_the_timeout_of_a_suspicion(confirmations: int) -> None:
    """LHA-Suspicion: max(Min, Max - (Max - Min) log(C+1) / log(K+1)); the member is buried then, and not before."""
    stand = lifeguard().without_probes()
    stand.say("m01", rumour("m00", 0, SUSPECT, "m01"))
    began_at = stand.host.now
    for number in range(confirmations):
        stand.say(f"m{number + 2:02}", rumour("m00", 0, SUSPECT, f"m{number + 2:02}"))
    least = 4.0  # alpha T log10 n, of ten members
    most = 6.0 * least
    wanted = max(least, most - (most - least) * log(confirmations + 1) / log(K + 1))
    stand.host.pass_time(began_at + wanted - 0.001 - stand.host.now)
    assert stand.status("m00") is SUSPECT
    stand.host.pass_time(0.002)
    assert "m00" not in stand.names


def test_the_first_k_confirmations_are_told_further() -> None:
    """LHA-Suspicion: the first K independent suspicions are gossiped again; the same accuser and later ones are not."""
    stand = lifeguard().without_probes()
    told = []
    for name in ("m01", "m02", "m02", "m03", "m04", "m05"):
        stand.node.rumours.clear()
        stand.say(name, rumour("m00", 0, SUSPECT, name))
        told.append("m00" in stand.node.queue)
    assert told == [True, True, False, True, True, False]


def test_the_suspected_hears_of_it_with_the_next_probe() -> None:
    """Buddy system: a ping to a suspected member says so first, also when the rumour is no longer told otherwise."""
    stand = lifeguard()
    stand.say("m01", rumour("m00", 0, SUSPECT, "m01"))
    stand.node.rumours.clear()
    stand.node.probe_now(life("m00"))
    while not (pings := [message for to, message in stand.host.take(Ping) if to == life("m00")]):
        stand.host.pass_time(0.01)
    assert [(each.id, each.status) for each in pings[0].rumours[:1]] == [(life("m00"), SUSPECT)]
