"""tickets/E0 to E3, E6 and E8 at reduced size, and proof that each can miss.  Spec: tickets 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from random import Random
from typing import Any

import pytest

from holdfast.features.tickets.lab.experiments import availability as tickets_availability
from holdfast.features.tickets.lab.experiments import chernoff as tickets_chernoff
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, parameters_of
from holdfast.papers.tickets.lab.experiments import figure1_owners as tickets_figure
from holdfast.papers.tickets.lab.experiments import theorem31 as tickets_theorem31
from holdfast.papers.tickets.lab.experiments import theorem41 as tickets_theorem41
from holdfast.papers.tickets.lab.experiments import threshold as tickets_threshold
from holdfast.papers.tickets.lab.experiments.figure1_owners import DEFINITION, PROTOCOL
from holdfast.papers.tickets.lab.experiments.theorem31 import ALL, COUNTED, LEAVES, STAYS
from holdfast.papers.tickets.lab.experiments.theorem41 import CUTS, SHARED, TRACE
from holdfast.papers.tickets.lab.experiments.threshold import ALGORITHM, LOSSY, TEXT
from holdfast.papers.tickets.lab.paper_traces import TRACES

FIGURE, THEOREM31, THRESHOLD = tickets_figure.EXPERIMENT, tickets_theorem31.EXPERIMENT, tickets_threshold.EXPERIMENT
THEOREM41, AVAILABILITY, CHERNOFF = tickets_theorem41.EXPERIMENT, tickets_availability.EXPERIMENT, tickets_chernoff.EXPERIMENT
DRAWN: list[Experiment[Any]] = [THEOREM31, THRESHOLD, THEOREM41, AVAILABILITY]


def conducted(experiment: Experiment[Any], **settings: str) -> Finding:
    parameters = parameters_of(experiment, settings)
    return judged(experiment, [experiment.measure(cell) for cell in experiment.cells(parameters, 0)], **settings)


def judged(experiment: Experiment[Any], rows: Sequence[Measured], **settings: str) -> Finding:
    finding = experiment.judge(parameters_of(experiment, settings), rows)
    assert isinstance(finding, Finding)
    assert bool(finding.notes) != finding.passed
    return finding


@pytest.mark.parametrize("experiment", DRAWN, ids=lambda experiment: experiment.id)
def test_same_seed_measures_the_same(experiment: Experiment[Any]) -> None:
    """Cells are pure functions: other processes and other machines find the same."""
    parameters = parameters_of(experiment, experiment.quick)
    cell = experiment.cells(parameters, 1)[-1]
    cell = {**cell, **dict.fromkeys({"runs", "rounds"} & set(cell), 2)}
    assert experiment.measure(cell) == experiment.measure(cell)
    assert experiment.cells(parameters, 1) != experiment.cells(parameters, 2)


@pytest.mark.parametrize("experiment", DRAWN, ids=lambda experiment: experiment.id)
def test_every_repetition_is_played(experiment: Experiment[Any]) -> None:
    """Repetitions that do not fill their last cell are neither lost nor doubled."""
    settings = (
        {"runs": "55", "leaving_runs": "51"} if experiment is THEOREM31 else {"seeds": "25"} if experiment is not AVAILABILITY else {}
    )
    cells = [cell for cell in experiment.cells(parameters_of(experiment, settings), 3) if "runs" in cell]
    runs = [(_setting(cell), seed) for cell in cells for seed in range(cell["seed"], cell["seed"] + cell["runs"])]
    assert len(set(runs)) == len(runs)
    assert len(runs) == {"tickets/E1": 106, "tickets/E2": 75, "tickets/E3": 125, "tickets/E6": 0}[experiment.id]


def _setting(cell: Cell) -> str:
    return repr({key: value for key, value in cell.items() if key not in ("seed", "runs")})


# The figure (E0)


def test_figure() -> None:
    """E0: p2 owns 4 and coordinates 3 and 2 besides, by the definition and by the protocol."""
    finding = conducted(FIGURE)
    assert finding.passed
    assert finding.measured[DEFINITION]["p2"] == finding.measured[PROTOCOL]["p2"] == [4, 3, 2]


@pytest.mark.parametrize(
    "sets",
    [
        {"p0": [0, 7], "p1": [6, 5, 4], "p2": [3, 2], "p3": [1]},
        {"p0": [0, 7], "p1": [6], "p2": [4, 3, 2], "p3": [1]},
        {"p0": [0], "p1": [7, 6, 5], "p2": [4, 3, 2], "p3": [1]},
    ],
)
def test_figure_can_miss(sets: Mapping[str, list[int]]) -> None:
    """E0: another p2, a ticket that nobody coordinates, two ways that disagree."""
    (right,) = (FIGURE.measure(cell) for cell in FIGURE.cells(parameters_of(FIGURE, {}), 0))
    assert not judged(FIGURE, [{**right, PROTOCOL: sets}]).passed


# Theorem 3.1 (E1)


def test_theorem_3_1() -> None:
    """E1: nothing shared, one cycle, and a deadlock where everybody may leave."""
    finding = conducted(THEOREM31, runs="6", leaving_runs="6", operations="100", joiners="2")
    assert finding.passed, finding.notes
    assert finding.measured[LEAVES]["deadlocks"] > 0
    assert finding.measured[ALL]["states"] == 382


@pytest.mark.parametrize(
    "kind, counts",
    [
        (STAYS, {"shared": 1, "first": "seed 1: shared"}),
        (STAYS, {"broken": 1}),
        (STAYS, {"deadlocks": 1}),
        (LEAVES, {"deadlocks": 1, "deadlocks with a coordinator": 1}),
        (LEAVES, {"deadlocks": 0}),
        (ALL, {"violation": "shared"}),
        (ALL, {"complete": False}),
    ],
)
def test_theorem_3_1_can_miss(kind: str, counts: Mapping[str, object]) -> None:
    """E1: a shared ticket, a broken cycle, a deadlock with somebody who stays, no deadlock at all, states not visited."""
    nothing = dict.fromkeys(COUNTED, 0)
    walk = {"kind": ALL, "states": 1, "moves": 1, "depth": 1, "complete": True, "violation": ""}
    good = {STAYS: {"kind": STAYS, **nothing}, LEAVES: {"kind": LEAVES, **nothing, "deadlocks": 1}, ALL: walk}
    assert judged(THEOREM31, list(good.values())).passed
    assert not judged(THEOREM31, list({**good, kind: {**good[kind], **counts}}.values())).passed


# The threshold (E2)


def test_threshold() -> None:
    """E2: 2k + 1 empties the core, k + 1 does not, unless a little is lost."""
    finding = conducted(THRESHOLD, seeds="6", joins="3")
    assert finding.passed, finding.notes
    assert finding.measured[ALGORITHM]["left"] == finding.measured[LOSSY]["left"] == 0
    curve = finding.measured[TEXT]["curve"]
    assert len(curve) == 31
    assert curve[0] == 7
    assert curve[-1] == finding.measured[TEXT]["left"]


@pytest.mark.parametrize("algorithm, text, passed", [(0, 10, True), (1, 10, False), (0, 9, False)])
def test_threshold_can_miss(algorithm: int, text: int, passed: bool) -> None:
    """E2: too many left with 2k + 1, too few with k + 1."""
    rest = {"too few ALIVE": 0, "failed exclusions": 0, "runs with a disconnect": 0, "curve": [7]}
    rows = [{"threshold": each, "left": [left], **rest} for each, left in ((ALGORITHM, algorithm), (TEXT, text), (LOSSY, 0))]
    assert judged(THRESHOLD, rows, seeds="1").passed is passed


# Theorem 4.1 (E3)


def test_theorem_4_1() -> None:
    """E3: the traces share a ticket, for the time D3, D4 and D5 say; so do some runs with cuts."""
    finding = conducted(THEOREM41, seeds="4")
    assert finding.passed, finding.notes
    together = {name: row["together"] for name, row in finding.measured["traces"].items()}
    assert together == {"round phases": [(3.76, 4.85)], "unacknowledged UPDATE": [(11.1, 30.0)], "stopped process": [(10.0, 11.0)]}


@pytest.mark.parametrize("conflict, cuts", [("", (1, 1)), ("shared", (0, 1)), ("shared", (1, 0))])
def test_theorem_4_1_can_miss(conflict: str, cuts: tuple[int, int]) -> None:
    """E3: a trace that shares nothing, or cuts that never do, would mean that the lab does not run the paper's algorithms."""
    traces = [{"kind": TRACE, "trace": trace.name, "conflict": "shared"} for trace in TRACES]
    played = [
        {"kind": CUTS, "setting": f"cuts, k = {k}, every ticket owned", "runs": 1, "shared": count, "left": 1}
        for k, count in zip((1, 2), cuts, strict=True)
    ]
    finding = judged(THEOREM41, [*traces[:-1], {**traces[-1], "conflict": conflict}, *played])
    assert not finding.passed
    assert finding.measured["random runs"]["cuts, k = 1, every ticket owned"][SHARED] == cuts[0]


# Availability (E6) and the Chernoff bound (E8)


def test_availability() -> None:
    """E6: free up to the threshold, every other round at twice of it, never at two and a half times."""
    finding = conducted(AVAILABILITY, rounds="1000", multiples="[1.0,2.0,2.5]")
    assert finding.passed, finding.notes
    for free in finding.measured["P(free)"].values():
        assert free["1x"] == 1.0
        assert 0.3 < free["2x"] < 0.7
        assert free["2.5x"] < 0.05


@pytest.mark.parametrize("alpha", [0.25, 0.5, 0.75])
def test_reclaiming_takes_as_long_as_the_model_says(alpha: float) -> None:
    """E6: in the mean p_f n tickets belong to the failed. If so many and no more were there in every round, none would be free at twice the
    threshold; so the share of free rounds near there tells the mean."""
    n, rounds = 1000, 600
    below, above = (tickets_availability._free(Random(1), n, alpha, times * (1 - alpha), rounds) for times in (0.9, 1.1))
    assert below > 0.9 * rounds
    assert above < 0.1 * rounds


@pytest.mark.parametrize("multiple, free, passed", [(1.0, 1.0, True), (1.0, 0.99, False), (2.0, 0.5, True), (2.0, 0.8, False)])
def test_availability_can_miss(multiple: float, free: float, passed: bool) -> None:
    """E6: not sure enough below the threshold, too good far above it."""
    row = {"alpha": 0.5, "multiple": multiple, "p_f": 0.25 * multiple, "free": free}
    assert judged(AVAILABILITY, [row]).passed is passed


def test_chernoff() -> None:
    """E8, D25: 0.0035 is more than the paper's 0.0021."""
    finding = conducted(CHERNOFF)
    assert finding.passed, finding.notes
    assert finding.measured["n=800, p_f=0.01"] == {"tail": 0.00354, "paper": 0.002069, "right": 0.045486}
    assert finding.measured["beyond the right bound"] == 0


def test_tail_is_exact() -> None:
    """E8: the tail against a sum in whole numbers; 2 p n itself does not count."""
    exact = sum(comb(40, i) for i in range(25, 41)) / 2**40  # p = 0.3: more than 24 of 40
    weights = [comb(40, i) * 3**i * 7 ** (40 - i) for i in range(41)]
    assert tickets_chernoff.tail(40, 0.3) == pytest.approx(sum(weights[25:]) / 10**40, rel=1e-9)
    assert exact > tickets_chernoff.tail(40, 0.3)


@pytest.mark.parametrize("n, tail, passed", [(800, 0.0035, True), (800, 0.002, False), (800, 0.05, False), (400, 0.01, False)])
def test_chernoff_can_miss(n: int, tail: float, passed: bool) -> None:
    """E8: a bound that holds after all, or one that does not."""
    row = {"n": n, "p_f": 0.01, "tail": tail, "paper": 0.002069 if n == 800 else 0.045, "right": 0.0455}
    assert judged(CHERNOFF, [row]).passed is passed
