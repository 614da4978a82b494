"""What `tickets` measures with: its arithmetic, its counting of syncs, its clients, and what it says where something is missing.

No test here asserts a speed. ``test_harness`` runs the whole machinery with the kernel's lock in the place of a server.  Spec: tickets 1.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import tickets, tickets_installation, tickets_syncs
from benchmarks.leadership_candidate import Etcd
from benchmarks.ring_fleet import NeverHappened, now
from benchmarks.tickets import Size, best, doubts, percentile, ratios, summary
from benchmarks.tickets_client import Client as Servant
from benchmarks.tickets_installation import Client, installed
from benchmarks.tickets_lockers import Flock, sure
from benchmarks.tickets_side import Side


def found(**more: Any) -> dict[str, Any]:
    return {**{measured: [] for measured in tickets.MEASURED}, **more}


def measured(cycle: float, handover: float, death: float, voter: float) -> dict[str, Any]:
    return found(cycles=[cycle], handovers=[handover], deaths=[death], voter_deaths=[voter], syncs=[2.0, 3.0])


@pytest.fixture
def side(tmp_path: Path) -> Iterator[Side]:
    with installed("flock", "smallest", tmp_path) as it:
        side = Side(it, tmp_path)
        yield side
        side.end()


def test_we_are_compared_with_the_best_of_each() -> None:
    """Beside others: faster than any of them; of two levels the better number of each counts, ours is the one as it comes."""
    smallest = {
        "holdfast": measured(0.004, 0.005, 0.02, 0.01),
        "redis": measured(0.001, 0.05, 1.0, 0.3),
        "zookeeper": measured(0.012, 0.01, 4.0, 0.4),
        "etcd": measured(0.008, 0.02, 2.0, 3.0),
    }
    tuned = {"holdfast": measured(0.001, 0.001, 0.001, 0.001), "redis": measured(0.001, 0.008, 0.4, 0.2)}
    said = ratios({"smallest": smallest, "tuned": tuned})
    assert said["acquire_release_p50_ms"] == 4.0
    assert (said["redis_client_death_to_next_s"], said["redis_tuned_client_death_to_next_s"]) == (1.0, 0.4)
    assert (said["redis_handover_ms"], said["redis_tuned_handover_ms"]) == (50.0, 8.0)
    assert said["death_times_faster"] == pytest.approx(0.4 / 0.02)
    assert said["handover_times_faster"] == pytest.approx(0.01 / 0.005)
    assert said["voter_death_times_faster"] == pytest.approx(0.3 / 0.01)
    assert said["acquire_times_faster_than_zookeeper"] == pytest.approx(3.0)
    assert said["acquire_times_faster_than_etcd"] == pytest.approx(2.0)
    assert said["syncs_per_cycle"] == 2.0


@pytest.mark.parametrize("levels", [{}, {"smallest": {"holdfast": found()}}, {"smallest": {"holdfast": measured(1, 1, 1, 1)}}])
def test_what_was_not_measured_meets_no_goal(levels: dict[str, Any]) -> None:
    """A run that broke off, or in which an opponent is missing, is no pass."""
    said = ratios(levels)
    assert [name for name, goal in tickets.GOALS.items() if goal.met_by(said[name])] in ([], ["syncs_per_cycle"])


def test_better_means_less_time_and_more_of_a_rate() -> None:
    """Each number of an opponent is the better one; one that was not measured is not the smallest."""
    assert best([{"handover_ms": 3.0, "own_per_s": 10.0}, {"handover_ms": 2.0, "own_per_s": 7.0}]) == {
        "handover_ms": 2.0,
        "own_per_s": 10.0,
    }
    assert best([{"handover_ms": 0.0}, {"handover_ms": 2.0}]) == {"handover_ms": 2.0}
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([], 0.99) == 0.0


def test_a_mean_of_voters_and_the_least_of_their_syncs() -> None:
    """Each voter dies in its turn, and the one that hurts most must weigh; the disk that is slowest to be asked counts."""
    said = summary(found(voter_deaths=[0.1, 0.1, 4.0], syncs=[2.5, 2.0, 3.0]))
    assert said["voter_death_to_next_s"] == pytest.approx(1.4)
    assert said["syncs_per_cycle"] == 2.0


def test_a_server_that_does_not_sync_is_a_problem() -> None:
    """Beside others: fsync on both sides."""
    assert doubts({"smallest": {"etcd": found(syncs=[2.0, 2.0, 2.0])}}) == []
    assert len(doubts({"smallest": {"etcd": found(syncs=[2.0, 0.5, 2.0])}})) == 1


def test_missing_servers_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside others: a missing package is said clearly, and is a miss."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(tickets_installation, "find_spec", lambda name: None)
    told = tickets_installation.missing()
    assert {line.partition(":")[2].strip() for line in told} >= {
        "apt-get install redis-server",
        "pip install redis",
        "apt-get install strace",
    }
    monkeypatch.setattr(tickets, "at_level", lambda level, systems, rounds, size, found: None)
    report = tickets.run(1, Size(systems=("redis", "flock"), levels=("smallest",)))
    assert report.verdict == "miss"
    assert "apt-get install redis-server" in report.as_text()


def test_syncs_are_counted_once() -> None:
    """A call that another thread's line cut in two is one call."""
    trace = "12 fdatasync(7) = 0\n13 fsync(8 <unfinished ...>\n12 fdatasync(7) = 0\n13 <... fsync resumed>) = 0\n12 +++ exited with 0 +++\n"
    assert tickets_syncs.counted(trace) == 3


@pytest.mark.skipif(not tickets_syncs.available(), reason="strace is missing: apt-get install strace")
def test_strace_sees_what_a_process_syncs(tmp_path: Path) -> None:
    """Beside others: every seat's fsync proved by strace; what was before and after the look does not count."""
    code = "import os, sys\nf = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)\nfor line in sys.stdin: os.fdatasync(f); print(flush=True)\n"
    command = [sys.executable, "-S", "-E", "-c", code, str(tmp_path / "file")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def sync() -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdout.readline()

        sync()
        try:
            with tickets_syncs.watched([process.pid], tmp_path) as syncs:
                for _ in range(3):
                    sync()
        except NeverHappened:
            pytest.skip("strace may not look at other processes here")
        sync()
        process.stdin.close()
    assert syncs.counts() == [3]


def test_a_client_takes_and_gives_back(tmp_path: Path) -> None:
    """Each acquire and each release is timed by itself; a spin ends at its time."""
    servant = Servant(Flock(str(tmp_path)))
    held = servant.acquire("a")
    assert servant.release()["at"] >= held["at"]
    cycles = servant.cycles("a", count=3)
    assert (len(cycles["acquires"]), len(cycles["releases"])) == (3, 3)
    assert servant.spin("a", until=now())["took"] == []


def test_a_dead_holder_is_followed_and_replaced(side: Side) -> None:
    """What is measured: from the kill of the holder until the waiter holds it; the next round finds everybody there again."""
    before = side._client(0).pid
    assert side.death(0.0)["seconds"] > 0
    assert side._client(0).pid != before
    assert side.handover(0.0)["seconds"] > 0
    assert side.throughput(2, 0.05, shared=True)["per_second"] > 0


def test_two_take_turns(side: Side) -> None:
    """H115: whoever takes it is not who had it last."""
    assert [len(seconds) for seconds in side.turns(3, 0.0).values()] == [3, 3]
    assert side._client(0).pid != side._client(1).pid


def test_numbers_that_do_not_grow_end_the_measurement(side: Side) -> None:
    """G3: a lock that hands out the same number twice is not compared."""
    side._check("a", 7)
    side._check("b", 7)
    side._check("a", 0)
    side._check("a", 8)
    with pytest.raises(NeverHappened, match="came after 8"):
        side._check("a", 8)


def test_a_client_that_ended_is_told_with_its_last_words(tmp_path: Path) -> None:
    """A broken run says what it broke of."""
    client = Client("flock", {"folders": "?"}, tmp_path / "log")
    with pytest.raises(NeverHappened, match="unexpected keyword argument"):
        client.answer()
    client.kill()


def test_etcd_without_a_leader_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is an answer too: a lock that was not given back would be waited for until its lease ends."""
    answers = iter([{"error": "etcdserver: no leader"}, {"header": {}}])
    monkeypatch.setattr(Etcd, "ask", lambda self, path, **fields: next(answers))
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert sure(Etcd([], None), "/v3/lock/unlock") == {"header": {}}


def test_flock_excludes(tmp_path: Path) -> None:
    """The floor of it all is a real lock."""
    one = Flock(str(tmp_path))
    assert one.acquire("a", 1) > 0
    other = os.open(tmp_path / "a", os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    one.release()
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)
