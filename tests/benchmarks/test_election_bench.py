"""`election` at a size that measures nothing: real agents, what is told of a kill, the shape of the answer; and its arithmetic.

No test here asserts a speed.  Spec: election 8.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import election, leadership_stock
from benchmarks.__main__ import main
from benchmarks.election import GOALS, PARTS, Size, doubts, ratios
from benchmarks.election_idle import Idle
from benchmarks.election_lab import Lab, measure
from benchmarks.ring_fleet import NeverHappened

TINY = Size(members=3, reign=0.0, resigns=1, asks=1, idle=Idle(3, 1, 0.5, 0.2), lab=Lab(8, 1, (5,), (0, 2), (0, 1)), stock_kills=1)


def test_failover_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """L4, H440: the next leader's deed and the first list without the dead one, in one kill; of parts that were left out is no number."""
    monkeypatch.setattr(election, "run", partial(election.run, size=TINY))
    assert main(["election", "--json", "--rounds", "1", "--part", "failover"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [problem.partition(":")[0] for problem in found["problems"]] == ["optimistic_saves, hybrid_saves", "elect_1000"]
    assert found["goals"].keys() <= found["ratios"].keys()
    (kill,) = found["raw"]["failover"]["kills"]
    assert 0 < kill["dead"] <= kill["dead_median"]
    assert kill["next"] != kill["number"]
    assert 1 <= kill["listed"] <= 2
    missing = {name for name, ratio in found["ratios"].items() if ratio is None}
    assert {"idle_packets_added", "messages_base", "elect_1000_s", "zookeeper_min_s", "optimistic_saves"} <= missing
    assert not missing & {"failover_over_detection", "failover_s", "resign_s", "first_leader_s", "ask_s"}


def test_idle_packets_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """H440: the same agents with and without a led name; each round of both is told, and the first one does not count."""
    report = election.run(1, TINY, "idle")
    idle = report.raw["idle"]
    assert [len(idle[what]) for what in ("alone", "led", "asked")] == [2, 2, 2]
    assert report.ratios["idle_packets_added"] == pytest.approx(idle["led"][1]["packets"] - idle["alone"][1]["packets"])


def test_elections_of_the_lab_are_exact(tmp_path: Path) -> None:
    """Lemma 1, A6: 2(c+f)+1 unicasts and one multicast; every member of a group knows each leader in the end."""
    found = measure(TINY.lab, tmp_path)
    assert found["counts"] == {"elections": 4, "least": 1.0, "most": 1.0, "multicasts": 1.0}
    (told,) = found["elect"]["elections"]
    assert 0 < told["almost"] <= told["all"]


def kill(failover: float, dead: float, dead_next: float | None = 0.5) -> dict[str, Any]:
    return {"failover": failover, "dead": dead, "dead_next": dead_next}


def test_each_kill_is_compared_with_its_own_detection() -> None:
    """H440: the median of each takeover over its own detection, not of medians; where the next leader heard of no death it is told."""
    found = {"failover": {"kills": [kill(0.6, 0.3), kill(0.5, 0.4), kill(0.9, 0.5, None)]}}
    said = ratios(found)
    assert (said["failover_over_detection"], said["failover_s"], said["detection_s"], said["detection_next_s"]) == (1.8, 0.6, 0.4, 0.5)
    assert doubts(found) == ["detection_next_s: 1 times the next leader's agent did not list the dead one as dead"]


def lab(*times: float | None, most: float = 1.0, multicasts: float = 1.0) -> dict[str, Any]:
    elections = [{"almost": 0.01, "all": each} for each in times]
    counts = {"least": 1.0, "most": most, "multicasts": multicasts}
    return {"lab": {"counts": counts, "elect": {"timeout": 0.2, "elections": elections}}}


def test_the_worst_election_counts() -> None:
    """Issue 20: until all know, in TIMEOUT; one after which not all knew leaves no number."""
    said = ratios(lab(0.1, 0.7))
    assert (said["elect_1000_s"], said["elect_1000_almost_s"]) == (0.7, 0.01)
    assert said["elect_1000_timeouts"] == pytest.approx(3.5)
    assert ratios(lab(0.1, None))["elect_1000_timeouts"] is None
    assert ratios(lab(0.1, most=1.1))["messages_base"] == 1.1
    assert not GOALS["messages_base"].met_by(1.1)
    assert len(doubts(lab(0.1, multicasts=2.0))) == 1


def test_nothing_measured_is_nothing() -> None:
    """H241: no number is made of no measurement."""
    problems: list[str] = []
    assert {*ratios({}).values()} == {None}
    assert GOALS.keys() == GOALS.keys() & {*ratios({}), *election.of_grid(None, problems)}
    assert len(problems) == 1


def test_what_is_saved_is_of_a_record(tmp_path: Path) -> None:
    """H440: numbers and problems of a record of `election-grid`."""
    path = tmp_path / "grid.json"
    path.write_text(json.dumps({"ratios": {"optimistic_saves": 0.4, "hybrid_saves": None}, "problems": ["few elections"]}))
    problems: list[str] = []
    assert election.of_grid(str(path), problems) == {"optimistic_saves": 0.4, "hybrid_saves": None}
    assert problems == ["election-grid: few elections"]


def test_a_part_that_broke_off_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: its numbers are null, its reason is a problem; servers that are missing are named with what to install."""

    def failover(rounds: int, size: Size) -> dict[str, Any]:
        raise NeverHappened("never happened: another one leads")

    monkeypatch.setattr(election, "failover", failover)
    monkeypatch.setattr(election, "apart", lambda part, size, module: {"added": 0.1, "asked": [0.2]} if part == "idle" else lab(0.5)["lab"])
    monkeypatch.setattr(leadership_stock, "missing", lambda: ["etcd is not here: apt-get install etcd-server"])
    report = election.run(1, Size())
    assert [*report.problems][:2] == ["never happened: another one leads", "etcd is not here: apt-get install etcd-server"]
    assert {report.ratios[name] for name in ("failover_s", "etcd_min_s", "hybrid_saves")} == {None}
    assert (report.ratios["idle_packets_added"], report.ratios["first_leader_asked_s"], report.ratios["elect_1000_s"]) == (0.1, 0.2, 0.5)
    assert report.raw["lateness_ms"].keys() == {*PARTS}


def test_stock_servers_are_measured_as_leadership_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """H101: both at both levels, as many candidates as ours; one that broke down is a problem."""
    asked: list[tuple[str, tuple[str, ...], int, int]] = []

    def at_level(level: str, systems: tuple[str, ...], kills: int, size: Any) -> dict[str, Any]:
        asked.append((level, systems, kills, size.candidates))
        broken = "etcd: never happened" if level == "tuned" else ""
        return {system: {"kills": [kill(2.0, 0.0)], "broken": broken if system == "etcd" else ""} for system in systems}

    monkeypatch.setattr(leadership_stock, "missing", list)
    monkeypatch.setattr("benchmarks.leadership.at_level", at_level)
    report = election.run(1, TINY, "stock")
    assert asked == [(level, ("zookeeper", "etcd"), 1, 3) for level in ("smallest", "tuned")]
    assert (report.ratios["zookeeper_min_s"], report.ratios["etcd_tuned_s"]) == (2.0, 2.0)
    assert "tuned: etcd: never happened" in report.problems
