"""How long one test may take: seconds of CPU where time is virtual, wall-clock where it is real.

A test of virtual time does the same work on a busy machine, only later. So its limit is CPU time, and wall-clock only ends one that hangs.
A test of real time keeps the wall-clock limit of ``timeout`` in pyproject.toml. Where it fails, the report says how late the machine was.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from tests.lateness import Seen
from tests.sharing import is_real

CPU_MAX = 120.0  # seconds of one test of virtual time; the longest of `make test-all` takes half of it
HANGS_AFTER = 3600.0  # seconds of wall-clock of one test of virtual time: no machine is so busy for so long


class Limits:
    """The plugin."""

    def __init__(self, cpu: float = CPU_MAX) -> None:
        self.cpu = cpu
        self._before = Seen()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if not is_real(item.nodeid.partition("::")[0]) and item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(HANGS_AFTER))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._before = Seen()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        with limited(item, self.cpu):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        with limited(item, self.cpu):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and is_real(item.nodeid.partition("::")[0]):
            report.sections.append(("the machine", self._before.until(Seen())))
        return report


@contextmanager
def limited(item: pytest.Item, cpu: float) -> Iterator[None]:
    """Fails the test at this many seconds of CPU of this process, if time is virtual in it."""
    if is_real(item.nodeid.partition("::")[0]):
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        pytest.fail(f"took more than {cpu:g} s of CPU, the limit of a test of virtual time", pytrace=True)

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, cpu)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
