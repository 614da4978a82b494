"""What a miss is worth: measured loss, evidence over several heartbeats, common cause, and the slow path.

Spec: fast-detection D8-D11, D27, section 1 (proof), section 9 (plan); paper 002, sections 4, 6.1 and 6.2. Checks that take a class are
run a second time with their rule taken out.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, prod
from random import Random

import pytest

from holdfast.features.leadership.detector.common import CommonCause
from holdfast.features.leadership.detector.config import FfdConfig
from holdfast.features.leadership.detector.detectors import NfdE, PairDetector, PhiAccrual, Temporal
from holdfast.features.leadership.detector.facts import PlanChanged
from holdfast.features.leadership.detector.ffd import FastDetector
from holdfast.features.leadership.detector.loss import Loss
from holdfast.features.leadership.detector.messages import WatchedOk
from holdfast.features.leadership.detector.plan import Evidence
from holdfast.host import Message
from tests.features.leadership import ffd_ablations as without
from tests.features.leadership.ffd_stand import DELAY, WATCHED, Stand, is_heartbeat

PAPER = FfdConfig(t_itv=1.0, t_lat=0.05, skew=0.0, p_fixed=0.1, common=0.0)
MEASURED = FfdConfig(t_itv=1.0, t_lat=0.05, skew=0.0)

Kind = type[FastDetector]


def acted_after(stand: Stand, at: float = 1009.5) -> list[int]:
    """Heartbeats missed until each acted report; the watched dies before heartbeat 1010."""
    stand.start()
    stand.run_to(at)
    stand.kill()
    stand.run(8.0)
    return [report.seq - 1009 for _, _, report in stand.reports(acted=True)]


def check_votes_carry_their_loss(kind: Kind) -> None:
    """D8: each monitor measures its own link and says so in its vote; the asker multiplies."""
    stand = Stand("bc", MEASURED, kind=kind).start()
    stand.fate = lambda source, target, message: () if is_heartbeat(message) and target == "c" and _seq(message) % 2 else (DELAY,)
    stand.run_to(1101.5)
    good, bad = stand["b"].links.p(WATCHED), stand["c"].links.p(WATCHED)
    assert good < 0.05
    assert 0.5 < bad < 0.65
    stand.kill()
    stand.run_to(1102.5)
    assert stand["b"].reports[-1][1].p_false == pytest.approx(good * bad, rel=0.01)


def check_a_death_teaches_nothing(kind: Kind) -> None:
    """D8: only a gap that a later heartbeat closes is loss; a dead watched does not make its links look bad."""
    stand = Stand("bcd", MEASURED, kind=kind).start()
    stand.run_to(1100.5)
    before = stand["b"].links.p(WATCHED)
    stand.kill()
    stand.run_to(1130.0)
    assert stand["b"].links.p(WATCHED) == before


def check_late_is_lost(kind: Kind) -> None:
    """Section 6.1, D8, D10: every fifth heartbeat is late for c, and every fifth comes to it only as a repeat: both were missed at
    their freshness point, and so the loss is 40 %, and the watched is told."""
    stand = Stand("bc", MEASURED, kind=kind).start()

    def fate(source: str, target: str, message: Message) -> tuple[float, ...]:
        if not isinstance(message, WatchedOk) or target != "c":
            return (DELAY,)
        if message.seq % 5 == 2:
            return () if message.after == 0 else (DELAY,)
        return (0.06,) if message.seq % 5 == 0 else (DELAY,)

    stand.fate = fate
    for second in range(1001, 1100):
        stand.run_to(second + 0.15)
        stand.leader.beat(["c"])
    assert 0.35 < stand["c"].links.stats(stand.hosts[WATCHED].me).p < 0.45
    assert stand["c"].detector.missed_bits(1100).bit_count() in (12, 13)  # of 32


def check_heartbeats_multiply(kind: Kind) -> None:
    """D9: one formula for every size: five monitors need one heartbeat, two need three, one needs five (the temporal scheme)."""
    assert [acted_after(Stand(names, PAPER, kind=kind))[:1] for names in ("bcdef", "bc", "b")] == [[1], [3], [5]]


def check_life_takes_evidence_back(kind: Kind) -> None:
    """D9: every second heartbeat is lost everywhere, the others come: what was missed before counts no more."""
    stand = Stand("bc", PAPER, kind=kind).start()
    stand.fate = lambda source, target, message: () if is_heartbeat(message) and _seq(message) % 2 else (DELAY,)
    stand.run_to(1012.5)
    assert len(stand.reports()) >= 5
    assert stand.reports(acted=True) == []


def check_common_cause_bounds_a_heartbeat(kind: Kind) -> None:
    """D10: one heartbeat can never beat c: with c = .01 five misses are worth .01001, and 1e-5 takes three heartbeats."""
    config = FfdConfig(t_itv=1.0, t_lat=0.05, skew=0.0, p_fixed=0.1, common=0.01)
    stand = Stand("bcdef", config, kind=kind)
    assert acted_after(stand)[:1] == [3]
    assert stand.reports()[0][2].p_false == pytest.approx(0.01 + 1e-5)


CHECKS: list[tuple[Callable[[Kind], None], Kind]] = [
    (check_votes_carry_their_loss, without.EqualLosses),
    (check_a_death_teaches_nothing, without.TrainsOnSilence),
    (check_late_is_lost, without.LateIsInTime),
    (check_heartbeats_multiply, without.OneHeartbeatOnly),
    (check_life_takes_evidence_back, without.NoReset),
    (check_common_cause_bounds_a_heartbeat, without.NoCommonCause),
]


@pytest.mark.parametrize("check", [check for check, _ in CHECKS], ids=lambda check: check.__name__)
def test_rule(check: Callable[[Kind], None]) -> None:
    """D8, D9, D10: each check's docstring says what its rule is."""
    check(FastDetector)


@pytest.mark.parametrize("check, kind", CHECKS, ids=lambda each: each.__name__)
def test_rule_is_needed(check: Callable[[Kind], None], kind: Kind) -> None:
    """D8, D9, D10: with the rule taken out, the same check fails."""
    with pytest.raises(AssertionError):
        check(kind)


def coverage(kind: type[Loss], p: float, samples: int, runs: int = 200) -> float:
    """How often what is used is at least the true loss."""
    random, covered = Random(f"{p}/{samples}"), 0
    for _ in range(runs):
        loss = kind(MEASURED)
        for _ in range(samples):
            loss.add(random.random() < p)
        covered += loss.p >= p
    return covered / runs


@pytest.mark.parametrize("p", [0.001, 0.01, 0.1])
def test_used_loss_is_above_the_true_one(p: float) -> None:
    """D8: the upper confidence limit covers the true loss in at least 95 % of all cases; the mean does in about half."""
    for samples in (50, 300):
        assert coverage(Loss, p, samples) >= 0.95
    assert coverage(without.MeanLoss, p, 300) < 0.8


def estimate(kind: type[CommonCause], c: float, p: float, monitors: int, heartbeats: int, seed: int = 1) -> float:
    """What the watched believes after so many heartbeats to monitors that report what they missed."""
    random = Random(f"{seed}/{c}/{p}")
    cause, names = kind(MEASURED), [f"m{number}" for number in range(monitors)]
    bits = dict.fromkeys(names, 0)
    for seq in range(heartbeats):
        cause.sent(seq, names)
        common = random.random() < c
        for name in names:
            if common or random.random() < p:
                bits[name] = (bits[name] << 1 | 1) & 0xFFFFFFFF
            else:
                cause.report(name, 1, seq, bits[name])
                bits[name] = bits[name] << 1 & 0xFFFFFFFF
    return cause.c


def test_common_cause_is_measured() -> None:
    """D10: c = 1 % is found after 5000 heartbeats; without any, c stays below a hundredth of that."""
    assert 0.008 <= estimate(CommonCause, 0.01, 0.1, 6, 5000) <= 0.013
    assert estimate(CommonCause, 0.0, 0.1, 6, 2000) < 1e-4


def test_independent_losses_are_no_common_cause() -> None:
    """D10: two bad links miss the same heartbeat in 9 % of all cases; what independence predicts is subtracted."""
    assert estimate(CommonCause, 0.0, 0.3, 2, 3000) < 0.015
    assert estimate(without.NothingExpected, 0.0, 0.3, 2, 3000) > 0.08


def test_common_cause_is_published_and_told() -> None:
    """D10, section 9: the watched measures c from MONITOR-OKs; the monitors' plan grows with it, and they say so."""
    stand = Stand("bcdef", FfdConfig(t_itv=1.0, t_lat=0.05, skew=0.0, p_fixed=0.1, p_m=1e-4)).start()
    stand.fate = lambda source, target, message: () if is_heartbeat(message) and _seq(message) % 50 == 0 else (DELAY,)
    stand.run_to(1000.0 + 400.0)
    assert stand.leader.side.common == pytest.approx(0.02, rel=0.2)
    plans = [event.plan.heartbeats for event in stand.hosts["b"].emitted if isinstance(event, PlanChanged)]
    assert plans == [1, 2, 3]  # p_false of one heartbeat: 1e-5 and c0, then c comes nearer to .02 with every event
    assert stand["b"].detector.demand(1e-4).heartbeats == 3


def test_slow_path_counts_missed_heartbeats() -> None:
    """D11: m is the number of missed heartbeats, so the slow path begins m t_itv + t_lat after the last one, not m + 1."""
    stand = Stand("b", PAPER).start()
    stand.run_to(1010.5)
    detector = stand["b"].detector
    assert detector.fresh_at == pytest.approx(1011.05)
    assert PAPER.m_omega(0.1) == 5
    assert detector.omega_at() == pytest.approx(1010.0 + 5 * PAPER.t_itv + PAPER.lat)
    assert PAPER.m_omega(0.1, 6) == 6  # Amplification: in paper mode each of n - 1 may demote.
    assert detector.omega_at(6) == pytest.approx(detector.omega_at() + PAPER.t_itv)


@pytest.mark.parametrize("p, k", [(0.3, 3), (0.5, 4)])
def test_lost_votes_do_not_weaken_the_accuracy(p: float, k: int) -> None:
    """Section 1: E[W] <= 1 for any chance that query and vote get through, so acted reports stay below P_m = p^k."""
    random, trials = Random(f"{p}/{k}"), 30_000
    for others, heard in ((k - 1, 1.0), (k, (1 - p) ** 2), (2 * k, 0.5)):
        acted = 0
        for _ in range(trials):
            if random.random() >= p:
                continue
            votes = [random.random() < p for _ in range(others) if random.random() < heard]
            acted += all(votes) and 1 + len(votes) >= k
        assert acted / trials <= p**k + 3 * (p**k / trials) ** 0.5


def mistakes(detector: PairDetector, heartbeats: int, p: float) -> float:
    """Per heartbeat of a live subject whose heartbeats are lost independently."""
    random, wrong, due = Random(7), 0, float("inf")
    for seq in range(heartbeats):
        if random.random() >= p:
            at = seq + random.expovariate(100)
            wrong += at > due
            detector.arrived(seq, at)
            due = detector.deadline()
    return wrong / heartbeats


def test_phi_is_no_accuracy() -> None:
    """D27: under loss times between arrivals are geometric: phi = 8 promises 1e-8 and makes 1e-3 and more; NFD-E mistakes every loss."""
    assert mistakes(PhiAccrual(8.0, interval=1.0), 6000, 0.1) > 1e-3
    assert mistakes(NfdE(0.05, interval=1.0), 3000, 0.1) == pytest.approx(0.09, rel=0.3)
    assert mistakes(Temporal(3, interval=1.0, slack=0.05), 3000, 0.1) == pytest.approx(0.1**3 * 0.9, abs=1e-3)


def test_product_of_the_votes() -> None:
    """Section 4: P_m = p_L^k; with different links the product of theirs, and no heartbeat is counted twice."""
    losses = [0.1, 0.02, 0.3]
    evidence = Evidence()
    evidence.fold(7, losses, 0.0)
    evidence.fold(7, losses, 0.0)
    assert log(evidence.p_false) == pytest.approx(log(prod(losses)))


def _seq(message: Message) -> int:
    assert isinstance(message, WatchedOk)
    return message.seq
