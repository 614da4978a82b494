"""limits/P2: requests of tasks that ask again as soon as they may, shared in proportion to demand.

Spec: limits 8 (P2), 5.2 (share "demand"), 1. Two of six processes run 40 and 20 tasks; then a third one has 100 requests a second, beside
them and alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.programs import NO_LOAD, Load, callers_of, everywhere, most_in_a_second, per_second, rate, wait_p99
from holdfast.features.limits.lab.terms import Terms
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = "api"
RATE, BURST, PROCESSES = 500.0, 50.0, 6
FEW, MANY, NEWCOMER = 20.0, 40.0, 100.0  # tasks of two processes, requests per second of a third one
FORMED_BY = 30.0
SETTLING = 15.0  # seconds after a load began in which shares come about
RATIO, RATIO_NEAR = 2.0, 0.08
TOTAL = (470.0, 500.0)
GETS = 0.95  # of what a newcomer asks for, which comes at random
WAIT_NEW, WAIT_FREE = 1.0, 0.005
PROTOTYPE = {"tasks": "317 and 165/s", "newcomer p99": 0.65, "alone p99": 0.0, "most in a second": 524}
LOADS = ("tasks", "tasks and a newcomer", "the newcomer alone")


class TaskParameters(Parameters, frozen=True, kw_only=True):
    """For how long each load runs."""

    seconds: Annotated[float, Meta(ge=18.0, le=600.0)] = 60.0


class Tasks(Experiment[TaskParameters]):
    """Three loads, one after the other."""

    id = "limits/P2"
    name = "limits/tasks"
    title = "Requests are shared as the paper shares traffic: in proportion to what waits"
    source = "limits 8, P2"
    criterion = (
        "40 and 20 tasks get 2:1 within 8 %, 470 to 500/s in all; a newcomer gets its 100/s (95 at least, they come at random), 99 % of "
        "its requests wait less than 1 s, and less than 5 ms when it is alone; no more than R + B + n requests go in a second"
    )
    parameters = TaskParameters
    seconds_per_cell = 10
    quick: ClassVar[Mapping[str, str]] = {"seconds": "20.0"}

    def cells(self, parameters: TaskParameters, seed: int) -> Sequence[Cell]:
        return [{"seconds": parameters.seconds, "seed": seed * SEEDS_MAX + number} for number in range(parameters.seeds)]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: TaskParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        names = ("many", "few", "ratio", "total", "newcomer", "newcomer p99", "alone p99", "most in a second", "peak of the sum of shares")
        measured: dict[str, Any] = {name: [row[name] for row in rows] for name in names}
        measured["rates"] = rows[0]["rates"] if rows else []
        expected = {"many": PROTOTYPE["tasks"], **{name: PROTOTYPE[name] for name in ("newcomer p99", "alone p99", "most in a second")}}
        misses = [*violations(results), *(note for row in rows for note in misses_of(row))]
        return Finding(measured, expected, bool(rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        lines = finding.measured["rates"]
        for line, label in zip(lines, ("40 tasks", "20 tasks", "100 requests a second"), strict=True):
            axes.plot(range(len(line)), line, linewidth=1, label=label)
        axes.plot(range(len(lines[0])), [sum(column) for column in zip(*lines, strict=True)], "k", linewidth=0.8, label="all")
        axes.axhline(RATE, color="#7b8794", linestyle="--", linewidth=0.8)
        axes.set_xlabel("seconds")
        axes.set_ylabel("requests per second")
        axes.legend()


def _play(cell: Cell) -> Measured:
    terms = Terms(LIMIT, RATE, BURST, "fair", "demand", PROCESSES)

    def appetites(name: str) -> list[Mapping[str, Appetite]]:
        return [{LIMIT: Appetite(0.0, called=True)}] if name.startswith("c") else []

    group = LimitGroup(cell["seed"], 3, PROCESSES, [terms], appetites)
    assert group.until(group.is_one, FORMED_BY), "there is no view of all"
    callers = callers_of(group.world, [group.fleet.crews[name] for name in group.clients], LIMIT)
    many, few, newcomer = callers[:3]
    begun_at = group.world.now
    tasks = {0: Load("tasks", MANY), 1: Load("tasks", FEW)}
    arriving = Load("poisson", NEWCOMER)
    windows = {}
    for load, loads in zip(LOADS, (tasks, {**tasks, 2: arriving}, {2: arriving}), strict=True):
        everywhere(callers, lambda number, loads=loads: loads.get(number, NO_LOAD))  # type: ignore[misc]
        group.run(cell["seconds"])
        windows[load] = group.world.now - (cell["seconds"] - SETTLING), group.world.now
    rates = [rate(caller.went, *windows[LOADS[0]]) for caller in (many, few)]
    return {
        **cell,
        "many": round(rates[0], 2),
        "few": round(rates[1], 2),
        "ratio": round(rates[0] / rates[1], 4) if rates[1] else None,
        "total": round(sum(rates), 2),
        "newcomer": round(rate(newcomer.went, *windows[LOADS[1]]), 2),
        "newcomer p99": round(wait_p99(newcomer.went, *windows[LOADS[1]]), 4),
        "alone p99": round(wait_p99(newcomer.went, *windows[LOADS[2]]), 5),
        "most in a second": most_in_a_second([went for caller in callers for went in caller.went]),
        "peak of the sum of shares": round(group.fleet.peaks[LIMIT], 4),
        "rates": [per_second(caller.went, begun_at, group.world.now) for caller in (many, few, newcomer)],
    }


def misses_of(row: Measured) -> list[str]:
    where, notes = f"seed {row['seed']}", []
    if row["ratio"] is None or abs(row["ratio"] - RATIO) > RATIO_NEAR * RATIO:
        notes.append(f"{where}: 40 and 20 tasks get {row['many']:g} and {row['few']:g}/s, accepted is 2:1 within 8 %")
    if not TOTAL[0] <= row["total"] <= TOTAL[1]:
        notes.append(f"{where}: {row['total']:g}/s in all, accepted are {TOTAL[0]:g} to {TOTAL[1]:g}")
    if row["newcomer"] < GETS * NEWCOMER:
        notes.append(f"{where}: the newcomer gets {row['newcomer']:g}/s, accepted are {GETS * NEWCOMER:g}")
    if row["newcomer p99"] >= WAIT_NEW:
        notes.append(f"{where}: 1 % of the newcomer's requests wait {row['newcomer p99']:g} s, accepted are less than {WAIT_NEW:g}")
    if row["alone p99"] >= WAIT_FREE:
        notes.append(f"{where}: alone, 1 % of its requests wait {row['alone p99']:g} s, accepted are less than {WAIT_FREE:g}")
    most = RATE + BURST + PROCESSES
    if row["most in a second"] > most:
        notes.append(f"{where}: {row['most in a second']} requests go in a second, accepted are {most:g}")
    return notes


EXPERIMENT = Tasks()
