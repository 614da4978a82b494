"""detection/E1, E4 and E10: pure cells, and proof that each can miss; tests/cli runs them at quick size.  Spec: fast-detection 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.lab.experiment import Experiment, Finding, Measured, Parameters, parameters_of
from holdfast.lab.rates import poisson_interval
from holdfast.papers.detection.lab.experiments import omega_amplification, temporal_accuracy, temporal_bound
from holdfast.papers.detection.lab.experiments.omega_amplification import OmegaAmplificationParameters
from holdfast.papers.detection.lab.experiments.temporal_accuracy import TemporalAccuracyParameters
from holdfast.papers.detection.lab.experiments.temporal_bound import LONGEST, MEAN, SHORTEST, TemporalBoundParameters

ALL: list[Experiment[Any]] = [temporal_bound.EXPERIMENT, temporal_accuracy.EXPERIMENT, omega_amplification.EXPERIMENT]
RIGHT = {"loss": 0.1, "accuracy": 1e-5, "m": 5, MEAN: 50.1, SHORTEST: 50.09, LONGEST: 50.11}


def judged(experiment: Experiment[Any], parameters: Parameters, rows: Sequence[Measured]) -> Finding:
    finding = experiment.judge(parameters, rows)
    assert isinstance(finding, Finding)
    return finding


@pytest.mark.parametrize("experiment", ALL, ids=lambda experiment: experiment.id)
def test_same_seed_measures_the_same(experiment: Experiment[Any]) -> None:
    """Cells are pure functions: other processes and other machines find the same."""
    parameters = parameters_of(experiment, experiment.quick)
    cell = experiment.cells(parameters, 1)[0]
    assert experiment.measure(cell) == experiment.measure(cell)
    assert experiment.cells(parameters, 1) != experiment.cells(parameters, 2)


@pytest.mark.parametrize(
    "change, passed",
    [({}, True), ({LONGEST: 50.61}, False), ({SHORTEST: 49.59}, False), ({SHORTEST: 49.99}, False)],
    ids=["right", "too-late", "too-early", "below-the-bound"],
)
def test_e1_can_miss(change: dict[str, float], passed: bool) -> None:
    """E1: within 1 % of m t_itv + t_lat on both sides, and never below Proposition 4.1 although 1 % would allow it."""
    finding = judged(temporal_bound.EXPERIMENT, TemporalBoundParameters(), [{**RIGHT, **change}])
    assert finding.passed == passed
    assert bool(finding.notes) != passed


@pytest.mark.parametrize("mistakes, passed", [(18, True), (10, True), (35, True), (8, False), (37, False), (0, False)])
def test_e4_can_miss(mistakes: int, passed: bool) -> None:
    """E4: within a factor of two of p^5 (1 - p) = 9e-6 on both sides."""
    rows = [{"m": 5, "heartbeats": 2_000_000, "mistakes": mistakes}]
    assert judged(temporal_accuracy.EXPERIMENT, TemporalAccuracyParameters(), rows).passed == passed


@pytest.mark.parametrize("demotions, passed", [(640, True), (790, True), (490, True), (810, False), (470, False)])
def test_e10_can_miss(demotions: int, passed: bool) -> None:
    """E10: n = 3, m = 2, p = .2 expects .064 per heartbeat, within 25 %."""
    rows = [{"n": 3, "m": 2, "heartbeats": 10_000.0, "demotions": demotions}]
    finding = judged(omega_amplification.EXPERIMENT, OmegaAmplificationParameters(), rows)
    assert finding.passed == passed
    assert bool(finding.notes) != passed


def test_e10_does_not_judge_where_the_formula_ends() -> None:
    """E10: the criterion holds while (n - 1) p^m (1 - p) is below .1; n = 15, m = 2 expects .448."""
    rows = [{"n": 15, "m": 2, "heartbeats": 10_000.0, "demotions": 1}]
    assert judged(omega_amplification.EXPERIMENT, OmegaAmplificationParameters(), rows).passed


def test_two_alphas_exactly_is_less_than_two_missed_oks() -> None:
    """E10, line 26: with a timeout of 2 alpha and delays that vary, the OK after a lost one comes too late every other time."""
    cell = {"n": 3, "m": 2, "loss": 0.1, "demotions": 150, "seed": 3}
    sharp, with_latency = (omega_amplification.EXPERIMENT.measure({**cell, "patience": patience}) for patience in (2.0, 2.05))
    ratio = (sharp["demotions"] / sharp["heartbeats"]) / (with_latency["demotions"] / with_latency["heartbeats"])
    # Each of two followers: .1 x .9 x .9 / 2 = .0405 more, on top of .1 x .1 x .9 = .009.
    assert 4 < ratio < 7


@pytest.mark.parametrize(
    "count, low, high", [(0, 0.0, 3.689), (2, 0.242, 7.225), (10, 4.795, 18.390), (18, 10.668, 28.448), (100, 81.364, 121.627)]
)
def test_intervals_are_those_of_the_tables(count: int, low: float, high: float) -> None:
    """The exact 95 % limits of a Poisson mean (Garwood), which Byar's approximation meets within 2 %."""
    assert poisson_interval(count) == pytest.approx((low, high), rel=0.02, abs=0.03)
