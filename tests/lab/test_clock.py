"""Clocks of the lab: nobody's zero is anybody else's, rates may differ, and no timer comes early.  Spec: F7, F8."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.lab.world import World
from tests.lab.machines import quiet, quiet_world


def test_clocks_start_anywhere() -> None:
    """F7: ``now`` of one node is meaningless on another."""
    world = quiet_world(1, "a b")
    assert abs(world.nodes["a"].now - world.nodes["b"].now) > 1.0


def test_a_drifting_clock_runs_at_its_rate() -> None:
    """F8: a clock of rate r shows r seconds per second, and its timers come after 1/r of true time."""
    world = World(1, quiet)
    world.drift.update(fast=1.02, slow=0.98)
    fired: dict[str, float] = {}

    def note(name: str) -> None:
        fired[name] = world.now

    for name in ("exact", "fast", "slow"):
        host = world.start(name)
        before = host.now
        host.after(10.0, partial(note, name))
        assert host.now == before
    begins = {name: host.now for name, host in world.nodes.items()}
    world.run(100.0)
    assert {name: host.now - begins[name] for name, host in world.nodes.items()} == pytest.approx({"exact": 100, "fast": 102, "slow": 98})
    assert fired == pytest.approx({"exact": 10.0, "fast": 10 / 1.02, "slow": 10 / 0.98}, abs=1e-6)


def test_a_clock_keeps_counting_through_crash_and_restart() -> None:
    """F7: the clock belongs to the machine, not to the process."""
    world = quiet_world(2, "a")
    before = world.nodes["a"].now
    world.crash("a")
    world.run(5.0)
    assert world.start("a").now == pytest.approx(before + 5.0)


@given(st.integers(0, 1000), st.floats(0.95, 1.05), st.floats(0, 1000), st.floats(0, 100))
def test_no_timer_finds_that_its_time_has_not_come(seed: int, rate: float, start: float, delay: float) -> None:
    """F9: deadlines are compared with the clock, so a timer that rounding makes early would wait for ever."""
    world = World(seed, quiet)
    world.drift["a"] = rate
    host = world.start("a")
    world.run(start)
    found: list[tuple[float, float]] = []
    due = host.now + delay
    host.at(due, lambda: found.append((host.now, due)))
    world.run(start + delay / rate + 1.0)
    ((now, expected),) = found
    assert expected <= now < expected + 1e-6


def test_a_timer_in_the_past_runs_at_once() -> None:
    """A due time that has passed is due now, not before now."""
    world = quiet_world(3, "a")
    world.run(5.0)
    fired: list[float] = []
    world.nodes["a"].after(-3.0, lambda: fired.append(world.now))
    world.run(5.1)
    assert fired == pytest.approx([5.0])


def test_a_cancelled_timer_never_runs() -> None:
    """Host: cancelling empties the timer, whenever it comes up."""
    world = quiet_world(4, "a")
    fired: list[str] = []
    timer = world.nodes["a"].after(1.0, lambda: fired.append("a"))
    world.nodes["a"].after(0.5, timer.cancel)
    world.run(2.0)
    assert fired == []
