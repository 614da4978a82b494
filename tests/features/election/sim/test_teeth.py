"""Rules taken out one by one where random faults find nothing: lists that harm nothing while the rule is there, and what they do without.

Spec: election 7 (controls), D1, D2, D4; paper 004, Theorems 1 and 3. ``test_sweeps`` takes out the others, which random runs find.
"""

from __future__ import annotations

import pytest

from holdfast.features.election.lab import mutations
from holdfast.features.election.lab.experiments.message_counts import ENOUGH, FEW, schedule
from holdfast.features.election.lab.experiments.safety import INSTANT, NO_SELF, RUMOURS, VARIANTS, elects_best

KNOWN = {INSTANT: 136, NO_SELF: 4, RUMOURS: 2}  # a seed that shows each, found by experiment L2
LISTS = {INSTANT: "windowed", NO_SELF: "static", RUMOURS: "static"}  # the same kind of lists with the rule in place


def test_each_ablation_says_what_it_takes_out() -> None:
    """Election 7: there is a lab-only change for every control that is a rule of the protocol, which says whose rule it takes out."""
    assert {rule.split()[0] for rule in mutations.ABLATIONS} == {"D1", "D4", "D5", "D7", "D8", "D9", "D10", "D20", "D22"}
    for rule, mutation in mutations.ABLATIONS.items():
        assert (mutation.__doc__ or "").startswith(rule.split()[0]), mutation


@pytest.mark.parametrize("control", [INSTANT, NO_SELF, RUMOURS])
def test_what_theorem_1_stands_on(control: str) -> None:
    """E3, Theorem 1: a c per instant (D2), responders that do not name themselves (D1), news about members on election messages (D4) each
    elect a worse leader; the rule in place, the same seed does not."""
    assert elects_best("base", control, KNOWN[control]) is False
    assert elects_best("base", LISTS[control], KNOWN[control]) is True


def test_the_best_ranked_is_elected() -> None:
    """E3, Theorem 1: with a windowed c, also where those lack it that are asked first."""
    for variant in VARIANTS:
        for kind in ("static", "windowed", "adversarial"):
            assert [seed for seed in range(8) if not elects_best(variant, kind, seed)] == []


def test_fewer_questions_are_unsafe() -> None:
    """Theorem 3: by the proof's schedule c+f questions elect a wrong leader in some run, and c+f+1 in none."""
    cells = [{"members": 5, "c": 2, "f": 1, "seed": seed} for seed in range(12)]
    assert not all(schedule({**cell, "way": FEW})["right"] for cell in cells)
    assert all(schedule({**cell, "way": ENOUGH})["right"] for cell in cells)
