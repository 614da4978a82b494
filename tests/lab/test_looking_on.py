"""Looking on changes nothing: a run with a trace, with checkers, or with sizes measured is the run without.

A failing sweep prints a seed, and the replay of that seed with a trace must be the same run: otherwise nobody could see
what went wrong.
"""

from __future__ import annotations

from functools import cache

import pytest

from holdfast.events import Event
from holdfast.host import NodeId
from holdfast.lab.accounting import count_bytes
from holdfast.lab.checker import Checker
from holdfast.lab.faults import Crash, Cut, Pause, Plan, Weather
from holdfast.lab.host import LabHost
from holdfast.lab.links import Link, Uniform
from holdfast.lab.registry import find_scenario
from holdfast.lab.scenario import Scenario, run, set_up
from holdfast.lab.trace import Trace
from holdfast.lab.world import World
from tests.lab.machines import numbers, quiet_world, say

SCENARIOS = ("detection/omega", "detection/heartbeat", "kit/broadcast", "kit/rows", "kit/phase", "kit/claims")
SEEDS = (1, 2, 3, 11)


def told(scenario: Scenario, seed: int, *, look: str) -> list[str]:
    """Everything that members of one run emitted, and what each sent."""
    setup = set_up(scenario, seed)
    world = World(
        seed,
        lambda host: scenario.build(host, setup),
        link=Link(Uniform(0.001, 0.02), loss=0.05),
        checkers=[Checker()] if look == "checkers" else [],
        trace=Trace(10) if look == "trace" else None,
    )
    if look == "sizes":
        count_bytes(world)
    facts: list[str] = []

    def note(host: LabHost, event: Event) -> None:
        facts.append(f"{world.now!r} {host.me} {event}")

    world.listeners.append(note)
    for name in setup.names:
        world.start(name)
    plan_for(setup.names).schedule(world)
    scenario.drive(world, setup)
    world.run(15.0)
    facts.extend(
        f"{name} {sorted((kind.__name__, count) for kind, count in host.endpoint.sent.items())}" for name, host in world.nodes.items()
    )
    return facts


@cache
def unobserved(name: str, seed: int) -> list[str]:
    """What all who look on are compared with."""
    return told(find_scenario(name), seed, look="nobody")


def plan_for(names: tuple[str, ...]) -> Plan:
    first, last = names[0], names[-1]
    worse = Link(Uniform(0.001, 0.1), loss=0.2, duplicate=0.1)
    return Plan((Cut(2.0, 1.0, (first,), (last,)), Weather(4.0, 2.0, worse), Pause(7.0, last, 1.5), Crash(9.0, first, 1.0)))


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("look", ["trace", "checkers", "sizes"])
def test_a_run_that_is_looked_at_is_the_same_run(name: str, look: str) -> None:
    """Same seed, same bytes: with faults that come and go, so that roads change in the middle."""
    for seed in SEEDS:
        assert told(find_scenario(name), seed, look=look) == unobserved(name, seed)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_traced_replay_has_the_outcome_of_the_sweep(name: str) -> None:
    """What ``lab replay`` shows is what ``lab sweep`` found: same events, same virtual time."""
    for seed in SEEDS:
        swept, traced = run(find_scenario(name), seed), run(find_scenario(name), seed, trace=Trace(10))
        assert (traced.events, traced.seconds, traced.violation) == (swept.events, swept.seconds, swept.violation)


@pytest.mark.parametrize("trace", [None, Trace()])
def test_a_last_word_of_a_former_life_finds_the_front_door(trace: Trace | None) -> None:
    """F3: a node that has met a newer life looks at what a former one said as if it came from a stranger, on both roads."""
    world = quiet_world(12, "a b", trace=trace)
    say(world, "a", "b", 1)
    world.run(1.0)
    say(world, "a", "b", 2)
    former = world.nodes["a"].me
    world.crash("a")
    world.nodes["b"].meet(NodeId("a", 2), world.nodes["a"].address)
    assert world.nodes["b"].node.address_of(former) is None
    world.run(2.0)
    assert numbers(world, "b") == [1, 2]
    assert world.nodes["b"].node.address_of(former) == world.nodes["a"].address
