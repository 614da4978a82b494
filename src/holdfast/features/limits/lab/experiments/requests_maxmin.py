"""limits/P2m: one process asks for most of a limit and seven for little, and then something fails.

Spec: limits 8 (P2m), 5.2, D21, 1. 8 agents with a process each, 3 seats. Max-min gives the seven all that they want. The paper's shares, in
proportion to demand, run beside it: they let the seven starve, for what waits at the first one counts as demand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple

from msgspec import Meta

from holdfast.features.limits.lab.crews import Appetite
from holdfast.features.limits.lab.groups import LimitGroup
from holdfast.features.limits.lab.programs import Caller, Load, callers_of, everywhere, most_in_a_second, per_second, rate, wait_p99
from holdfast.features.limits.lab.terms import Terms
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMIT = "api"
RATE, BURST = 1000.0, 100.0
LARGE, SMALL, PROCESSES = 900.0, 50.0, 8
FAIR: Final = "fair"
EXACT: Final = "exact"
PLAIN: Final = "plain"  # fair, and shared in proportion to demand, as the paper does
SETTLING = 20.0  # seconds after a load began in which shares come about
FORMED_BY = 30.0
RESTART_AFTER = 2.0  # seconds until a killed agent is started again, as a supervisor does
SEAT_AWAY = 10.0
CASE = 25.0  # seconds for one failure
MEMBER, SEAT_KILLED, SEAT_STOPPED = FAILURES = ("a member is killed", "a seat is killed", "a seat is stopped")  # fmt: skip
TOTAL, SMALL_PACED = 990.0, 49.0
TOTAL_POISSON, SMALL_POISSON, WAIT_POISSON = 940.0, 48.0, 0.5
EDGE = 1  # request: what a second loses at its edge
BACK = 0.97  # of R in a second: shares are back
BACK_WITHIN = 5.0
PROTOTYPE = {"paced": "1000, each small one 50.0", "poisson": "949, 49 to 51.3, p99 0.13 s", PLAIN: "973, each small one 39.9, p99 13 s"}


class MaxMinParameters(Parameters, frozen=True, kw_only=True):
    """For how long each load runs."""

    seconds: Annotated[float, Meta(ge=22.0, le=600.0)] = 60.0
    failures: bool = True
    kinds: Annotated[tuple[Literal["fair", "exact", "plain"], ...], Meta(min_length=1, max_length=LIST_MAX)] = (FAIR, EXACT, PLAIN)


class MaxMin(Experiment[MaxMinParameters]):
    """Paced requests, Poisson, then single failures."""

    id = "limits/P2m"
    name = "limits/max-min"
    title = "Seven processes that want little get it, beside one that wants nearly all"
    source = "limits 8, P2m; D21"
    criterion = (
        "fair, paced: 990/s in all and 49/s for each small one; Poisson: 940/s, 48/s, 99 % wait less than 0.5 s; fair and exact: while one "
        "thing fails each gets min(what it wants, R/n) in every second but for one request at its edge, and all is back in 5 s (fair) or "
        "settle + 5 s (exact), after the failure and after what failed returned"
    )
    parameters = MaxMinParameters
    seconds_per_cell = 15
    quick: ClassVar[Mapping[str, str]] = {"seconds": "24.0", "failures": "false"}

    def cells(self, parameters: MaxMinParameters, seed: int) -> Sequence[Cell]:
        return [
            {
                "kind": kind,
                "seconds": parameters.seconds,
                "failures": parameters.failures and kind != PLAIN,
                "seed": seed * SEEDS_MAX + number,
            }
            for kind in parameters.kinds
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        return checked(_play, cell)

    def judge(self, parameters: MaxMinParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        first = {row["kind"]: row for row in reversed(rows)}
        measured: dict[str, Any] = {
            **{load: {kind: row[load] for kind, row in first.items()} for load in ("paced", "poisson")},
            "failures": {kind: row["cases"] for kind, row in first.items() if row["cases"]},
            "most in a second": {kind: row["most"] for kind, row in first.items()},
            "peak of the sum of shares": {kind: row["peak"] for kind, row in first.items()},
            "rates": {kind: row["rates"] for kind, row in first.items()},
        }
        expected = {"paced": PROTOTYPE["paced"], "poisson": PROTOTYPE["poisson"], "failures": f"plain shares: {PROTOTYPE[PLAIN]}"}
        misses = [*violations(results), *(note for row in rows if row["kind"] != PLAIN for note in misses_of(row))]
        return Finding(measured, expected, any(row["kind"] == FAIR for row in rows) and not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        grid = figure.subplots(len(finding.measured["rates"]), 1, sharex=True, squeeze=False)
        for axes, (kind, rates) in zip(grid[:, 0], finding.measured["rates"].items(), strict=True):
            for number, line in enumerate(rates["lines"]):
                axes.plot(
                    range(len(line)), line, linewidth=0.8, label="wants 900/s" if not number else "wants 50/s" if number == 1 else None
                )
            axes.plot(range(len(rates["total"])), rates["total"], "k", linewidth=0.8, label="all")
            for what, at in rates["marks"].items():
                axes.axvline(at, color="#b42318", linestyle="--", linewidth=0.8)
                axes.text(at, 1.0, what, fontsize=6, rotation=90, va="bottom")
            axes.set_yscale("symlog", linthresh=100)
            axes.set_title(kind, fontsize=8)
            axes.set_ylabel("per second")
        grid[0, 0].legend(fontsize=7)
        grid[-1, 0].set_xlabel("seconds")


def want_of(number: int) -> float:
    return SMALL if number else LARGE


class Run(NamedTuple):
    """A group with its callers, all in one view."""

    group: LimitGroup
    callers: list[Caller]
    begun_at: float


def form(seed: int, kind: str) -> Run:
    """All agents in one view; no request has come yet."""
    terms = Terms(LIMIT, RATE, BURST, "exact" if kind == EXACT else "fair", "demand" if kind == PLAIN else "maxmin", PROCESSES)

    def appetites(name: str) -> list[Mapping[str, Appetite]]:
        return [{LIMIT: Appetite(want_of(int(name[1:])), called=True)}] if name.startswith("c") else []

    group = LimitGroup(seed, 3, PROCESSES, [terms], appetites)
    assert group.until(group.is_one, FORMED_BY), "there is no view of all"
    callers = callers_of(group.world, [group.fleet.crews[name] for name in group.clients], LIMIT)
    return Run(group, callers, group.world.now)


def _play(cell: Cell) -> Measured:
    run = form(cell["seed"], cell["kind"])
    group, callers = run.group, run.callers
    found: dict[str, Any] = {**cell}
    for kind in ("paced", "poisson"):
        everywhere(callers, lambda number, kind=kind: Load(kind, want_of(number)))  # type: ignore[misc]
        group.run(cell["seconds"])
        found[kind] = rates_of(callers, group.world.now - (cell["seconds"] - SETTLING), group.world.now)
    marks: dict[str, float] = {}
    found["cases"] = {}
    if cell["failures"]:
        everywhere(callers, lambda number: Load("paced", want_of(number)))
        group.run(2 * SETTLING)  # What waited at the large one is no matter: it is saturated all the time.
        for what in FAILURES:
            marks[what] = group.world.now - run.begun_at
            found["cases"][what] = _fail(run, what)
    lines = [per_second(caller.went, run.begun_at, group.world.now) for caller in callers]
    return {
        **found,
        "settle": group.config.settle,
        "most": most_in_a_second([went for caller in callers for went in caller.went]),
        "peak": round(group.fleet.peaks[LIMIT], 6),
        "rates": {"lines": lines, "total": [sum(column) for column in zip(*lines, strict=True)], "marks": marks},
    }


def rates_of(callers: Sequence[Caller], begin: float, end: float) -> dict[str, float]:
    """What went in this time: in all, at the large one, at the small one that got least; and how long small ones waited."""
    rates = [rate(caller.went, begin, end) for caller in callers]
    return {
        "total": round(sum(rates), 2),
        "large": round(rates[0], 2),
        "least small": round(min(rates[1:]), 2),
        "small wait p99": round(max(wait_p99(caller.went, begin, end) for caller in callers[1:]), 4),
    }


def _fail(run: Run, what: str) -> dict[str, Any]:
    """One failure, and what was left to each in every second from then on. What failed comes back: that is a change, too."""
    group, callers, begin = run.group, run.callers, run.group.world.now
    away = RESTART_AFTER if what == MEMBER else SEAT_AWAY
    if what == MEMBER:
        group.world.crash("c3")
        group.world.revive_after(away, "c3")
    elif what == SEAT_KILLED:
        group.world.crash("s0")
        group.world.revive_after(away, "s0")
    else:
        group.world.stop("s1")
        group.world.at(begin + away, lambda: group.world.resume("s1"))
    group.run(CASE)
    lines = [per_second(caller.went, begin, begin + CASE) for caller in callers]
    below = [
        sum(line[second] < min(want_of(number), RATE / PROCESSES) - EDGE for second in range(int(CASE)))
        for number, line in enumerate(lines)
    ]
    totals = [sum(column) for column in zip(*lines, strict=True)]
    return {
        "seconds below": max(below),
        "back after": None if what == MEMBER else _back(totals[: int(away)]),
        "back after the return": _back(totals[int(away) :]),
        "least total": min(totals),
    }


def _back(totals: Sequence[int]) -> int:
    """Seconds after which all of the limit is used."""
    return max((second + 1 for second, total in enumerate(totals) if total < BACK * RATE), default=0)


def misses_of(row: Measured) -> list[str]:
    notes = []
    kind = row["kind"]
    if kind == FAIR:
        paced, poisson = row["paced"], row["poisson"]
        accepted = (
            ("paced, in all", paced["total"], TOTAL),
            ("paced, a small one", paced["least small"], SMALL_PACED),
            ("Poisson, in all", poisson["total"], TOTAL_POISSON),
            ("Poisson, a small one", poisson["least small"], SMALL_POISSON),
        )
        notes += [f"{kind}: {what}: {found:g}/s, accepted are {least:g}" for what, found, least in accepted if found < least]
        if poisson["small wait p99"] >= WAIT_POISSON:
            notes.append(f"{kind}: Poisson: 1 % of a small one wait {poisson['small wait p99']:g} s, accepted are {WAIT_POISSON:g}")
    within = BACK_WITHIN + (row["settle"] if kind == EXACT else 0.0)
    for what, case in row["cases"].items():
        if case["seconds below"]:
            notes.append(f"{kind}: {what}: {case['seconds below']} seconds in which one of them got less than min(want, R/n)")
        for when in ("back after", "back after the return"):
            if case[when] is not None and case[when] > within:
                notes.append(f"{kind}: {what}: all is {when} in {case[when]:g} s, accepted are {within:g}")
    return notes


EXPERIMENT = MaxMin()
