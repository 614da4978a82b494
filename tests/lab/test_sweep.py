"""Sweeps: every seed once, each failure with the line that shows it again, results that can be taken up again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from holdfast.errors import ConfigError
from holdfast.lab import registry, source
from holdfast.lab.jobs import Where
from holdfast.lab.results import Chunk, Failure, Results
from holdfast.lab.sweep import CHUNK_SEEDS, collect, sweep
from holdfast.papers.detection.lab.scenarios.omega import SCENARIO

OWN = str(Path(__file__).with_name("own_scenario.py"))  # seeds 2, 7, 12, ... fail
PLANTED = "detection/omega-doubled-ok"


def test_a_sweep_that_passes_says_how_much_it_ran() -> None:
    """``sweep(scenario, seeds)`` is a call for tests."""
    summary = sweep(SCENARIO, range(5))
    assert (summary.passed, summary.failed, summary.scenario) == (5, (), "detection/omega")
    assert summary.events > 1000


def test_a_failing_sweep_raises_what_a_reader_needs() -> None:
    """The error has the count, the violation, the readable trace and one replay line per failure."""
    with pytest.raises(AssertionError) as caught:
        sweep(OWN, range(10))
    text = str(caught.value)
    assert text.startswith("2 of 10 seeds of own/fifth failed")
    assert "seed 2: settled: 1 s after the last fault: every fifth" in text
    assert "* crash b#1" in text
    assert f"holdfast lab replay {OWN} --seed 2" in text
    assert f"holdfast lab replay {OWN} --seed 7" in text


def test_many_failures_are_cut_short() -> None:
    """One trace and ten lines: the rest is mostly the same bug."""
    with pytest.raises(AssertionError) as caught:
        sweep(OWN, range(2, 77, 5))
    text = str(caught.value)
    assert text.count("* crash b#1") == 1
    assert text.count("holdfast lab replay") == 10
    assert "... and 5 more" in text


def test_processes_find_what_one_process_finds() -> None:
    """``--jobs``: the same failures in the same order, found by name or by path."""
    here, there = collect(OWN, range(30)), collect(OWN, range(30), where=Where(2))
    assert [failure.seed for failure in here.failed] == [2, 7, 12, 17, 22, 27]
    assert (here.failed, here.passed, here.events) == (there.failed, there.passed, there.events)


def test_results_are_lines(tmp_path: Path) -> None:
    """The results file: one line per chunk with scenario, seed range, commit, passed, failed, events, seconds."""
    path = tmp_path / "deep" / "results.jsonl"
    collect(OWN, range(25), results=Results(path))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["first"], line["last"]) for line in lines] == [(0, 9), (10, 19), (20, 24)]
    assert [line["passed"] for line in lines] == [8, 8, 4]
    assert set(lines[0]) == {"scenario", "first", "last", "commit", "passed", "failed", "events", "seconds"}
    failure = lines[0]["failed"][0]
    assert (failure["seed"], failure["replay"]) == (2, f"holdfast lab replay {OWN} --seed 2")
    assert failure["violation"].startswith("settled")


def seeds_run(path: Path) -> list[tuple[int, int]]:
    return [(line["first"], line["last"]) for line in map(json.loads, path.read_text().splitlines())]


def test_resume_skips_what_is_known(tmp_path: Path) -> None:
    """``--resume``: seeds recorded for the same scenario and commit are not run again, and their failures still count."""
    path = tmp_path / "results.jsonl"
    collect(OWN, range(5, 15), results=Results(path))
    summary = collect(OWN, range(20), results=Results(path), resume=True)
    assert seeds_run(path) == [(5, 14), (0, 4), (15, 19)]
    assert summary.skipped == 10
    assert [failure.seed for failure in summary.failed] == [2, 7, 12, 17]
    assert summary.passed == 16


def test_resume_counts_only_what_was_asked_for(tmp_path: Path) -> None:
    """``--resume``: failures of other seeds are not this sweep's."""
    path = tmp_path / "results.jsonl"
    collect(OWN, range(20), results=Results(path))
    summary = collect(OWN, range(3, 7), results=Results(path), resume=True)
    assert (summary.passed, summary.failed, summary.skipped) == (4, (), 4)


@pytest.mark.parametrize("change", [{"commit": "another"}, {"scenario": "another/one"}])
def test_resume_distrusts_other_code(tmp_path: Path, change: dict[str, str]) -> None:
    """``--resume``: what another commit or another scenario did says nothing."""
    path = tmp_path / "results.jsonl"
    collect(OWN, range(3), results=Results(path))
    line = json.loads(path.read_text())
    path.write_text(json.dumps({**line, **change}) + "\n")
    assert collect(OWN, range(3), results=Results(path), resume=True).skipped == 0


def test_without_resume_everything_runs_again(tmp_path: Path) -> None:
    """Lines are only ever added."""
    path = tmp_path / "results.jsonl"
    for _ in range(2):
        collect(OWN, range(3), results=Results(path))
    assert seeds_run(path) == [(0, 2), (0, 2)]


def test_an_own_file_that_changed_is_other_code(tmp_path: Path) -> None:
    """``--resume``: a user's file is no part of our commit; its digest stands for it."""
    path, own = tmp_path / "results.jsonl", tmp_path / "mine.py"
    own.write_text(Path(OWN).read_text())
    collect(str(own), range(3), results=Results(path))
    assert collect(str(own), range(3), results=Results(path), resume=True).skipped == 3
    own.write_text(Path(OWN).read_text() + "\n# changed\n")
    assert collect(str(own), range(3), results=Results(path), resume=True).skipped == 0


def test_a_torn_line_is_run_again(tmp_path: Path) -> None:
    """An interrupted sweep may leave half a line: it is cut off, the whole lines stay as they are."""
    path = tmp_path / "results.jsonl"
    collect(OWN, range(20), results=Results(path))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    path.write_bytes(whole[: first + 40])
    summary = collect(OWN, range(20), results=Results(path), resume=True)
    assert path.read_bytes()[:first] == whole[:first]
    assert seeds_run(path) == [(0, 9), (10, 19)]
    assert summary.skipped == 10


@pytest.mark.parametrize("content", ["dear diary", '{"scenario": 1}\n', "one\ntwo\n", '{"a": 1}'])
def test_a_file_that_is_something_else_is_left_alone(tmp_path: Path, content: str) -> None:
    """Bad input: nothing is written to a file that is no results file."""
    path = tmp_path / "diary.txt"
    path.write_text(content)
    with pytest.raises(ConfigError, match="results file"):
        Results(path)
    assert path.read_text() == content


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """Bad input: said before the first seed runs."""
    with pytest.raises(ConfigError, match="cannot be used"):
        Results(tmp_path)


def test_two_sweeps_share_a_file(tmp_path: Path) -> None:
    """Lines of others are never cut off, also not behind a torn one."""
    path = tmp_path / "results.jsonl"
    chunk = Chunk(scenario="s", first=0, last=1, commit="c", passed=1, failed=(Failure(1, "v", "r"),), events=1, seconds=0.1)
    path.write_bytes(b'{"scenario":"half')
    one, two = Results(path), Results(path)
    one.append(chunk)
    two.append(chunk)
    assert Results(path).chunks == [chunk, chunk]


def test_shrunk_plans_are_written(tmp_path: Path) -> None:
    """``--shrink``: each failure gets the file with the faults that matter, also when workers found it."""
    summary = collect(OWN, range(5), results=Results(tmp_path / "r.jsonl"), shrink_into=tmp_path / "plans", where=Where(2))
    (failure,) = summary.failed
    plan = json.loads(Path(failure.plan).read_text())
    assert [fault["type"] for fault in plan["faults"]] == ["crash"]


def test_progress_hears_of_every_chunk() -> None:
    """Long work shows progress."""
    chunks: list[Chunk] = []
    collect(OWN, range(2 * CHUNK_SEEDS + 1), progress=chunks.append)
    assert [chunk.last - chunk.first + 1 for chunk in chunks] == [CHUNK_SEEDS, CHUNK_SEEDS, 1]


def test_the_planted_bug_is_found() -> None:
    """The lab's own control: a scenario with a bug fails, and is marked as planted so that sweeps over all leave it out."""
    assert registry.find_scenario(PLANTED).planted
    assert len(collect(PLANTED, range(20)).failed) >= 3


def test_commit_names_the_code() -> None:
    """Results carry the commit, with a digest if the sources differ from it; or the version."""
    assert re.fullmatch(r"[0-9a-f]{12}(\+[0-9a-f]{8})?|\d+\.\d+\.\d+.*", source.commit())


def test_without_git_the_version_stands_for_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package has no repository."""
    monkeypatch.setattr(source, "_git", lambda *words: None)
    assert source.commit.__wrapped__() == source.package_version()


def test_changed_sources_are_other_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A working copy that differs from its commit is told from the commit, and from other changes of it."""
    answers = {"ls-files": "__init__.py", "rev-parse": "0123456789ab", "status": ""}
    monkeypatch.setattr(source, "_git", lambda *words: answers[words[0]])
    monkeypatch.setattr(source, "PACKAGE", tmp_path)
    assert source.commit.__wrapped__() == "0123456789ab"
    answers["status"] = " M some.py"
    seen = set()
    for text in ("a", "b"):
        (tmp_path / "some.py").write_text(text)
        seen.add(source.commit.__wrapped__())
    assert len(seen) == 2
    assert all(each.startswith("0123456789ab+") for each in seen)
