"""`views` at a size that measures nothing: real agents, every part, the shape of the answer; and its arithmetic.

No test here asserts a speed.
"""

from __future__ import annotations

import json
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pytest

from benchmarks import views
from benchmarks.__main__ import main
from benchmarks.leadership_side import namespaces
from benchmarks.ring_fleet import NeverHappened
from benchmarks.views import Size, of_crashes, of_idle, of_letters, of_lives, strays
from benchmarks.views_fleet import Told, ViewFleet, slots_of, spread
from benchmarks.views_idle import Idle
from benchmarks.views_letters import LEFT_OUT, NO_CUT, Letters
from benchmarks.views_lives import Lives, lost, spare
from holdfast.features.views.calls import LEASE, LOST, VIEW
from holdfast.features.views.protocol.client import in_order
from holdfast.host import ViewState

TINY = Size(
    Idle(preset="local", seats=1, members=2, crowd=3, turns=1, settle_seconds=0.2, seconds=0.4),
    Lives(preset="local", seats=3, members=2, joins=1, crashes=1),
    Letters(preset="local", seats=1, rounds=1, letters=4, warm=4, warm_at_first=4, zookeeper=False),
    clients=(8,),
)


def test_every_part_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """H240, H241: only the numbers of ZooKeeper are null, because it was left out; the answer says so, and is a miss."""
    monkeypatch.setattr(views, "run", partial(views.run, size=TINY))
    assert main(["views", "--json", "--rounds", "1"]) == 1
    found = json.loads(capsys.readouterr().out)
    if namespaces():
        assert found["problems"] == [LEFT_OUT]
        assert {name for name, ratio in found["ratios"].items() if ratio is None} == {"zookeeper_times", "zookeeper_times_until_arrival"}
        assert found["raw"]["letters"]["carried_share"] == {"direct": 0.0, "carried": 1.0}
    else:
        assert found["problems"] == [NO_CUT]
    assert found["goals"].keys() <= found["ratios"].keys()
    assert [kill["lost"] for kill in found["raw"]["lives"]["kills"]] == [0]
    assert found["ratios"]["idle_packets_s"] > 0


def test_a_part_that_broke_off_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """H241: its numbers are null, and its reason is a problem."""

    def apart(part: str, size: Any) -> dict[str, Any]:
        if part == "lives":
            raise NeverHappened("lives: never happened: one view of all clients")
        return {}

    monkeypatch.setattr(views, "apart", apart)
    monkeypatch.setattr(views, "compile_package", lambda: None)
    report = views.run(3, Size(clients=(4,)))
    assert (report.verdict, report.ratios["crash_s"], report.raw["size"]["lives"].kills) == ("miss", None, 3)
    assert report.problems == ["lives: never happened: one view of all clients"]
    assert report.ratios["view_bytes_per_client"] is not None


def test_lost_leases_are_a_share_of_the_clients_of_killed_seats() -> None:
    """Views D28: of 2 + 6 clients one was told ``ViewLost``; those of other seats do not count."""
    kills = [
        {"clients": 2, "lost": 1, "others_lost": 3, "seconds": 1.0, "spare": 0.2},
        {"clients": 6, "lost": 0, "others_lost": 0, "seconds": 2.0, "spare": -0.1},
    ]
    found = of_lives({"kills": kills, "joins": [{"own": 0.004, "all": 0.006}], "first_joins": [], "crashes": [1.0, 3.0]})
    assert (found["seat_crash_lost_leases"], found["seat_crash_s"], found["seat_crash_least_spare_s"]) == (1 / 8, 1.5, -0.1)
    assert (found["join_ms"], found["join_all_ms"], found["join_first_ms"], found["crash_s"]) == (4.0, 6.0, None, 2.0)


def test_a_lost_lease_is_seen(tmp_path: Path) -> None:
    """Views D28: without any seat the lease of a client ends, and what counts lost leases sees it."""
    fleet = ViewFleet(tmp_path, 1, 1, preset="local")
    try:
        fleet.begin()
        client = fleet.ask(fleet.members[0])
        fleet.until_whole()
        assert not lost(client.told)
        at = fleet.kill(fleet.seats[0])
        fleet.until(lambda: lost(client.since(at)), "the lease is lost")
    finally:
        fleet.end()


def test_nothing_measured_is_nothing() -> None:
    """H241: no number is made of no measurement."""
    found = {**of_lives({}), **of_letters({}), **of_idle({}), **of_crashes([{"clients": 4, "violation": "CB1"}])}
    assert set(found.values()) == {None}
    assert views.GOALS.keys() <= found.keys()


def test_the_worst_group_is_judged() -> None:
    """Views D14: bytes per client, the larger of all sizes."""
    rows = [{"clients": 4, "bytes": {"Lsa": 400, "ViewMsg": 400}}, {"clients": 8, "bytes": {"Lsa": 80}}]
    assert of_crashes(rows) == {"view_bytes_per_client": 200.0, "view_bytes_per_client_4": 200.0, "view_bytes_per_client_8": 10.0}


@pytest.mark.parametrize("direct, carried, told", [(0.0, 1.0, 0), (0.01, 0.99, 0), (0.5, 1.0, 1), (0.0, 0.5, 1)])
def test_letters_that_take_another_way_are_told(direct: float, carried: float, told: int) -> None:
    """H240: a direct letter is not carried, and one round a cut is."""
    assert len(strays({"carried_share": {"direct": direct, "carried": carried}})) == told


def test_what_a_lease_had_left() -> None:
    """Views D28: as the client knew it, extensions that it heard of included; what was told of the next view does not count."""
    stable, changing = ViewState.STABLE, ViewState.CHANGING
    told = [
        Told(1.0, VIEW, stable, 2.5),
        Told(1.5, LEASE, stable, 3.0),
        Told(2.1, LEASE, changing, 3.2),
        Told(2.9, VIEW, stable, 4.4),
    ]
    assert spare(told, 2.0) == pytest.approx(0.3)
    assert spare([*told[:2], Told(3.5, LOST, ViewState.LOST, -inf), Told(3.6, VIEW, stable, 5.0)], 2.0) == pytest.approx(-0.6)


def test_members_are_spread_over_the_seats() -> None:
    """Views D28: each seat is the first server of as many; without seats they have plain names."""
    slots = slots_of([f"127.0.2.{number}:7000" for number in (1, 2, 3)])
    names = spread(slots, 7)
    assert len({*names}) == 7
    assert [in_order(name, slots, None)[0].number for name in names] == [0, 1, 2, 0, 1, 2, 0]
    assert spread((), 2) == ["m0", "m1"]
