"""F15 to F18 judge what 16 nodes recorded: each passes, each can miss, and none passes without a file.  Spec: election 8."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from matplotlib.figure import Figure

from holdfast.errors import ConfigError
from holdfast.features.election.lab.beside import MISSING, OURS, Calm, Killed, Raw, Setting, Silent, Usage, over_time, rows, servers_of
from holdfast.features.election.lab.experiments import (
    figure15_zookeeper_memory,
    figure16_zookeeper_cpu,
    figure17_zookeeper_traffic,
    zookeeper_kills,
)
from holdfast.lab.experiment import Experiment, Finding, conduct, parameters_of
from holdfast.lab.registry import experiments, folder

ALL: tuple[Experiment[Any], ...] = (
    figure15_zookeeper_memory.EXPERIMENT, figure16_zookeeper_cpu.EXPERIMENT,
    figure17_zookeeper_traffic.EXPERIMENT, zookeeper_kills.EXPERIMENT,
)  # fmt: skip
SYSTEMS = (OURS, "zookeeper3", "zookeeper5", "zookeeper16")
CALM = Calm(
    seconds=500.0,
    kbit=20.0,
    kbit_std=2.0,
    payload_kbit=15.0,
    cpu_percent=2.0,
    program_cpu_percent=0.5,
    rss_mib=900.0,
    program_rss_mib=400.0,
    pss_mib=500.0,
    warm_rss_mib_max=950.0,
)
MORE = {"kbit": 30.0, "cpu_percent": 4.0, "rss_mib": 1600.0, "warm_rss_mib_max": 1600.0}
LATER = {name: [1.0, 2.0, 3.0, 7.0, 9.0] for name in ("kbit", "cpu_percent", "rss_mib")} | {"at": [1.0, 9.0, 11.0, 12.0, 13.0]}
SERIES = {name: [1.0, 2.0, 3.0] for name in ("kbit", "cpu_percent", "rss_mib")} | {"at": [1.0, 9.0, 11.0]}


def setting(name: str, **changes: float) -> Setting:
    found = msgspec.structs.replace(CALM, **({} if name == OURS else MORE) | changes)
    killed = [Silent(2.0, acts=True, changed=True)] * (0 if name == OURS else 10)
    return Setting(found, Usage(SERIES), Usage(LATER), [Killed(5.0)] * 10, killed, Silent(9.0, acts=name == OURS, changed=True))


def recorded(nodes: int = 16, **changes: Mapping[str, float]) -> Raw:
    """As accepted; ``changes`` of a setting's calm time."""
    return Raw(nodes, {name: setting(name, **changes.get(name, {})) for name in SYSTEMS})


def judged(experiment: Experiment[Any], raw: Raw) -> Finding:
    finding = experiment.judge(parameters_of(experiment, {"run": "some"}), rows(raw))
    assert isinstance(finding, Finding)
    return finding


def without(name: str, **fields: Any) -> Raw:
    """One setting of which something is not there."""
    raw = recorded()
    return Raw(raw.nodes, {**raw.settings, name: msgspec.structs.replace(raw.settings[name], **fields)})


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: str(each.id))
def test_a_file_is_judged_and_drawn(experiment: Experiment[Any], tmp_path: Path) -> None:
    """Election 8: `lab run election/F15 --set run=FILE` judges what the benchmark printed; `lab reproduce` leaves it out."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"benchmark": "election-zookeeper", "raw": {"cores": 2, **msgspec.to_builtins(recorded())}}))
    report = conduct(experiment, parameters_of(experiment, {"run": str(path)}), 0, map, "test")
    assert (report.verdict, report.notes) == ("pass", ())
    figure = Figure()
    experiment.draw(figure, Finding(report.measured, report.expected, True))
    assert [len(axes.lines) for axes in figure.axes] == [len(SYSTEMS)]
    assert experiment.id in experiments()
    assert experiment.recorded
    assert [each.id for each in folder("election") if each.recorded and "zookeeper" in each.name] == [each.id for each in ALL]


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: str(each.id))
def test_without_a_file_it_is_a_miss(experiment: Experiment[Any]) -> None:
    """Election 8: `miss` without one, and how to record one; the picture is empty."""
    report = conduct(experiment, parameters_of(experiment, {}), 0, map, "test")
    assert (report.verdict, report.notes) == ("miss", (MISSING,))
    experiment.draw(Figure(), Finding(report.measured, report.expected, False))


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: str(each.id))
def test_a_smaller_run_is_a_miss(experiment: Experiment[Any]) -> None:
    """Election 8 (F15 to F17): 16 nodes for ten minutes, and a server on each of them; what broke down is named."""
    assert judged(experiment, recorded(4)).notes == ("4 nodes, not 16",)
    assert judged(experiment, recorded(zookeeper5={"seconds": 30.0})).notes == ("zookeeper5: 30 s, not 490",)
    for name in (OURS, "zookeeper16"):
        raw = recorded()
        del raw.settings[name]
        assert judged(experiment, raw).notes == (f"{name} was not measured",)
    for field in ("calm", "usage", "killing"):
        assert judged(experiment, without("zookeeper3", **{field: None})).notes == ("zookeeper3 broke down",)


@pytest.mark.parametrize("text", ["", "{}", '{"raw": {"nodes": "many"}}', '{"raw": {"nodes": 16}}'])
def test_another_file_is_refused(text: str, tmp_path: Path) -> None:
    """F17 (errors name the field): a file that is no record, or is not there."""
    path, experiment = tmp_path / "other.json", figure15_zookeeper_memory.EXPERIMENT
    path.write_text(text)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"--set run=.*accepted is the output of `python -m benchmarks election-zookeeper --json"):
            experiment.cells(parameters_of(experiment, {"run": str(path)}), 0)
        path.unlink(missing_ok=True)


def test_f15_can_miss() -> None:
    """F15: less memory than ZooKeeper with a server on every node, and less than 13 % more while it starts and elects."""
    experiment = figure15_zookeeper_memory.EXPERIMENT
    found = judged(experiment, recorded())
    assert found.measured["ours is less by"] == {"zookeeper3": 0.4375, "zookeeper5": 0.4375, "zookeeper16": 0.4375}
    assert judged(experiment, recorded(holdfast={"warm_rss_mib_max": 1016.9})).passed
    assert not judged(experiment, recorded(holdfast={"warm_rss_mib_max": 1017.0})).passed
    assert judged(experiment, recorded(holdfast={"rss_mib": 1700.0, "warm_rss_mib_max": 1700.0})).notes == (
        "MiB of all nodes: ours 1700, zookeeper16 1600",
    )


def test_f16_can_miss() -> None:
    """F16: less CPU time than ZooKeeper with a server on every node; with three servers ZooKeeper may have less, and it is said."""
    experiment = figure16_zookeeper_cpu.EXPERIMENT
    found = judged(experiment, recorded(zookeeper3={"cpu_percent": 1.0}))
    assert found.passed
    assert found.measured["ours is less by"]["zookeeper3"] == -1.0
    assert not judged(experiment, recorded(holdfast={"cpu_percent": 4.0})).passed


def test_f17_can_miss() -> None:
    """F17: 10 to 40 kbit/s, a standard deviation below a quarter of the mean, and below ZooKeeper with a server on every node."""
    experiment = figure17_zookeeper_traffic.EXPERIMENT
    assert judged(experiment, recorded(zookeeper16={"kbit": 20.1})).passed
    wrong: tuple[dict[str, dict[str, float]], ...] = (
        {"holdfast": {"kbit": 9.9}},
        {"holdfast": {"kbit": 40.1}, "zookeeper16": {"kbit": 100.0}},
        {"holdfast": {"kbit_std": 5.0}},
        {"zookeeper16": {"kbit": 20.0}},
    )
    for of in wrong:
        assert len(judged(experiment, recorded(16, **of)).notes) == 1


def test_f18_can_miss() -> None:
    """F18: every leader that was killed was followed, as often as was asked; a majority that is not followed is no miss, and said."""
    experiment = zookeeper_kills.EXPERIMENT
    measured = judged(experiment, recorded()).measured
    assert measured["majority killed"][OURS] == "led again after 9.0 s"
    assert measured["majority killed"]["zookeeper16"] == "no leader for 9.0 s, when it was given up"
    assert measured["seconds until the next leader"][OURS] == {"least": 5.0, "median": 5.0, "most": 5.0}
    assert (measured["kbit/s of all nodes"][OURS], measured["most MiB of all nodes"][OURS]) == (8.0, 9.0)  # without the calm run
    assert judged(experiment, without(OURS, kill_most=None)).measured["majority killed"][OURS] == "not tried"
    assert judged(experiment, without(OURS, kill=[])).notes == ("holdfast: 0 kills of the leader, not 10",)
    assert not judged(experiment, without("zookeeper5", kill_server=[Silent(1.0, acts=True, changed=False)])).passed


def test_pictures_are_means_of_ten_seconds() -> None:
    """F15 to F18, plots: settings that ended earlier have no point where others have one."""
    late = {"at": [25.0], "kbit": [7.0]}
    found = over_time({OURS: SERIES, "zookeeper3": late}, "kbit")
    assert found == [{"at": 0, OURS: 1.5}, {"at": 10, OURS: 3.0}, {"at": 20, "zookeeper3": 7.0}]
    assert [servers_of(name) for name in SYSTEMS] == [0, 3, 5, 16]
