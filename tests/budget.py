"""How long the tests of one area may take, checked at the end of every run.

An area is a folder directly under ``tests/``; its budget stands in ``[tool.holdfast.test-budgets]`` of pyproject.toml, in
seconds. The budget is CPU time, of this process and of the children it has waited for, over set-up, call and tear-down:
wall-clock on a busy machine measures the neighbours, and a test that waits for a timeout is not slow code. But a test that only
sleeps costs people the same minutes, so wall-clock has a limit as well, ``WALL_FACTOR`` times the budget: wide enough that a
machine at a third of its speed passes. An area that has no budget fails, so that nobody starts one without saying how long it may take.
"""

from __future__ import annotations

import resource
import tomllib
from collections import defaultdict
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

WALL_FACTOR = 3.0


@dataclass
class Spent:
    """Seconds an area took so far."""

    cpu: float = 0.0
    wall: float = 0.0


class Budgets:
    """The plugin: measures every phase of every test and fails the session when an area overdraws its budget."""

    def __init__(self, budgets: Mapping[str, float], *, enforced: bool = True) -> None:
        self.budgets, self.enforced = budgets, enforced
        self._cpu_at = _cpu()
        self.spent: defaultdict[str, Spent] = defaultdict(Spent)

    @classmethod
    def of(cls, root: Path, *, enforced: bool = True) -> Budgets:
        """The budgets declared in the pyproject.toml of ``root``."""
        declared = tomllib.loads((root / "pyproject.toml").read_text())
        return cls(declared["tool"]["holdfast"]["test-budgets"], enforced=enforced)

    @staticmethod
    def area(nodeid: str) -> str:
        """The folder directly under tests/; for a file that lies in tests/ itself, its own name."""
        return nodeid.partition("::")[0].split("/")[1]

    def complaints(self) -> list[str]:
        if not self.enforced:
            return []
        found = []
        for area, spent in sorted(self.spent.items()):
            budget = self.budgets.get(area)
            if budget is None:
                found.append(f"tests/{area} has no budget: give it one in [tool.holdfast.test-budgets] of pyproject.toml")
            elif spent.cpu > budget:
                found.append(f"tests/{area} took {spent.cpu:.1f} s of CPU, its budget is {budget:g} s")
            elif spent.wall > WALL_FACTOR * budget:
                found.append(f"tests/{area} took {spent.wall:.1f} s, over {WALL_FACTOR:g} times its budget of {budget:g} s")
        return found

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._cpu_at = _cpu()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """One of set-up, call, tear-down is over: its CPU time travels with its report, also out of a worker of xdist."""
        report = yield
        before, self._cpu_at = self._cpu_at, _cpu()
        report.user_properties.append(("cpu", self._cpu_at - before))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        spent = self.spent[self.area(report.nodeid)]
        spent.cpu += sum(float(str(value)) for name, value in report.user_properties if name == "cpu")
        spent.wall += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.complaints() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.spent:
            return
        parts = [f"{area} {spent.cpu:.1f}/{self.budgets.get(area, 0):g}" for area, spent in sorted(self.spent.items())]
        terminalreporter.write_line(f"CPU seconds of budget: {', '.join(parts)}")
        for complaint in self.complaints():
            terminalreporter.write_line(f"BUDGET {complaint}", red=True, bold=True)


def _cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
