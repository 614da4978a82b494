"""limits/P2m: eight processes share a limit of 1000 requests per second; one wants 900, seven want 50 each.

Spec: limits 5.2, 8 (P2m), D21. Requests arrive evenly, then at random; in other runs, while they arrive evenly, a member is killed with its
process, or a seat is killed, or a seat is stopped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.callers import Callers, at_share, most_in, paced, poisson
from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.measures import checked, completed, shortened, violations
from holdfast.features.limits.lab.terms import Policy, Terms
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT, RATE, BURST = "api", 1000.0, 100.0
BIG, SMALL, PROCESSES = 900.0, 50.0, 8
CALM = "calm"
FAILURES = ("a member is killed", "a seat is killed", "a seat is stopped")
FORMED = 20.0  # seconds until all is as it should be, with room for ``settle``
LOOKED = 20.0
AFTER = 20.0  # seconds after a failure that are looked at
STOPPED_FOR = 10.0
BACK: Mapping[Policy, float] = {"fair": 5.0, "exact": 10.5}  # seconds: 5 s, and ``settle`` where quota has to come back
TOTAL_PACED, SMALL_PACED = 990.0, 49.0
TOTAL_POISSON, SMALL_POISSON, WAIT_POISSON = 940.0, 48.0, 0.5
KEPT = 0.98  # of min(want, R/n), in any second; each count of a second may miss one request at either edge


class RequestsParameters(Parameters, frozen=True, kw_only=True):
    """Which policies."""

    policies: Annotated[tuple[Policy, ...], Meta(min_length=1, max_length=2)] = ("fair", "exact")


class Requests(Experiment[RequestsParameters]):
    """What each gets, how long it waits, and what a failure costs."""

    id = "limits/P2m"
    name = "limits/requests"
    title = "One process that wants all and seven that want little: each small one gets what it wants"
    source = "limits 8, P2m, D21"
    criterion = (
        "even arrivals: 990 per second in all, each small one 49; random ones: 940 and 48, waits of the small ones below 0.5 s (p99); a "
        "single failure: in any second no less than min(want, R/n) for any survivor, and all back in 5 s (fair) or settle and 5 s (exact)"
    )
    parameters = RequestsParameters
    seconds_per_cell = 9.0
    quick: ClassVar[Mapping[str, str]] = {"policies": '["fair"]'}

    def cells(self, parameters: RequestsParameters, seed: int) -> Sequence[Cell]:
        return [
            {"policy": policy, "what": what, "seed": seed * SEEDS_MAX + number}
            for policy in parameters.policies
            for what in (CALM, *FAILURES)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_calm if cell["what"] == CALM else _failure, cell)

    def judge(self, parameters: RequestsParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        calm = {row["policy"]: row for row in rows if row["what"] == CALM}
        failed = {f"{row['policy']}: {row['what']}": row for row in rows if row["what"] != CALM}
        measured: dict[str, Any] = {
            "even arrivals: all, least small one": {policy: row["paced"] for policy, row in calm.items()},
            "random arrivals: all, least small one, wait p99": {policy: row["poisson"] for policy, row in calm.items()},
            "most in 1 s": {policy: row["most"] for policy, row in calm.items()},
            "least second of a survivor, of min(want, R/n)": {key: row["kept"] for key, row in failed.items()},
            "seconds until all are back": {key: row["back"] for key, row in failed.items()},
            "lines": {key: row["line"] for key, row in failed.items()},
        }
        expected = {
            "even arrivals: all, least small one": "prototype: 1000 and 50.0",
            "random arrivals: all, least small one, wait p99": "prototype: 949, 49.3 and 0.13 s",
            "most in 1 s": f"at most R + B + m = {RATE + BURST + PROCESSES:g}",
        }
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        lines = finding.measured["lines"]
        plots = figure.subplots(len(lines), 1, sharex=True, squeeze=False)[:, 0] if lines else [figure.subplots()]
        for axes, (key, line) in zip(plots, lines.items(), strict=False):
            axes.plot([at for at, *_ in line], [total for _, total, _ in line], label="all")
            axes.plot([at for at, *_ in line], [10 * least for *_, least in line], label="least small one, times 10")
            axes.axvline(0.0, color="#b42318", linestyle="--", linewidth=1)
            axes.set_title(key, fontsize=8)
        plots[-1].set_xlabel("seconds after the failure")
        plots[0].legend(fontsize=7)


def _begin(cell: Cell) -> tuple[LimitGroup, dict[str, Callers]]:
    terms = Terms(LIMIT, RATE, BURST, cell["policy"], "maxmin", PROCESSES)
    group = LimitGroup(cell["seed"], 3, PROCESSES, [terms], lambda name: [{LIMIT: Appetite(0.0)}], checked=False)
    group.run(1.0)
    callers = {name: Callers(group.fleet.crews[name], LIMIT, gap=paced(_want(name))) for name in group.clients}
    for each in callers.values():
        each.begin()
    group.run(FORMED)
    return group, callers


def _want(name: str) -> float:
    return BIG if name == "c0" else SMALL


def _calm(cell: Cell) -> Measured:
    group, callers = _begin(cell)
    small = [each for name, each in callers.items() if name != "c0"]
    began = group.world.now
    group.run(LOOKED)
    turn = group.world.now
    even = [sum(each.rate(began, turn) for each in callers.values()), min(each.rate(began, turn) for each in small)]
    random = Random(f"{cell['seed']}/arrivals")
    for name, each in callers.items():
        each.change(poisson(_want(name), random))
    group.run(FORMED)
    again = group.world.now
    group.run(2 * LOOKED)
    end = group.world.now
    # Of random arrivals the small ones have what they have: what counts is how many of those that arrived went.
    wait = max(at_share(each.waits(again, end), 0.99) for each in small)
    arrived = [sum(each.rate(again, end) for each in callers.values()), min(each.rate(again, end) for each in small), wait]
    most = most_in(list(callers.values()), 1.0, began, end)
    return {**cell, "paced": [round(value, 2) for value in even], "poisson": [round(value, 3) for value in arrived], "most": most}


def _failure(cell: Cell) -> Measured:
    group, callers = _begin(cell)
    survivors = dict(callers)
    at = group.world.now
    if cell["what"] == FAILURES[0]:
        victim = group.clients[-1]
        group.crash(victim)
        group.fleet.crews[victim].kill(0, 1e6)
        callers[victim].change(None)
        del survivors[victim]
    elif cell["what"] == FAILURES[1]:
        group.crash("s0")
    else:
        group.world.stop("s0")
        group.world.at(at + STOPPED_FOR, lambda: group.world.resume("s0"))
    group.run(AFTER)
    kept, back = 1.0, 0.0
    whole = RATE * len(survivors) / PROCESSES
    line = []
    for second in range(int(AFTER)):
        rates = {name: each.rate(at + second, at + second + 1) for name, each in survivors.items()}
        kept = min(kept, *((rate + 1) / min(_want(name), RATE / PROCESSES) for name, rate in rates.items()))
        small = min(rate for name, rate in rates.items() if name != "c0")
        if small < SMALL_PACED or sum(rates.values()) < TOTAL_PACED / RATE * whole - 2 * PROCESSES:
            back = second + 1.0
        line.append((second, sum(rates.values()), small))
    return {**cell, "kept": round(kept, 3), "back": back, "line": line}


def _misses(row: Measured) -> list[str]:
    where, notes = f"{row['policy']}, {row['what']}", []
    if row["what"] == CALM:
        if row["paced"][0] < TOTAL_PACED or row["paced"][1] < SMALL_PACED:
            notes.append(f"{where}: even arrivals: {row['paced'][0]:.1f} in all, {row['paced'][1]:.1f} of a small one")
        total, small, wait = row["poisson"]
        if total < TOTAL_POISSON or small < SMALL_POISSON or wait >= WAIT_POISSON:
            notes.append(f"{where}: random arrivals: {total:.1f} in all, {small:.1f} of a small one, which waits {wait:.3f} s (p99)")
        return notes
    if row["kept"] < KEPT:
        notes.append(f"{where}: a survivor had {row['kept']:.0%} of min(want, R/n) in a second")
    if row["back"] > BACK[row["policy"]]:
        notes.append(f"{where}: all are back after {row['back']:g} s")
    return notes


EXPERIMENT = Requests()
