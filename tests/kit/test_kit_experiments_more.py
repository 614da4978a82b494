"""The experiments of Phase, Rows and Seats, which tests/cli runs: a kit with a missing rule misses.  Foundation 4, F8, F13."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from matplotlib.figure import Figure

from holdfast.errors import ConfigError
from holdfast.host import NodeId
from holdfast.kit.exchange import Exchange, RowsPage
from holdfast.kit.phase import Phase
from holdfast.kit.rows import Rows
from holdfast.lab.experiment import Experiment, Finding, parameters_of
from holdfast.lab.kit.experiments.phase import EXPERIMENT as PHASE
from holdfast.lab.kit.experiments.phase import interval, won_by
from holdfast.lab.kit.experiments.rows import EXPERIMENT as ROWS
from holdfast.lab.kit.experiments.rows import bound, estimate
from holdfast.lab.kit.experiments.seats import EXPERIMENT as SEATS
from holdfast.lab.kit.experiments.seats import late_max
from holdfast.lab.registry import find

ALL: tuple[Experiment[Any], ...] = (PHASE, ROWS, SEATS)


def conducted(experiment: Experiment[Any], settings: Mapping[str, str]) -> Finding:
    parameters = parameters_of(experiment, settings)
    return experiment.judge(parameters, [experiment.measure(cell) for cell in experiment.cells(parameters, 0)])


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: each.id)
def test_names(experiment: Experiment[Any]) -> None:
    """Foundation 4: the experiment of each part is found by both its names."""
    assert find(experiment.id) is experiment
    assert find(experiment.name) is experiment


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: each.id)
def test_same_seed_same_numbers(experiment: Experiment[Any]) -> None:
    """Foundation 3: a cell is a pure function of its data."""
    cell = experiment.cells(parameters_of(experiment, {experiment.repetitions: "3"}), 7)[-1]
    assert experiment.measure(cell) == experiment.measure(cell)


@pytest.mark.parametrize(
    "experiment, key, value",
    [
        (PHASE, "members", "[]"),
        (PHASE, "members", "[1]"),
        (PHASE, "losses", "[1.0]"),
        (PHASE, "tries", "0"),
        (PHASE, "phases", "0"),
        (ROWS, "members", "[3]"),
        (ROWS, "losses", "[NaN]"),
        (ROWS, "changes", "-1"),
        (SEATS, "seats", "[2]"),
        (SEATS, "drifts", "[0.06]"),
        (SEATS, "restarts", "0"),
    ],
)
def test_bounds(experiment: Experiment[Any], key: str, value: str) -> None:
    """Every parameter says what it accepts."""
    with pytest.raises(ConfigError, match=f"{key} accepts"):
        parameters_of(experiment, {key: value})


def test_closed_form() -> None:
    """By hand: of three, one of two others must answer; of five, two of four."""
    assert won_by(3, 0.0, 1) == 1.0
    assert won_by(3, 0.5, 1) == pytest.approx(1 - 0.75**2)
    assert won_by(3, 0.5, 2) == pytest.approx(1 - 0.75**4)
    assert won_by(5, 0.5, 1) == pytest.approx(1 - 0.75**4 - 4 * 0.25 * 0.75**3)


def test_interval() -> None:
    """Ten throws of a coin: 0 and 10 heads together have 2 in 1024, one more on each side 22 in 1024."""
    assert interval(10, 0.5, 0.0019) == (0, 10)
    assert interval(10, 0.5, 0.0021) == (1, 9)
    assert interval(10, 0.5, 22.1 / 1024) == (2, 8)
    assert interval(10, 1.0, 0.01) == (10, 10)


def test_phase_without_resends_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Foundation 4 (Phase): who asks once only wins as often as one try does."""
    ask = Phase._on_every

    def once(self: Phase[Any]) -> None:
        if len(self._timers) == 1:
            ask(self)

    monkeypatch.setattr(Phase, "_on_every", once)
    finding = conducted(PHASE, {"members": "[3]", "losses": "[0.5]", "phases": "400"})
    assert not finding.passed
    assert not any("by try 1" in note for note in finding.notes)
    assert any("by try 2" in note for note in finding.notes)


@pytest.mark.parametrize(
    "doctored, word",
    [
        ({"won": [300, 390, 400]}, "by try 1"),
        ({"won": [175, 200, 329]}, "by try 2"),
        ({"won": [175, 273, 399]}, "by try 3"),
        ({"stray": 1}, "instant"),
    ],
)
def test_phase_can_miss(doctored: Mapping[str, Any], word: str) -> None:
    """Too often is as wrong as too rarely; so is a phase that ends at an instant of its own."""
    parameters = parameters_of(PHASE, {"members": "[3]", "losses": "[0.5]", "phases": "400"})
    result = {"members": 3, "loss": 0.5, "tries": 3, "phases": 400, "seed": 0, "won": [175, 273, 329], "stray": 0, "seconds": 0.137}
    assert PHASE.judge(parameters, [result]).passed
    finding = PHASE.judge(parameters, [{**result, **doctored}])
    assert not finding.passed
    assert word in finding.notes[0]


def test_rows_without_pushing_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Foundation 4 (Rows): if only the one who asks learns, it takes longer than push and pull may."""

    def only_learn(self: Exchange, source: NodeId, table: Rows, message: RowsPage) -> None:
        table.learn(message.rows)

    monkeypatch.setattr(Exchange, "_on_page", only_learn)
    finding = conducted(ROWS, {"members": "[32]", "losses": "[0.0]", "changes": "30"})
    assert not finding.passed
    assert "in the mean" in finding.notes[0]


@pytest.mark.parametrize(
    "loss, periods, word",
    [
        (0.1, [bound(8) + 0.1], "in the mean"),
        (0.0, [estimate(8) * 1.26], "in the mean"),
        (0.1, [1.0, None], "not everywhere"),
        (0.1, [None], "not everywhere"),
    ],
)
def test_rows_can_miss(loss: float, periods: list[float | None], word: str) -> None:
    """Too slow, or never; a run in which nothing converged can still be drawn."""
    parameters = parameters_of(ROWS, {"members": "[8]", "losses": f"[{loss}]"})
    result = {"members": 8, "loss": loss, "changes": len(periods), "seed": 0}
    assert ROWS.judge(parameters, [{**result, "periods": [2.0]}]).passed
    finding = ROWS.judge(parameters, [{**result, "periods": periods}])
    assert not finding.passed
    assert word in finding.notes[0]
    ROWS.draw(Figure(), finding)


def test_seats_that_do_not_wait_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """F13: without the restart wait a second holder wins while the first one is sure of itself."""
    monkeypatch.setattr("holdfast.kit.keeper.wait_length", lambda x, rho, margin: margin)
    finding = conducted(SEATS, {"seats": "[3]", "restarts": "5"})
    assert not finding.passed
    assert any("two holders" in note for note in finding.notes)
    assert any("before wait_length" in note for note in finding.notes)


@pytest.mark.parametrize(
    "run, word",
    [
        ({"late": [-0.001, 0.01], "silent": 0, "gap": 0.1}, "before wait_length"),
        ({"late": [0.01, late_max(0.02) + 0.001], "silent": 0, "gap": 0.1}, "after wait_length"),
        ({"late": [0.01], "silent": 1, "gap": 0.1}, "never granted"),
        ({"late": [0.01, 0.02], "silent": 0, "gap": None}, "nobody won"),
        ({"late": [0.01, 0.02], "silent": 0, "gap": -0.001}, "two holders"),
    ],
)
def test_seats_can_miss(run: Mapping[str, Any], word: str) -> None:
    """Too early, too late, never, nobody, both: each is a miss of its own, also among good runs."""
    parameters = parameters_of(SEATS, {"seats": "[3]", "drifts": "[0.02]"})
    good = {"late": [0.0, late_max(0.02)], "silent": 0, "gap": 0.0}
    result = {"seats": 3, "drift": 0.02, "restarts": 1, "seed": 0}
    assert SEATS.judge(parameters, [{**result, "runs": [good]}]).passed
    finding = SEATS.judge(parameters, [{**result, "runs": [good]}, {**result, "runs": [run]}])
    assert not finding.passed
    assert word in finding.notes[0]
    SEATS.draw(Figure(), finding)
