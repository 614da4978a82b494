"""`election-grid` at a size that measures nothing: four real processes and their field, the record, and its arithmetic.

No test here asserts a speed.
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from benchmarks import election_grid, election_grid_group
from benchmarks.__main__ import main as benchmark
from benchmarks.election_flood import Flood, Flooded
from benchmarks.election_grid import Size, saves
from benchmarks.election_grid_field import Field, delay
from benchmarks.election_grid_group import REST, alike, changes, neighbours_of, placed
from benchmarks.ring_fleet import NeverHappened
from holdfast.features.election.lab.experiments import figure13_devices_completion
from holdfast.features.election.lab.groups import REPAIR
from holdfast.features.election.lab.paper import DEVICES, HOP_DELAY_MAX, PITCH, RANGE, Setting
from holdfast.features.election.lab.ranking import by_rank
from holdfast.features.election.lab.recorded import Held, Loss, Point, Recorded
from holdfast.features.election.protocol.manner import VARIANTS, manner
from holdfast.features.election.protocol.messages import Leader
from holdfast.host import Address, NodeId
from holdfast.lab.experiment import parameters_of
from holdfast.lab.fake_host import FakeHost
from tests.support.forwarder import Mesh

TINY = Size(settings=(Setting("grid", 4, 0.05, 1),), runs=2, groups=2, period=0.2, warm_up=0.5)
TURNS = [(0, variant) for variant in VARIANTS] + [(1, variant) for variant in (*VARIANTS[1:], VARIANTS[0])]  # one of each group
A, B, C = (NodeId(name, 1) for name in "abc")
SAID = Leader("x", manner(), 3, A, True)


def test_every_part_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Election 8 (F12 to F14): processes, a field, an election of each variant; the record can be judged, and a smaller run says so."""
    monkeypatch.setattr(election_grid, "run", partial(election_grid.run, size=TINY))
    assert benchmark(["election-grid", "--json"]) == 1
    text = capsys.readouterr().out
    found = json.loads(text)
    assert found["problems"] == [f"{setting}: 0 elections of a variant, not 100" for setting in DEVICES]
    assert found["ratios"]["optimistic_saves"] is None
    (point,) = found["raw"]["run"]["points"]
    assert [tuple(each[:2]) for each in point["elections"]] == [(variant, number) for number, variant in TURNS]
    assert all(each[3] and each[4] > 0 and each[5] >= 1 for each in point["elections"])  # whole, seconds, changes
    assert point["loss"]["datagrams"] > 40
    (tmp_path / "grid.json").write_text(text)
    experiment = figure13_devices_completion.EXPERIMENT
    assert len(experiment.cells(parameters_of(experiment, {"run": str(tmp_path / "grid.json")}), 0)) == 1


def test_a_group_that_broke_off_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: it is not in the record, and its reason is a problem."""

    def begin(self: Any, *arguments: Any) -> None:
        raise NeverHappened("not within 120 s")

    monkeypatch.setattr(election_grid_group.GridGroup, "_begin", begin)
    report = election_grid.run(1, TINY)
    assert report.problems[0] == "grid 4 0.05: not within 120 s"
    assert report.raw["run"]["points"] == []
    assert set(report.ratios.values()) == {None}


def test_an_election_without_end_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """Election 8 (F13): completion is of elections that completed, so a run in which one did not has no good numbers."""
    point = Point(DEVICES[0], [Held("hybrid", 0, "a", False)], Loss(0.0, 0.0, 1))
    monkeypatch.setattr(election_grid, "_measured", lambda size, places, problems, part: point)
    assert "1 elections came to no end: hybrid" in election_grid.run(1, Size(settings=DEVICES[:1], groups=1)).problems


def test_savings_are_of_the_two_lowest_drops() -> None:
    """Election 8 (F13): the mean of what is saved at drop .05 and .1; what was not measured is nothing."""

    def point(setting: Setting, seconds: dict[str, float]) -> Point:
        held = [Held(variant, number, "a", True, took) for variant, took in seconds.items() for number in range(2)]
        return Point(setting, [*held, Held("base", 2, "a", False)], Loss(0.0, 0.0, 1))

    def record(*points: Point) -> Any:
        return msgspec.to_builtins(Recorded({}, RANGE, 2, list(points)))

    low = point(DEVICES[0], {"base": 1.0, "optimistic": 0.6, "preferred": 1.0, "hybrid": 0.7})
    high = point(DEVICES[1], {"base": 2.0, "optimistic": 1.0, "preferred": 2.0, "hybrid": 1.0})
    worst = point(DEVICES[3], {"base": 1.0, "optimistic": 3.0, "preferred": 1.0, "hybrid": 3.0})
    assert saves(record(low, high, worst)) == pytest.approx({"optimistic_saves": 0.45, "hybrid_saves": 0.4})
    nothing = {"optimistic_saves": None, "hybrid_saves": None}
    assert saves(record(low, worst)) == nothing
    assert saves(record(low, point(DEVICES[1], {"base": 2.0, "optimistic": 1.0, "preferred": 2.0}))) == nothing


def test_members_have_one_place_in_all_elections() -> None:
    """Election 8 (common setup): drops go by hash rank, so the four names must agree about it."""
    names = alike(6)
    assert [by_rank(variant, names) for variant in VARIANTS] == [names] * 4


def test_the_field_is_that_of_the_paper() -> None:
    """Election 8 (F12): 1.5 m apart, heard for 2.2 m, so diagonal neighbours hear each other; hops wait up to 50 ms each."""
    places = placed([f"n{number}" for number in range(16)])
    assert sorted(places.values()) == [(PITCH * column, PITCH * row) for column in range(4) for row in range(4)]
    assert sorted(map(len, neighbours_of(places).values())) == [3] * 4 + [5] * 8 + [8] * 4
    waits = [delay(Random(seed), 3) for seed in range(200)]
    assert 2 * HOP_DELAY_MAX < max(waits) <= 3 * HOP_DELAY_MAX
    assert 0 < min(waits) < HOP_DELAY_MAX
    assert max(waits) < REST  # what was sent in one round arrives before the next one


def test_the_best_ranked_lose_most() -> None:
    """Election 8 (common setup): d (1 + 1.5 / 2^i) at rank i, and what was lost is counted from then on."""

    async def main() -> None:
        names = ["a", "b", "c", "d"]
        async with Mesh(names) as mesh:
            field = Field(mesh, placed(names), RANGE)
            mesh.link("a", "b").lost = 7
            field.obey({"do": "drop", "drop": 0.2})
            assert mesh.link("a", "b").loss == pytest.approx(1 - ((1 - 0.5) * (1 - 0.35)) ** 0.5)
            assert mesh.link("c", "d").loss < mesh.link("a", "b").loss
            assert field.obey({"do": "counts"})["datagrams"] == 0
            mesh.link("a", "b").lost, mesh.link("c", "d").passed = 1, 3
            counts = field.obey({"do": "counts"})
            assert (counts["datagrams"], counts["found"]) == (4, 0.25)
            assert counts["asked"] == pytest.approx((mesh.link("a", "b").loss + 3 * mesh.link("c", "d").loss) / 4)

    asyncio.run(main())


def test_changes_of_the_leader() -> None:
    """Election 8 (F9, F14): who says LEADER, one after another; a leader that says it again is no change."""
    assert [changes(text.split()) for text in ("", "a", "a a", "a b", "a b a")] == [0, 1, 1, 2, 3]


class Radio:
    """The flood of one member with two neighbours."""

    def __init__(self, me: str) -> None:
        self.host = FakeHost(me)
        others = [life for life in (A, B, C) if life.name != me]
        self.flood = Flood(self.host, {life: Address(life.name, 1) for life in others})
        self.heard: list[tuple[NodeId, Leader]] = []
        self.flood.begin(1, lambda source, leader: self.heard.append((source, leader)))
        self.flood.start()

    def sent(self) -> list[tuple[Any, Flooded]]:
        return self.host.take(Flooded)


def test_a_leader_is_passed_on_once() -> None:
    """Election 8 (common setup): a flood; elections hear it from its leader, once, and not from an earlier round."""
    a, b = Radio("a"), Radio("b")
    a.flood.cast(SAID, ())
    (_, said), _ = a.sent()
    assert [cast[1:] for cast in a.flood.casts] == [("x", 3)]
    b.flood.on_message(A, said)
    b.flood.on_message(C, said)
    assert b.heard == [(A, SAID)]
    assert [to for to, _ in b.sent()] == [A, C]
    b.flood.begin(2, lambda source, leader: b.heard.append((source, leader)))
    b.flood.on_message(A, said)
    assert len(b.heard) == 1
    assert b.sent() == []


def test_what_a_link_lost_is_repaired() -> None:
    """Election 8 (common setup): every 500 units to each neighbour that was not heard; one that has it answers, and is left in peace."""
    a, b = Radio("a"), Radio("b")
    a.flood.cast(SAID, ())
    (_, said), _ = a.sent()
    b.flood.on_message(C, said)
    (_, passed), _ = b.sent()
    a.flood.on_message(B, passed)
    a.host.pass_time(REPAIR)
    assert [(to, message.again) for to, message in a.sent()] == [(C, True)]
    a.host.pass_time(REPAIR)
    ((_, again),) = a.sent()
    b.flood.on_message(A, again)
    assert [(to, message.again) for to, message in b.sent()] == [(A, False)]
    a.flood.on_message(C, said)
    a.host.pass_time(3 * REPAIR)
    assert a.sent() == []
    assert a.host.timers == 0
