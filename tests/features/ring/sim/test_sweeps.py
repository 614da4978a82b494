"""Seeded sweeps of the ring with I1 to I15 at every event, and proof that the checkers find what the decisions prevent.

Spec: ring 7, 11. Longer sweeps: ``make soak``.
"""

from __future__ import annotations

import pytest

from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.registry import find_scenario
from holdfast.lab.scenario import Scenario, run
from tests import sizes
from tests.features.ring.ablations import SCENARIOS
from tests.support.search import Search

CHUNK = 20  # seeds of one test
OVERSTAYED = {"I2 no-false-declaration", "I7 lifespan", "I8 one-owner", "I13 token-order", "F14 one-publisher"}
SWEEPS = [(name, first) for name in ("ring/mixed", "ring/central", "ring/gap", "ring/tiny") for first in sizes.later_seeds()[::CHUNK]]


def violations(scenario: Scenario, seeds: range) -> list[str]:
    outcomes = (run(scenario, seed) for seed in seeds)
    return [f"{outcome.violation}: {outcome.replay}" for outcome in outcomes if not outcome.ok]


@pytest.mark.nightly
@pytest.mark.parametrize("name, first", SWEEPS)
def test_ring_sweep(name: str, first: int) -> None:
    """I1 to I15 and F14 at every event of 20 seeds per test, I9 after the faults; one seed in ten through the real wire."""
    assert violations(find_scenario(name), range(first, first + CHUNK)) == []


def test_seed_30541() -> None:
    """H26, I13: an orphan's removal jumps; the ring empties and is founded again by somebody who did not see it. (P1 was off then.)"""
    assert violations(SCENARIOS["direct"](), range(30541, 30542)) == []


def test_seed_68() -> None:
    """H380, I15, I9: a member that stood still decided that a living one is dead, and was out before it could declare that."""
    assert violations(find_scenario("ring/mixed"), range(68, 69)) == []


@pytest.mark.parametrize(
    "scenario, rules, seeds, caught_by",
    [
        ("mixed", Rules(half=False), 20, {"I3 right-needs-duty"}),
        (
            "mixed",
            Rules(guard=False),
            40,
            {"I7 lifespan", "I8 one-owner", "I13 token-order", "I2 no-false-declaration", "F14 one-publisher"},
        ),
        ("burst", Rules(recheck=False), 30, {"I10 join-known"}),
        ("regroup", Rules(upgrade="naive", deaf=False), 40, {"I1 one-winner", "I4 config-skew"}),
        ("odd", Rules(fingerprint=False), 10, {"I2 no-false-declaration", "I7 lifespan", "I8 one-owner"}),
        ("stall", Rules(void=False), 10, {"I15 doubt-ends"}),
    ],
    ids=["half", "guard", "recheck", "naive", "fingerprint", "void"],
)
def test_ablations_are_caught(scenario: str, rules: Rules, seeds: int, caught_by: set[str], search: Search) -> None:
    """Ring 11: without the decision, random runs break the invariant that it protects. D9, D28 and D29 need the schedules of ring/E13."""
    ablated = SCENARIOS[scenario]()
    ablated.rules = rules
    assert search(ablated, seeds) in caught_by


@pytest.mark.parametrize("scenario", ["burst", "regroup", "odd", "stall"])
def test_with_every_decision_they_are_calm(scenario: str) -> None:
    """The scenarios that make an ablation's occasion frequent show nothing when no decision is missing."""
    assert violations(SCENARIOS[scenario](), range(10)) == []
