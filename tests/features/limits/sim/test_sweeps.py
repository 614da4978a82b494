"""Seeded sweeps of limits with RL1 to RL9, and proof that random runs find a rule that is missing.  Spec: limits 7.

Longer sweeps: ``make soak``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from holdfast.events import Event
from holdfast.features.limits.lab import mutations
from holdfast.features.limits.lab.conserved import Conserved
from holdfast.features.limits.lab.fleet import STRICT_MOST, Fleet
from holdfast.features.limits.lab.mutations import Mutation, without
from holdfast.features.limits.lab.parts import Parts
from holdfast.features.limits.lab.scenarios.limits import POLICIES, LimitScenario
from holdfast.features.limits.protocol.facts import InstanceBegan, Lapsed, QuotaTaken, Raised, Reconciled
from holdfast.features.limits.protocol.messages import TYPES
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, Cut, Drift, Hole, Partition, Pause, Weather
from holdfast.lab.host import LabHost
from holdfast.lab.registry import scenarios
from holdfast.lab.scenario import Scenario, Setup, run, set_up
from holdfast.lab.world import World
from tests import sizes
from tests.support.search import Search

SEEDS, CHUNK = sizes.seeds(), sizes.seeds(40)
STRICT_SHARE = 0.03  # RL5: of the runs in which demand is steady
LOW_SHARE = 0.05  # of the runs: views change so often that ``strict`` hardly ever rests for ``settle``, and may not grow
MUTATION_SEEDS = 60
HAPPENS = ("InstanceBegan", "provisional", "Raised", "Lapsed", "QuotaTaken", "Reconciled")


class Facts(Checker):
    """Counts what happens."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def on_event(self, world: World, host: LabHost, event: Event) -> None:
        if isinstance(event, InstanceBegan | Raised | Lapsed | QuotaTaken | Reconciled):
            self.counts[type(event).__name__] += 1
            self.counts["provisional"] += isinstance(event, InstanceBegan) and event.provisional


class Counted(LimitScenario):
    """Keeps what the checkers of all runs have seen."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.watching: list[Checker] = []

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        found = super().checkers(setup)
        self.watching += found
        return [*found, self.facts]


def violations(scenario: Scenario, seeds: range) -> list[str]:
    outcomes = (run(scenario, seed) for seed in seeds)
    return [f"{outcome.violation}: {outcome.replay}" for outcome in outcomes if not outcome.ok]


def part_of(fleet: Fleet) -> float:
    """What the members of one view have of R: there may be fewer than ``fleet``."""
    return len(fleet.crews) / max(terms.fleet for terms in fleet.terms.values())


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_sweep(first: int) -> None:
    """RL1 to RL9 over 20 seeds (40 nightly) per test, one in ten through the real wire; and what matters was there to be looked at."""
    scenario = Counted()
    assert violations(scenario, range(first, first + CHUNK)) == []
    assert [name for name in HAPPENS if not scenario.facts.counts[name]] == [], scenario.facts.counts
    fleets = [each for each in scenario.watching if isinstance(each, Fleet)]
    low = [{name for name, peak in each.peaks.items() if peak <= 0.3 * part_of(each)} for each in fleets]
    assert set().union(*low) <= {"strict"}, [each.peaks for each in fleets]
    assert sum(map(bool, low)) <= max(1, LOW_SHARE * len(fleets)), [each.peaks for each in fleets]
    assert all(sum(each.used.values()) > 1000 for each in fleets)
    assert sum(each.looks for each in scenario.watching if isinstance(each, Conserved)) > 10_000
    assert max(each.most for each in scenario.watching if isinstance(each, Parts)) > 1
    peaks = [each.peaks["strict"] for each in fleets if each.terms["strict"].rests]
    assert sum(peak > STRICT_MOST for peak in peaks) <= max(1, STRICT_SHARE * len(peaks)), peaks


def test_the_scenario_has_everything() -> None:
    """Limits 7: sizes, policies, shares and faults are drawn, each of them often enough to be met."""
    assert {name for name in scenarios() if name.startswith("limits/")} == {"limits/mixed"}
    setups = [set_up(LimitScenario(), seed) for seed in range(300)]
    faults = [fault for setup in setups for fault in setup.plan.faults]
    assert {Crash, Cut, Drift, Hole, Partition, Pause, Weather} == {type(fault) for fault in faults}
    members = Counter(sum(name.startswith("c") for name in setup.names) for setup in setups)
    assert members.keys() == {2, 3, 4, 5, 6}
    for drawn in ("constant", "processes", "kills", "hangs", "trips", *(f"share of {each}" for each in POLICIES)):
        assert len({setup.parameters[drawn] for setup in setups}) > 1, drawn
    holes = {kind for fault in faults if isinstance(fault, Hole) for kind in fault.kinds}
    assert {kind.__name__ for kind in TYPES} <= holes
    terms = [LimitScenario().terms(setup) for setup in setups]
    assert {each.policy for each in terms[0]} == set(POLICIES)
    assert 20 < sum(all(each.steady for each in of) for of in terms) < 150
    strict = [each for of in terms for each in of if each.policy == "strict" and each.steady]
    assert 10 < sum(each.rests for each in strict) < len(strict) - 10  # H420: what members want is measured in the others


@pytest.mark.parametrize(
    "mutation, caught_by",
    [
        (mutations.short_settle, {"RL4 quota", "RL9 partition"}),
        (mutations.plain_push_sum, {"RL1 weight", "RL2 demand", "RL3 no double take"}),
        (mutations.any_life, {"RL3 no double take", "RL1 weight", "RL2 demand", "no-bug"}),
        (mutations.gives_at_once, {"RL4 quota"}),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_random_runs_catch(mutation: Mutation, caught_by: set[str], search: Search) -> None:
    """Limits 7, teeth: each rule taken out is found by random runs."""
    with without(mutation):
        assert search(LimitScenario(), MUTATION_SEEDS) in caught_by
