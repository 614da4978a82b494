"""Seeded sweeps of the election in both modes, and proof that their checkers can fail.

Spec: fast-detection 7 (I1-I6, I9, I11), D12, D14, D17, D18, E19; foundation F4, F9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest

from holdfast.events import Event
from holdfast.features.leadership.detector.config import ElectionConfig, Term
from holdfast.features.leadership.detector.facts import Suspect
from holdfast.host import Host, NodeId
from holdfast.lab.checker import Checker
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario, Setup, run
from holdfast.lab.violation import Violation
from holdfast.lab.world import World
from holdfast.papers.detection.lab.checkers.election import FenceOrder
from holdfast.papers.detection.lab.scenarios.election import ElectionScenario
from holdfast.papers.detection.lab.scenarios.paper import PaperScenario
from holdfast.papers.detection.lab.scenarios.quorum import QuorumScenario
from holdfast.papers.detection.protocol.election import LeaderElection
from holdfast.papers.detection.protocol.election_facts import Leading, LostLead, TermEntered
from holdfast.papers.detection.protocol.termstore import TermStore
from holdfast.papers.detection.protocol.views_feed import ViewsFeed
from tests import sizes
from tests.features.leadership.ffd_ablations import AnswersFromFlag
from tests.papers.detection import election_ablations as ablations
from tests.papers.detection.election_ablations import ElectionAblation, with_detector, with_monitor, with_promises, with_voter
from tests.support.search import Search

SEEDS = sizes.seeds()
ABLATION_SEEDS = 200  # the rarest of these mistakes shows once in about a hundred runs


def violations(scenario: Scenario, seeds: range) -> list[str]:
    outcomes = (run(scenario, seed) for seed in seeds)
    return [f"{outcome.violation}: {outcome.replay}" for outcome in outcomes if not outcome.ok]


class Marks(Checker):
    """Counts which branches a sweep took."""

    name = "marks"

    def __init__(self, marks: Counter[str]) -> None:
        self._marks = marks

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, TermEntered | LostLead):
            self._marks[f"{type(event).__name__} {event.why}"] += 1
        elif isinstance(event, Suspect):
            self._marks[f"{'slow' if event.slow else 'fast'} {'acted' if event.acted else 'not acted'}"] += 1


class Marked(ElectionScenario):
    """One of the two scenarios, with marks."""

    def __init__(self, scenario: ElectionScenario) -> None:
        self.name, self.mode = scenario.name, scenario.mode
        self.marks: Counter[str] = Counter()
        self.elections: list[LeaderElection] = []
        self.feeds_made: list[ViewsFeed] = []

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [*super().checkers(setup), Marks(self.marks)]

    def make(self, host: Host, config: ElectionConfig, store: TermStore, voters: Sequence[str]) -> LeaderElection:
        self.elections.append(super().make(host, config, store, voters))
        return self.elections[-1]

    def make_feed(self, host: Host, election: LeaderElection) -> ViewsFeed:
        self.feeds_made.append(super().make_feed(host, election))
        return self.feeds_made[-1]

    def count(self) -> Counter[str]:
        for election in self.elections:
            self.marks.update(election.counts)
            self.marks.update(election.ffd.counts)
            self.marks.update({f"promise {what}": times for what, times in election._voter._promises.counts.items()})
        for feed in self.feeds_made:
            self.marks["views held"] += feed.released > 1
        return self.marks


REASONS = ("TermEntered view", "TermEntered told", "TermEntered reported", "TermEntered resigned", "TermEntered spent")
LOSSES = ("LostLead demoted", "LostLead resigned", "LostLead not a member")
BALLOTS = ("fast acted", "fast not acted", "ballots_dismissed", "votes", "deferred", "late_vote", "other_view", "stranger")
RARE = ("overflow",) if sizes.is_all() else ()  # takes more than the 20 seeds of `make test`
LEASES = ("TermEntered lapsed", "TermEntered gave up", "LostLead lapsed", "slow acted", "slow not acted", "promise refused", "views held")


def test_paper_sweep() -> None:
    """I1, I4, I5, I6, D18 at every event of 20 seeds (200 nightly), I9 at their ends, a tenth through the real wire; no branch left out."""
    scenario = Marked(PaperScenario())
    assert violations(scenario, range(SEEDS)) == []
    marks = scenario.count()
    assert [mark for mark in (*REASONS, *LOSSES, *BALLOTS, *RARE, "TermEntered silence") if not marks[mark]] == []


def test_quorum_sweep() -> None:
    """I1-I6, I11, D18 at every event of 20 seeds (200 nightly), I9 at their ends, a tenth through the real wire; no branch left out."""
    scenario = Marked(QuorumScenario())
    assert violations(scenario, range(SEEDS)) == []
    marks = scenario.count()
    assert [mark for mark in (*REASONS, *LOSSES, *BALLOTS, *RARE, *LEASES) if not marks[mark]] == []


@pytest.mark.parametrize(
    "machine, caught_by",
    [
        (with_voter(ablations.ShortVoter), {"I2 lease-exclusive"}),
        (with_promises(ablations.FaithlessPromises), {"I2 lease-exclusive"}),
        (ablations.StartsOver, {"D18 terms-kept"}),
        (ablations.SpeaksFirst, {"D18 terms-kept"}),
        (ablations.FlaggedLease, {"I11 step-down", "I2 lease-exclusive"}),
        (ablations.CountsFromReceipt, {"I11 step-down", "I2 lease-exclusive"}),
        (ablations.MinorityLeads, {"I11 step-down", "I2 lease-exclusive"}),
        (ablations.RoundsBeginAgain, {"I4 term-monotone"}),
        (with_monitor(ablations.AnyoneDemotes), {"I5 report-sound"}),
        (with_detector(AnswersFromFlag), {"I6 vote-truth"}),
        (ablations.CandidateStaysOut, {"settled", "I3 fence-order"}),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_quorum_checkers_catch(machine: type[LeaderElection], caught_by: set[str], search: Search) -> None:
    """F4 (unequal lengths), F9, G5, D4, D12 (a), D14, D18, I4: each rule taken out is found by the checker that is for it."""
    assert search(ElectionAblation("quorum", machine), ABLATION_SEEDS) in caught_by


@pytest.mark.parametrize(
    "machine, caught_by",
    [
        (ablations.StartsOver, "D18 terms-kept"),
        (ablations.LeadsAgain, "I1 term-unique"),
        (with_monitor(ablations.NoElse), "settled"),
        (ablations.CandidateStaysOut, "settled"),
        (with_detector(AnswersFromFlag), "I6 vote-truth"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_paper_checkers_catch(machine: type[LeaderElection], caught_by: str, search: Search) -> None:
    """D4, D12 (a), (c), D18: each rule taken out is found by the checker that is for it."""
    assert search(ElectionAblation("paper", machine), ABLATION_SEEDS) == caught_by


def test_wrong_drift_bound_is_caught(search: Search) -> None:
    """G5, E19: clocks 5 % off and rho = 1e-4: two leaders at once."""
    assert search(ablations.WrongDrift("quorum"), ABLATION_SEEDS) == "I2 lease-exclusive"


def test_terms_are_remembered_twice(search: Search) -> None:
    """D18, G3: without the stored term the promises on disk still keep terms unique; without both, one is led twice."""
    assert search(ElectionAblation("quorum", ablations.ForgetsAll, without="D18 terms-kept"), ABLATION_SEEDS) == "I1 term-unique"


def test_fence_order_can_fail() -> None:
    """I3: a term that is led after a higher one."""
    checker = FenceOrder()
    host = cast(LabHost, type("AnyHost", (), {"me": NodeId("a", 1)}))
    world = cast(World, None)
    checker.on_event(world, host, Leading(Term(2, 0)))
    with pytest.raises(Violation, match="I3"):
        checker.on_event(world, host, Leading(Term(1, 9)))
