"""The kit in the lab: seeds of each scenario hold, and every rule that is taken out is missed by some checker.

Foundation 4. The scenarios are ``kit/broadcast``, ``kit/rows``, ``kit/phase`` and ``kit/claims``.
"""

from __future__ import annotations

import pytest

from holdfast.kit.keeper import Keeper
from holdfast.kit.promise import Promises
from holdfast.lab.scenario import Scenario, run
from holdfast.lab.scenarios.broadcast import SCENARIO as BROADCAST
from holdfast.lab.scenarios.phase import SCENARIO as PHASE
from holdfast.lab.scenarios.promise import SCENARIO as CLAIMS
from holdfast.lab.scenarios.rows import SCENARIO as ROWS
from holdfast.lab.sweep import sweep
from tests.support import kit_ablations as without


@pytest.mark.parametrize(
    "scenario, seeds",
    [
        pytest.param(BROADCAST, 100, id="broadcast"),
        pytest.param(ROWS, 100, id="rows"),
        pytest.param(PHASE, 500, id="phase"),
        pytest.param(CLAIMS, 400, id="claims"),
    ],
)
def test_sweep(scenario: Scenario, seeds: int) -> None:
    """Tickets 5.9, foundation 4, F8, F9, F13, F15, F17: loss, duplication, cuts, pauses, crashes, drift, torn disks; then calm."""
    sweep(scenario, range(seeds))


HELD_ONCE = "exclusive|one-per-number|numbers-grow"  # whichever a seed shows first

ABLATIONS = [
    pytest.param(without.BroadcastAblation(without.TellsTwice), "at-most-once", id="tells-twice"),
    pytest.param(without.BroadcastAblation(without.ForgetsLives), "calm-reaches-all", id="forgets-lives"),
    pytest.param(without.BroadcastAblation(without.PassesOnAlways), "infect-and-die", id="passes-on-always"),
    pytest.param(without.BroadcastAblation(without.KeepsItself), "calm-reaches-all", id="keeps-it-to-itself"),
    pytest.param(without.RowsAblation(without.NoAntiEntropy), "settled", id="no-anti-entropy"),
    pytest.param(without.RowsAblation(without.OneWay), "settled", id="one-way"),
    pytest.param(without.RowsAblation(without.WrongDigest), "digests-true", id="wrong-digest"),
    pytest.param(without.RowsAblation(merge=lambda a, b: b), "never-back", id="last-word-wins"),
    pytest.param(without.RowsAblation(merge=without.inventing), "nothing-invented", id="merge-invents"),
    pytest.param(without.PhaseAblation(without.SaysFirst), "votes-are-durable|one-winner", id="says-before-saved"),
    pytest.param(without.PhaseAblation(without.ForgetsVotes), "votes-are-durable|one-winner", id="forgets-votes"),
    pytest.param(without.PhaseAblation(without.AnySerial), "votes-are-durable|one-winner", id="any-serial"),
    pytest.param(without.PhaseAblation(without.CountsAnswers), "votes-are-durable|one-winner", id="counts-answers"),
    pytest.param(without.PhaseAblation(half=True), "one-winner", id="half-is-enough"),
    pytest.param(without.PromiseAblation(promises=without.TwoPerNumber), HELD_ONCE, id="two-per-number"),
    pytest.param(without.PromiseAblation(promises=without.IgnoresBusy), HELD_ONCE, id="ignores-busy"),
    pytest.param(without.PromiseAblation(promises=without.AnswersFirst), HELD_ONCE, id="answers-first"),
    pytest.param(without.PromiseAblation(promises=without.AnyResignation), HELD_ONCE, id="any-resignation"),
    pytest.param(without.PromiseAblation(keeper=without.ForgetsUntil), HELD_ONCE, id="forgets-until"),
    pytest.param(without.PromiseAblation(keeper=without.ForgetsLongest), HELD_ONCE, id="forgets-longest"),
    pytest.param(without.PromiseAblation(claimant=without.CountsFromReceipt), HELD_ONCE, id="counts-from-receipt"),
    pytest.param(without.PromiseAblation(claimant=without.HoldsUnshortened), HELD_ONCE, id="holds-unshortened"),
    pytest.param(without.PromiseAblation(claimant=without.FlagsItsLease), HELD_ONCE, id="flags-its-lease"),
    pytest.param(without.PromiseAblation(claimant=without.RevivesRenewals), HELD_ONCE, id="revives-renewals"),
    pytest.param(without.PromiseAblation(seats=without.Amnesic), "F13 lost-journals-silent", id="amnesic"),
    pytest.param(without.PromiseAblation(seats=without.AlwaysNew), "F13 lost-journals-silent", id="always-new"),
]
SEEDS_MAX = 300  # within which a missing rule must show


@pytest.mark.parametrize("scenario, invariant", ABLATIONS)
def test_a_missing_rule_is_found(scenario: Scenario, invariant: str) -> None:
    """Foundation 4: a checker that cannot fail proves nothing. What only the exhaustive exploration finds is in tests/kit."""
    found = next((outcome for seed in range(SEEDS_MAX) if not (outcome := run(scenario, seed)).ok), None)
    assert found is not None
    assert found.violation.split(":")[0] in invariant.split("|")


def test_ablations_replace_what_they_say() -> None:
    """The scenario without an ablation is the scenario: nothing but the missing rule makes these runs fail."""
    assert run(without.PromiseAblation(promises=Promises, keeper=Keeper), 3).ok
    assert run(without.RowsAblation(), 0).ok
    assert run(without.PhaseAblation(), 2).ok
