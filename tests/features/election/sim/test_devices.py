"""F12 to F14 judge what real processes recorded: each passes, each can miss, and none passes without a file.  Spec: election 8."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from matplotlib.figure import Figure

from holdfast.errors import ConfigError
from holdfast.features.election.lab.experiments import figure12_devices_layout, figure13_devices_completion, figure14_devices_changes
from holdfast.features.election.lab.paper import DEVICES, PITCH, RANGE, Setting
from holdfast.features.election.lab.recorded import MISSING, Held, Loss, Point, Recorded, rows
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import Experiment, Finding, conduct, parameters_of
from holdfast.lab.registry import experiments
from holdfast.lab.topology import grid

ALL: tuple[Experiment[Any], ...] = (
    figure12_devices_layout.EXPERIMENT,
    figure13_devices_completion.EXPERIMENT,
    figure14_devices_changes.EXPERIMENT,
)
SECONDS = {"base": 1.0, "optimistic": 0.6, "preferred": 0.9, "hybrid": 0.5}
CHANGES = {"base": 1, "optimistic": 1, "preferred": 1, "hybrid": 2}
ONE = {"elections": "1"}


def recorded(
    settings: Sequence[Setting] = DEVICES,
    *,
    seconds: Mapping[str, float] = SECONDS,
    changes: Mapping[str, int] = CHANGES,
    whole: bool = True,
    found: float = 0.1,
    reach: float = RANGE,
) -> Recorded:
    """One election of each variant at each point."""
    places = grid([f"n{number}" for number in range(16)], pitch=PITCH, reach=RANGE).points
    loss = Loss(0.1, found, 1000)

    def held(variant: str) -> Held:
        return Held(variant, 0, "n3", whole, seconds[variant], changes[variant], changes[variant], 0, 0)

    return Recorded(places, reach, 2, [Point(setting, [held(variant) for variant in VARIANTS], loss) for setting in settings])


def judged(experiment: Experiment[Any], run: Recorded, settings: Mapping[str, str] = ONE) -> Finding:
    finding = experiment.judge(parameters_of(experiment, {**settings, "run": "some"}), rows(run))
    assert isinstance(finding, Finding)
    return finding


def written(folder: Path, run: Recorded) -> str:
    """As the benchmark prints it."""
    path = folder / "grid.json"
    path.write_text(json.dumps({"benchmark": "election-grid", "verdict": "pass", "raw": {"cores": 2, "run": msgspec.to_builtins(run)}}))
    return str(path)


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: str(each.id))
def test_a_file_is_judged_and_drawn(experiment: Experiment[Any], tmp_path: Path) -> None:
    """Election 8: `lab run election/F13 --set run=FILE` judges what the benchmark printed."""
    parameters = parameters_of(experiment, {**ONE, "run": written(tmp_path, recorded())})
    report = conduct(experiment, parameters, 0, map, "test")
    assert (report.verdict, report.notes) == ("pass", ())
    figure = Figure()
    experiment.draw(figure, Finding(report.measured, report.expected, True))
    assert figure.axes
    assert experiment.id in experiments()


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: str(each.id))
def test_without_a_file_it_is_a_miss(experiment: Experiment[Any]) -> None:
    """Election 8: `miss` without one, and how to record one; the picture is empty."""
    report = conduct(experiment, parameters_of(experiment, {}), 0, map, "test")
    assert (report.verdict, report.notes) == ("miss", (MISSING,))
    experiment.draw(Figure(), Finding(report.measured, report.expected, False))


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: str(each.id))
def test_a_smaller_run_is_a_miss(experiment: Experiment[Any]) -> None:
    """Election 8 (F12, F13): four drops, 100 elections per point and variant."""
    assert any("grid 16 0.2: 0 elections" in note for note in judged(experiment, recorded(DEVICES[:3])).notes)
    assert any("1 elections of a variant, not 100" in note for note in judged(experiment, recorded(), {}).notes)
    assert not judged(experiment, recorded(()), {}).passed


@pytest.mark.parametrize("text", ["", "{}", '{"raw": {"run": {"places": 1}}}', '{"raw": {"run": null}}'])
def test_another_file_is_refused(text: str, tmp_path: Path) -> None:
    """F17 (errors name the field): a file that is no record, or is not there."""
    path = tmp_path / "other.json"
    experiment = figure13_devices_completion.EXPERIMENT
    for missing in (False, True):
        if not missing:
            path.write_text(text)
        with pytest.raises(ConfigError, match=r"--set run=.*accepted is the output of `python -m benchmarks election-grid --json`"):
            experiment.cells(parameters_of(experiment, {"run": str(path)}), 0)
        path.unlink(missing_ok=True)


def test_f12_can_miss() -> None:
    """F12: the grid of the paper, and a field that loses what it should."""
    found = judged(figure12_devices_layout.EXPERIMENT, recorded())
    assert (found.measured["links"], found.measured["hops, most"]) == (42, 3)
    assert not judged(figure12_devices_layout.EXPERIMENT, recorded(reach=4.0)).passed
    assert judged(figure12_devices_layout.EXPERIMENT, recorded(found=0.115)).passed
    assert not judged(figure12_devices_layout.EXPERIMENT, recorded(found=0.13)).passed


def test_f13_can_miss() -> None:
    """F13: the order of the four at every drop, and Optimistic 25 % below Base."""
    experiment = figure13_devices_completion.EXPERIMENT
    assert judged(experiment, recorded()).measured["saved on average"] == {"optimistic": 0.4, "hybrid": 0.4444}
    for other in ({"optimistic": 0.76, "preferred": 0.95}, {"hybrid": 0.95}, {"optimistic": 1.1}, {"preferred": 0.55}):
        assert not judged(experiment, recorded(seconds={**SECONDS, **other})).passed
    assert not judged(experiment, recorded(whole=False)).passed


def test_f14_can_miss() -> None:
    """F14: Hybrid highest."""
    experiment = figure14_devices_changes.EXPERIMENT
    assert judged(experiment, recorded()).measured["on average"] == CHANGES
    assert not judged(experiment, recorded(changes={**CHANGES, "optimistic": 2})).passed  # on average it is alike
    low, others = recorded(DEVICES[:1], changes={**CHANGES, "preferred": 3}), recorded(DEVICES[1:], changes={**CHANGES, "hybrid": 5})
    found = judged(experiment, msgspec.structs.replace(low, points=[*low.points, *others.points]))
    assert found.measured["on average"]["hybrid"] > found.measured["on average"]["preferred"]
    assert found.notes == ("grid 16 0.05: preferred has 3 leaders per election, Hybrid 2",)
    assert not judged(experiment, recorded(whole=False)).passed
