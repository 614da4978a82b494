"""Faults as data: every fault does what it says and ends by itself, plans are files, and bad files are refused by name."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from holdfast.errors import ConfigError
from holdfast.lab.faults import (
    FAULT_NAMES,
    Crash,
    CrashInSave,
    Cut,
    DiskFull,
    Drift,
    Menu,
    Partition,
    Pause,
    Plan,
    Weather,
    draw_plan,
    read_plan,
)
from holdfast.lab.links import Fixed, Link, Uniform
from holdfast.lab.replay import check_plan
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World
from tests.lab.machines import numbers, quiet, quiet_world, say

EVERY = Plan(
    (
        Drift(0.0, "b", 1.01),
        Crash(1.0, "a", 2.0),
        Crash(1.5, "c", None),
        CrashInSave(2.0, "b", 0.5),
        Pause(3.0, "b", 1.0, "shuffled"),
        Cut(4.0, 1.0, ("a",), ("b", "c")),
        Partition(5.0, 1.0, (("a",), ("b",))),
        Weather(6.0, 1.0, Link(Uniform(0.1, 0.2), 0.1, 0.2, 0.3, 0.4)),
        DiskFull(7.0, 1.0, "b"),
    )
)
SETUP = Setup(("a", "b", "c"), 10.0, 1.0)


def test_a_plan_is_a_file(tmp_path: Path) -> None:
    """A plan survives its JSON, every kind of fault included."""
    path = tmp_path / "plan.json"
    path.write_bytes(EVERY.to_json())
    assert read_plan(path) == EVERY
    assert {type(fault).__struct_config__.tag for fault in EVERY.faults} == set(FAULT_NAMES)


@pytest.mark.parametrize(
    "text,told",
    [
        ('{"faults": [{"type": "flood", "at": 1}]}', "flood"),
        ('{"faults": [{"type": "crash", "at": "soon", "node": "a"}]}', r"faults\[0\]\.at"),
        ('{"faults": [{"type": "pause", "at": 1, "node": "a", "seconds": 1, "order": "wild"}]}', r"order"),
        ('{"faults": [{"type": "crash", "at": 1}]}', "node"),
        ("not json", "malformed"),
    ],
)
def test_a_bad_plan_is_refused_by_field(tmp_path: Path, text: str, told: str) -> None:
    """Bad input: the error names the file, the field, and which faults there are."""
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=told) as caught:
        read_plan(path)
    assert str(path) in str(caught.value)
    assert "crash-in-save" in str(caught.value)


def test_an_unreadable_plan_is_refused(tmp_path: Path) -> None:
    """Bad input: a file that is not there."""
    with pytest.raises(ConfigError, match="cannot read"):
        read_plan(tmp_path / "none.json")


@pytest.mark.parametrize(
    "fault,told",
    [
        (Crash(1.0, "z"), "no node is called 'z' in this seed; accepted: a, b, c"),
        (Cut(1.0, 1.0, ("a",), ("y",)), "'y'"),
        (Partition(1.0, 1.0, (("a",), ("x",))), "'x'"),
        (Crash(11.0, "a"), "outside the run; accepted: 0 to 10"),
        (Pause(-1.0, "a", 1.0), "outside the run"),
        (Drift(0.0, "a", 0.0), "is no clock"),
        (Weather(1.0, 1.0, Link(Uniform(0.2, 0.1))), "impossible"),
        (Weather(1.0, 1.0, Link(Fixed(-1.0))), "impossible"),
    ],
)
def test_a_plan_for_another_run_is_refused(fault: Crash, told: str) -> None:
    """Bad input: names that do not take part, times outside the run, clocks that stand still."""
    with pytest.raises(ConfigError, match=told) as caught:
        check_plan(Plan((Crash(1.0, "a"), fault)), SETUP)
    assert "fault 2" in str(caught.value)
    check_plan(EVERY, SETUP)


def test_plans_follow_from_the_seed() -> None:
    """Plans drawn from a seed: the same random, the same plan; they are sorted, in time, and about the right number."""
    menu = Menu(crashes_in_save=0.5, disks_full=0.5, drift=0.01)
    names = [f"n{i}" for i in range(10)]
    plans = [draw_plan(Random(seed), names, 20.0, menu) for seed in range(50)]
    assert plans[3] == draw_plan(Random(3), names, 20.0, menu)
    assert len(set(plans)) == 50
    for plan in plans:
        check_plan(plan, Setup(tuple(names), 20.0, 1.0))
        assert [fault.at for fault in plan.faults] == sorted(fault.at for fault in plan.faults)
    crashes = sum(isinstance(fault, Crash) for plan in plans for fault in plan.faults)
    assert crashes == pytest.approx(50 * 10 * menu.crashes, rel=0.3)
    assert {type(fault) for plan in plans for fault in plan.faults} == {type(fault) for fault in EVERY.faults}


def scheduled(*faults: Crash | Pause | Cut | Partition | Weather | CrashInSave | DiskFull | Drift) -> World:
    """Three quiet members under a plan; ``a`` pings ``b`` ten times a second."""
    plan = Plan(tuple(faults))
    world = World(1, quiet, link=Link(Fixed(0.001)))
    plan.prepare(world)
    for name in "abc":
        world.start(name)
    plan.schedule(world)
    for number in range(100):
        world.at(number / 10 + 0.05, lambda number=number: greet(world, number))  # type: ignore[misc]
    return world


def greet(world: World, number: int) -> None:
    if not world.nodes["a"].dead:
        world.nodes["a"].meet(world.nodes["b"].me, world.nodes["b"].address)
        say(world, "a", "b", number)


def dead(world: World, name: str) -> bool:
    return world.nodes[name].dead


def missed(world: World) -> list[int]:
    heard = set(numbers(world, "b"))
    return [number for number in range(100) if number not in heard]


@pytest.mark.parametrize(
    "fault",
    [Cut(4.0, 1.0, ("a",), ("b",)), Partition(4.0, 1.0, (("a", "c"), ("b",))), Weather(4.0, 1.0, Link(Fixed(0.001), loss=0.9999999))],
)
def test_a_fault_of_the_network_begins_and_ends(fault: Cut) -> None:
    """Every fault carries its own end."""
    world = scheduled(fault)
    world.run(11.0)
    assert missed(world) == list(range(40, 50))
    assert not world.network.disturbed


def test_crash_and_return() -> None:
    """Crash: down for so long, then a new life; forever is forever."""
    world = scheduled(Crash(4.0, "b", 1.0), Crash(4.0, "c", None))
    world.run(4.5)
    assert world.nodes["b"].dead
    world.run(11.0)
    assert (world.nodes["b"].me.boot, world.nodes["c"].dead) == (2, True)
    assert numbers(world, "b") == list(range(50, 100))


def test_pause_holds_and_releases() -> None:
    """Pause: what was sent meanwhile arrives at its end."""
    world = scheduled(Pause(4.0, "b", 1.0))
    world.run(4.9)
    assert max(numbers(world, "b")) == 39
    world.run(11.0)
    assert missed(world) == []


def test_crash_during_a_pause_is_not_undone_by_its_end() -> None:
    """Any subset of a plan is a plan: faults that overlap do not resurrect anybody."""
    world = scheduled(Pause(4.0, "b", 2.0), Crash(5.0, "b", None), Crash(5.5, "b", 1.0))
    world.run(11.0)
    assert world.nodes["b"].dead


def test_crash_in_save_waits_for_the_write_point() -> None:
    """CrashInSave: the process dies at its next write, between the write and its confirmation, and comes back."""
    world = scheduled(CrashInSave(2.0, "b", 0.5))
    done: list[str] = []
    world.run(3.0)
    assert not dead(world, "b")
    world.nodes["b"].storage.save("k", b"v", lambda: done.append("k"))
    world.run(3.1)
    assert dead(world, "b")
    world.run(4.0)
    assert done == []
    assert world.nodes["b"].me.boot == 2


def test_disk_full_ends() -> None:
    """DiskFull: for a while no save completes; the next life has room again."""
    world = scheduled(DiskFull(2.0, 1.0, "b"))
    world.run(2.5)
    assert world.disks["b"].full
    world.run(3.5)
    assert not world.disks["b"].full


def test_drift_from_the_beginning() -> None:
    """Drift at 0: the clock is wrong from the first life on."""
    world = scheduled(Drift(0.0, "b", 1.05))
    assert (world.nodes["a"].rate, world.nodes["b"].rate) == (1.0, 1.05)


def test_drift_later_waits_for_the_next_start() -> None:
    """Drift: a clock changes its rate only with a restart."""
    world = scheduled(Drift(1.0, "b", 1.05), Crash(2.0, "b", 0.5))
    world.run(1.5)
    assert world.nodes["b"].rate == 1.0
    world.run(3.0)
    assert world.nodes["b"].rate == 1.05


def test_quiet_world_has_no_faults() -> None:
    """The control: without a plan nothing is missed."""
    world = scheduled()
    world.run(11.0)
    assert missed(world) == []
    assert not quiet_world(1, "a").network.disturbed
