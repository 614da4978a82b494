"""Keys in the lab: seeds of ``care/keys`` hold, and every rule that is taken out is missed by some checker.

docs/keys.md; docs/decisions.md H57.
"""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.events import Event
from holdfast.features.keys.lab.checkers import KeysReported
from holdfast.features.keys.lab.scenarios.keys import SCENARIO, KeysScenario
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario, Setup, run
from holdfast.lab.sweep import sweep
from holdfast.lab.world import World
from tests import sizes
from tests.features.keys import ablations as without
from tests.support.search import Search

SEEDS_MAX = 120  # within which a missing rule must show


@pytest.mark.nightly
def test_sweep() -> None:
    """H57: loss, duplication, cuts, pauses, crashes, clocks that went back; then calm."""
    sweep(SCENARIO, sizes.later_seeds())


@pytest.mark.parametrize(
    "scenario, invariant",
    [
        pytest.param(without.KeysAblation(without.WithoutTurns), "readable|settled", id="without-turns"),
        pytest.param(without.KeysAblation(without.UsesAnyway), "readable", id="uses-anyway"),
        pytest.param(without.KeysAblation(without.RemovesAnyway), "readable", id="removes-anyway"),
        pytest.param(without.KeysAblation(without.SilenceIsConsent), "readable", id="silence-is-consent"),
        pytest.param(without.KeysAblation(without.HidesTheSilent), "everybody-named", id="hides-the-silent"),
    ],
)
def test_a_missing_rule_is_found(scenario: Scenario, invariant: str, search: Search) -> None:
    """H57: a checker that cannot fail proves nothing."""
    assert search(scenario, SEEDS_MAX) in invariant.split("|")


def test_ablations_replace_what_they_say() -> None:
    """The scenario without an ablation is the scenario."""
    assert run(without.KeysAblation(), 1).ok


class Counted(KeysScenario):
    """Notes what was told to operators: steps that every member made, and steps that were refused."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()

    def note(self, host: LabHost, event: Event) -> None:
        if isinstance(event, KeysReported):
            self.told[f"{event.action} {all(report.done for report in event.reports)}"] += 1

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        world.listeners.append(self.note)


def test_everything_happens() -> None:
    """Marks: steps that succeed and steps that are refused."""
    keys = Counted()
    for seed in range(12):
        assert run(keys, seed).ok
    assert {f"{action} {done}" for action in ("install", "use", "remove") for done in (True, False)} <= keys.told.keys()
