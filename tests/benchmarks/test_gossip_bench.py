"""`gossip` at a size that measures nothing: real members, many to a process, every part, the shape of the answer; and its arithmetic.

No test here asserts a speed.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from benchmarks import gossip
from benchmarks.__main__ import main
from benchmarks.gossip import GOALS, Size, of_kept, of_lab, of_real
from benchmarks.gossip_kept import measure as kept_bytes
from benchmarks.gossip_lab import Lab
from benchmarks.gossip_lab import measure as measure_lab
from benchmarks.gossip_real import NO_CUT, Real
from benchmarks.leadership_side import namespaces
from benchmarks.ring_fleet import NeverHappened

TINY = Size(
    real=Real(sizes=(4, 6), processes=2, period=0.2, idle_seconds=1.0, within=60.0, cuts=(6,)),
    lab=Lab(sizes=(4, 8), periods=2, members=8, seconds=65.0),
    kept=60,
)


def test_every_part_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Issue 17: forming, idle costs, a crash, crashes at once, a partition in halves and its heal; a smaller run says that it is one."""
    monkeypatch.setattr(gossip, "run", partial(gossip.run, size=TINY))
    assert main(["gossip", "--json", "--rounds", "1"]) == 1
    found = json.loads(capsys.readouterr().out)
    smaller = ["flat_1000: measured at 6 members", "flat_10000_lab: measured at 8 members"]
    assert found["problems"] == ([] if namespaces() else [NO_CUT]) + smaller
    assert found["goals"].keys() <= found["ratios"].keys()
    if namespaces():
        assert {name for name, ratio in found["ratios"].items() if ratio is None} == {"cut_4_s", "heal_4_s"}
        assert found["raw"]["real"]["6"].keys() == {"form", "idle", "crash", "crashes", "cut", "heal"}
    assert found["raw"]["real"]["6"]["crash"]["false"] == []
    assert 2.5 < found["ratios"]["turns_per_probe"] < 12


def test_a_part_that_broke_off_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: its numbers are null, and its reason is a problem."""

    def apart(part: str, size: Any) -> dict[str, Any]:
        if part == "real":
            raise NeverHappened("1000 members: not within 600 s")
        return {"flat": {"datagrams": 1.0, "calls": 1.1, "bytes": 2.0}, "sync": {"bytes": 186.0}}

    monkeypatch.setattr(gossip, "apart", apart)
    monkeypatch.setattr(gossip, "_said_by", lambda *words: 400.0)
    report = gossip.run(1, Size())
    assert report.problems == ["1000 members: not within 600 s"]
    assert (report.ratios["flat_1000"], report.ratios["flat_10000_lab"], report.ratios["sync_equal_bytes"]) == (None, 1.1, 186.0)
    assert (report.ratios["entry_bytes"], report.ratios["heard_bytes"], report.verdict) == (400.0, 800.0, "miss")


def test_nothing_measured_is_nothing() -> None:
    """H241: no number is made of no measurement."""
    found = {**of_real({}), **of_lab({}), **of_kept({"listed": 1.0, "met": 2.0, "heard": 3.0})}
    assert GOALS.keys() <= found.keys()
    assert {name for name, number in found.items() if number is not None} == {"entry_bytes", "heard_bytes"}


def test_the_largest_of_three_is_how_flat_it_is() -> None:
    """Issue 17: datagrams, bytes and CPU per member; the smallest group against the largest, by number and not by text."""
    idle = {"datagrams": 2.0, "bytes": 100.0, "cpu": 0.001, "turns_per_probe": 3.1}
    found = of_real({"128": {}, "1000": {"idle": {**idle, "cpu": 0.0015}}, "16": {"idle": idle, "form": {"seconds": 1.5}}})
    assert found["flat_1000"] == pytest.approx(1.5)
    assert (found["turns_per_probe"], found["form_16_s"], found["crash_128_last_s"]) == (3.1, 1.5, None)


def test_a_comparison_of_equal_lists_sends_no_table(tmp_path: Any) -> None:
    """Gossip D19: two datagrams, and nothing after them; what is timed are events of both kinds of group."""
    found = measure_lab(Lab(sizes=(4, 8), periods=2, members=8, rounds=1, seconds=65.0), tmp_path)
    assert found["sync"]["tables"] == 0
    assert found["sync"]["comparisons"] > 30
    assert found["events_per_s"].keys() == {"gossip", "ring"}
    assert [cell["members"] for cell in found["cells"]] == [4, 8]


def test_a_member_that_was_met_takes_more_than_one_that_is_listed() -> None:
    """Gossip D22: the host is told of an address when its member is first written to."""
    assert 200 < kept_bytes("listed", 40) < kept_bytes("met", 40)
