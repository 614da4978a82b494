"""Every scenario and experiment answers to its names; a wrong name is told which ones are near."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import ConfigError
from holdfast.lab import registry
from holdfast.lab.durations import expected_seconds
from holdfast.lab.experiment import Experiment
from holdfast.lab.scenario import Scenario
from tests.lab.own_experiment import EXPERIMENT

HERE = Path(__file__).parent


@pytest.fixture
def own_experiments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three experiments of one folder, in no order."""
    made = {
        f"own/E{number}": type(f"E{number}", (type(EXPERIMENT),), {"id": f"own/E{number}", "name": f"own/n{number}"})()
        for number in (10, 2, 1)
    }
    monkeypatch.setattr(registry, "experiments", lambda: made)


def test_what_the_package_declares_is_found() -> None:
    """Registry: every module with a SCENARIO, under its name."""
    assert "detection/omega" in registry.scenarios()
    assert all(name == scenario.name for name, scenario in registry.scenarios().items())
    assert all(name == experiment.id for name, experiment in registry.experiments().items())


def test_every_experiment_answers_to_both_names() -> None:
    """Foundation 6: ``<folder>/<id>`` beside the readable name."""
    for experiment in registry.experiments().values():
        assert registry.find(experiment.id) is registry.find(experiment.name) is experiment
        assert experiment.id.partition("/")[0] == experiment.name.partition("/")[0]


def test_both_names_of_an_own_experiment(own_experiments: None) -> None:
    """Foundation 6, on a table that is known."""
    assert registry.find("own/E10") is registry.find("own/n10")
    assert [experiment.id for experiment in registry.folder("own")] == ["own/E1", "own/E2", "own/E10"]


@pytest.mark.parametrize(
    "wrong,near", [("detection/omgea", "detection/omega"), ("omega", "detection/omega"), ("Detection/Omega", "detection/omega")]
)
def test_a_wrong_name_is_told_the_nearest(wrong: str, near: str) -> None:
    """Bad input: the closest names and how to list all."""
    with pytest.raises(ConfigError, match=f"did you mean .*{near}") as caught:
        registry.find(wrong)
    assert "holdfast lab list" in str(caught.value)


def test_a_name_that_resembles_nothing() -> None:
    """Bad input: no wild guesses."""
    with pytest.raises(ConfigError) as caught:
        registry.find("zzzzzzzz")
    assert "did you mean" not in str(caught.value)


def test_a_folder_that_is_not_there(own_experiments: None) -> None:
    """Bad input: which folders there are."""
    with pytest.raises(ConfigError, match="accepted: own"):
        registry.folder("rings")


def test_a_file_of_ones_own() -> None:
    """A path to a file with SCENARIO or EXPERIMENT is a name."""
    assert isinstance(registry.find(str(HERE / "own_scenario.py")), Scenario)
    assert isinstance(registry.find(str(HERE / "own_experiment.py")), Experiment)
    assert registry.find(str(HERE / "own_scenario.py")) is registry.find(str(HERE / "own_scenario.py"))


def test_the_wrong_kind_says_what_was_needed(own_experiments: None) -> None:
    """Bad input: an experiment cannot be swept, a scenario cannot be judged."""
    with pytest.raises(ConfigError, match=r"is an experiment, and this needs a scenario: .*detection/omega"):
        registry.find_scenario("own/E1")
    with pytest.raises(ConfigError, match="is a scenario, and this needs an experiment: own/E10"):
        registry.find_experiment("detection/omega")


@pytest.mark.parametrize(
    "text,told",
    [
        (None, "there is no such file"),
        ("x = 1", "has neither a SCENARIO"),
        ("SCENARIO = 1", "has neither a SCENARIO"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_a_bad_file(tmp_path: Path, text: str | None, told: str) -> None:
    """Bad input: a file that is not there, declares nothing, or breaks."""
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigError, match=told):
        registry.find(str(path))


def test_two_files_of_one_name_are_two_modules(tmp_path: Path) -> None:
    """Files are told apart by their place."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(
            f"from holdfast.lab.scenario import Scenario\nclass Mine(Scenario):\n    name = '{folder}'\nSCENARIO = Mine()\n"
        )
    assert [registry.find_scenario(str(tmp_path / folder / "same.py")).name for folder in ("one", "two")] == ["one", "two"]


def test_how_long_each_experiment_takes() -> None:
    """``lab list`` and the first line of ``lab run`` say it: every experiment that ships has a measured duration, and no other has one."""
    every = registry.experiments()
    assert [experiment.id for experiment in every.values() if experiment.seconds_per_cell is None] == []
    assert expected_seconds(every["ring/E5"], 6, jobs=2) == 3 * 12
    assert expected_seconds(EXPERIMENT, 6) is None
