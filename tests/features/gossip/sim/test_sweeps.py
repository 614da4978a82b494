"""Seeded sweeps of gossip with G1 to G11 and G13, and proof that random runs find a rule that is missing.  Spec: gossip 7.

Longer sweeps: ``make soak``, which runs gossip/long as well. G12 is measured by gossip/S7.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pytest

from holdfast.features.gossip.lab import mutations
from holdfast.features.gossip.lab.checkers.suspicions import LastCalls
from holdfast.features.gossip.lab.draws import LARGE, PAUSE_MAX, PAUSE_MIN
from holdfast.features.gossip.lab.members import WatchedNode
from holdfast.features.gossip.lab.scenarios.mixed import MixedScenario
from holdfast.features.gossip.protocol.profiles import PROFILES
from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, Cut, Drift, LostJournal, Partition, Pause, Weather
from holdfast.lab.mutation import Mutation, without
from holdfast.lab.registry import find_scenario, scenarios
from holdfast.lab.scenario import Scenario, Setup, run, set_up
from tests import sizes
from tests.support.search import Search

SEEDS, CHUNK = sizes.seeds(), sizes.seeds(40)
LONG_SEEDS = sizes.seeds(20, 3)
MUTATION_SEEDS = 200
SETTLED = "settled"
HAPPENED = (
    "probes_direct", "probes_indirect", "probes_failed", "suspicions", "suspicions_cleared", "buried", "false_positives", "refutations",
    "last_calls", "last_calls_answered", "syncs_equal", "syncs_differing", "overslept", "former_lives", "relayed",
)  # fmt: skip


class Counted(MixedScenario):
    """Keeps what the checkers and the members of all runs have counted."""

    def __init__(self) -> None:
        self.watching: list[Checker] = []
        self.nodes: list[WatchedNode] = []

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        found = super().checkers(setup)
        self.watching += found
        return found

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        found = list(super().build(host, setup))
        self.nodes += [each for each in found if isinstance(each, WatchedNode)]
        return found


def violations(scenario: Scenario, seeds: range) -> list[str]:
    outcomes = (run(scenario, seed) for seed in seeds)
    return [f"{outcome.violation}: {outcome.replay}" for outcome in outcomes if not outcome.ok]


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_sweep(first: int) -> None:
    """Gossip G1 to G11, G13 over 20 seeds (40 nightly) per test, one in ten through the real wire; and what matters happened."""
    scenario = Counted()
    assert violations(scenario, range(first, first + CHUNK)) == []
    counts: Counter[str] = Counter()
    for node in scenario.nodes:
        counts.update(node.counts)
    assert [mark for mark in HAPPENED if not counts[mark]] == [], counts
    assert sum(each.answered for each in scenario.watching if isinstance(each, LastCalls)) > 0


def test_long_sweep() -> None:
    """Gossip G1 to G11, G13 for a hundred periods of faults, in which tables are compared and tombstones are tried again."""
    assert violations(find_scenario("gossip/long"), range(LONG_SEEDS)) == []


def test_the_scenarios_have_everything() -> None:
    """Gossip 7, issue 17: sizes from 1 to 64, every profile and way to choose targets, and every kind of fault that is named there."""
    assert {name for name in scenarios() if name.startswith("gossip/")} == {"gossip/mixed", "gossip/long"}
    setups = [set_up(MixedScenario(), seed) for seed in range(600)]
    sizes_drawn = Counter(len(setup.names) for setup in setups)
    assert set(range(1, 17)) | set(LARGE) <= set(sizes_drawn)
    assert {setup.parameters["profile"] for setup in setups} == set(PROFILES)
    assert {setup.parameters["target"] for setup in setups} == {"shuffle", "bag", "spatial"}
    faults = [(setup, fault) for setup in setups for fault in setup.plan.faults]
    assert {type(fault) for _, fault in faults} == {Crash, Cut, Drift, LostJournal, Partition, Pause, Weather}
    spans = [
        fault.seconds / PROFILES[str(setup.parameters["profile"])]().config.period for setup, fault in faults if isinstance(fault, Pause)
    ]
    assert min(spans) < PAUSE_MIN
    assert PAUSE_MAX * 0.95 < max(spans) <= PAUSE_MAX + 0.1
    weather = [fault.link for _, fault in faults if isinstance(fault, Weather)]
    assert max(link.loss for link in weather) > 0.24
    assert max(link.duplicate for link in weather) > 0.09
    assert max(link.tail for link in weather) > 0.09
    wishes = Counter(wish.partition(":")[0] for setup in setups for wish in setup.parameters)
    assert min(wishes[wish] for wish in ("join", "leave", "return", "clone")) > 20
    assert 30 < sum(float(setup.parameters["calm"]) > 0 for setup in setups) < 120


@pytest.mark.parametrize(
    "mutation, caught_by",
    [
        (mutations.same_boot, {"G2 ownership"}),
        (mutations.own_probe_confirms, {"G6 bounds"}),
        (mutations.no_reconnect, {SETTLED}),
        (mutations.rows_in_any_order, {"G2 ownership"}),
        (mutations.no_pause_guard, {"G13 last-call"}),
        (mutations.any_rank, {"G1 monotone"}),
        (mutations.no_limit, {"G8 budget"}),
        (mutations.any_target, {"G9 probe-gap"}),
        (mutations.hasty, {"G6 bounds"}),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_random_runs_catch(mutation: Mutation, caught_by: set[str], search: Search) -> None:
    """Gossip 7, ablations: each rule taken out is found by random runs. Those that need a schedule of their own are in test_teeth.py."""
    with without(mutation):
        assert search(MixedScenario(), MUTATION_SEEDS) in caught_by
