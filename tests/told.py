"""Failures are named as they happen, what a late machine made us repeat too, and a run that is cut short still sums up.

Without this a run prints one letter for a failed test and its name only at the end, which a run that is stopped by a time limit never
reaches. SIGTERM, which is how time limits ask first, ends the run as Ctrl-C does: with the reports of all that failed so far.
"""

from __future__ import annotations

import signal
from types import FrameType

import pytest

from tests.sharing import is_real
from tests.support.realtime import LATE


class Told:
    """The plugin; only in the process that prints."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        signal.signal(signal.SIGTERM, _cut_short)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for line in repeats(report):
            self._say(f"REPEATED {report.nodeid} - {line}", yellow=True)
        if report.failed:
            self._say(f"{'FAILED' if report.when == 'call' else 'ERROR'} {report.nodeid}{reason(report)}{machine(report)}", red=True)

    @pytest.hookimpl(trylast=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._say(f"ERROR {report.nodeid}{reason(report)}", red=True)

    def _say(self, line: str, **colour: bool) -> None:
        terminal: pytest.TerminalReporter | None = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            terminal.write(f"\n{line}\n", flush=True, **colour)  # After dots, wherever they stand.


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The first line of what went wrong."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash is not None else report.longrepr or "").strip().splitlines()
    return f" - {lines[0]}" if lines else ""


def machine(report: pytest.TestReport) -> str:
    return "".join(f" [{text}]" for name, text in report.sections if name == "the machine")


def repeats(report: pytest.TestReport) -> list[str]:
    """Of a test of real time, whether it passed or not: how late the machine was when it had to be tried again."""
    if report.when != "call" or not is_real(report.nodeid.partition("::")[0]):
        return []
    return [line for line in report.capstdout.splitlines() if line.startswith(LATE)]


def _cut_short(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(f"signal {number}")
