"""tickets/E3: Theorem 4.1 on the paper's own algorithms: three traces that break it, and random cuts and stops.

Spec: tickets 8 (E3), D3, D4, D5; paper 001, Lemma 4.2, Theorem 4.1. The traces: ``holdfast.papers.tickets.lab.paper_traces``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.papers.tickets.lab.paper_rings import PaperRings, intervals
from holdfast.papers.tickets.lab.paper_traces import BY_NAME, TRACES, random_cuts, random_stop

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRACE, CUTS, STOP = "trace", "cuts", "stop"
RUNS_PER_CELL = 10
STOP_SECONDS = 8.0  # D5
SHARED = "runs in which two processes act with one ticket"
RED, BLUE = "#b42318", "#0072b2"


class ConflictParameters(Parameters, frozen=True, kw_only=True):
    """The traces draw nothing; seeds are for the random runs."""

    seeds: Annotated[int, Meta(ge=1, le=100_000)] = 100
    seconds: Annotated[float, Meta(ge=10.0, le=3600.0)] = 60.0  # of a run with cuts


class PaperConflicts(Experiment[ConflictParameters]):
    """What the paper says can never be, seen by an observer of all processes."""

    id = "tickets/E3"
    name = "tickets/theorem-4.1"
    title = "Theorem 4.1 on the paper's own algorithms: it does not hold"
    source = "tickets 8, E3; paper 001, Theorem 4.1"
    criterion = (
        "in each of the traces of D3, D4 and D5 two processes act with one ticket; random link cuts show it too, with k = 1 and k = 2"
    )
    parameters = ConflictParameters
    seconds_per_cell = 0.076
    quick: ClassVar[Mapping[str, str]] = {"seeds": "6"}

    def cells(self, parameters: ConflictParameters, seed: int) -> Sequence[Cell]:
        traces: list[Cell] = [{"kind": TRACE, "trace": trace.name} for trace in TRACES]
        settings = [{"kind": CUTS, "k": k, "full": full, "seconds": parameters.seconds} for full in (True, False) for k in (1, 2)]
        settings.append({"kind": STOP, "seconds": STOP_SECONDS})
        played = (in_batches(each, parameters.seeds, RUNS_PER_CELL, seed * SEEDS_MAX) for each in settings)
        return [*traces, *(cell for cells in played for cell in cells)]

    def measure(self, cell: Cell) -> Measured:
        return _traced(cell["trace"]) if cell["kind"] == TRACE else _played(cell)

    def judge(self, parameters: ConflictParameters, results: Sequence[Measured]) -> Finding:
        traces = {row["trace"]: {key: row[key] for key in row if key not in ("kind", "trace")} for row in results if row["kind"] == TRACE}
        rows: dict[str, dict[str, Any]] = {}
        for row in results:
            if row["kind"] != TRACE:
                sums = rows.setdefault(row["setting"], {"runs": 0, SHARED: 0, "processes left, mean": 0.0})
                sums["runs"] += row["runs"]
                sums[SHARED] += row["shared"]
                sums["processes left, mean"] += row["left"] / parameters.seeds
        for sums in rows.values():
            sums["processes left, mean"] = round(sums["processes left, mean"], 2)
        notes = [f"{name}: nobody shares a ticket" for name, row in traces.items() if not row["conflict"]]
        cut = {k: sum(sums[SHARED] for setting, sums in rows.items() if setting.startswith(f"cuts, k = {k},")) for k in (1, 2)}
        notes += [f"cuts, k = {k}: nobody shares a ticket in any run" for k, count in cut.items() if not count]
        expected = {
            "traces": {trace.name: f"{trace.decision}: two act with ticket {trace.ticket}" for trace in TRACES},
            "random runs": "> 0 with cuts, for k = 1 and k = 2",
        }
        return Finding({"traces": traces, "random runs": rows}, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        places = figure.subplots(len(TRACES), 1)
        for axes, (name, row) in zip(places, finding.measured["traces"].items(), strict=True):
            trace = BY_NAME[name]
            for place, (process, spans) in enumerate(row["acted"].items()):
                axes.broken_barh([(begin, end - begin) for begin, end in spans], (place - 0.35, 0.7), color=BLUE)
                axes.text(0.0, place, f" {process}", va="center", ha="left", color="white" if spans[0][0] == 0.0 else BLUE)
            for begin, end in row["together"]:
                axes.axvspan(begin, end, color=RED, alpha=0.35)
            axes.set_yticks([])
            axes.set_xlim(0, trace.seconds)
            axes.set_title(f"{trace.decision} {name}: who acts with ticket {trace.ticket}; {trace.why}", loc="left", fontsize=9)
        places[-1].set_xlabel("seconds; red: two processes at once")


def _traced(name: str) -> Measured:
    trace = BY_NAME[name]
    rings = trace.play(0)
    acted = intervals(rings.claims, trace.ticket, trace.seconds)
    conflict = rings.conflicts[0] if rings.conflicts else None
    return {
        "kind": TRACE,
        "trace": name,
        "conflict": "" if conflict is None else f"{conflict.one} and {conflict.other} act with {list(conflict.tickets)}",
        "at": None if conflict is None else round(conflict.at, 3),
        "acted": {process: [(round(begin, 3), round(end, 3)) for begin, end in spans] for process, spans in acted.items()},
        "together": [(round(begin, 3), round(end, 3)) for begin, end in _together(acted)],
    }


def _together(acted: Mapping[str, Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    spans = [(process, *span) for process, each in acted.items() for span in each]
    pairs = [(one, other) for one in spans for other in spans if one[0] < other[0]]
    common = [(max(one[1], other[1]), min(one[2], other[2])) for one, other in pairs]
    return [(begin, end) for begin, end in common if begin < end]


def _played(cell: Cell) -> Measured:
    shared = left = 0
    for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
        rings = _run(cell, seed)
        shared += bool(rings.conflicts)
        left += len(rings.acting)
    return {"kind": cell["kind"], "setting": _setting(cell), "runs": cell["runs"], "shared": shared, "left": left}


def _run(cell: Cell, seed: int) -> PaperRings:
    if cell["kind"] == STOP:
        return random_stop(seed, cell["seconds"])
    return random_cuts(seed, cell["k"], cell["seconds"], full=cell["full"])


def _setting(cell: Cell) -> str:
    if cell["kind"] == STOP:
        return f"one process stopped for {cell['seconds']:g} s"
    return f"cuts, k = {cell['k']}, {'every ticket owned' if cell['full'] else 'half of the tickets owned, four join'}"


EXPERIMENT = PaperConflicts()
