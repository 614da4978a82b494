"""How long one test may take, and what is said of one that failed: the plugins, run on small sessions of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lateness import Seen
from tests.tidy.tree import ROOT

CONFTEST = """
import tests.limits
from tests.limits import Limits
from tests.told import Told

def pytest_configure(config):
    tests.limits.HANGS_AFTER = 5.0
    config.pluginmanager.register(Limits(cpu=0.1))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Told(config))
"""
TESTS = ("test", "test-all")
BUSY = """
def test_busy():
    while True:
        pass
"""
SLOW = """
import time

def test_slow():
    time.sleep(1.5)
"""
BAD = """
def test_bad():
    assert 1 + 1 == 3
"""
HANGING = """
import time

def test_hanging():
    time.sleep(600)
"""
ENDLESS = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit('last words')); print('begun', flush=True); signal.pause()"
CHECKS = f"""
import sys
sys.path.insert(0, {str(ROOT / "scripts")!r})
import checks
checks.commands = lambda: {{"tests": ["python", "-c", {ENDLESS!r}], "pure": []}}
sys.exit(checks.main([]))
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makeconftest(CONFTEST)
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\ntimeout = 1\n")
    return pytester


def write(session: pytest.Pytester, area: str, test: str, name: str = "test_it.py") -> None:
    folder: Path = session.path / "tests" / area
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(test)


@pytest.mark.parametrize("method", ["signal", "thread"])
def test_virtual_time_is_limited_by_cpu_alone(session: pytest.Pytester, method: str) -> None:
    """H206: a busy machine fails no test of virtual time, which takes no more CPU there; one that does not end is ended. The limit of
    wall-clock is off however it would be kept: that of a signal shares our alarm, that of a thread does not."""
    write(session, "sim", BUSY, "test_busy.py")
    write(session, "sim", SLOW, "test_slow.py")
    write(session, "sim", HANGING, "test_hanging.py")
    result = session.runpytest_subprocess("-p", "no:randomly", "-o", f"timeout_method={method}")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "FAILED *test_busy*took more than 0.1 s of CPU, the limit of a test of virtual time",
            "FAILED *test_hanging*waits: 5 s are over, and 0.*",
        ]
    )


def test_real_time_says_how_late_the_machine_was(session: pytest.Pytester) -> None:
    """H206: wall-clock ends a test of real time, and what failed says whether the machine was late."""
    write(session, "net", SLOW)
    result = session.runpytest_subprocess("-p", "no:randomly")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines(
        [r".*FAILED .*test_slow.*Timeout.* \[(This process was not late|The machine was late by \d+ ms)", "-+ the machine -+"]
    )


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_run_that_is_cut_short_names_what_failed(session: pytest.Pytester, options: tuple[str, ...]) -> None:
    """H206: a failure is named at once, and SIGTERM ends the run with the reports of what failed so far."""
    write(session, "sim", BAD, "test_a.py")
    write(session, "docs", HANGING, "test_b.py")
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "--timeout", "0", *options, "tests/sim", "tests/docs"]
    with subprocess.Popen(command, cwd=session.path, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as run:
        assert run.stdout is not None
        named = next(line for line in run.stdout if line.startswith("FAILED"))
        assert "test_bad - assert (1 + 1) == 3" in named
        run.send_signal(signal.SIGTERM)
        rest = run.stdout.read()
    assert "= FAILURES =" in rest
    assert "1 failed" in rest
    assert run.returncode == pytest.ExitCode.INTERRUPTED


def test_checks_pass_on_that_they_end() -> None:
    """H206: make tells scripts/checks.py alone, which tells what it runs and waits for the last words."""
    with subprocess.Popen([sys.executable, "-c", CHECKS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        next(line for line in run.stdout if line == "begun\n")
        run.send_signal(signal.SIGTERM)
        rest = run.stdout.read()
    assert "told to end by signal 15\nlast words\n--- tests" in rest
    assert rest.endswith(" s FAILED\n")
    assert run.returncode == 1


@pytest.mark.parametrize(
    "waited, told",
    [(0.01, "This process was not late; some process of the machine for 2.0 s of 5.0 s"), (0.812, "The machine was late by 812 ms")],
)
def test_what_is_said_of_the_machine(waited: float, told: str) -> None:
    """H206: a test of real time that fails because the machine was busy says so."""
    before, after = Seen(), Seen()
    after.waited, after.pressure, after.at = before.waited + waited, before.pressure + 2.0, before.at + 5.0
    assert before.until(after).startswith(told)


def test_make_tells_the_checks() -> None:
    """H206: make tells the process it started, and a shell in between would end alone and leave the tests running."""
    recipes = [line for line in (ROOT / "Makefile").read_text().splitlines() if "scripts/checks.py" in line and "PYTEST_ARGS" in line]
    assert len(recipes) == 3
    assert all(line.startswith("\t@exec env ") for line in recipes)


def test_make_installs_what_a_run_uses() -> None:
    """CONTRIBUTING: the nightly tests have an ensemble of ZooKeeper, and Java with it, and Redis; the short run installs none of them."""
    told = {target: subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout for target in TESTS}
    installs = {target: next(line for line in text.splitlines() if line.startswith("scripts/debian.sh")) for target, text in told.items()}
    assert installs["test-all"] == f"{installs['test']} zookeeper redis-server:redis-server serf:serf"
