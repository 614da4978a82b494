"""A test of real time that missed its moment is repeated only if the machine was late, and every run says so (H208)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.realtime import TRIES, Lateness, family, repeated

ROOT = Path(__file__).parents[2]
SPIN = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nprint(flush=True)\nwhile True:\n    pass\n"
DEADLINE = 30.0  # seconds; two processes on one core are late at once
CONFTEST = """
from tests.told import Told

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Told(config))
"""
LATE_ONCE = """
from tests.support.realtime import Lateness, repeated

class Late(Lateness):
    def __exit__(self, *error):
        super().__exit__(*error)
        self.longest = 0.25

def test_late():
    repeated(lambda number: "" if number else "too late by 10 ms", margin=0.1, lateness=Late)
"""


def late_by(seconds: float) -> Callable[[], Lateness]:
    class Late(Lateness):
        def __exit__(self, *error: object) -> None:
            super().__exit__(*error)  # type: ignore[arg-type]
            self.longest = seconds

    return Late


def misses(seconds: float, missed: int) -> tuple[list[int], str]:
    """On a machine that is late by so much the first ``missed`` attempts miss: which were made, and how it ended."""
    made: list[int] = []

    def attempt(number: int) -> str:
        made.append(number)
        return "it was too late" if number < missed else ""

    try:
        repeated(attempt, margin=0.1, lateness=late_by(seconds))
    except AssertionError as error:
        return made, str(error)
    return made, ""


def test_a_miss_on_a_machine_that_was_on_time_fails_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    """H208: a fault that shows once in three attempts is seen."""
    assert misses(0.09, 1) == ([0], "it was too late; the machine was late by 90 ms, and 100 ms are allowed")
    assert capsys.readouterr().out == ""


def test_a_miss_on_a_late_machine_is_repeated_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    """H208: an attempt on a late machine proves nothing, and does not pass in silence."""
    assert misses(0.25, 1) == ([0, 1], "")
    assert capsys.readouterr().out == "The machine was late by 250 ms; tried again: it was too late\n"
    made, why = misses(0.25, TRIES)
    assert (made, "in each of 3 attempts" in why) == ([0, 1, 2], True)


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_every_run_shows_it(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    """H208: the test passes, and the run names it and the milliseconds."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.path.joinpath("tests", "net").mkdir(parents=True)
    (pytester.path / "tests" / "net" / "test_it.py").write_text(LATE_ONCE)
    result = pytester.runpytest_subprocess("-q", "-p", "no:randomly", *options)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["REPEATED *::test_late - The machine was late by 250 ms; tried again: too late by 10 ms"])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs processes that stay on one core")
def test_a_child_that_waits_for_a_core_is_noticed() -> None:
    """H208: two processes want one core, so each waits for half of the time; this process need not be late itself."""
    core = str(min(os.sched_getaffinity(0)))
    children = [subprocess.Popen([sys.executable, "-c", SPIN, core], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        assert {os.getpid(), *(child.pid for child in children)} <= set(family())
        end_at = time.monotonic() + DEADLINE
        with Lateness() as late:
            while late.longest < 0.1:
                assert time.monotonic() < end_at, "it never noticed"
                time.sleep(0.01)
    finally:
        for child in children:
            child.kill()
            child.communicate()
