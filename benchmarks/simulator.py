"""`simulator`: events per CPU second of the lab, as users run it, against SimPy on the same lease workload.

    over_simpy_callbacks   CPU of SimPy as a bare callback queue / CPU of the lab, for the same simulated result
    over_simpy_processes   the same, SimPy in its process style
    checkers_slowdown      CPU of the lab with two checkers that watch all nodes / without

The lab runs with everything a user gets: Host, Node and its rules, delay draw, loss, a count per node and type. Only running
counts, not building: a group is built once and run for as long as one likes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import process_time
from typing import Protocol

from benchmarks.harness import Report, at_least, at_most, median_ratio, ratio, take_turns
from benchmarks.lease import Size, Tally, build_world, events, tallies_of
from benchmarks.lease_checkers import lease_checkers
from benchmarks.lease_simpy import Callbacks, Processes
from holdfast.lab.checker import Checker

GOALS = {"over_simpy_callbacks": at_least(1.6), "over_simpy_processes": at_least(5.0), "checkers_slowdown": at_most(2.0)}
ROUNDS = 24
SIZE = Size()


class Simulation(Protocol):
    """One way to compute the workload."""

    def run(self, until: float) -> None: ...
    def tallies(self) -> list[Tally]: ...


class Lab:
    """Ours."""

    def __init__(self, size: Size, checkers: Sequence[Checker] = ()) -> None:
        self.world = build_world(size, checkers)

    def run(self, until: float) -> None:
        self.world.run(until)

    def tallies(self) -> list[Tally]:
        return tallies_of(self.world)


class Runner:
    """Runs one simulation on by one slice per round. All stay alive side by side, so that a turn can be short."""

    def __init__(self, simulation: Simulation, slice_seconds: float) -> None:
        self.simulation = simulation
        self._slice_seconds = slice_seconds
        self._until = 0.0

    def __call__(self) -> float:
        self._until += self._slice_seconds
        began = process_time()
        self.simulation.run(self._until)
        return process_time() - began


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    runners = {
        "lab": Runner(Lab(size), size.seconds),
        "simpy_callbacks": Runner(Callbacks(size), size.seconds),
        "lab_checked": Runner(Lab(size, lease_checkers()), size.seconds),
        "simpy_processes": Runner(Processes(size), size.seconds),
    }
    seconds = take_turns(runners, rounds)
    results = {name: runner.simulation.tallies() for name, runner in runners.items()}
    ratios = {
        "over_simpy_callbacks": ratio(seconds, "simpy_callbacks", "lab"),
        "over_simpy_processes": ratio(seconds, "simpy_processes", "lab"),
        "checkers_slowdown": ratio(seconds, "lab_checked", "lab"),
    }
    return Report("simulator", GOALS, ratios, _raw(size, rounds, results["lab"], seconds), differences(results))


def differences(results: Mapping[str, list[Tally]]) -> list[str]:
    """A comparison of different results compares nothing."""
    reference, *others = results
    return [_difference(reference, name, results) for name in others if results[name] != results[reference]]


def _raw(size: Size, rounds: int, tallies: list[Tally], seconds: Mapping[str, list[float]]) -> dict[str, object]:
    per_round = events(tallies) / (rounds + 1)
    sums = Tally(*(sum(each) for each in zip(*tallies, strict=True)))
    return {
        **size._asdict(),
        "rounds": rounds,
        "events": events(tallies),
        **sums._asdict(),
        "events_per_cpu_second": {name: round(per_round / min(each)) for name, each in seconds.items()},
        "median_ratio_of_a_round": {name: round(median_ratio(seconds, name, "lab"), 3) for name in seconds if name != "lab"},
        "cpu_seconds": {name: [round(each, 4) for each in times] for name, times in seconds.items()},
    }


def _difference(reference: str, name: str, results: Mapping[str, list[Tally]]) -> str:
    pairs = enumerate(zip(results[reference], results[name], strict=True))
    index, (ours, theirs) = next((index, pair) for index, pair in pairs if pair[0] != pair[1])
    return f"{name} and {reference} disagree, first about node {index}: {theirs} and {ours}"
