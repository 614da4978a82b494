"""detection/E2 to E19 (without E4 and E10): pure cells, and proof that each can miss; tests/cli runs them.  Spec: fast-detection 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from holdfast.features.leadership.detector.config import FfdConfig, Term
from holdfast.features.leadership.detector.detectors import Temporal
from holdfast.features.leadership.lab.experiments import (
    ffd_accuracy,
    ffd_baselines,
    ffd_common_loss,
    ffd_estimators,
    ffd_example,
    ffd_example_loss,
    ffd_group_size,
    ffd_messages,
    ffd_qos,
    ffd_speed,
)
from holdfast.features.leadership.lab.pairs import run_pair
from holdfast.features.leadership.lab.spatial import chance, mistakes
from holdfast.features.leadership.lab.watching import Watching
from holdfast.lab.experiment import Experiment, Finding, Measured, Parameters, parameters_of
from holdfast.lab.rates import upper_limit, wilson_interval
from holdfast.lab.samples import curves, mean_interval, quantile, quantile_interval, summary
from holdfast.papers.detection.lab.elections import Elections, Reign, settings
from holdfast.papers.detection.lab.experiments import (
    ffd_backups,
    ffd_deaf,
    ffd_election,
    lease_controls,
    lease_handover,
    lease_partition,
    lease_stepdowns,
)

ALL: list[Experiment[Any]] = [
    module.EXPERIMENT
    for module in (
        ffd_speed, ffd_example, ffd_example_loss, ffd_qos, ffd_accuracy, ffd_group_size, ffd_messages, ffd_election, ffd_common_loss,
        ffd_backups, ffd_baselines, lease_stepdowns, ffd_deaf, ffd_estimators, lease_handover, lease_partition, lease_controls,
    )
]  # fmt: skip


def judged(experiment: Experiment[Any], parameters: Parameters, rows: Sequence[Measured]) -> Finding:
    finding = experiment.judge(parameters, rows)
    assert isinstance(finding, Finding)
    return finding


def quick(experiment: Experiment[Any], **settings: str) -> Any:
    return parameters_of(experiment, {**experiment.quick, **settings})


TINY = {
    "detection/E6": {"heartbeats": "400"},
    "detection/E11": {"heartbeats": "400"},
    "detection/E13": {"group_heartbeats": "400", "deaths": "8"},
    "detection/E14": {"heartbeats": "200"},
    "detection/E15": {"seeds": "1"},
}
DRAWN = [experiment for experiment in ALL if experiment.repetitions]


@pytest.mark.parametrize("experiment", DRAWN, ids=lambda experiment: experiment.id)
def test_same_seed_measures_the_same(experiment: Experiment[Any]) -> None:
    """Cells are pure functions: other processes and other machines find the same; no two cells share everything."""
    parameters = quick(experiment, **TINY.get(experiment.id, {}))
    cells = experiment.cells(parameters, 1)
    assert experiment.measure(cells[-1]) == experiment.measure(cells[-1])
    assert len({repr(cell) for cell in cells}) == len(cells)
    assert cells != experiment.cells(parameters, 2)


# E2, E3, E3b: how fast.


@pytest.mark.parametrize(
    "n, low, high, passed",
    [(6, 10.1, 10.3, True), (6, 10.1, 10.301, False), (6, 10.0, 10.2, False), (5, 20.1, 20.3, True), (5, 10.1, 10.3, False)],
    ids=["right", "too-late", "too-early", "one-too-few", "too-few-is-enough"],
)
def test_e2_can_miss(n: int, low: float, high: float, passed: bool) -> None:
    """E2, Prop. 4.2: within (10, 10.3] from n = m + 1 = 6 on, one heartbeat later with n = m."""
    row = {"loss": 0.1, "accuracy": 1e-5, "m": 5, "n": n, "deaths": 9, "unnoticed": 0, "min": low, "max": high, "mean": (low + high) / 2}
    finding = judged(ffd_speed.EXPERIMENT, ffd_speed.SpeedParameters(), [row])
    assert finding.passed == passed
    assert not judged(ffd_speed.EXPERIMENT, ffd_speed.SpeedParameters(), [{**row, "unnoticed": 1}]).passed


def test_e2_evidence_counts_the_asker_once() -> None:
    """D1, D9: five monitors, the asker among them, are just enough for 1e-5 at p = .1; four need more than one heartbeat."""
    config = ffd_speed.paper_config(10.0, 0.1, 1e-5, 0.1)
    assert [Watching(3, n, config).detection(1e-6, 1) is not None for n in (5, 6)] == [False, True]


def e3(ffd: float, temporal: float = 50.1) -> Finding:
    rows = [
        {"members": members, "worst": worst, "times": [temporal if members == 0 else ffd] * 3, "unnoticed": 0}
        for members in (0, 6)
        for worst in (True, False)
    ]
    return judged(ffd_example.EXPERIMENT, ffd_example.ExampleParameters(members=(6,)), rows)


def test_e3_can_miss() -> None:
    """E3: 50.1 s against 10.28 s is a ratio of 4.87; 4.8 are asked for."""
    assert e3(10.28).passed
    assert not e3(10.5).passed
    assert not e3(10.28, temporal=49.0).passed


def test_e3b_can_miss() -> None:
    """E3b: the 99th percentile decides, and every death is reported."""
    parameters = ffd_example_loss.ExampleLossParameters(members=(6, 12))
    right = [
        {"members": 6, "times": [10.2] * 90 + [20.5] * 10, "unnoticed": 0},
        {"members": 12, "times": [10.4] * 99 + [20.0], "unnoticed": 0},
    ]
    assert judged(ffd_example_loss.EXPERIMENT, parameters, right).passed
    assert not judged(ffd_example_loss.EXPERIMENT, parameters, [right[0], {**right[1], "times": [10.4] * 98 + [20.0] * 2}]).passed
    assert not judged(ffd_example_loss.EXPERIMENT, parameters, [{**right[0], "times": [10.2] * 98 + [30.5] * 2}, right[1]]).passed
    assert not judged(ffd_example_loss.EXPERIMENT, parameters, [{**right[0], "unnoticed": 1}, right[1]]).passed


# E5: arithmetic.


def test_e5_formulas_are_those_of_a_simulation() -> None:
    """Chen et al.: time between mistakes and how long they last, against heartbeats that are drawn; delta = 1.5 eta, mean delay eta / 5."""
    eta, delta, loss, mean = 1.0, 1.5, 0.3, 0.2
    random, arrivals = Random(7), [0.0] * 40_000
    for i in range(len(arrivals)):
        arrivals[i] = float("inf") if random.random() < loss else i * eta + random.expovariate(1 / mean)
    mistakes_seen, suspected, trusted = 0, 0.0, True
    for i in range(3, len(arrivals)):
        tau = i * eta + delta  # From here to the next freshness point heartbeats from i on keep the trust.
        fresh = min(arrivals[i : i + 4])
        mistakes_seen += trusted and fresh > tau
        suspected += min(eta, max(0.0, fresh - tau))
        trusted = fresh <= tau + eta
    later = ffd_qos.exponential(mean)
    assert (len(arrivals) - 3) * eta / mistakes_seen == pytest.approx(ffd_qos.recurrence(eta, delta, loss, later), rel=0.05)
    assert suspected / mistakes_seen == pytest.approx(ffd_qos.duration(eta, delta, loss, later), rel=0.05)


def test_e5_can_miss() -> None:
    """E5, D24: with t_lat = 20 ms, the mean delay, the simple model gives another pair than the paper's."""
    parameters = ffd_qos.QosParameters(latency=0.02)
    finding = judged(ffd_qos.EXPERIMENT, parameters, [ffd_qos.EXPERIMENT.measure({"latency": 0.02})])
    assert not finding.passed
    assert "9.9933" in finding.notes[0]


# E6, E7, E11: how right.


def test_rule_meets_its_formula() -> None:
    """Section 1: the rule alone, drawn and computed; the numbers of the specification's proof."""
    for monitors, expected in ((3, 0.0066), (4, 0.0108), (8, 0.0077), (20, 1e-4)):
        assert chance(monitors, 3, 0.3) == pytest.approx(expected, rel=0.04)
    drawn = mistakes(Random(1), 60_000, 4, 3, 0.3)
    assert drawn / 60_000 == pytest.approx(chance(4, 3, 0.3), rel=0.1)


@pytest.mark.parametrize("count, passed", [(0, True), (250, True), (275, False), (400, False)])
def test_e6_can_miss(count: int, passed: bool) -> None:
    """E6: of 10,000 heartbeats with P_m = .03 not the rate but its upper 99 % limit decides."""
    row = {"key": "p known, p=0.3, n=4, P_m=0.03", "demand": 0.03, "mistakes": count, "heartbeats": 10_000}
    assert judged(ffd_accuracy.EXPERIMENT, ffd_accuracy.AccuracyParameters(), [row]).passed == passed


def test_e6_finds_a_loss_that_is_understated() -> None:
    """G1: each p that is used must be at least the true one; links that claim .05 and lose .3 accuse a live leader far too often."""
    group = Watching(3, 4, FfdConfig(t_itv=1.0, t_lat=0.05, p_m=0.01, p_fixed=0.05, common=0.0), loss=0.3)
    heartbeats, count = ffd_accuracy.live(group, 20, 400)
    assert count / heartbeats > 3 * 0.01


@pytest.mark.parametrize(
    "counts, passed",
    [((66, 108, 1), True), ((108, 100, 1), False), ((66, 108, 60), False), ((66, 280, 1), False)],
    ids=["right", "no-rise", "no-fall", "above-p^k"],
)
def test_e7_can_miss(counts: tuple[int, int, int], passed: bool) -> None:
    """E7: both regimes must be seen, clear of chance, and the bound p^k = .027 must hold."""
    parameters = ffd_group_size.GroupSizeParameters(monitors=(3, 4, 20))
    rows = [{"monitors": m, "heartbeats": 10_000, "mistakes": count} for m, count in zip((3, 4, 20), counts, strict=True)]
    assert judged(ffd_group_size.EXPERIMENT, parameters, rows).passed == passed


@pytest.mark.parametrize(
    "way, count, passed",
    [
        ("ignored", 500, True),
        ("ignored", 380, False),
        ("ignored", 620, False),
        ("known", 3, True),
        ("known", 20, False),
        ("measured", 20, False),
    ],
)
def test_e11_can_miss(way: ffd_common_loss.Way, count: int, passed: bool) -> None:
    """E11: of 10,000 heartbeats with c = .05, P_m = 1e-3: about c if it is ignored, the whole interval below P_m otherwise."""
    parameters = ffd_common_loss.CommonLossParameters(commons=(0.05,), ways=(way,))
    rows = [{"c": 0.05, "way": way, "heartbeats": 10_000, "mistakes": count, "estimate": 0.0}]
    assert judged(ffd_common_loss.EXPERIMENT, parameters, rows).passed == passed


# E8, E9, E12, E13.


def test_e8_can_miss() -> None:
    """E8: n = 7, p = .01, two backups: 12 and .36 messages, and 5 %."""
    assert ffd_messages.bound(7, 0.01, 2) == pytest.approx(12.978)
    row = {"p": 0.01, "n": 7, "intervals": 100, "samples": [12.9, 13.0], "kinds": {"WatchedOk": 6.0, "MonitorOk": 6.1}}
    assert judged(ffd_messages.EXPERIMENT, ffd_messages.MessagesParameters(), [row]).passed
    assert not judged(ffd_messages.EXPERIMENT, ffd_messages.MessagesParameters(), [{**row, "samples": [13.0, 13.0]}]).passed


def e9(changes: Mapping[str, float], never: int = 0) -> Finding:
    usual = {ffd_election.OMEGA: 5.5, ffd_election.OMEGA_FFD: 1.2, ffd_election.QUORUM_2: 1.9, ffd_election.QUORUM_15: 1.6}
    times = {**dict.fromkeys(ffd_election.VARIANTS, 4.6), **usual, **changes}
    rows = [{"variant": variant, "p": 0.1, "times": [seconds] * 3, "never": never} for variant, seconds in times.items()]
    return judged(ffd_election.EXPERIMENT, ffd_election.ElectionSpeedParameters(losses=(0.1,)), rows)


def test_e9_can_miss() -> None:
    """E9: four times as fast, leases within L + .3 s, and there is always a new leader."""
    assert e9({}).passed
    assert not e9({ffd_election.OMEGA_FFD: 1.4}).passed
    assert not e9({ffd_election.QUORUM_15: 1.81}).passed
    assert not e9({ffd_election.QUORUM_2: 2.31}).passed
    assert not e9({}, never=1).passed


@pytest.mark.parametrize("added, passed", [(0.2, True), (0.22, True), (0.26, False), (0.0, False)])
def test_e12_can_miss(added: float, passed: bool) -> None:
    """E12: one w = .2 s per dead rank, within a quarter of it."""
    rows = [
        {"backups": backups, "dead": dead, "ranks": ranks, "times": [0.7 + (dead * added if ranks == ffd_backups.LOWEST else 0.0)] * 3}
        for backups in ffd_backups.BACKUPS
        for dead in range(4)
        for ranks in (ffd_backups.LOWEST, ffd_backups.HIGHEST)
    ]
    assert judged(ffd_backups.EXPERIMENT, ffd_backups.BackupsParameters(), rows).passed == passed


def e13(key: str, of: str, seconds: float, count: int) -> Finding:
    row = {"of": of, "key": key, "heartbeats": 100_000, "mistakes": count, "times": [seconds] * 3, "unnoticed": 0}
    return judged(ffd_baselines.EXPERIMENT, ffd_baselines.BaselinesParameters(), [row])


def test_e13_can_miss() -> None:
    """E13: a baseline that is both fast and right, or fast detection that is not, would be a surprise."""
    assert e13("phi=8", ffd_baselines.PHI, 2.6, 50).passed
    assert e13("phi=3", ffd_baselines.PHI, 1.7, 1000).passed
    assert not e13("phi=8", ffd_baselines.PHI, 1.9, 50).passed
    assert e13("FFD n=7", ffd_baselines.FFD, 0.65, 0).passed
    assert not e13("FFD n=7", ffd_baselines.FFD, 2.1, 0).passed
    assert not e13("FFD n=7", ffd_baselines.FFD, 0.65, 100).passed


def test_pairs_make_the_mistakes_that_the_formula_says() -> None:
    """E4, E13: m = 2 loses trust p^2 (1 - p) times per heartbeat, and finds the worst crash after m t_itv + t_lat."""
    detector = Temporal(2, interval=1.0, slack=0.1)
    run = run_pair(detector, Random(3), heartbeats=20_000, interval=1.0, loss=0.2, delay=0.001, worst=True)
    assert run.mistakes / run.heartbeats == pytest.approx(0.2**2 * 0.8, rel=0.1)
    assert min(run.times) == pytest.approx(2.1, abs=0.01)
    assert max(run.times) == pytest.approx(2.1, abs=0.01)


# E14 to E19.


@pytest.mark.parametrize("step_downs, passed", [(0, True), (3, True), (6, False), (40, False)])
def test_e14_can_miss(step_downs: int, passed: bool) -> None:
    """E14: of 10,000 heartbeats the interval must end below 1 per 1000; other cells are only shown."""
    row = {"n": 7, "p": 0.1, "length": 1.5, "tries": 2, "heartbeats": 10_000, "why": ["lapsed"] * step_downs}
    other = {**row, "tries": 0, "why": ["lapsed"] * 400}
    assert judged(lease_stepdowns.EXPERIMENT, lease_stepdowns.StepDownsParameters(), [row, other]).passed == passed
    assert not judged(lease_stepdowns.EXPERIMENT, lease_stepdowns.StepDownsParameters(), [other]).passed


@pytest.mark.parametrize(
    "paper, quorum, passed", [((4, True), 0, True), ((3, True), 0, False), ((4, False), 0, False), ((4, True), 1, False)]
)
def test_e15_can_miss(paper: tuple[int, bool], quorum: int, passed: bool) -> None:
    """E15, D14: four leaderships that end with the deaf one in paper mode, none in quorum mode."""
    rows = [
        {"mode": "paper", "runs": [[*paper, 2]], "first": [], "deaf": "n4"},
        {"mode": "quorum", "runs": [[quorum, False, 2]], "first": [], "deaf": "n4"},
    ]
    assert judged(ffd_deaf.EXPERIMENT, ffd_deaf.DeafParameters(), rows).passed == passed


def test_e16_can_miss() -> None:
    """E16, D8: 95 % of the runs."""
    parameters = ffd_estimators.EstimatorsParameters(losses=(0.1,), heartbeats=(50,), commons=(0.01,), common_heartbeats=(1000,))
    common: Measured = {"c": 0.01, "estimates": [0.009]}
    for covered, passed in ((950, True), (949, False)):
        rows: list[Measured] = [{"p": 0.1, "heartbeats": 50, "covered": covered, "runs": 1000}, common, common]
        assert judged(ffd_estimators.EXPERIMENT, parameters, rows).passed == passed


def test_e17_can_miss() -> None:
    """E17: the median after a resignation."""
    for seconds, passed in ((0.19, True), (0.21, False)):
        rows = [{"way": way, "times": [seconds] * 3, "never": 0} for way in lease_handover.DEAD]
        assert judged(lease_handover.EXPERIMENT, lease_handover.HandoverParameters(), rows).passed == passed
    never = [{"way": way, "times": [0.1] * 3, "never": 1} for way in lease_handover.DEAD]
    assert not judged(lease_handover.EXPERIMENT, lease_handover.HandoverParameters(), never).passed


@pytest.mark.parametrize("overlap, disagreed, passed", [(0.0, 0, True), (1e-6, 0, False), (0.0, 1, False)])
def test_e18_can_miss(overlap: float, disagreed: int, passed: bool) -> None:
    """E18, G5: exactly none in quorum mode."""
    rows = [
        {"mode": "paper", "overlaps": [16.0, 17.0], "disagreed": 0, "first": []},
        {"mode": "quorum", "overlaps": [0.0, overlap], "disagreed": disagreed, "first": []},
    ]
    assert judged(lease_partition.EXPERIMENT, lease_partition.PartitionParameters(), rows).passed == passed


@pytest.mark.parametrize("broken, kept, passed", [(0.3, 0.0, True), (0.0, 0.0, False), (0.3, 0.001, False)])
def test_e19_can_miss(broken: float, kept: float, passed: bool) -> None:
    """E19: a lab that shows no break has shown nothing, and a kept assumption that breaks is a fault."""
    rows = [
        {"control": control, "kept": holds, "overlaps": [0.0 if holds else 0.3, kept if holds else broken]}
        for control in lease_controls.TITLES
        for holds in (False, True)
    ]
    assert judged(lease_controls.EXPERIMENT, lease_controls.ControlsParameters(), rows).passed == passed


def test_overlap_is_the_time_with_two() -> None:
    """E18, E19: reigns of 0-3, 2-5 and 4-... on three names, now 6: two lead from 2 to 3 and from 4 to 5."""
    group = Elections(1, 3, settings("quorum"))
    group.world.run(6.0)
    group.reigns = [Reign("n0", Term(1, 0), 0.0), Reign("n1", Term(1, 1), 2.0), Reign("n2", Term(1, 2), 4.0)]
    group.reigns[0].until, group.reigns[1].until = 3.0, 5.0
    assert group.overlap() == pytest.approx(2.0)


# What they share.


def test_samples() -> None:
    """Intervals as tables have them: standard errors of a mean, order statistics of a quantile, Wilson's share, Garwood's limit."""
    values = [float(i) for i in range(1, 101)]
    assert mean_interval(values) == pytest.approx((50.5, 44.814, 56.186), abs=0.01)
    assert mean_interval([3.0]) == (3.0, 3.0, 3.0)
    assert [quantile(values, share) for share in (0.5, 0.99, 1.0, 0.001)] == [50, 99, 100, 1]
    assert quantile_interval(values, 0.5) == (40, 61)
    assert quantile_interval([1.0, 2.0], 0.99) == (1.0, 2.0)
    assert wilson_interval(95, 100) == pytest.approx((0.888, 0.978), abs=0.001)
    assert upper_limit(0, 1) == pytest.approx(4.605, rel=0.02)
    assert upper_limit(10, 100) == pytest.approx(0.2014, rel=0.02)
    assert summary([1.0, 3.0])["mean"] == 2.0
    assert curves({"a": values * 9})[0]["values"][::199] == [1.0, 100.0]
