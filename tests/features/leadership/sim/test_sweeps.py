"""Seeded sweeps of leadership with seats, and proof that its checkers can fail.  Spec: fast-detection 7, D17b; foundation F8-F17."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest
from msgspec.structs import replace

from holdfast.features.leadership.detector.config import Term
from holdfast.features.leadership.detector.facts import Suspect
from holdfast.features.leadership.lab.checkers import ReportSound
from holdfast.features.leadership.lab.scenarios.leadership import LeadershipScenario
from holdfast.features.leadership.lab.scenarios.shipped import ShippedScenario
from holdfast.lab.scenario import Scenario, Setup, run, set_up
from holdfast.lab.violation import Violation
from tests import sizes
from tests.features.leadership import ablations
from tests.features.leadership.ablations import LeadershipAblation
from tests.features.leadership.seen import SeenScenario
from tests.features.leadership.stand import Stand
from tests.support.search import Search

SHIPPED_SEEDS = sizes.seeds()
SEEDS = sizes.seeds()  # of the other sizes
CHUNK = sizes.seeds(50)
SHORT_SECONDS = 9.0  # of faults, founding included; the long runs are those of ``lab sweep``
ABLATION_SEEDS = 60
TAKEN = (  # in every test of the shipped size
    *("Crash", "CrashInSave", "Pause", "Cut", "Partition", "Weather", "DiskFull", "LostJournal", "Drift"),
    *("asked: vacant", "asked: start", "asked: next", "asked: behind", "lost: lapsed", "lost: resigned"),
    *("Leading", "Told", "MissSaid", "FoundDead", "watched in calm"),
    *("led with an unlisted seat's promise", "found dead with an unlisted seat's vote"),
)


class ShortScenario(LeadershipScenario):
    """The same in less time, and without looking on when all is well."""

    seconds = SHORT_SECONDS

    def setup(self, random: Random) -> Setup:
        setup = super().setup(random)
        setup.parameters["watched"] = 0.0
        return setup


@pytest.mark.parametrize("begin", range(0, SHIPPED_SEEDS, CHUNK))
def test_shipped_sweep(begin: int) -> None:
    """H135, D17b: three seats of seven agents, candidates that change, lists that differ for ten seconds at a time. I1-I6 and I11
    at every event, I10 in calm and I9 in the end, of 20 seeds (50 nightly) per test, one in ten through the real wire.
    All that matters happens in them."""
    scenario = SeenScenario()
    assert _failures(scenario, range(begin, begin + CHUNK)) == []
    assert [what for what in TAKEN if not scenario.counts[what]] == []
    assert scenario.counts["runs with lists that differed for ten seconds"] >= 0.7 * CHUNK  # In the others a crash cut it short.


def test_other_sizes_sweep() -> None:
    """I1-I6, I11 at every event and I9 in the end, of 20 seeds (200 nightly) with 1, 3 or 5 seats of 3 to 9 agents."""
    assert _failures(ShortScenario(), range(SEEDS)) == []


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


ALONE = {
    "used number": LeadershipAblation(promises=ablations.NoTermCheck, only="I1 term-unique"),
    "one seat": LeadershipAblation(campaign=ablations.CountsOneSeat, only="I2 client-exclusive"),
    "flag": LeadershipAblation(campaign=ablations.FlagsItsLease, only="I2 lease-exclusive"),
    "lower number": LeadershipAblation(promises=ablations.NoTermCheck, only="I3 fence-order"),
    "same round": LeadershipAblation(campaign=ablations.RepeatsRounds, only="I4 rounds-grow"),
    "any seats": LeadershipAblation(watch=ablations.AnySeats, only="I5 report-sound"),
    "one miss": LeadershipAblation(detector=ablations.OneMissSuffices, only="I5 report-sound"),
    "what it holds": LeadershipAblation(detector=ablations.HoldsNothing, only="I6 vote-truth"),
    "looks no more": LeadershipAblation(campaign=ablations.LooksNoMore, only="settled"),
    "first leader": LeadershipAblation(reigns=ablations.FirstLeaderStays, only="settled"),
    "unlooked": LeadershipAblation(campaign=ablations.AsksUnlooked, only="I10 stable", calm=True),
    "early": LeadershipAblation(campaign=ablations.GivesBackEarly, only="I11 backed"),
}


@pytest.mark.parametrize("ablation", ALONE.values(), ids=ALONE)
def test_each_checker_catches_alone(ablation: LeadershipAblation, search: Search) -> None:
    """H135, I1-I6, I9-I11: with one rule taken out each checker says so, also where no other one looks on."""
    assert search(ablation, ABLATION_SEEDS) == ablation.only


def test_no_checker_is_forgotten() -> None:
    """H135: whoever adds a checker shows that it can fail."""
    scenario = ShippedScenario()
    names = {checker.name for checker in scenario.checkers(set_up(scenario, 0))}
    assert {*names, "settled"} == {ablation.only for ablation in ALONE.values()}


@pytest.mark.parametrize(
    "changes",
    [{"silent": ("a0",)}, {"have": ("a1",)}, {"unheard": ("a3", "a3")}, {"silent": ("a4",)}],
    ids=["missed and silent", "missed and have", "unheard twice", "watched"],
)
def test_nobody_counts_twice(changes: dict[str, tuple[str, ...]]) -> None:
    """I5: a report that names a monitor twice, or the watched. Ballots keep votes by voter, so no run has one: it is planted."""
    sound = Suspect(Term(0, 1), "a4", 1, 7, ("a0", "a1"), ("a2",), (), (), 0.0, acted=True, slow=False)
    stand, checker = Stand(), ReportSound()
    checker.on_event(stand.world, stand.host("a0"), sound)
    with pytest.raises(Violation, match="counts somebody twice, or the watched"):
        checker.on_event(stand.world, stand.host("a0"), replace(sound, **changes))


def _failures(scenario: Scenario, seeds: Iterable[int]) -> list[str]:
    outcomes = (run(scenario, seed) for seed in seeds)
    return [f"seed {outcome.seed}: {outcome.violation}" for outcome in outcomes if not outcome.ok]
