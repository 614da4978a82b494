"""Seeded sweeps of Omega and of the heartbeat detector, and proof that their checkers can fail.

Spec: fast-detection 7 (I4, I9, I10 in calm), D11, D12, D25; foundation F1, F10, F11.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import floor

import pytest

from holdfast.events import Event
from holdfast.features.leadership.detector.detectors import Temporal
from holdfast.host import Address, Host
from holdfast.lab.host import LabHost
from holdfast.lab.links import Fixed, Link
from holdfast.lab.network import PORT
from holdfast.lab.scenario import Scenario, run
from holdfast.lab.world import World
from holdfast.papers.detection.lab.scenarios.heartbeat import HeartbeatScenario, Parameters
from holdfast.papers.detection.lab.scenarios.omega import OmegaScenario
from holdfast.papers.detection.protocol.heartbeat import HeartbeatDetector, Silenced
from holdfast.papers.detection.protocol.omega import Omega, RoundEntered
from tests import sizes
from tests.papers.detection import ablations
from tests.support.search import Search

SEEDS = sizes.seeds()
HEARTBEAT_SEEDS = sizes.seeds(300)  # of which the rarest branch needs most
RARE = ("provisional", "old_life") if sizes.is_all() else ()  # branches that take more than the 20 seeds of `make test`
ABLATION_SEEDS = 400  # the rarest of these mistakes shows once in about a hundred runs


def violations(scenario: Scenario, seeds: range) -> list[str]:
    outcomes = (run(scenario, seed) for seed in seeds)
    return [f"{outcome.violation}: {outcome.replay}" for outcome in outcomes if not outcome.ok]


@pytest.mark.parametrize(
    "machine, caught_by",
    [
        (ablations.CandidateStaysOut, {"I9 agreed", "I10 stable"}),
        (ablations.TimerOnlyAtElection, {"I10 stable"}),
        (ablations.OneOkElects, {"D25 second-ok"}),
        (ablations.DoubledOkElects, {"D25 second-ok"}),
        (ablations.AnyLifeOfCandidate, {"leader-consented"}),
        (ablations.AnybodyIsNamed, {"leader-consented"}),
        (ablations.RoundsBeginAgain, {"I4 rounds-grow"}),
        (ablations.PausedJudges, {"F11 paused-judge-nobody"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_omega_checkers_catch(machine: type[Omega], caught_by: set[str], search: Search) -> None:
    """D12 (a), D12 (b), D25, I4, F11: each rule taken out is found by the checker that is for it."""
    assert search(ablations.OmegaAblation(machine), ABLATION_SEEDS) in caught_by


@pytest.mark.parametrize(
    "machine, caught_by",
    [
        (ablations.PausedSilences, "F11 paused-silence-nobody"),
        (ablations.JudgesOnce, "detected-in-time"),
        (ablations.SilencedForGood, "informed"),
        (ablations.AnyLife, "F1 lives-grow"),
        (ablations.BacklogIsTimed, "detected-in-time"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_heartbeat_checkers_catch(machine: type[HeartbeatDetector], caught_by: str, search: Search) -> None:
    """F1, F10, F11: each rule taken out is found by the checker that is for it."""
    assert search(ablations.HeartbeatAblation(machine), ABLATION_SEEDS) == caught_by


@pytest.mark.parametrize("more, caught_by", [(-1, "no-false-silence"), (1, "detected-in-time")], ids=["one-less", "one-more"])
def test_off_by_one_is_caught(more: int, caught_by: str, search: Search) -> None:
    """D11: one heartbeat less accuses the living, one more (the paper's delta) finds the dead too late."""
    assert search(ablations.HeartbeatAblation(more=more), ABLATION_SEEDS) == caught_by


class MarkedOmega(OmegaScenario):
    """Counts which branches a sweep took."""

    def __init__(self) -> None:
        self.omegas: list[Omega] = []
        self.marks: Counter[str] = Counter()

    def make(self, host: Host, members: dict[str, Address], alpha: float) -> Omega:
        self.omegas.append(super().make(host, members, alpha))
        assert isinstance(host, LabHost)
        if len(host.world.listeners) == 0:
            host.world.listeners.append(self._on_event)
        return self.omegas[-1]

    def _on_event(self, host: LabHost, event: Event) -> None:
        if isinstance(event, RoundEntered):
            self.marks[event.why] += 1


def test_omega_sweep() -> None:
    """I4, I9, I10 in calm, D25, F11 at every event of 20 seeds (200 nightly); one seed in ten through the real wire.

    A branch that no seed takes is not tested: a restarted candidate, every reason for a round.
    """
    scenario = MarkedOmega()
    assert violations(scenario, range(SEEDS)) == []
    for omega in scenario.omegas:
        scenario.marks.update(omega.counts)
    assert all(scenario.marks[mark] for mark in ("start", "silence", "told", "restarted")), scenario.marks


class MarkedHeartbeat(HeartbeatScenario):
    """Counts which branches a sweep took."""

    def __init__(self) -> None:
        self.marks: Counter[str] = Counter()
        self.detectors: list[HeartbeatDetector] = []

    def make(self, host: Host, peers: Mapping[str, Address], parameters: Parameters) -> HeartbeatDetector:
        marks, inner = self.marks, super().make(host, peers, parameters)

        class Marked(Temporal):
            def arrived(self, seq: int, at: float, *, timed: bool = True) -> bool:
                if not timed:
                    marks["provisional" if self.deadline() > 1e300 else "backlog"] += 1
                return super().arrived(seq, at, timed=timed)

        interval, m = float(parameters["interval"]), int(parameters["m"])
        inner._make = lambda: Marked(m, interval=interval, slack=inner.late_timeout)
        self.detectors.append(inner)
        return inner


def test_heartbeat_sweep() -> None:
    """Accuracy without loss, Proposition 4.1 from above, F1, F11 at every event of 20 seeds (300 nightly); a tenth through the real wire.

    A branch that no seed takes is not tested: the backlog of a pause, a first word in it, former lives, doubled heartbeats.
    """
    scenario = MarkedHeartbeat()
    assert violations(scenario, range(HEARTBEAT_SEEDS)) == []
    for detector in scenario.detectors:
        scenario.marks.update(detector.counts)
    assert all(scenario.marks[mark] for mark in ("backlog", "stale", *RARE)), scenario.marks


@pytest.mark.parametrize("machine, in_time", [(HeartbeatDetector, True), (ablations.GridIgnored, False)], ids=["real", "GridIgnored"])
def test_subject_that_was_stopped_is_still_detected_in_time(machine: type[HeartbeatDetector], in_time: bool) -> None:
    """Section 5: a heartbeat that left off the grid (its sender was stopped) must not make the next deadline late."""
    interval, slack, m, delay = 1.0, 0.05, 1, 0.01
    peers = {name: Address(name, PORT) for name in ("monitor", "subject")}
    world = World(
        3,
        lambda host: [
            machine(host, peers, interval=interval, late_timeout=slack, make=lambda: Temporal(m, interval=interval, slack=slack))
        ],
        names=peers,
        link=Link(Fixed(delay)),
    )
    accused_at: list[float] = []
    world.listeners.append(lambda host, event: accused_at.append(world.now) if isinstance(event, Silenced) else None)
    world.run(5 * interval)
    subject = world.nodes["subject"]
    grid = world.now + (floor(subject.now / interval) + 1) * interval - subject.now
    world.run(grid - 0.1)
    world.stop("subject")
    world.run(grid + 0.9 * interval)
    world.resume("subject")  # It says the heartbeat of this interval 0.9 intervals late.
    world.run(grid + interval + 1e-6)
    world.crash("subject")
    crashed_at = world.now
    world.run(crashed_at + 5 * interval)
    assert (accused_at[-1] - crashed_at <= m * interval + slack + delay + 1e-3) == in_time
