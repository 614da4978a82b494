"""limits/P2: two processes with tasks that never rest, and a third one that comes later.

Spec: limits 5.2, 8 (P2). Share "demand": R = 500/s, six processes. 40 and 20 tasks call in a closed loop, so shares go by what waits;
then one process more has 100 requests per second at random. In another run all of them together want less than R.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.features.limits.lab.callers import Callers, at_share, most_in, poisson
from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.measures import checked, completed, shortened, thinned, violations
from holdfast.features.limits.lab.terms import Terms
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT, RATE, BURST, PROCESSES = "api", 500.0, 50.0, 6
TASKS = {"c0": 40, "c1": 20}
NEWCOMER, NEWCOMER_WANTS, LIGHT = "c2", 100.0, 30.0  # requests per second; the last one of each, when nobody is short
FORMED, LOOKED, JOINED = 40.0, 20.0, 10.0
LOADED, LIGHTLY = ("loaded", "light")
NEAR = 0.08
TOTAL = (470.0, 500.5)
WAIT_NEW, WAIT_LIGHT = 1.0, 0.005


class ClosedLoopParameters(Parameters, frozen=True, kw_only=True):
    """There is nothing to set but the number of runs."""


class ClosedLoop(Experiment[ClosedLoopParameters]):
    """Proportional shares as callers see them."""

    id = "limits/P2"
    name = "limits/closed-loop"
    title = "Shares in proportion to what waits, and a newcomer"
    source = "limits 8, P2; paper 003, 3.1"
    criterion = (
        "2:1 within 8 %, 470 to 500 per second in all; the newcomer gets what it asks for and waits less than 1 s (p99); under a light "
        "load p99 of the wait below 5 ms; most in 1 s at most R + B + n"
    )
    parameters = ClosedLoopParameters
    seconds_per_cell = 6.0
    quick: ClassVar[Mapping[str, str]] = {}

    def cells(self, parameters: ClosedLoopParameters, seed: int) -> Sequence[Cell]:
        return [{"what": what, "seed": seed * SEEDS_MAX + number} for what in (LOADED, LIGHTLY) for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        return checked(_loaded if cell["what"] == LOADED else _light, cell)

    def judge(self, parameters: ClosedLoopParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        loaded, light = ([row for row in rows if row["what"] == what] for what in (LOADED, LIGHTLY))
        measured: dict[str, Any] = {
            "40 and 20 tasks": [row["rates"] for row in loaded],
            "newcomer": [row["newcomer"] for row in loaded],
            "p99 wait of the newcomer, s": [row["wait"] for row in loaded],
            "p99 wait under a light load, s": [row["wait"] for row in light],
            "most in 1 s": [row["most"] for row in loaded],
            "lines": loaded[0]["lines"] if loaded else {},
        }
        expected = {
            "40 and 20 tasks": "2:1 (prototype: 317 and 165)",
            "newcomer": NEWCOMER_WANTS,
            "p99 wait of the newcomer, s": "prototype: 0.65",
            "p99 wait under a light load, s": "prototype: 0",
            "most in 1 s": f"at most R + B + n = {RATE + BURST + PROCESSES:g} (prototype: 524)",
        }
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        return Finding(measured, expected, bool(loaded) and bool(light) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for name, line in finding.measured["lines"].items():
            axes.plot([at for at, _ in line], [value for _, value in line], label=name)
        axes.set_xlabel("seconds")
        axes.set_ylabel("requests per second")
        axes.legend()


def _begin(cell: Cell) -> LimitGroup:
    terms = Terms(LIMIT, RATE, BURST, "fair", "demand", PROCESSES)
    group = LimitGroup(cell["seed"], 3, PROCESSES, [terms], lambda name: [{LIMIT: Appetite(0.0)}], checked=False)
    group.run(5.0)
    return group


def _loaded(cell: Cell) -> Measured:
    group = _begin(cell)
    callers = {name: Callers(group.fleet.crews[name], LIMIT, tasks=tasks) for name, tasks in TASKS.items()}
    for each in callers.values():
        each.begin()
    first = group.world.now
    group.run(FORMED)
    began = group.world.now
    group.run(LOOKED)
    joined = group.world.now
    rates = [each.rate(began, joined) for each in callers.values()]
    new = callers[NEWCOMER] = Callers(group.fleet.crews[NEWCOMER], LIMIT, gap=poisson(NEWCOMER_WANTS, Random(f"{cell['seed']}/new")))
    new.begin()
    group.run(JOINED)
    steady = group.world.now
    group.run(LOOKED)
    end = group.world.now
    lines = {
        name: thinned([(second, each.rate(first + second, first + second + 1)) for second in range(int(end - first))])
        for name, each in callers.items()
    }
    return {
        **cell,
        "rates": [round(rate, 2) for rate in rates],
        "newcomer": round(new.rate(steady, end), 2),
        "wait": round(at_share(new.waits(steady, end), 0.99), 4),
        "most": most_in(list(callers.values()), 1.0, began, end),
        "lines": lines,
    }


def _light(cell: Cell) -> Measured:
    group = _begin(cell)
    random = Random(f"{cell['seed']}/light")
    callers = [Callers(group.fleet.crews[name], LIMIT, gap=poisson(LIGHT, random)) for name in group.clients]
    for each in callers:
        each.begin()
    group.run(FORMED)
    began = group.world.now
    group.run(LOOKED)
    waits = sorted(wait for each in callers for wait in each.waits(began, group.world.now))
    return {**cell, "wait": round(at_share(waits, 0.99), 4)}


def _misses(row: Measured) -> list[str]:
    if row["what"] == LIGHTLY:
        return [f"light load: waits of {row['wait']} s (p99)"] if row["wait"] >= WAIT_LIGHT else []
    one, other = row["rates"]
    notes = []
    if abs(one / other / 2 - 1) > NEAR:
        notes.append(f"40 and 20 tasks get {one:.0f} and {other:.0f} per second")
    if not TOTAL[0] <= one + other <= TOTAL[1]:
        notes.append(f"{one + other:.0f} per second go in all")
    if row["newcomer"] < NEWCOMER_WANTS * (1 - NEAR) or row["wait"] >= WAIT_NEW:
        notes.append(f"the newcomer gets {row['newcomer']:.0f} per second and waits {row['wait']:.2f} s (p99)")
    if row["most"] > RATE + BURST + PROCESSES:
        notes.append(f"{row['most']} go in one second")
    return notes


EXPERIMENT = ClosedLoop()
