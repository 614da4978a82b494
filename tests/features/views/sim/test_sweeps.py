"""Seeded sweeps of views with CB1 to CB10, and proof that random runs find a rule that is missing.  Spec: views 7.

Longer sweeps: ``make soak``, which runs views/long as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from holdfast.features.views.lab import mutations
from holdfast.features.views.lab.leases import OneGroup
from holdfast.features.views.lab.letters import Trip
from holdfast.features.views.lab.scenarios.chain import ChainScenario
from holdfast.features.views.lab.scenarios.views import ViewScenario
from holdfast.features.views.protocol.messages import TYPES
from holdfast.features.views.protocol.views import ViewNode
from holdfast.host import DATAGRAM_BYTES_MAX, Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, Cut, Drift, Hole, Partition, Pause, Weather
from holdfast.lab.mutation import Mutation, without
from holdfast.lab.registry import find_scenario, scenarios
from holdfast.lab.scenario import Scenario, Setup, run, set_up
from tests import sizes
from tests.support.search import Search

SEEDS, CHUNK = sizes.seeds(), sizes.seeds(40)
CHAIN_SEEDS = sizes.seeds(100, 6)
LONG_SEEDS = sizes.seeds(20, 2)
MUTATION_SEEDS = 60


class Counted(ViewScenario):
    """Keeps what the checkers and the machines of all runs have counted."""

    def __init__(self) -> None:
        self.watching: list[Checker] = []
        self.nodes: list[ViewNode] = []

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        found = super().checkers(setup)
        self.watching += found
        return found

    def build(self, host: Host, setup: Setup) -> list[Machine]:
        found = list(super().build(host, setup))
        self.nodes += [each for each in found if isinstance(each, ViewNode)]
        return found


def violations(scenario: Scenario, seeds: range) -> list[str]:
    outcomes = (run(scenario, seed) for seed in seeds)
    return [f"{outcome.violation}: {outcome.replay}" for outcome in outcomes if not outcome.ok]


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_sweep(first: int) -> None:
    """CB1 to CB10 over 20 seeds (40 nightly) per test, one in ten through the real wire; and what matters was there to be looked at."""
    scenario = Counted()
    assert violations(scenario, range(first, first + CHUNK)) == []
    assert sum(each.settled_pairs for each in scenario.watching if isinstance(each, OneGroup)) > 1000
    told: Counter[str] = Counter()
    for each in scenario.watching:
        if isinstance(each, Trip):
            told.update(each.counts)
    assert told["delivered"] > 10 * told["tripped"] > 0, told
    counts: Counter[str] = Counter()
    for node in scenario.nodes:
        counts.update(node.counts)
        if node.server is not None:
            counts.update(node.server.agreement.counts)
            counts["quarantines"] += node.server.clients.quarantines
    assert [mark for mark in ("fast", "slow", "quarantines", "hops_failed", "duplicate", "late") if not counts[mark]] == [], counts


@pytest.mark.parametrize("name, seeds", [("views/chain", CHAIN_SEEDS), ("views/long", LONG_SEEDS)])
def test_other_sweeps(name: str, seeds: int) -> None:
    """CB1 to CB10 over rows of servers (D7, D8), and for a minute of faults."""
    assert violations(find_scenario(name), range(seeds)) == []


def test_the_scenarios_have_everything() -> None:
    """Views 7: the sizes and the faults that the specification names are drawn, each of them often enough to be met."""
    assert {name for name in scenarios() if name.startswith("views/")} == {"views/mixed", "views/chain", "views/long"}
    setups = [set_up(ViewScenario(), seed) for seed in range(400)]
    servers = Counter(int(setup.parameters["servers"]) for setup in setups if not setup.parameters["chain"])
    assert servers.keys() == {1, 2, 3, 4, 5, 6, 7}
    assert {int(setup.parameters["servers"]) for setup in setups if setup.parameters["chain"]} == {4, 5, 6}
    assert {sum(name.startswith("c") for name in setup.names) for setup in setups} == {1, 2, 3, 4, 5, 6, 7}
    faults = [fault for setup in setups for fault in setup.plan.faults]
    assert {Crash, Cut, Drift, Hole, Partition, Pause, Weather} == {type(fault) for fault in faults}
    assert min(servers.values()) > 10
    assert 25 < sum(float(setup.parameters["late"]) > 0 for setup in setups) < 60
    holes = [[each for each in setup.plan.faults if isinstance(each, Hole)] for setup in setups]
    assert 20 < sum(bool(each) and {hole.kinds for hole in each} == {("Lsa",)} for each in holes) < 60
    assert {kind for each in holes for hole in each for kind in hole.kinds} == {kind.__name__ for kind in TYPES}
    assert any(hole.larger == DATAGRAM_BYTES_MAX for each in holes for hole in each)
    assert any(len(died(setup)) > 2 for setup in setups)


def died(setup: Setup) -> set[str]:
    """The servers that crash within one second, if all do."""
    places = [name for name in setup.names if name.startswith("s")]
    at = {name: [each.at for each in setup.plan.faults if isinstance(each, Crash) and each.node == name] for name in places}
    first = at[places[0]]
    return next((set(places) for moment in first if all(any(abs(each - moment) <= 1 for each in at[name]) for name in places)), set())


@pytest.mark.parametrize(
    "mutation, scenario, caught_by",
    [
        (mutations.short_settle, ViewScenario, {"CB6 one-group"}),
        (mutations.lease_from_receipt, ViewScenario, {"CB6 one-group"}),
        (mutations.same_number, ViewScenario, {"CB1 unique-id", "CB4 disjoint"}),
        (mutations.whole_neighbourhood, ChainScenario, {"CB7 convergence"}),
    ],
    ids=lambda each: each.__name__ if callable(each) else "",
)
def test_random_runs_catch(mutation: Mutation, scenario: type[Scenario], caught_by: set[str], search: Search) -> None:
    """Views 7, teeth: each rule taken out is found by random runs. Those that need a schedule of their own are in test_directed.py."""
    with without(mutation):
        assert search(scenario(), MUTATION_SEEDS) in caught_by
