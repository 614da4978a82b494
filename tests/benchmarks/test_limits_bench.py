"""`limits` at a size that measures nothing: real agents, every part, the shape of the answer; and its arithmetic.

No test here asserts a speed.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import limits, limits_ways
from benchmarks.__main__ import main
from benchmarks.limits import Size, of_calls, of_idle, of_shares
from benchmarks.limits_calls import Calls
from benchmarks.limits_epoch import Epoch
from benchmarks.limits_epoch import measure as measure_epoch
from benchmarks.limits_fleet import Worker
from benchmarks.limits_idle import Idle
from benchmarks.limits_shared import Shared, least_kept, peak, shares, within
from benchmarks.limits_ways import PEERS, missing
from benchmarks.limits_worker import run as run_worker
from benchmarks.ring_fleet import NeverHappened, now

TINY = Size(
    ways=(),
    calls=Calls(permits=500, looks=5),
    shared=Shared(wants=(90.0, 5.0, 5.0), rate=100.0, burst=10.0, warm=2.0, seconds=1.0, after=1.5, preset="local", kills=("peer",)),
    idle=Idle(preset="local", members=2, turns=1, settle_seconds=0.5, seconds=0.5),
    epoch=Epoch(members=4, limits=2, seconds=2.0),
)


def test_every_part_of_ours_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """H241: without the others only their numbers are null, and what is made of them; the goal is missed."""
    monkeypatch.setattr(limits, "run", partial(limits.run, size=TINY))
    assert main(["limits", "--json", "--rounds", "1"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["problems"] == []
    theirs = {name for name in found["ratios"] if name.startswith(PEERS)} | {"redis_times", "redis_sync_times"}
    assert {name for name, ratio in found["ratios"].items() if ratio is None} == theirs
    assert found["goals"].keys() <= found["ratios"].keys()
    assert found["raw"]["shared"]["holdfast"]["kills"].keys() == {"peer"}
    assert found["raw"]["epoch"]["epochs"] >= 4 * 3


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: each way that is missing says what to install, has no number, and makes the run a miss."""
    monkeypatch.setattr(limits_ways, "find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(limits, "apart", lambda part, size: {})
    monkeypatch.setattr(limits, "compile_package", lambda: None)
    report = limits.run(1, Size())
    assert (report.verdict, report.ratios["redis_times"]) == ("miss", None)
    assert {problem.rpartition(": ")[2] for problem in report.problems} == {
        "pip install redis",
        "pip install limits",
        "pip install pyrate-limiter",
        "pip install aiolimiter",
    }
    monkeypatch.setattr(limits_ways, "find_spec", lambda name: name)
    assert missing(PEERS) == {}
    assert {*limits.not_here(PEERS).values()} == {"Redis is not here: apt-get install redis-server"}


def test_a_part_that_broke_off_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: its numbers are null, and its reason is a problem."""

    def apart(part: str, size: Any) -> dict[str, Any]:
        if part == "shared":
            raise NeverHappened("a worker did not answer")
        return {"epoch_us": 7.0} if part == "epoch" else {}

    monkeypatch.setattr(limits, "apart", apart)
    monkeypatch.setattr(limits, "compile_package", lambda: None)
    report = limits.run(1, Size(ways=()))
    assert report.problems == ["holdfast: a worker did not answer"]
    assert (report.ratios["epoch_us"], report.ratios["shared_total"]) == (7.0, None)


def test_nothing_measured_is_nothing() -> None:
    """H241: no number is made of no measurement."""
    found = {**of_calls({}), **of_shares({}), **of_idle({}), "epoch_us": None}
    assert {*found.values()} == {None}
    assert limits.GOALS.keys() <= found.keys()


def test_the_best_round_counts() -> None:
    """H295: each contestant's least, Redis' as well, which makes us look worse; like is compared with like."""
    found = of_calls({"try_acquire_us": [0.5, 0.25, 0.4], "redis_lua_async_us": [90.0, 50.0], "redis_lua_us": [40.0]})
    assert (found["try_acquire_us"], found["redis_times"], found["redis_sync_times"]) == (0.25, 200.0, None)
    assert of_calls({"try_acquire_sync_us": [0.4], "redis_lua_us": [40.0]})["redis_sync_times"] == pytest.approx(100.0)


def test_the_worst_kill_counts() -> None:
    """The least of an agent, a seat and a peer. What knows one process alone has nothing to be killed, and no number."""
    kills = {"agent": {"kept": 1.0}, "seat": {"kept": 0.5}, "peer": {"kept": 0.9}}
    found = of_shares({"holdfast": {"total": 7.0, "kills": kills}, "redis_lua": {"kills": {"redis": {"kept": 0.0}}}})
    assert (found["kept_after_kill"], found["redis_lua_kept_after_kill"], found["shared_total"]) == (0.5, 0.0, 7.0)
    assert "aiolimiter_kept_after_kill" not in found


def test_the_peak_of_any_second() -> None:
    """Limits RL8: a window may begin at any instant, and two permits a second apart are not in one."""
    assert peak([0.0, 0.5, 0.999, 1.0, 1.4], 1.0) == 4
    assert peak([0.0, 1.0, 2.0], 1.0) == 1
    assert peak([], 1.0) == 0


def test_shares_are_of_the_window() -> None:
    """What comes before it and after it does not count; the least of the small ones is not the first one."""
    big, small, smaller = [0.5, 1.0, 1.5, 2.0, 2.9, 3.0], [1.0, 2.0], [0.9, 2.5]
    assert within(big, 1.0, 3.0) == 4
    found = shares([big, small, smaller], 1.0, 3.0)
    assert (found["total"], found["each"], found["small_min"], found["peak_1s"]) == (3.5, [2.0, 1.0, 0.5], 0.5, 4)


def test_kept_is_the_worst_second() -> None:
    """One process without a permit in one second has kept nothing; more than its floor is no merit."""
    steady = [at / 10 for at in range(100)]
    gap = [at for at in steady if not 3.0 <= at < 4.3]
    assert least_kept([steady], [5.0], 1.0, 9.0) == 1.0
    assert least_kept([steady], [20.0], 1.0, 9.0) == pytest.approx(0.5, abs=0.06)
    assert least_kept([steady, gap], [10.0, 10.0], 1.0, 9.0) == 0.0


def test_a_worker_wants_so_much() -> None:
    """Requests arrive evenly whatever the limit does; what was refused by an error asks again, and is counted."""

    class Broken:
        calls = 0

        async def start(self) -> None: ...
        async def acquire(self) -> None:
            self.calls += 1
            if self.calls == 3:
                raise ConnectionError("gone")

    at = now()
    record = asyncio.run(run_worker(Broken(), 100.0, at, at + 0.6))
    assert 40 <= len(record.permits) <= 60
    assert (record.errors, record.first_error) == (1, "ConnectionError: gone")
    assert [*record.permits] == sorted(record.permits)


def test_a_limit_holds_a_worker() -> None:
    """A way that lets nothing go has no permits; its callers end with the run."""

    class Closed:
        async def start(self) -> None: ...
        async def acquire(self) -> None:
            await asyncio.get_running_loop().create_future()

    at = now()
    assert len(asyncio.run(run_worker(Closed(), 1000.0, at, at + 0.1)).permits) == 0


def test_a_worker_that_ended_is_told_with_its_last_words(tmp_path: Path) -> None:
    """A run that broke off says what it broke of."""
    worker = Worker("holdfast", {"wrong": 1}, tmp_path / "log")
    with pytest.raises(NeverHappened, match="unexpected keyword argument"):
        worker.until_ready()
    worker.kill()


def test_an_epoch_gossips_at_full_pace(tmp_path: Path) -> None:
    """Limits D26: demands that change keep it awake; a member has two epochs per second, and each sends to some peers."""
    found = measure_epoch(Epoch(members=8, limits=2, seconds=3.0), tmp_path)
    assert found["epochs"] == pytest.approx(8 * 3.0 / 0.5, abs=8)
    assert found["events"] > found["epochs"] * 3
    assert found["epoch_us"] > 0
