"""Names and keys in the lab: seeds of ``care/names`` and ``care/keys`` hold, and every rule that is taken out is missed by some checker.

Spec: foundation F1, F5; docs/keys.md; docs/decisions.md H56, H57.
"""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.events import Event
from holdfast.features.keys.lab.checkers import KeysReported
from holdfast.features.keys.lab.scenarios.keys import SCENARIO as KEYS
from holdfast.features.keys.lab.scenarios.keys import KeysScenario
from holdfast.features.names.lab.checkers import NameBehind, NameClear, NameTaken
from holdfast.features.names.lab.scenarios.names import SCENARIO as NAMES
from holdfast.features.names.lab.scenarios.names import NamesScenario
from holdfast.lab.host import LabHost
from holdfast.lab.scenario import Scenario, Setup, run
from holdfast.lab.sweep import sweep
from holdfast.lab.world import World
from tests import sizes
from tests.support import care_ablations as without
from tests.support.search import Search

SEEDS_MAX = 120  # within which a missing rule must show


@pytest.mark.parametrize("scenario, seeds", [pytest.param(NAMES, sizes.seeds(), id="names"), pytest.param(KEYS, sizes.seeds(), id="keys")])
def test_sweep(scenario: Scenario, seeds: int) -> None:
    """F5, H56, H57: loss, duplication, cuts, pauses, crashes, clocks that went back; then calm."""
    sweep(scenario, range(seeds))


@pytest.mark.parametrize(
    "scenario, invariant",
    [
        pytest.param(without.NamesAblation(without.AsksNobodyElse), "F5 one-of-a-name|settled", id="asks-nobody-else"),
        pytest.param(without.NamesAblation(without.BothStay), "F5 one-of-a-name", id="both-stay"),
        pytest.param(without.NamesAblation(without.BothGo), "H56 one-stays", id="both-go"),
        pytest.param(without.NamesAblation(without.BootDecides), "F5 members-stay", id="boot-decides"),
        pytest.param(without.NamesAblation(without.NeverBehind), "settled", id="never-behind"),
        pytest.param(without.NamesAblation(without.NeverLooks), "F5 one-of-a-name", id="never-looks"),
        pytest.param(without.KeysAblation(without.WithoutTurns), "readable|settled", id="without-turns"),
        pytest.param(without.KeysAblation(without.UsesAnyway), "readable", id="uses-anyway"),
        pytest.param(without.KeysAblation(without.RemovesAnyway), "readable", id="removes-anyway"),
        pytest.param(without.KeysAblation(without.SilenceIsConsent), "readable", id="silence-is-consent"),
        pytest.param(without.KeysAblation(without.HidesTheSilent), "everybody-named", id="hides-the-silent"),
    ],
)
def test_a_missing_rule_is_found(scenario: Scenario, invariant: str, search: Search) -> None:
    """F5, H56, H57: a checker that cannot fail proves nothing."""
    assert search(scenario, SEEDS_MAX) in invariant.split("|")


def test_ablations_replace_what_they_say() -> None:
    """The scenario without an ablation is the scenario."""
    assert run(without.NamesAblation(), 1).ok
    assert run(without.KeysAblation(), 1).ok


class Counted:
    """Notes what was told to agents and operators."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()

    def note(self, host: LabHost, event: Event) -> None:
        if isinstance(event, KeysReported):
            self.told[f"{event.action} {all(report.done for report in event.reports)}"] += 1
        else:
            self.told[type(event).__name__] += 1


class CountedNames(Counted, NamesScenario):
    """Clear, taken, behind."""

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        world.listeners.append(self.note)


class CountedKeys(Counted, KeysScenario):
    """Steps that everybody made, and steps that were refused."""

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        world.listeners.append(self.note)


def test_everything_happens() -> None:
    """Marks: names that are clear, taken and behind; steps that succeed and steps that are refused."""
    names, keys = CountedNames(), CountedKeys()
    for seed in range(12):
        assert run(names, seed).ok
        assert run(keys, seed).ok
    assert {kind.__name__ for kind in (NameClear, NameTaken, NameBehind)} <= names.told.keys()
    assert {f"{action} {done}" for action in ("install", "use", "remove") for done in (True, False)} <= keys.told.keys()
