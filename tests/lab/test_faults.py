"""Faults as data: every fault does what it says and ends by itself, plans are files, and bad files are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from pathlib import Path
from random import Random

import pytest

from holdfast.errors import ConfigError
from holdfast.host import DATAGRAM_BYTES_MAX
from holdfast.lab.accounting import sealed_bytes
from holdfast.lab.faults import (
    FAULT_NAMES,
    Crash,
    CrashInSave,
    Cut,
    DiskFull,
    Drift,
    Fault,
    Hole,
    LostJournal,
    Menu,
    Partition,
    Pause,
    Plan,
    RestoredJournal,
    Weather,
    draw_plan,
    read_plan,
)
from holdfast.lab.links import Exponential, Fixed, Link, LogNormal, Uniform
from holdfast.lab.replay import check_plan
from holdfast.lab.scenario import Setup
from holdfast.lab.world import World
from tests.lab.machines import Note, Quiet, numbers, quiet, quiet_world, say

EVERY = Plan(
    (
        Drift(0.0, "b", 1.01),
        Crash(1.0, "a", 2.0),
        Crash(1.5, "c", None),
        CrashInSave(2.0, "b", 0.5),
        Pause(3.0, "b", 1.0, "shuffled"),
        Cut(4.0, 1.0, ("a",), ("b", "c")),
        Partition(5.0, 1.0, (("a",), ("b",))),
        Hole(5.5, 1.0, ("a",), ("b",), ("Ping",), 1200),
        Weather(6.0, 1.0, Link(Uniform(0.1, 0.2), 0.1, 0.2, 0.3, 0.4)),
        DiskFull(7.0, 1.0, "b"),
        LostJournal(8.0, "b", 0.5),
        RestoredJournal(8.5, 0.5, "b", 0.5),
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
        ('{"fault": []}', "fault`"),
        ('{"faults": [{"type": "crash", "at": 1, "node": "a", "dwon": 2}]}', r"`dwon`.* `\$\.faults\[0\]`"),
        ('{"faults": [{"type": "crash", "at": -1, "node": "a"}]}', r">= 0.* `\$\.faults\[0\]\.at`"),
        ('{"faults": [{"type": "crash", "at": 1e999, "node": "a"}]}', "out of range"),
        ('{"faults": [{"type": "crash", "at": 1, "node": "a", "down": -1}]}', r">= 0.*down"),
        ('{"faults": [{"type": "pause", "at": 1, "node": "a", "seconds": -1}]}', r">= 0.*seconds"),
        ('{"faults": [{"type": "cut", "at": 1, "seconds": 1, "source": [], "target": ["a"]}]}', r"length >= 1.*source"),
        ('{"faults": [{"type": "partition", "at": 1, "seconds": 1, "sides": [["a"]]}]}', r"length >= 2.*sides"),
        ('{"faults": [{"type": "partition", "at": 1, "seconds": 1, "sides": [["a"], []]}]}', r"length >= 1.*sides\[1\]"),
        (
            '{"faults": [{"type": "hole", "at": 1, "seconds": 1, "source": ["a"], "target": ["b"]}]}',
            r"takes nothing; say which .*faults\[0\]",
        ),
        ('{"faults": [{"type": "hole", "at": 1, "seconds": 1, "source": ["a"], "target": ["b"], "larger": -1}]}', r">= 0.*larger"),
        ('{"faults": [{"type": "drift", "at": 0, "node": "a", "rate": 0}]}', r"rate 0 is no clock; accepted: 0.01 to 100"),
        ('{"faults": [{"type": "drift", "at": 1, "node": "a", "rate": 1.01}]}', "one rate for the whole run; accepted: 0"),
        ('{"faults": [{"type": "weather", "at": 1, "seconds": 1, "link": {"loss": 2}}]}', r"loss 2 .*accepted: 0 to 1 .*faults\[0\]\.link"),
        ('{"faults": [{"type": "weather", "at": 1, "seconds": 1, "link": {"lose": 1}}]}', r"`lose`.*link"),
        (
            '{"faults": [{"type": "weather", "at": 1, "seconds": 1, "link": {"delay": {"type": "fixed", "seconds": -1}}}]}',
            r"seconds -1 .*delay",
        ),
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
        (Hole(1.0, 1.0, ("a",), ("v",), ("Ping",)), "'v'"),
        (Crash(11.0, "a"), "outside the run; accepted: 0 to 10"),
        (Pause(-1.0, "a", 1.0), "outside the run"),
        (LostJournal(1.0, "w"), "'w'"),
    ],
)
def test_a_plan_for_another_run_is_refused(fault: Crash, told: str) -> None:
    """Bad input: names that do not take part, times outside the run."""
    with pytest.raises(ConfigError, match=told) as caught:
        check_plan(Plan((Crash(1.0, "a"), fault)), SETUP)
    assert "fault 2" in str(caught.value)
    check_plan(EVERY, SETUP)


@pytest.mark.parametrize(
    "make,told",
    [
        (lambda: Fixed(-0.001), "seconds -0.001 is impossible; accepted: 0 to"),
        (lambda: Fixed(nan), "seconds nan"),
        (lambda: Fixed(inf), "seconds inf"),
        (lambda: Uniform(-0.1, 0.1), "low -0.1"),
        (lambda: Uniform(0.2, 0.1), "high 0.1 is impossible; accepted: 0.2 to"),
        (lambda: Exponential(-1.0), "mean"),
        (lambda: Exponential(1.0, -1.0), "least"),
        (lambda: LogNormal(0.0, 1.0), "median"),
        (lambda: LogNormal(1.0, -1.0), "sigma"),
        (lambda: Link(loss=1.1), "loss 1.1 is impossible; accepted: 0 to 1"),
        (lambda: Link(duplicate=-0.1), "duplicate"),
        (lambda: Link(tail=nan), "tail"),
        (lambda: Link(tail_seconds=-1.0), "tail_seconds"),
        (lambda: Drift(0.0, "a", nan), "rate"),
    ],
)
def test_what_would_turn_back_time_cannot_be_made(make: Callable[[], object], told: str) -> None:
    """A negative delay is impossible, in files and in code; so is a probability that is none."""
    with pytest.raises(ConfigError, match=told):
        make()


def test_plans_follow_from_the_seed() -> None:
    """Plans drawn from a seed: the same random, the same plan; they are sorted, in time, and about the right number."""
    menu = Menu(crashes_in_save=0.5, disks_full=0.5, drift=0.01, holes=1.0, hole_kinds=("Ping", "Note"), hole_bytes=1200)
    names = [f"n{i}" for i in range(10)]
    plans = [draw_plan(Random(seed), names, 20.0, menu) for seed in range(50)]
    assert plans[3] == draw_plan(Random(3), names, 20.0, menu)
    assert len(set(plans)) == 50
    for plan in plans:
        check_plan(plan, Setup(tuple(names), 20.0, 1.0))
        assert [fault.at for fault in plan.faults] == sorted(fault.at for fault in plan.faults)
    crashes = sum(isinstance(fault, Crash) for plan in plans for fault in plan.faults)
    assert crashes == pytest.approx(50 * 10 * menu.crashes, rel=0.3)
    assert {type(fault) for plan in plans for fault in plan.faults} == {type(fault) for fault in EVERY.faults} - {
        LostJournal,
        RestoredJournal,
    }
    holes = [fault for plan in plans for fault in plan.faults if isinstance(fault, Hole)]
    assert {(hole.kinds, hole.larger) for hole in holes} == {(("Ping",), None), (("Note",), None), ((), 1200)}


def scheduled(*faults: Fault) -> World:
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
    [
        Cut(4.0, 1.0, ("a",), ("b",)),
        Partition(4.0, 1.0, (("a", "c"), ("b",))),
        Weather(4.0, 1.0, Link(Fixed(0.001), loss=0.9999999)),
        Hole(4.0, 1.0, ("a",), ("b", "c"), kinds=("Ping",)),
        Hole(4.0, 1.0, ("a", "c"), ("b",), larger=20),
    ],
)
def test_a_fault_of_the_network_begins_and_ends(fault: Cut) -> None:
    """Every fault carries its own end."""
    world = scheduled(fault)
    world.run(11.0)
    assert missed(world) == list(range(40, 50))
    assert not world.network.disturbed


@pytest.mark.parametrize(
    "hole",
    [
        Hole(4.0, 1.0, ("b",), ("a",), kinds=("Ping",)),
        Hole(4.0, 1.0, ("a",), ("c",), kinds=("Ping",)),
        Hole(4.0, 1.0, ("a",), ("b",), kinds=("Note",)),
        Hole(4.0, 1.0, ("a",), ("b",), larger=1200),
    ],
)
def test_a_hole_lets_all_else_pass(hole: Hole) -> None:
    """Hole: one direction, the types that it names, what is larger than it says; the control of the test above."""
    world = scheduled(hole)
    world.run(11.0)
    assert missed(world) == []


def test_a_hole_takes_what_no_datagram_holds() -> None:
    """Hole: ``larger`` counts sealed bytes, as a socket would send them."""
    world = scheduled(Hole(4.0, 1.0, ("a",), ("b",), larger=DATAGRAM_BYTES_MAX))
    sizes = range(1000, 1200, 5)
    for size in sizes:
        world.at(4.5, lambda size=size: world.nodes["a"].send(world.nodes["b"].me, Note(bytes(size))))  # type: ignore[misc]
    world.run(11.0)
    heard = [len(message.body) for _, _, message in world.nodes["b"].node.use(Quiet).heard if isinstance(message, Note)]
    assert heard == [size for size in sizes if sealed_bytes("a", Note(bytes(size))) <= DATAGRAM_BYTES_MAX]
    assert sizes[0] < max(heard) < sizes[-1]


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


def test_drift_lasts_for_all_lives() -> None:
    """Drift: a clock has one rate for the whole run, restarts included."""
    world = scheduled(Drift(0.0, "b", 1.05), Crash(2.0, "b", 0.5))
    world.run(3.0)
    assert (world.nodes["b"].me.boot, world.nodes["b"].rate) == (2, 1.05)


def test_for_good_is_the_last_word() -> None:
    """A crash for good that finds the process dead already cancels its next life; one for a while does not bring it back."""
    world = scheduled(Crash(1.0, "a", 5.0), Crash(2.0, "a", None), Crash(1.0, "b", 5.0), Crash(3.0, "b", 1.0), Crash(4.0, "a", 1.0))
    world.run(11.0)
    assert (dead(world, "a"), world.buried) == (True, {"a"})
    assert world.nodes["b"].me.boot == 2


def test_a_crash_in_save_after_the_last_word_brings_nobody_back() -> None:
    """Any subset of a plan is a plan: a death in a save that comes an instant after the last word is nobody's."""
    world = scheduled(CrashInSave(1.0, "b", 0.5))
    world.run(2.0)
    world.nodes["b"].storage.save("k", b"v", lambda: None)
    Crash(2.0, "b", None).begin(world)
    world.run(11.0)
    assert dead(world, "b")


def test_lost_journal_empties_the_disk() -> None:
    """LostJournal: the next life finds nothing, not even that there was something; a dead process loses its disk and stays dead."""
    world = scheduled(LostJournal(2.0, "a", 1.0), Crash(1.5, "b", None), LostJournal(2.0, "b"), LostJournal(2.0, "c"))
    for name in "abc":
        world.nodes[name].storage.save("k", b"v", lambda: None)
    world.run(1.0)
    assert dict(world.nodes["a"].storage.load()) == {"k": b"v"}
    world.run(2.5)
    assert [dead(world, name) for name in "abc"] == [True, True, False]
    world.run(4.0)
    assert [dead(world, name) for name in "abc"] == [False, True, False]
    assert (world.nodes["a"].storage.fresh, dict(world.nodes["a"].storage.load())) == (True, {})


def test_a_restored_journal_is_what_it_was() -> None:
    """RestoredJournal: the next life finds what was there when the copy was taken; a dead process finds it when it comes back."""
    world = scheduled(RestoredJournal(2.0, 2.0, "a", 1.0), RestoredJournal(2.0, 2.0, "b"), Crash(3.5, "b", 2.0))
    for name in "ab":
        world.nodes[name].storage.save("k", b"old", lambda: None)
    world.run(3.0)
    for name in "ab":
        world.nodes[name].storage.save("k", b"new", lambda: None)
    world.run(4.5)
    assert dead(world, "a")
    world.run(6.0)
    assert [dict(world.nodes[name].storage.load()) for name in "ab"] == [{"k": b"old"}] * 2


def test_the_spared_come_back() -> None:
    """Plan.sparing: only crashes for good, only of those who are named."""
    plan = Plan((Crash(1.0, "a", None), Crash(2.0, "a", 3.0), Crash(1.0, "b", None), Pause(1.0, "a", 1.0)))
    assert plan.sparing(["a"], 0.5).faults == (Crash(1.0, "a", 0.5), *plan.faults[1:])


def test_quiet_world_has_no_faults() -> None:
    """The control: without a plan nothing is missed."""
    world = scheduled()
    world.run(11.0)
    assert missed(world) == []
    assert not quiet_world(1, "a").network.disturbed


def test_the_end_of_all_faults_cancels_planned_returns() -> None:
    """Whoever dies after the faults have stopped is not brought back by a fault of before."""
    world = scheduled(Crash(1.0, "b", 5.0))
    world.run(2.0)
    world.end_faults()
    assert world.nodes["b"].me.boot == 2
    world.crash("b")
    world.run(11.0)
    assert dead(world, "b")
