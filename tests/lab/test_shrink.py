"""The shrinker: what is left is what matters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ConfigError
from holdfast.host import Host, Machine
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, Cut, Fault, Menu, Pause, Plan, draw_plan
from holdfast.lab.replay import shrunk
from holdfast.lab.scenario import Scenario, Setup, run, set_up
from holdfast.lab.shrink import shrink
from holdfast.lab.world import World
from tests.lab.machines import Noted, Quiet

NAMES = tuple("abcde")


class Forgetful(Quiet):
    """The planted bug: whoever was stopped for long *and* restarted before believes that it is somebody else."""

    def on_away(self, seconds: float) -> None:
        if seconds > 1.0 and self.host.me.boot > 1:
            self.host.emit(Noted("who am I?"))

    def start(self) -> None:
        self.host.after(0.5, self._on_tick)

    def _on_tick(self) -> None:
        self.host.after(0.5, self._on_tick)


class KnowsItself(Checker):
    """Nobody asks who it is."""

    name = "knows-itself"

    def on_event(self, world: World, host: object, event: object) -> None:
        if isinstance(event, Noted):
            self.fail("somebody does not know who it is")


class Planted(Scenario):
    """Forty faults, of which a crash and a later pause of one node matter."""

    name = "test/planted"

    def setup(self, random: Random) -> Setup:
        faults: list[Fault] = []
        while len(faults) < 40:
            faults += draw_plan(random, NAMES, 30.0, Menu(cuts=6, partitions=6, weather=6, crash_forever=0.05)).faults
        return Setup(NAMES, 30.0, 5.0, Plan(tuple(sorted(faults[:40], key=lambda fault: fault.at))))

    def build(self, host: Host, setup: Setup) -> Iterable[Machine]:
        return [Forgetful(host)]

    def checkers(self, setup: Setup) -> Sequence[Checker]:
        return [KnowsItself()]


def test_forty_faults_shrink_to_at_most_four() -> None:
    """A planted bug under 40 faults shrinks to at most 4, and what is left still violates the same invariant."""
    failing = [seed for seed in range(30) if not run(Planted(), seed).ok]
    assert len(failing) >= 5
    for seed in failing[:5]:
        assert len(set_up(Planted(), seed).plan.faults) == 40
        plan, outcome = shrunk(Planted(), seed)
        assert len(plan.faults) <= 4
        assert {type(fault) for fault in plan.faults} >= {Crash, Pause}
        assert outcome.violation.startswith("knows-itself")
        assert "who am I?" in outcome.trace


MANY = tuple(Cut(float(at), 1.0, ("a",), ("b",)) for at in range(50))


@settings(max_examples=50)
@given(st.sets(st.integers(0, 49), min_size=0, max_size=5))
def test_exactly_what_matters_is_left(guilty: set[int]) -> None:
    """Delta debugging: no single fault can be taken away any more; with independent causes that is the guilty set itself."""
    needed = {MANY[number] for number in guilty}
    small = shrink(Plan(MANY), lambda plan: needed <= set(plan.faults))
    assert set(small.faults) == needed


def test_the_order_of_faults_stays() -> None:
    """A shrunk plan is a subsequence of the plan."""
    small = shrink(Plan(MANY), lambda plan: len(plan.faults) >= 7)
    assert len(small.faults) == 7
    assert [fault for fault in MANY if fault in small.faults] == list(small.faults)


def test_tries_are_limited() -> None:
    """A shrinker gives up in time and hands out the best it has, which still fails."""
    runs: list[Plan] = []

    def fails(plan: Plan) -> bool:
        runs.append(plan)
        return {MANY[3], MANY[40]} <= set(plan.faults)

    small = shrink(Plan(MANY), fails, tries=10)
    assert len(runs) <= 11
    assert {MANY[3], MANY[40]} <= set(small.faults)
    assert len(small.faults) < 50


def test_a_failure_without_faults_shrinks_to_none() -> None:
    """If nothing has to go wrong, nothing is left."""
    assert shrink(Plan(MANY), lambda plan: True).faults == ()


def test_a_run_that_does_not_fail_again_is_told() -> None:
    """Bad input: a plan that violates nothing, or a scenario that depends on more than its seed, is a line and no traceback."""
    with pytest.raises(ConfigError, match="seed 1 of test/planted violates nothing with these 0 faults"):
        shrunk(Planted(), 1, Plan())


def test_another_violation_is_not_the_same() -> None:
    """Shrinking follows the invariant that was violated, not any violation that turns up on the way."""

    class TwoBugs(Planted):
        name = "test/two-bugs"

        def unsettled(self, world: World, setup: Setup) -> str:
            return "never"

    seed = next(seed for seed in range(30) if run(TwoBugs(), seed).violation.startswith("knows-itself"))
    plan, outcome = shrunk(TwoBugs(), seed)
    assert outcome.violation.startswith("knows-itself")
    assert len(plan.faults) >= 2
