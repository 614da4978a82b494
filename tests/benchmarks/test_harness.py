"""The benchmarks' own machinery, at sizes that measure nothing: shape of the answer, verdict, exit code.

No test here asserts a speed. What they assert is that a verdict follows from the ratios, and that all who compute the lease
workload compute the same thing.
"""

from __future__ import annotations

import json
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from benchmarks import agent, datagrams, forming, leadership, memory, ring, simulator, tickets
from benchmarks.__main__ import NAMES, main
from benchmarks.harness import Goal, Report, at_least, at_most, median_ratio, ratio, take_turns
from benchmarks.lease import LeaseAck, Leases, Size, Tally, build_world, events, tallies_of
from benchmarks.lease_checkers import NothingFromNothing, SessionsEndOnce, lease_checkers
from holdfast.lab.violation import Violation

TINY = Size(nodes=10, neighbours=2, seconds=2.0, seed=3)
SIZES: dict[str, tuple[ModuleType, Any]] = {
    "simulator": (simulator, TINY),
    "datagrams": (datagrams, datagrams.Size(window=4, messages=20, alone=5, warm=5)),
    "memory": (memory, TINY),
    "agent": (agent, agent.Size(members=2, lease=0.4, settle_seconds=0.2, idle_seconds=0.5, idle_ring_seconds=0.2, calls=10, piped=50)),
    "forming": (forming, forming.Size(agents=(2,), presets=("local",), starts=1)),
    "leadership": (leadership, leadership.QUICK._replace(systems=("flock",), candidates=2, calm_seconds=0.1, busy_seconds=0.2)),
    "tickets": (tickets, tickets.Size(("flock",), ("smallest",), cycles=2, clients=2, seconds=0.1)),
    "ring": (ring, ring.Size(members=24, crashes=2, early=1, counted=(16,), neighbours=(1,), watched=8, hosts=2, lease=0.5, seconds=0.6)),
}


def report(ratio: float, *, goal: Goal, problems: tuple[str, ...] = ()) -> Report:
    return Report("any", {"speed": goal}, {"speed": ratio, "beside": 1.0}, {"rounds": 1}, problems)


@pytest.mark.parametrize("found, verdict", [(1.59, "miss"), (1.6, "pass"), (1.61, "pass")])
def test_at_least(found: float, verdict: str) -> None:
    """Issue, How fast: the verdict is computed, and the bound itself is good enough."""
    assert report(found, goal=at_least(1.6)).verdict == verdict


@pytest.mark.parametrize("found, verdict", [(0.32, "pass"), (0.33, "pass"), (0.34, "miss")])
def test_at_most(found: float, verdict: str) -> None:
    """Issue, How fast: the verdict is computed, and the bound itself is good enough."""
    assert report(found, goal=at_most(0.33)).verdict == verdict


def test_a_problem_is_a_miss() -> None:
    """Issue, How fast, "identical results": good ratios of different work are no pass."""
    spoilt = report(2.0, goal=at_least(1.6), problems=("they disagree",))
    assert (spoilt.verdict, spoilt.exit_code) == ("miss", 1)
    assert "they disagree" in spoilt.as_text()


def test_what_was_not_measured_is_a_miss() -> None:
    """H241: a goal without a number is no pass; the number is null, and its line says why there is none."""
    found = Report("any", {"speed": at_least(1)}, {"speed": None}, {})
    assert (found.verdict, json.loads(found.as_json())["ratios"]) == ("miss", {"speed": None})
    assert "not measured" in found.as_text()


def test_turns_alternate_and_the_first_round_does_not_count() -> None:
    """Issue, How fast: contestants take turns, the best of several rounds counts."""
    order: list[str] = []
    times = {"ours": iter([9.0, 3.0, 2.0]), "theirs": iter([0.1, 4.0, 5.0])}

    def contestant(name: str) -> float:
        order.append(name)
        return next(times[name])

    seconds = take_turns({name: partial(contestant, name) for name in times}, 2)
    assert order == ["ours", "theirs"] * 3
    assert seconds == {"ours": [3.0, 2.0], "theirs": [4.0, 5.0]}
    assert ratio(seconds, "theirs", "ours") == 2.0
    assert median_ratio(seconds, "theirs", "ours") == (4 / 3 + 5 / 2) / 2


def test_every_benchmark_is_tried() -> None:
    """Every name has a tiny size here, except those that take minutes; these have tests of their own beside this file."""
    assert NAMES.keys() - SIZES.keys() == {
        "ring-real", "leadership-kills", "tickets-storm", "tickets-load", "http-load", "views", "limits", "page",
        "membership", "gossip", "election", "election-grid", "election-zookeeper",
    }  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_json_and_exit_code_follow_the_ratios(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Issue, How fast: one object with benchmark, ratios, goals and verdict; the exit code follows the verdict."""
    module, size = SIZES[name]
    monkeypatch.setattr(module, "run", partial(module.run, size=size))
    code = main([name, "--json", "--rounds", "1"])
    found = json.loads(capsys.readouterr().out)
    assert found["benchmark"] == name
    assert found["problems"] == []
    met = [_met(found["ratios"][ratio], **goal) for ratio, goal in found["goals"].items()]
    assert found["verdict"] == ("pass" if all(met) else "miss")
    assert code == (0 if all(met) else 1)


def _met(ratio: float, *, at_least: float = 0.0, at_most: float = float("inf")) -> bool:
    return at_least <= ratio <= at_most


def test_list_names_every_benchmark_with_its_goals(capsys: pytest.CaptureFixture[str]) -> None:
    """Issue, How fast: python -m benchmarks --list."""
    assert main(["--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*NAMES]
    assert "over_simpy_callbacks >= 1.6" in lines[0]


@pytest.mark.parametrize("arguments", [[], ["speed"], ["simulator", "--rounds", "0"], ["simulator", "--rounds", "many"]])
def test_a_wrong_call_exits_2_and_says_what_is_accepted(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Issue, What bad input gets: the accepted values, exit 2."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "simulator" in said or "accepted: 1 and more" in said


def test_different_results_are_reported() -> None:
    """Issue, How fast, "identical results": one ack less in one node is enough."""
    same = [Tally(2, 2, 2, 0), Tally(3, 3, 3, 0)]
    other = [Tally(2, 2, 2, 0), Tally(3, 3, 2, 1)]
    assert simulator.differences({"lab": same, "simpy": list(same)}) == []
    (problem,) = simulator.differences({"lab": same, "simpy": other})
    assert "node 1" in problem


def test_events_are_counted_from_the_result() -> None:
    """Deliveries and timers follow from the tallies, so nobody has to count while the clock runs."""
    world = build_world(TINY)
    world.run(TINY.seconds)
    assert events(tallies_of(world)) == world.events > 0


@pytest.mark.parametrize("checker", [SessionsEndOnce, NothingFromNothing])
def test_checkers_of_the_workload_can_fail(checker: type[SessionsEndOnce | NothingFromNothing]) -> None:
    """Issue, Lab: a checker that cannot fail costs nothing and proves nothing."""
    world = build_world(TINY, [checker()])
    world.run(TINY.seconds)
    host = world.nodes["n4"]
    next(iter(host.node.use(Leases).monitors.values())).expired += 1
    host.endpoint.sent[LeaseAck] += 1000
    with pytest.raises(Violation, match=checker.name):
        world.run(2 * TINY.seconds)


def test_checkers_change_nothing() -> None:
    """A run that is watched gives the same result as one that is not."""
    bare, watched = build_world(TINY), build_world(TINY, lease_checkers())
    for world in (bare, watched):
        world.run(TINY.seconds)
    assert tallies_of(bare) == tallies_of(watched)
