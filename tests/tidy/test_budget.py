"""The plugin that checks how long tests may take, run on small sessions of its own."""

from __future__ import annotations

import tomllib

import pytest

from tests.tidy.tree import ROOT

CONFTEST = """
import tests.pace
from tests.budget import Budgets

tests.pace.measured = lambda: {pace}

def pytest_configure(config):
    config.pluginmanager.register(Budgets.of(config.rootpath))
"""
QUIET = CONFTEST.format(pace=1.0)
BUSY = """
import time

def test_busy():
    end_at = time.process_time() + 0.3
    while time.process_time() < end_at:
        pass
"""
SLEEPY = """
import time

def test_sleepy():
    time.sleep(1.0)
"""
QUICK = "def test_quick(): pass"
TOTAL_MAX = 980.0  # CPU seconds of a quiet machine: one and a half times what all areas took there together, and room for a feature


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(QUIET)
    return pytester


def run(session: pytest.Pytester, *, area: str, test: str, budgets: str, options: tuple[str, ...] = ()) -> pytest.RunResult:
    session.makepyprojecttoml(f"[tool.pytest.ini_options]\n[tool.holdfast.test-budgets]\n{budgets}\n")
    folder = session.path / "tests" / area
    folder.mkdir(parents=True)
    (folder / "test_it.py").write_text(test)
    return session.runpytest_subprocess("-p", "no:randomly", *options)


def test_within_budget_passes(session: pytest.Pytester) -> None:
    """The session's exit code is untouched while every area keeps to its budget."""
    result = run(session, area="unit", test=QUICK, budgets="unit = 5")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["CPU seconds of budget: unit 0.*/5"])


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_cpu_over_budget_fails(session: pytest.Pytester, options: tuple[str, ...]) -> None:
    """All tests pass and the session fails: 0.3 s of CPU do not fit into a budget of 0.2 s."""
    result = run(session, area="unit", test=BUSY, budgets="unit = 0.2", options=options)
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["BUDGET tests/unit took 0.* s of CPU, 0.* s on a quiet machine; its budget is 0.2 s"])


def test_cpu_seconds_of_a_slow_machine_count_less(session: pytest.Pytester) -> None:
    """H234: where everything takes three times the CPU seconds, 0.3 s fit into a budget of 0.2 s."""
    session.makeconftest(CONFTEST.format(pace=3.0))
    result = run(session, area="unit", test=BUSY, budgets="unit = 0.2")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["CPU seconds of budget: unit 0.*/0.2", "used were 0 s of CPU, 3.00 times what a quiet machine needs"])


def test_sleeping_over_the_wall_factor_fails(session: pytest.Pytester) -> None:
    """H206: where time is real a sleep costs no CPU and still counts, unless the machine was late: 1 s is over eight times 0.1 s."""
    session.makeconftest("import tests.budget\ntests.budget.pressure = lambda: 0.0\n" + QUIET)
    result = run(session, area="net", test=SLEEPY, budgets="net = 0.1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["BUDGET tests/net took 1.* s in which the machine was not late, over 8 times its budget of 0.1 s"])


@pytest.mark.parametrize("area, pressure", [("net", "time.monotonic"), ("sim", "lambda: 0.0")], ids=["busy", "virtual"])
def test_sleeping_that_does_not_count(session: pytest.Pytester, area: str, pressure: str) -> None:
    """H206: what the machine took does not count, nor does wall-clock count where time is virtual."""
    session.makeconftest(f"import time, tests.budget\ntests.budget.pressure = {pressure}\n{QUIET}")
    result = run(session, area=area, test=SLEEPY, budgets=f"{area} = 0.1")
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("question, code", [("process", pytest.ExitCode.TESTS_FAILED), ("sim", pytest.ExitCode.OK)])
def test_a_feature_has_one_budget(session: pytest.Pytester, question: str, code: pytest.ExitCode) -> None:
    """H206: the folders of a feature share a number; wall-clock counts in the one of real processes alone."""
    session.makeconftest("import tests.budget\ntests.budget.pressure = lambda: 0.0\n" + QUIET)
    result = run(session, area=f"features/ring/{question}", test=SLEEPY, budgets='"features/ring" = 0.1')
    assert result.ret == code
    result.stdout.fnmatch_lines(["CPU seconds of budget: features/ring 0.*/0.1"])


def test_area_without_budget_fails(session: pytest.Pytester) -> None:
    """Nobody opens an area without saying how long it may take."""
    result = run(session, area="elsewhere", test=QUICK, budgets="unit = 5")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["BUDGET tests/elsewhere has no budget*"])


def test_all_budgets_together() -> None:
    """H206, H234: the whole of `make test` takes ten minutes of two quiet cores when every area has used its budget."""
    budgets = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["holdfast"]["test-budgets"]
    assert sum(budgets.values()) <= TOTAL_MAX


def test_the_page_says_the_total() -> None:
    """H206: docs/architecture.md names the number of CPU seconds that all budgets have together."""
    assert f"all of them together at most {TOTAL_MAX:.0f}:" in " ".join((ROOT / "docs" / "architecture.md").read_text().split())
