"""``holdfast lab``: every verb, for people and for programs, with good input and with bad."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.lab import registry
from holdfast.lab.scenario import run, set_up
from tests.cli.command import Run
from tests.lab.own_experiment import EXPERIMENT

FOLDER = Path(__file__).parents[1] / "lab"
OWN = FOLDER / "own_scenario.py"  # seeds 2, 7, 12, ... fail, because of the crash in their plan
EXPERIMENT_FILE = FOLDER / "own_experiment.py"
PLANTED = "detection/omega-doubled-ok"
PNG = b"\x89PNG\r\n\x1a\n"


def test_list(holdfast: Run) -> None:
    """``lab list``: scenarios and experiments, with titles; planted bugs are marked."""
    ended = holdfast("lab", "list")
    assert ended.code == 0
    assert re.search(r"^  detection/omega +Stable leader election", ended.out, re.MULTILINE)
    assert re.search(rf"^  {PLANTED} .*\[planted bug\]$", ended.out, re.MULTILINE)
    listed = holdfast("lab", "list", "--json").json
    assert {each["name"] for each in listed["scenarios"]} == set(registry.scenarios())
    assert {each["id"] for each in listed["experiments"]} == set(registry.experiments())


def test_run_an_experiment(holdfast: Run, tmp_path: Path) -> None:
    """``lab run``: exit 0 on pass, JSON and PNG in the folder, the table for people."""
    ended = holdfast("lab", "run", EXPERIMENT_FILE, "--seed", 3, "--out", "results")
    assert ended.code == 0
    assert "pass (seed 3); results/own-E1.json and .png" in ended.out
    assert json.loads((tmp_path / "results" / "own-E1.json").read_text())["seed"] == 3
    assert (tmp_path / "results" / "own-E1.png").read_bytes().startswith(PNG)


def test_run_as_json(holdfast: Run) -> None:
    """``--json``: exactly one object with experiment, seed, parameters, measured, expected, verdict; exit 1 on a miss."""
    ended = holdfast("lab", "run", EXPERIMENT_FILE, "--json", "--seeds", 2, "--set", "tolerance=1e-9", "--set", "label=mean")
    assert ended.code == 1
    report = ended.json
    assert (report["experiment"], report["seed"], report["verdict"]) == ("own/E1", 0, "miss")
    assert report["parameters"] == {"seeds": 2, "cells": 4, "draws": 200, "tolerance": 1e-9, "label": "mean"}
    assert len(report["measured"]["means"]) == 4
    assert report["expected"] == {"all": {"mean": 0.5}}


def test_run_elsewhere(holdfast: Run) -> None:
    """``--jobs``: the same object, wherever the cells ran."""
    here = holdfast("lab", "run", EXPERIMENT_FILE, "--json").json
    there = holdfast("lab", "run", EXPERIMENT_FILE, "--json", "--jobs", 2).json
    assert here == there


@pytest.mark.parametrize("seed,code", [(1, 0), (2, 1)])
def test_run_a_scenario(holdfast: Run, seed: int, code: int) -> None:
    """``lab run SCENARIO``: one seed of it."""
    ended = holdfast("lab", "run", OWN, "--seed", seed)
    assert ended.code == code
    assert ("all invariants held" in ended.out) == (code == 0)
    assert f"holdfast lab replay {OWN} --seed {seed}" in ended.out
    facts = holdfast("lab", "run", OWN, "--seed", seed, "--json").json
    assert (facts["scenario"], facts["seed"], facts["verdict"]) == ("own/fifth", seed, "violation" if code else "pass")


@pytest.mark.parametrize(
    "words,told",
    [
        ([EXPERIMENT_FILE, "--set", "drawz=1"], ["has no parameter 'drawz'", "seeds, cells, draws, tolerance, label"]),
        ([EXPERIMENT_FILE, "--set", "draws=many"], ["draws", "default 200"]),
        ([EXPERIMENT_FILE, "--set", "draws"], ["--set draws: accepted is PARAMETER=VALUE"]),
        ([EXPERIMENT_FILE, "--jobs", "0"], ["--jobs 0: accepted are 1 to"]),
        ([EXPERIMENT_FILE, "--on", "here"], ["accepted is dask:ADDRESS"]),
        ([EXPERIMENT_FILE, "--out", OWN], ["--out", "cannot be used as a folder"]),
        ([OWN, "--set", "a=b"], ["is a scenario", "--set and --seeds are for experiments"]),
        ([OWN, "--seeds", "5"], ["lab sweep"]),
        (["nowhere.py"], ["nowhere.py: there is no such file"]),
        (["detection/omgea"], ["did you mean detection/omega", "holdfast lab list"]),
    ],
)
def test_bad_input_to_run(holdfast: Run, words: list[object], told: list[str]) -> None:
    """Bad input: names the field and the accepted values, exit 2, nothing written."""
    holdfast("lab", "run", *words).refused(2, *told)
    assert list(Path().iterdir()) == []


def test_a_missing_extra_is_said_before_the_work(holdfast: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CLI says which extra is missing; exit 3."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(type(registry.find_experiment(str(EXPERIMENT_FILE))), "measure", lambda self, cell: pytest.fail("measured"))
    holdfast("lab", "run", EXPERIMENT_FILE).refused(3, "needs matplotlib", "pip install '.[lab]'")


def test_sweep(holdfast: Run, tmp_path: Path) -> None:
    """``lab sweep``: exit 1 with one replay line per violation; exit 0 if all passed."""
    ended = holdfast("lab", "sweep", OWN, "--seeds", "10")
    assert ended.code == 1
    assert "8 passed, 2 failed" in ended.out
    assert [line.strip() for line in ended.out.splitlines() if "replay" in line] == [
        f"holdfast lab replay {OWN} --seed 2",
        f"holdfast lab replay {OWN} --seed 7",
    ]
    assert len((tmp_path / "out" / "sweeps.jsonl").read_text().splitlines()) == 1
    assert holdfast("lab", "sweep", OWN, "--seeds", "3:7").code == 0


def test_sweep_resumes(holdfast: Run) -> None:
    """``--resume``: what is known is not run again, and known failures still decide the exit code."""
    holdfast("lab", "sweep", OWN, "--seeds", "5", "--out", "r.jsonl")
    ended = holdfast("lab", "sweep", OWN, "--seeds", "7", "--out", "r.jsonl", "--resume", "--json")
    assert ended.code == 1
    (sweep,) = ended.json["sweeps"]
    assert (sweep["skipped"], sweep["passed"], [failure["seed"] for failure in sweep["failed"]]) == (5, 6, [2])
    assert ended.json["verdict"] == "violation"


def test_sweep_shrinks(holdfast: Run, tmp_path: Path) -> None:
    """``--shrink``: the path of the shrunk plan stands in a replay line that reproduces the violation."""
    ended = holdfast("lab", "sweep", OWN, "--seeds", "5", "--shrink")
    (line,) = [line for line in ended.out.splitlines() if "--plan" in line]
    words = line.partition("#")[0].split()[1:]
    assert len(json.loads((tmp_path / words[-1]).read_text())["faults"]) == 1
    assert holdfast(*words).code == 1


def test_sweep_all_leaves_planted_bugs_out(holdfast: Run) -> None:
    """``--all``: every scenario that is meant to pass."""
    ended = holdfast("lab", "sweep", "--all", "--seeds", "2", "--json")
    assert ended.code == 0, ended.out
    names = [sweep["scenario"] for sweep in ended.json["sweeps"]]
    assert names == [scenario.name for scenario in registry.scenarios().values() if not scenario.planted]
    assert PLANTED not in names


def test_sweep_on_processes(holdfast: Run) -> None:
    """``--jobs``: the same failures."""
    ended = holdfast("lab", "sweep", OWN, "--seeds", "20", "--jobs", "2", "--json")
    assert [failure["seed"] for failure in ended.json["sweeps"][0]["failed"]] == [2, 7, 12, 17]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A real Dask cluster on loopback: a scheduler and two workers, without a dashboard."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp") as local:
        yield f"dask:{local.scheduler_address}"


def test_on_a_cluster(holdfast: Run, cluster: str) -> None:
    """``--on dask:ADDRESS``: experiments and sweeps find on a cluster what they find here."""
    here, there = holdfast("lab", "run", EXPERIMENT_FILE, "--json"), holdfast("lab", "run", EXPERIMENT_FILE, "--json", "--on", cluster)
    assert here.json == there.json
    ended = holdfast("lab", "sweep", OWN, "--seeds", "20", "--on", cluster, "--shrink", "--json")
    failed = ended.json["sweeps"][0]["failed"]
    assert [failure["seed"] for failure in failed] == [2, 7, 12, 17]
    assert all(Path(failure["plan"]).exists() for failure in failed)


def test_sweep_interrupted(holdfast: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C: what was finished is kept, exit 130, and --resume goes on."""
    from holdfast.lab import sweep

    def interrupted(*words: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "run", interrupted)
    ended = holdfast("lab", "sweep", OWN)
    assert ended.code == 130
    assert "--resume goes on from there" in ended.out
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "words,told",
    [
        ([], ["which scenario?"]),
        ([OWN, "--all"], ["which scenario?"]),
        ([OWN, "--seeds", "5:5"], ["--seeds 5:5: names no seed"]),
        ([OWN, "--seeds", "-3"], ["names no seed"]),
        ([OWN, "--seeds", "few"], ["--seeds few: accepted are N", "A:B"]),
        ([EXPERIMENT_FILE], ["is an experiment, and this needs a scenario"]),
        ([OWN, "--out", OWN], ["is not a line of a results file"]),
        ([OWN, "--out", FOLDER], ["cannot be used"]),
    ],
)
def test_bad_input_to_sweep(holdfast: Run, words: list[object], told: list[str]) -> None:
    """Bad input: exit 2, one line, nothing overwritten."""
    before = OWN.read_bytes()
    holdfast("lab", "sweep", *words).refused(2, *told)
    assert OWN.read_bytes() == before


def test_replay(holdfast: Run) -> None:
    """``lab replay``: the last lines, the violation, the command; exit 1 if the violation is there."""
    ended = holdfast("lab", "replay", OWN, "--seed", 2)
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert any("* crash b#1" in line for line in lines)
    assert "violation of settled: 1 s after the last fault: every fifth" in lines[-2]
    assert lines[-1] == f"holdfast lab replay {OWN} --seed 2"


def test_replay_of_a_run_that_goes_well(holdfast: Run) -> None:
    """``lab replay``: nothing to see without --trace, everything with it."""
    ended = holdfast("lab", "replay", OWN, "--seed", 1)
    assert (ended.code, len(ended.out.splitlines())) == (0, 2)
    assert "* start a#1" in holdfast("lab", "replay", OWN, "--seed", 1, "--trace").out
    assert "* start a#1" in "\n".join(holdfast("lab", "replay", OWN, "--seed", 1, "--trace", "--json").json["trace"])


def test_replay_shrinks(holdfast: Run, tmp_path: Path) -> None:
    """``--shrink``: writes the plan that is left, and the line that replays it."""
    facts = holdfast("lab", "replay", OWN, "--seed", 2, "--shrink", "--out", "plans", "--json").json
    assert (facts["faults"], facts["verdict"]) == (3, "violation")
    path = tmp_path / facts["shrunk"]
    assert [fault["type"] for fault in json.loads(path.read_text())["faults"]] == ["crash"]
    again = holdfast("lab", "replay", OWN, "--seed", 2, "--plan", path)
    assert again.code == 1
    assert again.out.splitlines()[-1] == f"holdfast lab replay {OWN} --seed 2 --plan {path}"


def test_plan_prints_what_replay_reads(holdfast: Run, tmp_path: Path) -> None:
    """``lab plan``: the drawn plan as JSON; played again it is the same run."""
    planted = registry.find_scenario(PLANTED)
    seed = next(seed for seed in range(100) if not run(planted, seed).ok)
    ended = holdfast("lab", "plan", PLANTED, "--seed", seed)
    assert ended.code == 0
    assert len(ended.json["faults"]) == len(set_up(planted, seed).plan.faults)
    (tmp_path / "plan.json").write_text(ended.out)
    drawn = holdfast("lab", "replay", PLANTED, "--seed", seed, "--json").json
    written = holdfast("lab", "replay", PLANTED, "--seed", seed, "--plan", "plan.json", "--json").json
    assert (drawn["violation"], drawn["trace"]) == (written["violation"], written["trace"])
    assert drawn["verdict"] == "violation"


@pytest.mark.parametrize(
    "text,told",
    [
        ('{"faults": [{"type": "flood"}]}', ["flood", "accepted faults are crash"]),
        ('{"faults": [{"type": "crash", "at": 1, "node": "zoe"}]}', ["fault 1", "'zoe'", "accepted: a, b, c"]),
        ('{"faults": [{"type": "crash", "at": 99, "node": "a"}]}', ["outside the run", "0 to 5"]),
        (None, ["cannot read"]),
    ],
)
def test_bad_plans(holdfast: Run, tmp_path: Path, text: str | None, told: list[str]) -> None:
    """Bad input: a plan file names its fault and field; exit 2."""
    if text is not None:
        (tmp_path / "plan.json").write_text(text)
    holdfast("lab", "replay", OWN, "--plan", "plan.json").refused(2, *told)


SCRIPT = "scenario detection/omega\nset alpha 1\nnodes a b\nrun 3s\nexpect leader a\n"


def test_script(holdfast: Run, tmp_path: Path) -> None:
    """``lab script``: prints the trace; --rewrite writes it below the script; exit 1 if an expectation does not hold."""
    path = tmp_path / "s.txt"
    path.write_text(SCRIPT)
    ended = holdfast("lab", "script", path)
    assert ended.code == 0
    assert ended.out.endswith("* as expected: leader a\n")
    assert path.read_text() == SCRIPT
    holdfast("lab", "script", path, "--rewrite")
    assert path.read_text() == f"{SCRIPT}----\n{ended.out}"
    path.write_text(SCRIPT.replace("leader a", "leader b"))
    facts = holdfast("lab", "script", path, "--json")
    assert (facts.code, facts.json["verdict"]) == (1, "violation")


@pytest.mark.parametrize(
    "text,told", [("nodes a\n", ["has no line 'scenario'"]), (SCRIPT + "jump\n", ["line 6: 'jump' is no command", "accepted:"])]
)
def test_bad_scripts(holdfast: Run, tmp_path: Path, text: str, told: list[str]) -> None:
    """Bad input: the line and the accepted commands; exit 2; --rewrite changes nothing."""
    path = tmp_path / "s.txt"
    path.write_text(text)
    holdfast("lab", "script", path, "--rewrite").refused(2, *told)
    assert path.read_text() == text


def test_scripts_that_cannot_be_read(holdfast: Run, tmp_path: Path) -> None:
    """Bad input: no such file, or no text."""
    holdfast("lab", "script", "none.txt").refused(2, "none.txt: cannot be read")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    holdfast("lab", "script", "bytes.txt").refused(2, "is no text")


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder ``own`` with two experiments."""
    second = type("Second", (type(EXPERIMENT),), {"id": "own/E2", "name": "own/second"})()
    monkeypatch.setattr(registry, "experiments", lambda: {"own/E1": EXPERIMENT, "own/E2": second})


def test_reproduce(holdfast: Run, own_folder: None, tmp_path: Path) -> None:
    """``lab reproduce``: all experiments of a folder and one page; --quick uses the reduced sizes."""
    ended = holdfast("lab", "reproduce", "own", "--quick")
    assert ended.code == 0
    assert "pass  own/E1  The mean of uniform numbers" in ended.out
    assert (tmp_path / "out" / "own-E2.png").exists()
    assert "own/E2" in (tmp_path / "out" / "own.html").read_text()
    facts = holdfast("lab", "reproduce", "own", "--quick", "--json").json
    assert [report["parameters"]["draws"] for report in facts["experiments"]] == [50, 50]
    holdfast("lab", "reproduce", "rings").refused(2, "'rings'", "accepted: own")


def test_demo(holdfast: Run) -> None:
    """``lab demo``: exit 0 only if everything happened as promised; the timeline, the promises, the bug and its replay line."""
    ended = holdfast("lab", "demo", "--seed", 1)
    assert ended.code == 0
    assert ended.out.count("  kept  ") == 7
    assert "Everything happened as promised." in ended.out
    assert "|crash a" in ended.out
    (line,) = [line.strip() for line in ended.out.splitlines() if line.strip().startswith("holdfast lab replay")]
    assert holdfast(*line.split()[1:]).code == 1


def test_demo_says_when_something_is_broken(holdfast: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with a bound that cannot be kept the demo says so and exits 1."""
    from msgspec.structs import replace

    from holdfast.papers.detection.lab import story

    monkeypatch.setattr(story, "ACTS", tuple(replace(act, bound=0.001) for act in story.ACTS))
    ended = holdfast("lab", "demo", "--seed", 1)
    assert ended.code == 1
    assert "BROKEN" in ended.out
    assert holdfast("lab", "demo", "--seed", 1, "--json").json["verdict"] == "miss"


def test_demo_without_rich(holdfast: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CLI says which extra is missing; --json needs none."""
    monkeypatch.setitem(sys.modules, "rich", None)
    holdfast("lab", "demo").refused(3, "needs rich", "'.[lab]'")
    assert holdfast("lab", "demo", "--json").json["verdict"] == "pass"
