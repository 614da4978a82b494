"""What `leadership` measures with: its recorder, its arithmetic, how it starts servers, and what it says where they are missing.

No test here asserts a speed. ``test_harness`` runs the whole machinery with the kernel's lock in the place of a server.  Spec: detection 1.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

from benchmarks import leadership, leadership_kills, leadership_stock
from benchmarks.harness import Report
from benchmarks.leadership import Lateness, Size, doubts, ratios
from benchmarks.leadership_kills import EXPERIMENT as KILLS
from benchmarks.leadership_kills import KillParameters
from benchmarks.leadership_record import DEED, STOPPED, Record, Recorder, Reign, Voice, Word, false_takeovers, interruptions, overlaps
from benchmarks.leadership_side import loopback_bytes, private_mib
from benchmarks.ring_fleet import NeverHappened

FOREVER = float("inf")


def reign(pid: int, token: int, first_at: float, last_at: float, until: float = FOREVER) -> Reign:
    return Reign(pid, token, first_at, first_at, last_at, until)


def test_deeds_under_one_token_are_one_reign() -> None:
    """G5: first and last deed of each holder, on one clock."""
    record = Record()
    for at, pid, token in ((1.0, 7, 1), (1.1, 7, 1), (2.0, 8, 2), (2.1, 7, 1), (3.0, 7, 3)):
        record.hear(Word(DEED, pid, token, at, at + 0.3), at + 0.01)
    first, second, third = record.reigns
    assert (first.heard_at, first.first_at, first.last_at, first.until, first.deeds) == (1.01, 1.0, 2.1, 2.4, 3)
    assert (second.pid, third.token) == (8, 3)
    assert record.holder() is third
    assert record.next_after(1.5, but=7) is second
    assert record.next_after(2.5, but=7) is None


def test_the_recorder_finds_two_at_work() -> None:
    """G5: an outside recorder sees no overlap; and sees one where there is one, whatever the tokens say."""
    assert overlaps([reign(1, 1, 0.0, 1.0), reign(2, 2, 1.1, 2.0), reign(1, 3, 2.1, 3.0)]) == []
    assert len(overlaps([reign(1, 1, 0.0, 1.2), reign(2, 2, 1.1, 2.0)])) == 1
    assert len(overlaps([reign(2, 2, 1.1, 2.0), reign(1, 1, 0.0, 5.0), reign(3, 3, 3.0, 4.0)])) == 2


def test_a_takeover_is_false_where_nobody_was_killed() -> None:
    """G5: who lost it and got it again is an interruption, who was killed explains its successor."""
    reigns = [reign(1, 1, 0.0, 1.0), reign(2, 2, 1.0, 2.0), reign(2, 3, 2.0, 3.0), reign(1, 4, 3.0, 4.0)]
    assert (false_takeovers(reigns), interruptions(reigns)) == (2, 1)
    assert false_takeovers(reigns, dead=[1]) == 1
    assert false_takeovers(reigns, given=[1, 3]) == 0  # H139: a hand-over by will is none.


def test_the_recorder_listens_and_gives_up(tmp_path: Path) -> None:
    """What candidates say arrives with the instant at which it was heard; what never comes is an error with its name."""
    with Recorder(tmp_path / "r") as recorder, closing(Voice(recorder.path)) as voice:
        voice.standing()
        voice.deed(5, 1.0, 2.0)
        holder = recorder.until(Record.holder, "a deed")
        assert (holder.token, holder.first_at, holder.until) == (5, 1.0, 2.0)
        assert holder.pid in recorder.record.standing
        with pytest.raises(NeverHappened, match="another holder"):
            recorder.until(lambda record: record.next_after(0.0, holder.pid), "another holder", within=0.01)


def found(ours: float, zookeeper: float, etcd: float, **more: Any) -> dict[str, Any]:
    calm = {"cpu_per_second": 0.1, "bytes_per_second": 100.0, "memory_mib": 1.0}
    times = {"holdfast": ours, "zookeeper": zookeeper, "etcd": etcd}
    kills = {system: {"kills": [kill(seconds)], "calm": calm, "broken": ""} for system, seconds in times.items()}
    return {"smallest": {**kills, "busy": {"holdfast": {"false_takeovers": 0}}, "alone": [], **more}}


def kill(failover: float, gap: float | None = 0.1, overlapping: int = 0) -> dict[str, Any]:
    return {"failover": failover, "gap": gap, "overlaps": overlapping, "number": 0}


@pytest.mark.parametrize("zookeeper, etcd, faster", [(4.0, 2.0, 8.0), (1.0, 2.0, 4.0)])
def test_we_are_compared_with_the_better_one(zookeeper: float, etcd: float, faster: float) -> None:
    """How it is compared: times_faster is the better of the two stock minima over ours."""
    said = ratios(found(0.25, zookeeper, etcd))
    assert (said["failover_s"], said["zookeeper_min_s"], said["etcd_min_s"], said["times_faster"]) == (0.25, zookeeper, etcd, faster)
    assert said["etcd_bytes_per_s"] == 100.0


def test_what_was_not_measured_meets_no_goal() -> None:
    """A run that broke off is no pass."""
    assert ratios({})["times_faster"] == 0.0
    assert not leadership.GOALS["times_faster"].met_by(ratios({})["times_faster"])


@pytest.mark.parametrize(
    "seen, told", [(kill(0.2, gap=0.0), 0), (kill(0.2, gap=-0.001), 1), (kill(0.2, overlapping=1), 1), (kill(0.2, None), 0)]
)
def test_a_fast_takeover_that_was_too_fast_is_a_problem(seen: dict[str, Any], told: int) -> None:
    """G5: no speed counts if two worked at once, or the next one began before the published deadline."""
    it = found(0.2, 4.0, 2.0)
    it["smallest"]["holdfast"]["kills"] = [seen]
    assert len(doubts(it)) == told


def test_servers_that_break_down_are_a_problem_where_they_are_compared() -> None:
    """How it is compared: a number that was not measured beats nobody; tuned ones may break down, and say so."""
    it = found(0.2, 4.0, 2.0)
    it["tuned"] = {"etcd": {"kills": [], "calm": {}, "broken": "etcd: never happened"}}
    assert doubts(it) == []
    assert leadership.raw(it, 1, Size())["tuned"]["etcd"]["broken"] == "etcd: never happened"
    it["smallest"]["etcd"]["broken"] = "etcd: never happened"
    assert doubts(it) == ["etcd: never happened"]


def test_missing_servers_are_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """How it is compared: a missing package is said clearly, and is a miss; everything else is measured all the same."""
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(leadership_stock, "find_spec", lambda name: None)
    assert [line.partition(":")[2].strip() for line in leadership_stock.missing()] == [
        "apt-get install zookeeper",
        "pip install '.[zookeeper]' in a clone of Holdfast",
        "apt-get install etcd-server",
    ]
    assert leadership_stock.versions() == {}
    monkeypatch.setattr(leadership, "at_level", lambda level, systems, rounds, size: {"systems": systems})
    report = leadership.run(1, Size(systems=("zookeeper", "flock"), levels=("smallest",)))
    assert report.verdict == "miss"
    assert "apt-get install zookeeper" in report.as_text()


def test_zookeeper_is_told_who_is_who(tmp_path: Path) -> None:
    """Three servers, each with all three addresses; ticks as asked."""
    peers, elections = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"], ["127.0.0.1:4", "127.0.0.1:5", "127.0.0.1:6"]
    lines = leadership_stock.zookeeper_cfg(tmp_path, "127.0.0.1:77", peers, elections, {"tickTime": 100}).splitlines()
    assert {"tickTime=100", "clientPort=77", "server.1=127.0.0.1:1:4", "server.3=127.0.0.1:3:6", f"dataDir={tmp_path}"} <= {*lines}


def test_etcd_is_told_who_is_who() -> None:
    """Three servers, each with all three addresses; heartbeats as asked."""
    words = leadership_stock.etcd_command("etcd1", "127.0.0.1:1", "127.0.0.1:2", "etcd1=http://127.0.0.1:2", {"heartbeat-interval": 10})
    told = dict(zip(words[1::2], words[2::2], strict=True))
    assert told["--heartbeat-interval"] == "10"
    assert told["--listen-peer-urls"] == "http://127.0.0.1:2"
    assert told["--initial-cluster"] == "etcd1=http://127.0.0.1:2"


def test_a_server_that_ends_says_why(tmp_path: Path) -> None:
    """What it printed is in the error."""
    with leadership_stock.running({"one": ["sh", "-c", "echo out of luck; exit 3"]}, tmp_path) as (server,):
        server.wait()
        with pytest.raises(NeverHappened, match="out of luck"):
            server.check()


def test_lateness_of_the_machine() -> None:
    """Point 4: late timers stand beside the machine's own lateness; milliseconds, growing with the share."""
    lateness = Lateness()
    lateness.samples = [0.001] * 998 + [0.02, 0.03]
    assert lateness.found() == {"p50": 1.0, "p99": 1.0, "p99.9": 30.0, "max": 30.0}
    assert Lateness().found()["max"] == 0.0


def test_the_kernel_is_asked_for_bytes_and_memory() -> None:
    """Counters of this very network and process."""
    assert loopback_bytes() >= 0
    assert private_mib(os.getpid()) > 1


def kills(
    *runs: tuple[float, float],
    two: int = 0,
    taken: int = 0,
    broken: str = "",
    resigns: Sequence[float] = (0.01,),
    drains: Sequence[float] = (0.02,),
) -> dict[str, Any]:
    found = [{"failover": took, "gap": gap, "overlaps": 0} for took, gap in runs]
    sums = {"overlaps": two, "false_takeovers": taken, "interruptions": 1, "counted": {"lead_step_downs": 2.0, "ring_size": 7.0}}
    measured = {"resigns": list(resigns), "drains": list(drains), "calls": [0.001, 0.002, 0.004]}
    return {"kills": found, **measured, "sums": sums, "broken": broken, "load": 0.5, "lateness": {"p99.9": 3.0}}


@pytest.mark.parametrize(
    "result, passed",
    [
        (kills((0.2, 0.01), (0.44, 0.0), (0.9, 0.1)), True),
        (kills((0.46, 0.01)), False),
        (kills((0.2, -0.001)), False),
        (kills((0.2, 0.01), two=1), False),
        (kills((0.2, 0.01), taken=1), True),
        (kills((0.2, 0.01), broken="somebody ended"), False),
        (kills(), False),
        (kills((0.2, 0.01), resigns=(0.01, 0.02, 5.0), drains=(0.1,)), True),
        (kills((0.2, 0.01), resigns=(0.01, 0.11, 0.2)), False),
        (kills((0.2, 0.01), drains=(0.101,)), False),
        (kills((0.2, 0.01), resigns=()), False),
        (kills((0.2, 0.01), drains=()), False),
    ],
)
def test_kills_are_judged_by_every_limit(result: dict[str, Any], passed: bool) -> None:
    """G5, H139: never before the old deadline, never two at work, the median within a lease and what a machine needs; hand-overs by will
    within half a heartbeat."""
    finding = KILLS.judge(KillParameters(), [result])
    assert finding.passed is passed
    assert finding.measured["counted"] == {"lead_step_downs": 2.0}


def test_hand_overs_stand_beside_a_call_and_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    """H139: resign_s and drain_s as measured, in heartbeats, with the round trip of a call of the same run; else no goal is met."""

    def performed(result: dict[str, Any]) -> Report:
        parameters = KillParameters()
        finding = KILLS.judge(parameters, [result])
        found = SimpleNamespace(measured=finding.measured, notes=finding.notes, verdict="pass" if finding.passed else "fail")
        found.parameters = structs.asdict(parameters)
        monkeypatch.setattr(leadership_kills, "perform", lambda *_, **__: found)
        return leadership_kills.run(1, leadership_kills.Size(out=None))

    report = performed(kills((0.2, 0.01), resigns=(0.01, 0.02, 0.05), drains=(0.03, 0.05)))
    assert report.verdict == "pass"
    names = ("resign_s", "resign_p99_s", "resign_heartbeats", "drain_s", "drain_p99_s", "drain_heartbeats", "call_ms")
    assert [report.ratios[name] for name in names] == pytest.approx([0.02, 0.05, 0.1, 0.04, 0.05, 0.2, 2.0])
    late = performed(kills((0.2, 0.01), resigns=(0.3,), drains=()))
    missed = [name for name, goal in late.goals.items() if not goal.met_by(late.ratios[name])]
    assert missed == ["resign_heartbeats", "drain_heartbeats"]


def test_a_process_says_when_it_stopped() -> None:
    """H139: the end of its work counts from its own reading; an older one is of an earlier term."""
    record = Record()
    assert record.stopped_after(1.0, 7) is None
    record.hear(Word(STOPPED, 7, 1, 2.0), 2.01)
    assert (record.stopped_after(1.0, 7), record.stopped_after(2.0, 7), record.stopped_after(1.0, 8)) == (2.0, None, None)
    assert record.reigns == []


def test_kills_can_be_drawn() -> None:
    """The picture takes what was measured, nothing included."""
    figures = pytest.importorskip("matplotlib.figure")
    for result in (kills((0.2, 0.01), (0.3, 0.02)), kills()):
        figure = figures.Figure()
        KILLS.draw(figure, KILLS.judge(KillParameters(), [result]))
        assert all(axes.get_xlabel() for axes in figure.axes)
        assert figure.axes
