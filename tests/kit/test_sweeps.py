"""The kit in the lab: seeds of each scenario hold, and every rule that is taken out is missed by some checker.

Foundation 4. The scenarios are ``kit/broadcast``, ``kit/rows``, ``kit/phase`` and ``kit/claims``.
"""

from __future__ import annotations

from functools import partial
from itertools import islice

import pytest

from holdfast.kit.keeper import Keeper
from holdfast.kit.marks import Mark
from holdfast.kit.promise import Promises
from holdfast.kit.seats import Seats, SeatState
from holdfast.lab.faults import Crash, CrashInSave, Cut, DiskFull, Drift, LostJournal, Plan, RestoredJournal
from holdfast.lab.kit.claims import Claimant
from holdfast.lab.kit.scenarios.broadcast import SCENARIO as BROADCAST
from holdfast.lab.kit.scenarios.broadcast import BroadcastScenario
from holdfast.lab.kit.scenarios.phase import SCENARIO as PHASE
from holdfast.lab.kit.scenarios.phase import PhaseScenario
from holdfast.lab.kit.scenarios.promise import FOUNDED_AFTER, PromiseScenario, able, end_hold, slots
from holdfast.lab.kit.scenarios.promise import SCENARIO as CLAIMS
from holdfast.lab.kit.scenarios.rows import SCENARIO as ROWS
from holdfast.lab.kit.scenarios.rows import RowsScenario
from holdfast.lab.scenario import Scenario, Setup, run, set_up
from holdfast.lab.sweep import sweep
from holdfast.lab.trace import Trace
from holdfast.lab.world import World
from tests import sizes
from tests.kit import ablations as without
from tests.support.search import Search


@pytest.mark.nightly
@pytest.mark.parametrize(
    "scenario, seeds",
    [
        pytest.param(BROADCAST, sizes.later_seeds(), id="broadcast"),
        pytest.param(ROWS, sizes.later_seeds(), id="rows"),
        pytest.param(PHASE, sizes.later_seeds(500), id="phase"),
        pytest.param(CLAIMS, sizes.later_seeds(400), id="claims"),
    ],
)
def test_sweep(scenario: Scenario, seeds: range) -> None:
    """Tickets 5.9, foundation 4, F8, F9, F13, F15, F17: loss, duplication, cuts, pauses, crashes, drift, torn disks; then calm."""
    sweep(scenario, seeds)


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
def test_a_missing_rule_is_found(scenario: Scenario, invariant: str, search: Search) -> None:
    """Foundation 4: a checker that cannot fail proves nothing. What only the exhaustive exploration finds is in tests/kit."""
    assert search(scenario, SEEDS_MAX) in invariant.split("|")


def test_ablations_replace_what_they_say() -> None:
    """The scenario without an ablation is the scenario: nothing but the missing rule makes these runs fail."""
    assert run(without.PromiseAblation(promises=Promises, keeper=Keeper), 3).ok
    assert run(without.RowsAblation(), 0).ok
    assert run(without.PhaseAblation(), 2).ok


COPIED_AT, PUT_BACK_AT = 7.0, 13.5


def restored(setup: Setup) -> Plan:
    """s1 gets back what it was at 7 s. s0 has missed what was promised since, the others have forgotten what they heard, and only s1
    reaches s2, which knows it."""
    others = tuple(name for name in setup.names if name not in ("s1", "s2"))
    cuts = (Cut(13.3, 10.0, ("s2",), others), Cut(13.3, 10.0, others, ("s2",)))
    return Plan(
        (
            Crash(6.0, "s0", 8.0),
            RestoredJournal(COPIED_AT, PUT_BACK_AT - COPIED_AT, "s1", 0.1),
            *cuts,
            *(Crash(13.4, name, 0.6) for name in others[1:]),
        )
    )


def restored_seeds(count: int) -> list[int]:
    found = (seed for seed in range(10_000) if set_up(CLAIMS, seed).parameters == {**set_up(CLAIMS, seed).parameters, **SMALL})
    return list(islice(found, count))


SMALL: dict[str, float | str] = {"seats": 3.0, "numbers": "small"}


def test_a_seat_that_went_back_in_time_does_no_harm() -> None:
    """H156: numbers never fall and nothing is held twice; the seat is silent in the end, and the others go on. A copy that lacks nothing
    is no copy of an earlier time: of these there are few."""
    behind = 0
    seeds = restored_seeds(sizes.seeds(100))
    for seed in seeds:
        silent = Silent()
        outcome = run(silent, seed, plan=restored(set_up(CLAIMS, seed)))
        assert outcome.ok, (seed, outcome.violation)
        lacks = silent.marks[0] != silent.marks[1]
        assert (silent.found == [SeatState.SILENT]) is lacks, seed
        behind += lacks
    assert behind >= 0.9 * len(seeds)


class Silent(PromiseScenario):
    """Looks at the restored seat in the end, and at its marks: when it was copied, and just before the copy was put back."""

    def __init__(self) -> None:
        self.found: list[SeatState] = []
        self.marks: list[Mark] = []

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        for at in (COPIED_AT, PUT_BACK_AT - 0.001):
            world.at(at, lambda: self.marks.append(world.nodes["s1"].node.use(Seats).marks.mark))

    def unsettled(self, world: World, setup: Setup) -> str:
        self.found = [world.nodes["s1"].node.use(Seats).state]
        return super().unsettled(world, setup)


def test_without_marks_a_restored_seat_gives_numbers_twice() -> None:
    """H156: the fault is real: the same plans break the promise if the slots do not remember marks."""
    broken = [
        run(without.PromiseAblation(seats=without.Trusting), seed, plan=restored(set_up(CLAIMS, seed))).violation
        for seed in restored_seeds(sizes.SEEDS)
    ]
    assert any(violation.split()[0].rstrip(":") in HELD_ONCE.split("|") for violation in broken if violation), broken


class Deaf(Scenario):
    """As soon as the faults have stopped nobody hears anybody: whatever is well then was well before."""

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        world.at(setup.seconds + 0.001, lambda: world.network.lose_if(lambda source, target, message: True))


class DeafBroadcast(Deaf, BroadcastScenario):
    """Nobody can be told anything new."""


class DeafRows(Deaf, RowsScenario):
    """Tables that are equal stay so."""


class DeafPhase(Deaf, PhaseScenario):
    """No question is answered."""


class DeafClaims(Deaf, PromiseScenario):
    """A holder from before holds on for a while."""


def needs_others(scenario: Scenario, setup: Setup) -> bool:
    """One member alone cannot do what is asked for."""
    if isinstance(scenario, PhaseScenario):
        return not any(scenario.quorum(setup).enough({name}) for name in setup.names)
    return setup.parameters.get("seats") != 1.0


@pytest.mark.parametrize("scenario", [DeafBroadcast(), DeafRows(), DeafPhase(), DeafClaims()], ids=lambda each: each.name)
def test_something_new_must_happen_in_calm(scenario: Scenario) -> None:
    """Liveness: what was said, set, won or held before the faults stopped proves nothing; every seed must show more."""
    seeds = [seed for seed in range(25) if needs_others(scenario, set_up(scenario, seed))]
    assert len(seeds) > 10
    for seed in seeds:
        assert run(scenario, seed).violation.startswith("settled")


class Restless(PromiseScenario):
    """In calm somebody wins again and again, and gives up before the first promise would have ended."""

    def drive(self, world: World, setup: Setup) -> None:
        super().drive(world, setup)
        at = setup.seconds
        while at < setup.seconds + setup.settle + 1.0:
            at += float(setup.parameters["length"]) * 0.8
            world.at(at, partial(end_hold, world, Claimant.resign))


def test_what_is_won_in_calm_must_last() -> None:
    """Liveness: a grant that is never renewed beyond its first end proves little."""
    for seed in range(10):
        assert run(Restless(), seed).violation.startswith("settled")


class Counted:
    """Notes for every look at a settled group whether there was anything to settle."""

    def __init__(self) -> None:
        self.could: list[bool] = []


class CountedClaims(Counted, PromiseScenario):
    """A majority of seats can speak."""

    def unsettled(self, world: World, setup: Setup) -> str:
        self.could.append(len(able(world, setup)) > len(slots(setup)) // 2)
        return super().unsettled(world, setup)


class CountedPhase(Counted, PhaseScenario):
    """A quorum is up."""

    def unsettled(self, world: World, setup: Setup) -> str:
        self.could.append(self.quorum(setup).enough({host.me.name for host in world.alive}))
        return super().unsettled(world, setup)


class CountedRows(Counted, RowsScenario):
    """There is somebody to agree with."""

    def unsettled(self, world: World, setup: Setup) -> str:
        self.could.append(len(world.alive) > 1)
        return super().unsettled(world, setup)


class CountedBroadcast(Counted, BroadcastScenario):
    """There is somebody to tell."""

    def unsettled(self, world: World, setup: Setup) -> str:
        self.could.append(len(world.alive) > 1)
        return super().unsettled(world, setup)


@pytest.mark.parametrize("make", [CountedClaims, CountedPhase, CountedRows, CountedBroadcast])
def test_no_seed_settles_because_nobody_is_left(make: type[CountedClaims]) -> None:
    """Liveness: a majority, a quorum, a pair always survives what is drawn."""
    scenario = make()
    seeds = sizes.seeds(80)
    for seed in range(seeds):
        run(scenario, seed)
    assert len(scenario.could) >= 2 * seeds
    assert all(scenario.could)


def test_a_plan_by_hand_may_leave_nobody() -> None:
    """Liveness: without a majority of seats nobody holds, and that is no violation."""
    seed = next(seed for seed in range(50) if set_up(CLAIMS, seed).parameters["seats"] == 3)
    assert run(CLAIMS, seed, plan=Plan((Crash(5.0, "s0"), Crash(5.0, "s1")))).ok
    assert run(CLAIMS, seed, plan=Plan((Crash(0.0, "s0"),))).ok  # before the group was founded: F13


def test_all_that_goes_wrong_is_in_the_plan() -> None:
    """Shrinking: without its plan a run has no crash; restarts in a row, lost journals and full disks are faults like others."""
    trace = Trace()
    assert run(CLAIMS, 1, plan=Plan(), trace=trace).ok
    assert not [line for line in trace.lines() if "* crash" in line]
    drawn = [type(fault) for seed in range(40) for fault in set_up(CLAIMS, seed).plan.faults]
    assert {Crash, CrashInSave, DiskFull, LostJournal} <= set(drawn)
    assert DiskFull in [type(fault) for seed in range(40) for fault in set_up(PHASE, seed).plan.faults]


def test_a_seat_that_will_be_gone_for_good_was_there_once() -> None:
    """F13: at the very first start all slots must be up once; otherwise faults come from the beginning."""
    first = {True: 100.0, False: 100.0}
    for seed in range(200):
        setup = set_up(CLAIMS, seed)
        places = [slot.name for slot in slots(setup)]
        faults = setup.plan.faults
        gone = any(
            isinstance(each, LostJournal) or (isinstance(each, Crash) and each.down is None and each.node in places) for each in faults
        )
        first[gone] = min([first[gone], *(each.at for each in faults if not isinstance(each, Drift))])
    assert first[True] >= FOUNDED_AFTER
    assert first[False] < 1.0
