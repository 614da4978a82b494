"""How long the tests of one area may take, checked at the end of every run.

An area is a folder directly under ``tests/``, or a feature: a folder under ``tests/features/``, with all its questions.
Its budget stands in ``[tool.holdfast.test-budgets]`` of pyproject.toml, in CPU seconds of a quiet machine. What counts
is the CPU time of this process and of the children it has waited for, over set-up, call and tear-down, divided by the
pace of the machine (tests/pace.py): wall-clock on a busy machine measures the neighbours, CPU seconds do to a lesser
degree, and a test that waits for a timeout is not slow code. In files of virtual time that is all. Where time is real,
a test that only sleeps costs people the same minutes, so there wall-clock has a limit as well, ``WALL_FACTOR`` times
the budget; time in which some process of the machine waited for a core does not count. An area that has no budget
fails: its author says how long it may take.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lateness import pressure
from tests.limits import cpu_seconds
from tests.pace import Pace
from tests.sharing import is_real

WALL_FACTOR = 8.0  # tests with real processes wait for leases and deaths; those of tests/client need a sixth of a core


FEATURES = "features"


@dataclass
class Spent:
    """Seconds an area took so far."""

    cpu: float = 0.0  # as measured
    quiet: float = 0.0  # what a quiet machine would have needed
    wall: float = 0.0  # of files whose time is real
    late: float = 0.0  # of these: some process waited for a core


class Budgets:
    """The plugin: measures every phase of every test and fails the session when an area overdraws its budget."""

    def __init__(self, budgets: Mapping[str, float], *, enforced: bool = True) -> None:
        self.budgets, self.enforced = budgets, enforced
        self._pace = Pace()
        self._cpu_at, self._late_at = cpu_seconds(), pressure()
        self.spent: defaultdict[str, Spent] = defaultdict(Spent)

    @classmethod
    def of(cls, root: Path, *, enforced: bool = True) -> Budgets:
        """The budgets declared in the pyproject.toml of ``root``."""
        declared = tomllib.loads((root / "pyproject.toml").read_text())
        return cls(declared["tool"]["holdfast"]["test-budgets"], enforced=enforced)

    @staticmethod
    def area(file: str) -> str:
        """The folder directly under tests/, or under tests/features/; for a file that lies in tests/ itself, its own name."""
        parts = file.split("/")
        return "/".join(parts[1:3]) if parts[1] == FEATURES else parts[1]

    def complaints(self) -> list[str]:
        if not self.enforced:
            return []
        found = []
        for area, spent in sorted(self.spent.items()):
            budget = self.budgets.get(area)
            if budget is None:
                found.append(f"tests/{area} has no budget: give it one in [tool.holdfast.test-budgets] of pyproject.toml")
            elif spent.quiet > budget:
                took = f"took {spent.cpu:.1f} s of CPU, {spent.quiet:.1f} s on a quiet machine"
                found.append(f"tests/{area} {took}; its budget is {budget:g} s")
            elif spent.wall - spent.late > WALL_FACTOR * budget:
                unhurried = f"took {spent.wall - spent.late:.1f} s in which the machine was not late"
                found.append(f"tests/{area} {unhurried}, over {WALL_FACTOR:g} times its budget of {budget:g} s")
        return found

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._cpu_at, self._late_at = cpu_seconds(), pressure()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """One of set-up, call, tear-down is over: its CPU time travels with its report, also out of a worker of xdist."""
        report = yield
        used, late = cpu_seconds() - self._cpu_at, pressure() - self._late_at
        report.user_properties += [("cpu", used), ("quiet", used / self._pace.now(used)), ("late", late)]
        self._cpu_at, self._late_at = cpu_seconds(), pressure()
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        spent = self.spent[self.area(file)]
        spent.cpu += _sum(report, "cpu")
        spent.quiet += _sum(report, "quiet")
        if is_real(file):
            spent.late += _sum(report, "late")
            spent.wall += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.complaints() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.spent:
            return
        parts = [f"{area} {spent.quiet:.1f}/{self.budgets.get(area, 0):g}" for area, spent in sorted(self.spent.items())]
        cpu, quiet = (sum(getattr(spent, name) for spent in self.spent.values()) for name in ("cpu", "quiet"))
        terminalreporter.write_line(f"CPU seconds of budget: {', '.join(parts)}")
        slower = cpu / quiet if quiet else 1.0
        terminalreporter.write_line(f"used were {cpu:.0f} s of CPU, {slower:.2f} times what a quiet machine needs")
        for complaint in self.complaints():
            terminalreporter.write_line(f"BUDGET {complaint}", red=True, bold=True)


def _sum(report: pytest.TestReport, wanted: str) -> float:
    return sum(float(str(value)) for name, value in report.user_properties if name == wanted)
