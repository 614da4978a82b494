"""ring/E7 to E12, E14, E16 and E17 at reduced size, and proof that each can miss.  Spec: ring 8, 12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from holdfast.features.ring.lab.experiments import bounds as ring_bounds
from holdfast.features.ring.lab.experiments import forming as ring_forming
from holdfast.features.ring.lab.experiments import half_deaf as ring_half_deaf
from holdfast.features.ring.lab.experiments import join_failures as ring_join_failures
from holdfast.features.ring.lab.experiments import loss as ring_loss
from holdfast.features.ring.lab.experiments import partition as ring_partition
from holdfast.features.ring.lab.experiments import sick_member as ring_sick_member
from holdfast.features.ring.lab.experiments import small as ring_small
from holdfast.features.ring.lab.experiments import upgrade as ring_upgrade
from holdfast.features.ring.lab.experiments.bounds import DETECTION, GAP, LAG, TIMES, TOUCHED, BoundsParameters, bounds_of
from holdfast.features.ring.lab.experiments.forming import FormingParameters
from holdfast.features.ring.lab.experiments.half_deaf import WITH, WITHOUT, HalfDeafParameters
from holdfast.features.ring.lab.experiments.join_failures import FAST, NOBODY, PACED, PACES, JoinFailuresParameters
from holdfast.features.ring.lab.experiments.loss import LossParameters
from holdfast.features.ring.lab.experiments.partition import PartitionParameters
from holdfast.features.ring.lab.experiments.sick_member import BROKEN, KINDS, LOSS, STALL, SickMemberParameters, default_options
from holdfast.features.ring.lab.experiments.small import CENTRAL, PAIRWISE, SmallParameters, survives
from holdfast.features.ring.lab.experiments.upgrade import CHURN, JOINT, MODEL, NAIVE, ORDER, PROPOSAL, UpgradeParameters
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters, parameters_of
from holdfast.lab.measured import VIOLATION, checked
from holdfast.lab.violation import Violation

ALL: list[Experiment[Any]] = [
    ring_bounds.EXPERIMENT,
    ring_join_failures.EXPERIMENT,
    ring_upgrade.EXPERIMENT,
    ring_loss.EXPERIMENT,
    ring_small.EXPERIMENT,
    ring_partition.EXPERIMENT,
    ring_sick_member.EXPERIMENT,
    ring_forming.EXPERIMENT,
    ring_half_deaf.EXPERIMENT,
]


def judged(experiment: Experiment[Any], parameters: Parameters, rows: Sequence[Measured]) -> Finding:
    finding = experiment.judge(parameters, [{VIOLATION: "", **row} for row in rows])
    assert isinstance(finding, Finding)
    assert bool(finding.notes) != finding.passed
    return finding


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.id)
def test_same_seed_measures_the_same(experiment: Experiment[Any]) -> None:
    """Cells are pure functions: other processes and other machines find the same."""
    parameters = parameters_of(experiment, experiment.quick)
    cell = experiment.cells(parameters, 1)[-1]
    cell = {**cell, **dict.fromkeys({"faults", "runs"} & set(cell), 2)}
    assert experiment.measure(cell) == experiment.measure(cell)
    assert experiment.cells(parameters, 1) != experiment.cells(parameters, 2)


def test_a_violation_ends_a_cell_and_is_a_miss() -> None:
    """Ring 7: whatever an experiment counts, a violated invariant is a miss, and the report says which and where."""

    def play(cell: Cell) -> Measured:
        raise Violation("I8 one-owner", "two own it")

    cell = ring_bounds.EXPERIMENT.cells(BoundsParameters(), 1)[0]
    row = checked(play, cell)
    finding = ring_bounds.EXPERIMENT.judge(BoundsParameters(), [row])
    assert not finding.passed
    assert finding.notes[0].startswith("I8 one-owner: two own it")
    assert finding.measured["violations"] == 1


# E7


def times_at(share: float, change: Mapping[str, float] | None = None) -> dict[str, Any]:
    """The longest of each kind at this share of its bound, or at another."""
    bounds = bounds_of(ring_bounds.CONFIG)
    shares = dict.fromkeys(TIMES, share) | dict(change or {})
    return {"kind": "crash", "faults": 20, "times": {which: [0.1, shares[which] * bounds[which]] for which in TIMES}}


@pytest.mark.parametrize(
    "change, passed",
    [
        ({}, True),
        ({DETECTION: 1.0}, False),
        ({LAG: 1.01}, False),
        ({GAP: 0.9}, False),
        ({LAG: 0.3}, True),
    ],
    ids=["right", "on-the-bound", "beyond", "far-below", "lag-may-be-short"],
)
def test_e7_can_miss(change: dict[str, float], passed: bool) -> None:
    """E7: bounds are never reached exactly or crossed, and those of Th. 2 to 5 are nearly reached."""
    assert judged(ring_bounds.EXPERIMENT, BoundsParameters(), [times_at(0.99, change)]).passed == passed


def test_e7_needs_every_kind_of_time() -> None:
    """E7: what was never measured is no proof of a bound."""
    row = times_at(0.99)
    del row["times"][TOUCHED[0]]
    assert not judged(ring_bounds.EXPERIMENT, BoundsParameters(), [row]).passed


# E8


def join_row(pace: str, victim: str = NOBODY, **change: Any) -> dict[str, Any]:
    run = {"seed": 1, "alone": True, "attempts": 1, "took": 0.01, "settled_at": 8.0, "unsettled": ""}
    return {"pace": pace, "phase": "discover", "victim": victim, "runs": [{**run, **change}]}


@pytest.mark.parametrize(
    "row, passed",
    [
        (join_row(FAST), True),
        (join_row(FAST, took=3.001), False),
        (join_row(PACED, took=3.001), True),
        (join_row(PACED, took=3.1), False),
        (join_row(PACED, took=3.1, alone=False), True),
        (join_row(FAST, "neighbour", unsettled="n01 lists 8 members and there are 9"), False),
    ],
    ids=["right", "too-slow", "paced", "paced-too-slow", "with-others", "unsettled"],
)
def test_e8_can_miss(row: dict[str, Any], passed: bool) -> None:
    """E8: I9 after every crash, and Theorem 8 for a candidate that is alone and undisturbed."""
    rows = [*(join_row(pace) for pace in PACES), row]
    assert judged(ring_join_failures.EXPERIMENT, JoinFailuresParameters(), rows).passed == passed


# E9


def upgrade_rows(change: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[dict[str, Any]]:
    model = {"groups": ["PQR", "PQS"], "states": 100, "both_win": 0, "before": 10, "stranded": 0, "complete": True}
    churn = {"runs": 10, "both_win": 0, "departed": 0, "crashes": 20, "messages": 100}
    usual: Mapping[tuple[str, str], Mapping[str, Any]] = {
        (MODEL, NAIVE): {"both_win": 5},
        (MODEL, PROPOSAL): {"stranded": 6},
        (CHURN, PROPOSAL): {"departed": 3},
    }
    return [
        {"part": part, "variant": variant, **base, **usual.get((part, variant), {}), **change.get((part, variant), {})}
        for part, base in ((MODEL, model), (CHURN, churn))
        for variant in ORDER
    ]


@pytest.mark.parametrize(
    "part, variant, change, passed",
    [
        (MODEL, NAIVE, {}, True),
        (MODEL, NAIVE, {"both_win": 0}, False),
        (MODEL, JOINT, {"both_win": 1}, False),
        (MODEL, JOINT, {"stranded": 1}, False),
        (MODEL, JOINT, {"complete": False}, False),
        (MODEL, PROPOSAL, {"both_win": 1}, False),
        (CHURN, JOINT, {"departed": 1}, False),
        (CHURN, PROPOSAL, {"departed": 0}, False),
        (CHURN, PROPOSAL, {"both_win": 1}, False),
        (CHURN, NAIVE, {"runs": 0}, False),
    ],
)
def test_e9_can_miss(part: str, variant: str, change: dict[str, Any], passed: bool) -> None:
    """E9: joint is safe and strands nobody, naive is unsafe, the paper's proposal is safe and costs healthy members (D14)."""
    rows = upgrade_rows({(part, variant): change})
    assert judged(ring_upgrade.EXPERIMENT, UpgradeParameters(), rows).passed == passed


# E10


def loss_row(retry: float, loss: float, departures: int, early: int) -> dict[str, Any]:
    reasons = {"rejected": departures} if departures else {}
    return {
        "retry": retry,
        "loss": loss,
        "members": 64,
        "seconds": 600.0,
        "reasons": reasons,
        "early": early,
        "member_seconds": 38_400.0,
    }


@pytest.mark.parametrize(
    "safe, early, passed", [(0, 63, True), (1, 63, False), (0, 32, False)], ids=["right", "one-left", "paper-too-good"]
)
def test_e10_can_miss(safe: int, early: int, passed: bool) -> None:
    """E10: at 5 % loss nobody leaves with r = 1/8, and most leave with r = 1; what other losses do is reported."""
    rows = [loss_row(0.125, 0.05, safe, safe), loss_row(1.0, 0.05, 70, early), loss_row(0.125, 0.3, 50, 10)]
    finding = judged(ring_loss.EXPERIMENT, LossParameters(), rows)
    assert finding.passed == passed
    assert finding.measured["departures per node-hour"]["r=1/8, loss=0.3"] == pytest.approx(50 / (38_400 / 3600), rel=1e-3)


def test_e10_needs_the_cells_it_judges() -> None:
    """E10: without 5 % loss there is no verdict to give."""
    assert not judged(ring_loss.EXPERIMENT, LossParameters(), [loss_row(0.125, 0.1, 0, 0)]).passed


# E11


@pytest.mark.parametrize(
    "members, crashed, stays",
    [(1, [], True), (2, [1], True), (2, [0], False), (3, [0], True), (3, [0, 1], False), (4, [2, 3], True), (4, [0, 3], False)],
)
def test_e11_rule(members: int, crashed: list[int], stays: bool) -> None:
    """D5: a majority, the smallest id counting twice among an even number; D24: three arbitrators always suffice."""
    assert survives(PAIRWISE, members, crashed) == stays
    assert survives(CENTRAL, members, crashed)


@pytest.mark.parametrize(
    "mode, crashed, left, passed",
    [(PAIRWISE, 1, 0, True), (PAIRWISE, 0, 1, True), (PAIRWISE, 0, 0, False), (PAIRWISE, 1, 1, False), (CENTRAL, 0, 1, False)],
)
def test_e11_can_miss(mode: str, crashed: int, left: int, passed: bool) -> None:
    """E11: 2 survive the larger id and not the smaller; with static arbitrators either."""
    row = {"mode": mode, "members": 2, "crashed": 1, "subsets": [{"crashed": [crashed], "left": left}]}
    assert judged(ring_small.EXPERIMENT, SmallParameters(), [row]).passed == passed


# E12


def partition_row(split: str, **change: Any) -> dict[str, Any]:
    sizes = [[58, 6], [58, 0], [58, 6]] if split == "90/10" else [[45, 19], [45, 0], [45, 19]]
    row = {
        "split": split,
        "seed": 1,
        "heal": 1,
        "sides": sizes[0],
        "majority left": 0,
        "doomed": 0,
        "lowest majority": sizes[0][0],
        "majority at the heal": sizes[0][0],
        "minority out after": 1,
        "back after": 1,
        "twin T_l": 0,
        "unexplained": 0,
        "old": sizes,
        "any": sizes,
    }
    return {**row, **change}


@pytest.mark.parametrize(
    "row, passed",
    [
        (partition_row("90/10"), True),
        (partition_row("90/10", **{"majority left": 1}), False),
        (partition_row("70/30", **{"majority left": 6, "lowest majority": 39}), True),
        (partition_row("70/30", **{"lowest majority": 38}), False),
        (partition_row("70/30", **{"majority at the heal": 44}), False),
        (partition_row("70/30", **{"minority out after": 21}), False),
        (partition_row("70/30", **{"minority out after": None}), False),
        (partition_row("90/10", **{"back after": None}), False),
        (partition_row("90/10", unexplained=1), False),
    ],
)
def test_e12_can_miss(row: dict[str, Any], passed: bool) -> None:
    """E12: what each side may lose, and that all come back."""
    assert judged(ring_partition.EXPERIMENT, PartitionParameters(), [row]).passed == passed


# E14


def sick_rows(change: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    options = list(default_options())
    return [{"options": options, "kind": kind, "seconds": 600.0, "counts": dict(change.get(kind, {})), "out": 0} for kind in KINDS]


@pytest.mark.parametrize(
    "change, passed",
    [
        ({}, True),
        ({LOSS: {"sick": 19, "healthy": 1}}, True),
        ({LOSS: {"sick": 18, "healthy": 1}}, False),
        ({STALL: {"healthy": 1}}, False),
        ({STALL: {"sick": 5}}, True),
        ({BROKEN: {"sick": 1}}, False),
        ({BROKEN: {"reported": 2}}, True),
    ],
)
def test_e14_can_miss(change: dict[str, dict[str, int]], passed: bool) -> None:
    """E14: of the departures that a sick member causes at least 95 % are its own; a bad link costs neither end its membership."""
    assert judged(ring_sick_member.EXPERIMENT, SickMemberParameters(), sick_rows(change)).passed == passed


def test_e14_judges_the_defaults() -> None:
    """E14: what other options would do is reported and decides nothing."""
    other = [not each for each in default_options()]
    rows = [*sick_rows({}), *({**row, "options": other, "counts": {"healthy": 9}} for row in sick_rows({}))]
    finding = judged(ring_sick_member.EXPERIMENT, SickMemberParameters(), rows)
    assert finding.passed
    assert finding.measured["options that meet the criterion"] == [finding.measured["defaults"]]
    assert not judged(ring_sick_member.EXPERIMENT, SickMemberParameters(), rows[len(KINDS) :]).passed


# E16, E17.


@pytest.mark.parametrize("slowest, passed", [(1.9, True), (2.1, False)])
def test_forming_is_judged_by_its_slowest_start(slowest: float, passed: bool) -> None:
    """H160: one start above the limit of its size is a miss."""
    parameters = FormingParameters(seeds=2, sizes=(3,))
    rows = [
        {"preset": preset, "members": 3, "spread": 0.1, "seed": number, "took": took}
        for preset in ("lan", "local")
        for number, took in enumerate((0.2, slowest))
    ]
    assert judged(ring_forming.EXPERIMENT, parameters, rows).passed == passed


def test_forming_at_reduced_size() -> None:
    """H160: processes that start together are soon one ring."""
    parameters = parameters_of(ring_forming.EXPERIMENT, ring_forming.EXPERIMENT.quick)
    rows = [ring_forming.EXPERIMENT.measure(cell) for cell in ring_forming.EXPERIMENT.cells(parameters, 1)]
    assert ring_forming.EXPERIMENT.judge(parameters, rows).passed


@pytest.mark.parametrize(
    "healthy, deaf, without, passed",
    [(0, True, 1, True), (1, True, 2, False), (0, False, 1, False), (0, True, 0, False)],
)
def test_a_half_deaf_member_is_judged(healthy: int, deaf: bool, without: int, passed: bool) -> None:
    """H162: healthy ones stay, the deaf one leaves, and the rule makes the difference."""
    parameters = HalfDeafParameters(seeds=1, sizes=(3,), losses=(0.9,))
    rows = [
        {"rule": rule, "members": 3, "loss": 0.9, "seed": number, "healthy": left, "deaf": deaf}
        for rule, left in ((WITH, healthy), (WITHOUT, without))
        for number in range(10)
    ]
    assert judged(ring_half_deaf.EXPERIMENT, parameters, rows).passed == passed


def test_half_deaf_at_reduced_size() -> None:
    """H162: the quick form passes."""
    parameters = parameters_of(ring_half_deaf.EXPERIMENT, ring_half_deaf.EXPERIMENT.quick)
    rows = [ring_half_deaf.EXPERIMENT.measure(cell) for cell in ring_half_deaf.EXPERIMENT.cells(parameters, 1)]
    assert ring_half_deaf.EXPERIMENT.judge(parameters, rows).passed
