"""The kit's experiments: they run, and their criteria can miss.  Tickets E13, foundation F8, foundation 4 (Promise)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.features.tickets.lab.experiments.prcast import EXPERIMENT as PRCAST
from holdfast.lab.experiment import Experiment, Finding, parameters_of
from holdfast.lab.kit.experiments.deadline import EXPERIMENT as DEADLINE
from holdfast.lab.kit.experiments.promise import EXPERIMENT as PROMISE


def conducted(experiment: Experiment[Any], **settings: str) -> Finding:
    parameters = parameters_of(experiment, settings)
    return experiment.judge(parameters, [experiment.measure(cell) for cell in experiment.cells(parameters, 0)])


def test_deadlines() -> None:
    """F8: the sound rules never overlap, the naive ones do."""
    finding = conducted(DEADLINE, draws="300")
    assert finding.passed, finding.notes


def test_deadlines_can_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that overlaps is a miss, and is named."""
    monkeypatch.setattr("holdfast.lab.kit.experiments.deadline.holder_length", lambda x, rho: x)
    finding = conducted(DEADLINE, draws="300")
    assert not finding.passed
    assert any(note.startswith("holder_length overlaps") for note in finding.notes)


def test_promises() -> None:
    """Foundation 4: every state of one seat and one number."""
    finding = conducted(PROMISE, seats="[1]", numbers="1")
    assert finding.passed, finding.notes
    assert finding.measured["states"] == 328


def test_prcast() -> None:
    """E13 in small: a group of 30; a rumour of c = 4 reaches everybody, rows close what c = 0 leaves open."""
    finding = conducted(PRCAST, members="[30]", casts="20", sure_casts="20", losses="[0.1]")
    assert finding.measured["most periods"] <= 3
    by_spread = {row["spread"]: row for row in finding.measured["settings"]}
    assert by_spread[0.0]["everybody"] < 1 == by_spread[4.0]["everybody"]
    assert by_spread[0.0]["closed_by_rows"] > 0


def test_prcast_can_miss() -> None:
    """E13: too few, not sure enough, too late: each is a miss of its own."""
    cell = {"members": 50, "spread": 4.0, "loss": 0.0, "casts": 100, "seed": 1, "reached": 4900, "messages": 1}
    parameters = parameters_of(PRCAST, {})
    good = PRCAST.judge(parameters_of(PRCAST, {"spreads": "[4.0]"}), [{**cell, "everybody": 98, "periods": [0, 3]}])
    assert good.passed
    for spreads, everybody, periods in (("[4.0]", 96, [0]), ("[4.0]", 98, [4]), ("[2.0]", 70, [0])):
        parameters = parameters_of(PRCAST, {"spreads": spreads})
        result = {**cell, "spread": parameters.spreads[0], "everybody": everybody, "periods": periods}
        assert not PRCAST.judge(parameters, [result]).passed
