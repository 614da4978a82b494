"""A run has two phases: safety under faults, then the faults stop and the group must be well in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from random import Random

import pytest

from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, CrashInSave, Cut, DiskFull, Partition, Pause, Plan, Weather
from holdfast.lab.links import Fixed, Link
from holdfast.lab.scenario import Scenario, Setup, run
from holdfast.lab.trace import Trace
from holdfast.lab.world import World
from tests.lab.machines import quiet

NO_FAULTS = Plan()


class Watched(Scenario):
    """Quiet members; what the second phase finds is noted."""

    name = "test/watched"

    def __init__(self, plan: Plan = NO_FAULTS, settled_at: float = 0.0) -> None:
        self.plan = plan
        self.settled_at = settled_at
        self.looks: list[float] = []
        self.calm: list[bool] = []
        self.alive: list[str] = []

    def setup(self, random: Random) -> Setup:
        return Setup(("a", "b", "c"), 10.0, 5.0, self.plan)

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        return quiet(host)

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return []

    def unsettled(self, world: World, setup: Setup) -> str:
        self.looks.append(world.now)
        running = all(host.running for host in world.alive)
        self.calm.append(running and not world.network.disturbed and not any(disk.full for disk in world.disks.values()))
        self.alive = [host.me.name for host in world.alive]
        return "" if world.now >= self.settled_at else "not yet"


def test_a_group_that_settles_in_time_passes() -> None:
    """Liveness: it is looked at until it is as it should be, and not longer."""
    scenario = Watched(settled_at=12.0)
    outcome = run(scenario, 1)
    assert outcome.ok
    assert 10.0 < scenario.looks[0] < 11.0
    assert scenario.looks[-1] == pytest.approx(12.0, abs=0.3)


def test_a_group_that_does_not_settle_is_a_violation() -> None:
    """Liveness: when the time is over, the reason is the violation."""
    outcome = run(Watched(settled_at=99.0), 1)
    assert outcome.violation.startswith("settled: 5 s after the last fault: not yet")
    assert outcome.seconds == pytest.approx(15.0)


def test_faults_stop() -> None:
    """The second phase: links are whole, the stopped go on, the crashed are back, except those who stay down for ever."""
    plan = Plan(
        (
            Crash(5.0, "a", 100.0),
            Crash(5.0, "c", None),
            Pause(9.0, "b", 100.0),
            Cut(9.0, 100.0, ("a",), ("b",)),
            Partition(9.0, 100.0, (("a",), ("b",))),
            Weather(9.0, 100.0, Link(Fixed(1.0))),
            DiskFull(9.0, 100.0, "b"),
            CrashInSave(9.0, "b"),
        )
    )
    scenario = Watched(plan, settled_at=14.0)
    assert run(scenario, 1).ok
    assert all(scenario.calm)
    assert scenario.alive == ["a", "b"]


def test_an_outcome_says_how_to_see_it_again() -> None:
    """The one-line command."""
    outcome = run(Watched(settled_at=99.0), 7)
    assert outcome.replay == "holdfast lab replay test/watched --seed 7"


def test_the_trace_of_a_failing_run_comes_along() -> None:
    """A readable trace: the last lines if a run fails; all lines of any run for whoever hands in a trace."""
    failing = run(Watched(Plan((Crash(5.0, "a", 1.0),)), settled_at=99.0), 1, trace=True)
    assert "* crash a#1" in failing.trace
    assert run(Watched(), 1, trace=True).trace == ""
    whole = Trace()
    assert run(Watched(), 1, trace=whole).ok
    assert "* start c#1" in str(whole)


def test_another_plan_can_be_played() -> None:
    """Replaying with a plan file: the seed stays, the faults are others."""
    trace = Trace()
    run(Watched(Plan((Crash(5.0, "a", 1.0),))), 1, plan=Plan((Crash(6.0, "b", 1.0),)), trace=trace)
    assert "* crash b#1" in str(trace)
    assert "* crash a#1" not in str(trace)


def test_a_violation_of_liveness_says_when() -> None:
    """A "settled" violation is placed at the end of its time, not at the beginning of the run."""
    assert run(Watched(settled_at=99.0), 1).violation.endswith("(at 15.000000 s)")


class Flickering(Watched):
    """Well at every second look."""

    def unsettled(self, world: World, setup: Setup) -> str:
        super().unsettled(world, setup)
        return "not now" if len(self.looks) % 2 else ""


def test_one_happy_look_is_not_enough() -> None:
    """Liveness: the group must be well at two looks in a row."""
    assert "not now" in run(Flickering(), 1).violation


class WellAtTheEnd(Watched):
    """Well at the last moment, and, if it ``stays`` so, after it."""

    def __init__(self, *, stays: bool) -> None:
        super().__init__()
        self.stays = stays

    def unsettled(self, world: World, setup: Setup) -> str:
        return "" if world.now == 15.0 or (self.stays and world.now > 15.0) else "not yet"


def test_who_is_well_at_the_last_moment_is_looked_at_once_more() -> None:
    """Liveness: a scenario may watch until its time is over; the second look comes after it."""
    assert run(WellAtTheEnd(stays=True), 1).ok
    assert not run(WellAtTheEnd(stays=False), 1).ok


def test_nobody_comes_back_after_the_faults_have_stopped() -> None:
    """Liveness: who is down for good stays down, also if an earlier crash had planned its return for later."""
    trace = Trace()
    scenario = Watched(Plan((Crash(8.0, "a", 4.0), Crash(9.0, "a", None), Crash(8.0, "b", 4.0))), settled_at=14.0)
    assert run(scenario, 1, trace=trace).ok
    assert scenario.alive == ["b", "c"]
    assert [line.split("* ")[1] for line in trace.lines() if "* start" in line][3:] == ["start b#2"]


class Saving(Watched):
    """Everybody saves something at 9.5 s; the group is well when everybody's disk takes something more."""

    def drive(self, world: World, setup: Setup) -> None:
        self.saved: list[str] = []
        for name in setup.names:
            world.at(9.5, partial(self.save, world, name))
            world.at(9.9, self.saved.clear)
            world.at(10.5, partial(self.save, world, name))

    def save(self, world: World, name: str) -> None:
        world.nodes[name].storage.save("k", b"", lambda: self.saved.append(name))

    def unsettled(self, world: World, setup: Setup) -> str:
        return "" if sorted(self.saved) == ["a", "b", "c"] else "not all could save"


def test_whoever_met_a_full_disk_is_restarted_when_there_is_room() -> None:
    """Liveness: a life that met a full disk stays silent, so the next one begins with the calm; nobody else is touched."""
    trace = Trace()
    assert run(Saving(Plan((DiskFull(9.0, 100.0, "b"),))), 1, trace=trace).ok
    assert [line.split("* ")[1] for line in trace.lines() if "* start" in line][3:] == ["start b#2"]
