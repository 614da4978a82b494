"""Names in the lab: seeds of ``care/names`` hold, and every rule that is taken out is missed by some checker.

Spec: foundation F1, F5; docs/decisions.md H56.
"""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.events import Event
from holdfast.features.names.lab.checkers import NameBehind, NameClear, NameTaken
from holdfast.features.names.lab.scenarios.names import SCENARIO, NamesScenario
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario, Setup, run
from holdfast.lab.sweep import sweep
from holdfast.lab.world import World
from tests import sizes
from tests.features.names import ablations as without
from tests.support.search import Search

SEEDS_MAX = 120  # within which a missing rule must show


@pytest.mark.nightly
def test_sweep() -> None:
    """F5, H56: loss, duplication, cuts, pauses, crashes, clocks that went back; then calm."""
    sweep(SCENARIO, sizes.later_seeds())


@pytest.mark.parametrize(
    "scenario, invariant",
    [
        pytest.param(without.NamesAblation(without.AsksNobodyElse), "F5 one-of-a-name|settled", id="asks-nobody-else"),
        pytest.param(without.NamesAblation(without.BothStay), "F5 one-of-a-name", id="both-stay"),
        pytest.param(without.NamesAblation(without.BothGo), "H56 one-stays", id="both-go"),
        pytest.param(without.NamesAblation(without.BootDecides), "F5 members-stay", id="boot-decides"),
        pytest.param(without.NamesAblation(without.NeverBehind), "settled", id="never-behind"),
        pytest.param(without.NamesAblation(without.NeverLooks), "F5 one-of-a-name", id="never-looks"),
    ],
)
def test_a_missing_rule_is_found(scenario: Scenario, invariant: str, search: Search) -> None:
    """F5, H56: a checker that cannot fail proves nothing."""
    assert search(scenario, SEEDS_MAX) in invariant.split("|")


def test_ablations_replace_what_they_say() -> None:
    """The scenario without an ablation is the scenario."""
    assert run(without.NamesAblation(), 1).ok


class Counted(NamesScenario):
    """Notes what was told to agents: clear, taken, behind."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()

    def note(self, host: LabHost, event: Event) -> None:
        self.told[type(event).__name__] += 1

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        world.listeners.append(self.note)


def test_everything_happens() -> None:
    """Marks: names that are clear, taken and behind."""
    names = Counted()
    for seed in range(12):
        assert run(names, seed).ok
    assert {kind.__name__ for kind in (NameClear, NameTaken, NameBehind)} <= names.told.keys()
