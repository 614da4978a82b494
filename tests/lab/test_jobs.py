"""One map, three places: here, in other processes, on a cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.errors import ConfigError, ExtraMissing
from holdfast.lab.extras import need
from holdfast.lab.jobs import HERE, Where, spread
from tests.lab.paths import ROOT, environment

DEADLINE = 30.0


def slow_first(number: int) -> tuple[int, int]:
    """The first one takes longest: whoever yields in order of completion is found."""
    time.sleep(0.3 if number == 0 else 0.0)
    return number * number, os.getpid()


def failing(number: int) -> int:
    if number == 3:
        raise ValueError("three")
    return number


def endless(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(2 * DEADLINE)


def wait_for(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """Ended, or ended and not yet waited for by whoever inherited it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_here() -> None:
    """``--jobs 1``: in this process, one after the other, lazily."""
    done: list[int] = []
    results = spread(slow_first, [1, 2, 3], HERE, lambda: done.append(1))
    assert done == []
    assert next(results) == (1, os.getpid())
    assert done == [1]
    assert [square for square, _ in results] == [4, 9]
    assert len(done) == 3


def test_processes_answer_in_order() -> None:
    """``--jobs 2``: other processes, results in the order of the items, one call of ``done`` for each."""
    done: list[int] = []
    results = list(spread(slow_first, list(range(6)), Where(2), lambda: done.append(1)))
    assert [square for square, _ in results] == [0, 1, 4, 9, 16, 25]
    assert os.getpid() not in {pid for _, pid in results}
    assert len(done) == 6


@pytest.mark.parametrize("where", [HERE, Where(2)])
def test_an_error_of_the_work_is_raised(where: Where) -> None:
    """What a piece of work raises, whoever asked for it gets."""
    with pytest.raises(ValueError, match="three"):
        list(spread(failing, list(range(6)), where))


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A real Dask cluster on loopback: a scheduler and two workers, without a dashboard."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp") as local:
        yield f"dask:{local.scheduler_address}"


def test_dask_answers_in_order(cluster: str) -> None:
    """``--on dask:ADDRESS``: the same map on a cluster."""
    done: list[int] = []
    results = list(spread(slow_first, list(range(6)), Where(on=cluster), lambda: done.append(1)))
    assert [square for square, _ in results] == [0, 1, 4, 9, 16, 25]
    wait_for(lambda: len(done) == 6)


def test_dask_raises_what_the_work_raises(cluster: str) -> None:
    """An error on a worker is an error here."""
    with pytest.raises(ValueError, match="three"):
        list(spread(failing, list(range(6)), Where(on=cluster)))


@pytest.mark.parametrize(
    "jobs,on,told",
    [
        (0, "", "--jobs 0: accepted are 1 to"),
        (100_000, "", "--jobs 100000"),
        (1, "spark:somewhere", "--on spark:somewhere: accepted is dask:ADDRESS"),
        (1, "dask:", "accepted is dask:ADDRESS"),
        (2, "dask:tcp://127.0.0.1:1", "give one of the two"),
    ],
)
def test_bad_places_are_refused(jobs: int, on: str, told: str) -> None:
    """Bad input: the flag, what it was, what is accepted."""
    with pytest.raises(ConfigError, match=told):
        Where(jobs, on)


def test_no_scheduler_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bad input: an address where nobody listens is one clear error, in seconds."""
    pytest.importorskip("distributed")
    monkeypatch.setattr("holdfast.lab.jobs.CONNECT_TIMEOUT", 1.0)
    with pytest.raises(ConfigError, match="no Dask scheduler answers there"):
        list(spread(failing, [1], Where(on="dask:tcp://127.0.0.1:1")))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ``cluster`` extra is optional, and its absence says what to install."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ExtraMissing, match=r"pip install '\.\[cluster\]' in a clone"):
        list(spread(failing, [1], Where(on="dask:tcp://127.0.0.1:1")))
    with pytest.raises(ModuleNotFoundError):
        need("no_such_module_anywhere", "nothing")


def begin_endless(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """A parent with two workers that never finish; their process ids."""
    files = [folder / "one", folder / "two"]
    code = (
        "from holdfast.lab.jobs import Where, spread\n"
        "from tests.lab.test_jobs import endless\n"
        f"if __name__ == '__main__':\n    list(spread(endless, {[str(file) for file in files]!r}, Where(2)))\n"
    )
    script = folder / "parent.py"
    script.write_text(code)
    parent = subprocess.Popen([sys.executable, str(script)], env=environment(), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: all(file.exists() and file.read_text() for file in files))
    return parent, [int(file.read_text()) for file in files]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_parent(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C cancels cleanly, and no worker outlives a parent that was killed."""
    parent, workers = begin_endless(tmp_path)
    try:
        parent.send_signal(number)
        _, errors = parent.communicate(timeout=DEADLINE)
        wait_for(lambda: all(gone(pid) for pid in workers))
    finally:
        parent.kill()
        for pid in workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert errors.count("Traceback") == (1 if number == signal.SIGINT else 0)  # The parent's own KeyboardInterrupt.
