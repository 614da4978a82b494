"""Seeded sweeps of leadership with seats, and proof that its checkers can fail.  Spec: fast-detection 7, D17b; foundation F8-F17."""

from __future__ import annotations

from random import Random

import pytest

from holdfast.lab.scenario import Setup, run
from holdfast.lab.scenarios.leadership import LeadershipScenario
from tests.support import lead_ablations as ablations
from tests.support.lead_ablations import LeadershipAblation
from tests.support.search import Search

SEEDS = 200
CHUNK = 50
SHORT_SECONDS = 9.0  # of faults, founding included; the long runs are those of ``lab sweep``
ABLATION_SEEDS = 60


class ShortScenario(LeadershipScenario):
    """The same in less time, and without looking on when all is well."""

    seconds = SHORT_SECONDS

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        setup.parameters["watched"] = 0.0
        return setup


@pytest.mark.parametrize("begin", range(0, SEEDS, CHUNK))
def test_leadership_sweep(begin: int) -> None:
    """I1-I6, I11 at every event and I9 in the end, of 200 seeds; one seed in ten through the real wire."""
    outcomes = (run(ShortScenario(), seed) for seed in range(begin, begin + CHUNK))
    assert [f"seed {outcome.seed}: {outcome.violation}" for outcome in outcomes if not outcome.ok] == []


@pytest.mark.parametrize(
    "ablation, caught_by",
    [
        (LeadershipAblation(promises=ablations.NoTermCheck), {"I1 term-unique", "I3 fence-order"}),
        (LeadershipAblation(promises=ablations.IgnoresBusy), {"I11 backed", "I2 client-exclusive", "I2 lease-exclusive"}),
        (LeadershipAblation(keeper=ablations.ForgetsUntil), {"I11 backed", "I2 client-exclusive"}),
        (LeadershipAblation(seat=ablations.OwnLength), {"I11 backed", "I2 client-exclusive"}),
        (LeadershipAblation(seat=ablations.ReleasesAnything), {"I11 backed", "I2 client-exclusive"}),
        (
            LeadershipAblation(campaign=ablations.CountsFromReceipt, link=ablations.SLOW_LINK),
            {"I11 backed", "I2 client-exclusive", "I3 fence-order"},
        ),
        (LeadershipAblation(campaign=ablations.FlagsItsLease), {"I11 backed", "I2 lease-exclusive"}),
        (LeadershipAblation(campaign=ablations.CountsOneSeat), {"I11 backed", "I2 client-exclusive"}),
        (LeadershipAblation(campaign=ablations.GivesBackEarly), {"I11 backed"}),
        (LeadershipAblation(rho=0.0), {"I11 backed", "I2 client-exclusive"}),
    ],
    ids=["term check", "busy", "restart wait", "own length", "any release", "receipt", "flag", "one seat", "early", "drift"],
)
def test_checkers_catch(ablation: LeadershipAblation, caught_by: set[str], search: Search) -> None:
    """G3, G5, F4, F8, F9, F13, F14, F15: with one rule taken out, a checker says so."""
    assert search(ablation, ABLATION_SEEDS) in caught_by
