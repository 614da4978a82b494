"""Seeded sweeps of elections with E1 to E13, and proof that random runs find a rule that is missing.  Spec: election 7; issue 18.

The first twenty seeds of each scenario run in ``tests/pins``; longer sweeps: ``make soak``. Controls that need lists of their own are in
``test_teeth``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from holdfast.features.election.lab import mutations
from holdfast.features.election.lab.checkers import BestRanked, NotExcluded, ToldInTime
from holdfast.features.election.lab.draws import LARGE, LOSS_MAX
from holdfast.features.election.lab.mutations import EndScenario, ForgetfulScenario, VotersScenario
from holdfast.features.election.lab.scenarios.gossip import GossipScenario
from holdfast.features.election.lab.scenarios.mixed import MixedScenario
from holdfast.features.election.lab.settled import Healed
from holdfast.features.election.protocol.elections import Elections
from holdfast.features.election.protocol.facts import Elected, RankViolation, SteppedDown, Unsure, Yielded
from holdfast.features.election.protocol.manner import VARIANTS, VOTERS
from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, CrashInSave, Cut, Drift, LostJournal, Partition, Pause, Weather
from holdfast.lab.mutation import Mutation, without
from holdfast.lab.registry import scenarios
from holdfast.lab.scenario import Scenario, Setup, run, set_up
from holdfast.lab.world import World
from tests import sizes
from tests.support.search import Search

MUTATION_SEEDS = 300
LATER = sizes.later_seeds() if sizes.is_all() else range(0)
SETTLED = "settled"
ONE_LEADER = {SETTLED, "E4 one-leader"}
HAPPENED = ("started", "finished", "yielded", "failed", "restarts", "nominations", "watch_fired", "mismatches", "silent", "c_unusable")
FACTS = (Elected, SteppedDown, Unsure, Yielded, RankViolation)


class Counted(MixedScenario):
    """Keeps what the checkers and the members of all runs have counted."""

    def __init__(self) -> None:
        self.watching: list[Checker] = []
        self.machines: list[Elections] = []
        self.facts: Counter[str] = Counter()

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        found = super().checkers(setup)
        self.watching += found
        return found

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        found = list(super().build(host, setup))
        self.machines += [each for each in found if isinstance(each, Elections)]
        return found

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        world.listeners.append(lambda host, event: self.facts.update([type(event).__name__]))


def violations(scenario: Scenario, seeds: range) -> list[str]:
    outcomes = (run(scenario, seed) for seed in seeds)
    return [f"{outcome.violation}: {outcome.replay}" for outcome in outcomes if not outcome.ok]


def test_sweep() -> None:
    """Election E1 to E13 on lists that a script writes, one run in ten through the real wire; and what matters happened."""
    scenario = Counted()
    assert violations(scenario, LATER) == []
    counts: Counter[str] = Counter()
    for machine in scenario.machines:
        counts.update(machine.counts)
    if sizes.is_all():
        assert [mark for mark in HAPPENED if not counts[mark]] == [], counts
        assert [fact.__name__ for fact in FACTS if not scenario.facts[fact.__name__]] == [], scenario.facts
        assert sum(each.judged for each in scenario.watching if isinstance(each, NotExcluded | BestRanked)) > 50
        assert max(each.longest for each in scenario.watching if isinstance(each, Healed)) > 0
        assert sum(each.told for each in scenario.watching if isinstance(each, ToldInTime)) > 1000


def test_sweep_on_gossip() -> None:
    """Election E1 to E13 on the gossip that ships; in mode none one leader within ten seconds of lists that agree, in every run."""
    assert violations(GossipScenario(), LATER) == []


def test_the_scenarios_have_everything() -> None:
    """Election 7, issue 18: groups of 1 to 40, one to four names, three modes, four variants, every kind of fault that is named there."""
    assert {name for name in scenarios() if name.startswith("election/")} == {"election/gossip", "election/mixed"}
    setups = [set_up(MixedScenario(), seed) for seed in range(600)]
    assert set(range(1, 21)) | set(LARGE) <= {len(setup.names) for setup in setups}
    given = [setup.parameters for setup in setups]
    assert {each["mode"] for each in given} == set(VOTERS)
    assert {each["names"] for each in given} == {1.0, 2.0, 3.0, 4.0}
    assert {each["variant:alpha"] for each in given} == set(VARIANTS)
    assert {each["rank:alpha"] for each in given} == {"hash", "tag:load", "-tag:load"}
    assert {each["seats"] for each in given} == {1.0, 3.0, 5.0}
    assert {each.get("holes") for each in given} == {None, "none", "static", "moving"}
    assert min(Counter(each["ambushes"] for each in given).values()) > 60
    faults = [fault for setup in setups for fault in setup.plan.faults]
    assert {type(fault) for fault in faults} == {Crash, CrashInSave, Cut, Drift, LostJournal, Partition, Pause, Weather}
    weather = [fault.link for fault in faults if isinstance(fault, Weather)]
    assert LOSS_MAX * 0.98 < max(link.loss for link in weather) <= LOSS_MAX
    assert max(link.duplicate for link in weather) > 0.15
    assert max(link.tail for link in weather) > 0.09
    assert any(isinstance(fault, Pause) and fault.order == "shuffled" for fault in faults)
    on_gossip = [set_up(GossipScenario(), seed) for seed in range(200)]
    assert {setup.parameters["profile"] for setup in on_gossip} == {"local", "lan"}
    assert {setup.parameters["mode"] for setup in on_gossip} == set(VOTERS)


@pytest.mark.parametrize(
    "mutation, scenario, caught_by",
    [
        (mutations.veto, MixedScenario(), {"E3 best-ranked"}),
        (mutations.last_leader_wins, EndScenario(), ONE_LEADER),
        (mutations.empty_at_each, MixedScenario(), {"E11 few-restarts"}),
        (mutations.top_of_zeros, MixedScenario(), {"E11 few-restarts"}),
        (mutations.one_acceptance, VotersScenario(), {"E1 term-unique"}),
        (mutations.half, VotersScenario(), {"E1 term-unique"}),
        (mutations.no_sync, ForgetfulScenario(), {"E1 term-unique"}),
        (mutations.no_watch, EndScenario(), ONE_LEADER),
        (mutations.by_term_alone, EndScenario(), ONE_LEADER),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_random_runs_catch(mutation: Mutation, scenario: Scenario, caught_by: set[str], search: Search) -> None:
    """Election 7, controls: each rule taken out is found by random runs. Those that need a schedule of their own are in test_teeth.py."""
    with without(mutation):
        assert search(scenario, MUTATION_SEEDS) in caught_by


@pytest.mark.nightly
@pytest.mark.parametrize("scenario", [VotersScenario(), ForgetfulScenario()], ids=lambda each: each.name)
def test_the_voters_keep_their_promises(scenario: Scenario) -> None:
    """E1 in mode members without a clock: what the controls of E1 break holds with the rules in place."""
    assert violations(scenario, range(sizes.seeds(100, 4))) == []
