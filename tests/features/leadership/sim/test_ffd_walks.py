"""Fast detection under everything at once: loss, doubling, delays, pauses, clocks that are off, terms that change.

Spec: fast-detection 7 (I5 ReportSound, I6 VoteTruth, I7 Speed, I8 Accuracy). What is said is compared with what is true.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.facts import Report
from holdfast.features.leadership.detector.messages import Vote, VoteKind
from holdfast.host import Message
from tests.features.leadership.ffd_stand import WATCHED, Stand, is_heartbeat

CONFIG = FfdConfig(t_itv=1.0, t_lat=0.05, p_fixed=0.3, common=0.0, p_m=0.027)


class Walk:
    """A stand in which chance rules, with an eye on every message."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"walk/{seed}")
        monitors = "bcdefg"[: self.random.randint(1, 6)]
        quorum = self.random.choice([None, (len(monitors) + 1) // 2 + 1])
        self.stand = Stand(monitors, CONFIG, quorum=quorum, seed=seed)
        for host in self.stand.hosts.values():
            host.clock_error = self.random.uniform(0, 1e5)
        self.loss, self.doubled = self.random.choice([0.0, 0.1, 0.4]), self.random.choice([0.0, 0.2])
        self.slow = self.random.choice([0.0, 0.05])  # share of messages that take up to three seconds
        self.stand.fate = self.fate
        self.stand.start()

    def fate(self, source: str, target: str, message: Message) -> Sequence[float]:
        if isinstance(message, Vote):
            self.check_vote(source, message)
        copies = (self.random.random() >= self.loss) + (self.random.random() < self.doubled)
        return [self.random.uniform(0, 3.0) if self.random.random() < self.slow else self.random.expovariate(100) for _ in range(copies)]

    def check_vote(self, voter: str, vote: Vote) -> None:
        """I6: whoever says that it missed heartbeat i holds none from i on; whoever says that it has it does (slow: is not missing one)."""
        detector = self.stand[voter].detector
        if vote.kind is VoteKind.MISSED:
            assert detector.last_seq < vote.seq or detector.missing
        elif vote.kind is VoteKind.HAVE:
            assert detector.last_seq >= vote.seq or not detector.missing

    def check_report(self, report: Report) -> None:
        """I5."""
        groups = [report.misses, report.silent, report.unheard, report.have]
        named = [name for group in groups for name in group]
        assert len(named) == len(set(named))
        assert set(named) <= set(self.stand.monitors)
        assert 0 <= report.p_false <= 1
        if report.acted and not report.slow:
            assert report.p_false <= CONFIG.p_m * (1 + 1e-6)
            assert len(report.misses) >= (self.stand.quorum or 1)

    def step(self) -> None:
        chance, name = self.random.random(), self.random.choice(self.stand.monitors)
        host = self.stand.hosts[name]
        if host.stopped_at is not None:
            self.stand.resume(name)
        elif chance < 0.1:
            self.stand.pause(name)
        elif chance < 0.15:
            term = Term(0, self.stand.leader.round + 1)
            self.stand.leader.round += 1
            for each in self.stand.monitors:
                self.stand[each].detector.watch(WATCHED, term, self.stand.monitors)
        elif chance < 0.3 and self.stand.quorum is not None:
            self.stand[name].detector.open_slow()
        elif chance < 0.4:
            self.stand.leader.beat(self.stand.monitors)
        self.stand.run(self.random.uniform(0, 1.5))


@pytest.mark.parametrize("seed", range(30))
def test_walk(seed: int) -> None:
    """I5, I6: whatever happens, reports are sound and votes are true; then the watched dies, and is reported one heartbeat after I7's
    bound at the latest: after such a time the margins of two monitors may differ by more than a ballot lasts."""
    walk = Walk(seed)
    for _ in range(60):
        walk.step()
    for _, _, report in walk.stand.reports():
        walk.check_report(report)
    stand = walk.stand
    for name, host in stand.hosts.items():
        if host.stopped_at is not None:
            stand.resume(name)
    walk.loss = walk.slow = 0.0
    stand.quorum = None
    stand.run(12.0)  # What was under way has come, K is complete again, the links are calm.
    died_at = stand.now
    stand.kill()
    stand.run(6.0)
    found = [at for at, _, report in stand.reports(acted=True) if at > died_at]
    heartbeats = 3 if len(stand.monitors) == 1 else 2 if len(stand.monitors) == 2 else 1  # .3 ** 3 meets .027
    assert found
    assert found[0] - died_at <= (heartbeats + 1) * CONFIG.t_itv + CONFIG.delta + CONFIG.w


@pytest.mark.parametrize("monitors", ["bcd", "bcdefg"])
def test_accuracy(monitors: str) -> None:
    """I8, G1: heartbeats, queries and votes are lost independently at p = .3; acted reports about a live watched stay below P_m = p^3
    per heartbeat (one-sided test at 99 %)."""
    stand, random, heartbeats = Stand(monitors, CONFIG), Random(monitors), 1500
    stand.fate = lambda source, target, message: () if random.random() < 0.3 else (random.expovariate(100),)
    stand.start()
    stand.run(heartbeats * CONFIG.t_itv)
    acted = {report.seq for _, _, report in stand.reports(acted=True)}
    assert stand.reports()
    assert len(acted) / heartbeats <= CONFIG.p_m + 2.33 * (CONFIG.p_m / heartbeats) ** 0.5


def test_speed_without_loss() -> None:
    """I7: every moment of death, delays but no loss: an acted report within t_itv + delta + w of a leader known to all."""
    random = Random(3)
    config = FfdConfig(t_itv=1.0, t_lat=0.05, p_fixed=0.1, common=0.0)
    for _ in range(15):
        stand = Stand("bcdefg", config)
        stand.fate = lambda source, target, message: (min(random.expovariate(100), 0.05),)
        stand.start()
        stand.run(30.0 + random.random())
        assert [report for _, _, report in stand.reports(acted=True)] == []
        died_at = stand.now
        stand.kill()
        stand.run(2.0)
        assert stand.reports(acted=True)[0][0] - died_at <= config.t_itv + config.delta + config.w


def test_heartbeats_lost_to_a_minority_are_dismissed() -> None:
    """G7 for the detector: one deaf monitor asks at every heartbeat and is told every time; nothing is acted."""
    stand = Stand("bcdef", FfdConfig(p_fixed=0.1, common=0.0)).start()
    stand.run(5.5)
    stand.fate = lambda source, target, message: () if is_heartbeat(message) and target == "b" else (0.005,)
    stand.run(20.0)
    assert stand.reports() == []
    assert len(stand.dismissals()) >= 19
