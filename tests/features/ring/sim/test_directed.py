"""Each problem that the spec names, on a schedule made for it: harmless with the decision that solves it, harmful without.

Spec: ring 6, 8 (E13), 11; foundation F4. The schedules: ``holdfast.features.ring.lab.schedules``.
"""

from __future__ import annotations

import pytest

from holdfast.events import ConfigMismatch
from holdfast.features.ring.lab.experiments.directed import EXPERIMENT
from holdfast.features.ring.lab.schedules import BY_NAME, SCHEDULES, Outcome
from holdfast.features.ring.lab.watch import Stage
from holdfast.features.ring.protocol.config import RingConfig
from holdfast.features.ring.protocol.facts import BecameMember
from holdfast.features.ring.protocol.rules import Rules
from holdfast.lab.experiment import conduct, parameters_of

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BY_NAME)
def test_with_the_decision_nothing_breaks(name: str, seed: int) -> None:
    """Ring E13 (D6, D8, D9, D10, D12, D14, D28, D29, F4): the protocol as it is survives every one of these schedules."""
    assert BY_NAME[name].play(Rules(), seed).breaches == {}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", BY_NAME)
def test_without_the_decision_it_breaks(name: str, seed: int) -> None:
    """Ring E13: the same schedule with the one decision switched off shows the violation that the spec names for it."""
    schedule = BY_NAME[name]
    assert schedule.off != Rules()
    assert schedule.play(schedule.off, seed).breaches.keys() >= schedule.expected


def test_another_decision_is_no_remedy() -> None:
    """Ring E13: what a schedule shows is due to its own decision: with any other one switched off instead, these two show nothing."""
    for name in ("stale joiner", "oversleeping accuser"):
        for other in SCHEDULES:
            if other.name != name and other.off != Rules(fingerprint=False):
                assert BY_NAME[name].play(other.off, 1).breaches.keys() <= {"healthy"}, (name, other.name)


def test_a_young_ring_loses_as_many_as_the_prototype() -> None:
    """D12, ring 11: with Algorithm 1's start-up rule one crash in a young ring of 16 costs all 6 monitors."""
    outcome = BY_NAME["young ring"].play(Rules(start_up=True), 1)
    assert len(outcome.departed) == 6


def test_who_counts_otherwise_is_told_why() -> None:
    """F4: a candidate with another T_l is refused by the name of the field, at both ends, and never becomes a member."""
    stage = Stage(RingConfig(k=2), Rules(), 1, size=4, late={"n20": 1.5})
    stage.others["n20"] = RingConfig(k=2, lease=5.0)
    told: set[tuple[str, str]] = set()
    stage.world.listeners.append(lambda host, event: told.add((host.me.name, event.field)) if isinstance(event, ConfigMismatch) else None)
    stage.start("n20")
    stage.run(10.0)
    assert stage.seen(BecameMember, "n20") == 0
    assert {field for name, field in told if name == "n20"} >= {"T_l"}
    assert {field for name, field in told if name != "n20"} >= {"T_l"}


def test_the_experiment_judges_what_was_measured() -> None:
    """Ring E13 as an experiment: it passes on what was measured, and a schedule that shows nothing without its decision makes it miss."""
    parameters = parameters_of(EXPERIMENT, {"seeds": "1"})
    report = conduct(EXPERIMENT, parameters, 0, map, "test")
    assert report.verdict == "pass"
    results = [dict(EXPERIMENT.measure(cell)) for cell in EXPERIMENT.cells(parameters, 0)[:2]]
    tame = [{**result, "found": dict.fromkeys(result["found"], 0), "first": {}} for result in results]
    assert not EXPERIMENT.judge(parameters, tame).passed
    harmful = [{**result, "on": True} for result in results]
    assert not EXPERIMENT.judge(parameters, harmful).passed


def test_outcomes_repeat() -> None:
    """Same seed, same outcome."""
    first: Outcome = BY_NAME["gap"].play(Rules(gap=False), 7)
    assert BY_NAME["gap"].play(Rules(gap=False), 7) == first
