"""How long one test may take: seconds of CPU where time is virtual, wall-clock where it is real.

A test of virtual time does the same work on a busy machine, only later. So its limit is CPU time, and wall-clock only ends one that hangs.
A test of real time keeps the wall-clock limit of ``timeout`` in pyproject.toml. Where it fails, the report says how late the machine was.
"""

from __future__ import annotations

import resource
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from tests.lateness import Seen
from tests.sharing import is_real

CPU_MAX = 120.0  # seconds of one test of virtual time; the longest of `make test-all` takes half of it
LOOK_INTERVAL_MIN = 0.1
HANGS_AFTER = 3600.0  # seconds of wall-clock of one test of virtual time: no machine is so busy for so long


class Limits:
    """The plugin."""

    def __init__(self, cpu: float = CPU_MAX) -> None:
        self.cpu = cpu
        self._before = Seen()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if not is_real(item.nodeid.partition("::")[0]):
                item.add_marker(pytest.mark.timeout(0), append=False)  # none of wall-clock

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
    """Fails the test at this many seconds of CPU, of this process and of children that it has waited for, if time is virtual in it.

    The alarm is one of wall-clock that looks at the CPU time. (While an alarm of CPU time is set, ``time.process_time`` moves in steps of
    milliseconds on Linux, and benchmarks divide by it.)
    """
    if is_real(item.nodeid.partition("::")[0]):
        yield
        return
    began_at, cpu_at = time.monotonic(), cpu_seconds()

    def look(number: int, frame: FrameType | None) -> None:
        left = cpu - (cpu_seconds() - cpu_at)
        if left <= 0:
            pytest.fail(f"took more than {cpu:g} s of CPU, the limit of a test of virtual time")
        if time.monotonic() - began_at > HANGS_AFTER:
            pytest.fail(f"waits: {HANGS_AFTER:g} s are over, and {cpu - left:.1f} s of CPU were used")
        signal.setitimer(signal.ITIMER_REAL, max(left, LOOK_INTERVAL_MIN))

    before = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, cpu)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def cpu_seconds() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
