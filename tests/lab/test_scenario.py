"""A run has two phases: safety under faults, then the faults stop and the group must be well in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
