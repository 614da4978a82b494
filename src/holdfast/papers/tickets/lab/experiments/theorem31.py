"""tickets/E1: Theorem 3.1 on the paper's failure-free protocol, by random interleavings and by all of a small cluster.

Spec: tickets 8 (E1), 7 (I1, I2, I11), D8; paper 001, Lemmas 3.1 and 3.2, Theorem 3.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.lab.experiment import Cell, Count, Experiment, Finding, Measured, Parameters
from holdfast.papers.tickets.lab.failure_free_runs import Everything, Interleaving

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STAYS, LEAVES, ALL = ORDER = ("one process stays", "everybody may leave", "all interleavings")
RUNS_PER_CELL = 50
LEAVER = "ticket owned again before its leaver knew"
COUNTED = ("runs", "operations", "deliveries", "shared", "broken", "deadlocks", "deadlocks with a coordinator", LEAVER)


class InterleavingParameters(Parameters, frozen=True, kw_only=True):
    """Every interleaving is a repetition."""

    runs: Count = 1000  # in which one process stays
    leaving_runs: Count = 300  # in which all may leave
    processes: Annotated[int, Meta(ge=2, le=100)] = 10
    tickets: Annotated[int, Meta(ge=2, le=1000)] = 16  # n
    operations: Annotated[int, Meta(ge=1, le=10_000)] = 200  # cjoin and cleave, per run
    joiners: Annotated[int, Meta(ge=1, le=3)] = 3  # in the cluster of which all interleavings are visited; four would take hours


class Interleavings(Experiment[InterleavingParameters]):
    """Operations begin and messages arrive in any order; afterwards what is under way ends."""

    id = "tickets/E1"
    name = "tickets/theorem-3.1"
    title = "Theorem 3.1: interleaved cjoin and cleave without failures"
    source = "tickets 8, E1; paper 001, Theorem 3.1"
    criterion = (
        "no two processes coordinate a ticket in any run (I1, I2), one cycle that covers all tickets when nothing is in flight (I11);"
        " where everybody may leave, some runs end with all of them waiting for each other (D8)"
    )
    parameters = InterleavingParameters
    seconds_per_cell = 1.4
    repetitions = "runs"
    quick: ClassVar[Mapping[str, str]] = {"runs": "10", "leaving_runs": "10", "operations": "100", "joiners": "2"}

    def cells(self, parameters: InterleavingParameters, seed: int) -> Sequence[Cell]:
        shape = {"processes": parameters.processes, "tickets": parameters.tickets, "operations": parameters.operations}
        cells: list[Cell] = [{"kind": ALL, "joiners": parameters.joiners}]
        for kind, runs in ((STAYS, parameters.runs), (LEAVES, parameters.leaving_runs)):
            for first in range(0, runs, RUNS_PER_CELL):
                share = min(RUNS_PER_CELL, runs - first)
                cells.append({"kind": kind, **shape, "runs": share, "seed": seed * 1_000_000 + first})
        return cells

    def measure(self, cell: Cell) -> Measured:
        return _explored(cell) if cell["kind"] == ALL else _played(cell)

    def judge(self, parameters: InterleavingParameters, results: Sequence[Measured]) -> Finding:
        rows = {kind: _summed([row for row in results if row["kind"] == kind]) for kind in (STAYS, LEAVES)}
        (walk,) = (row for row in results if row["kind"] == ALL)
        examples = [f"{row['kind']}: {row['first']}" for row in results if row.get("first")]
        notes = [*examples[:3], *_misses(rows)]
        if walk["violation"] or not walk["complete"]:
            notes.append(f"{ALL}: {walk['violation'] or 'not all states were visited'}")
        measured = {**rows, ALL: {key: walk[key] for key in ("states", "moves", "depth", "violation")}}
        nothing = {"shared": 0, "broken": 0}
        expected = {STAYS: {**nothing, "deadlocks": 0}, LEAVES: {**nothing, "deadlocks": "> 0"}, ALL: {"violation": ""}}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        what = ("shared", "broken", "deadlocks", LEAVER)
        for number, kind in enumerate((STAYS, LEAVES)):
            row = finding.measured[kind]
            places = [place + 0.4 * number for place in range(len(what))]
            bars = axes.bar(places, [100 * row[each] / row["runs"] for each in what], 0.38, label=f"{kind}, {row['runs']} runs")
            axes.bar_label(bars, [str(row[each]) for each in what])
        labels = ("tickets shared\n(I1, I2)", "no one cycle\n(I11)", "all wait\n(D8)", "owned again before\nthe leaver knew (D8)")
        axes.set_xticks([place + 0.2 for place in range(len(what))], labels)
        axes.set_ylabel("% of the runs")
        axes.set_ylim(0, 110)
        axes.legend(title=f"all interleavings of a small cluster: {finding.measured[ALL]['states']:,} states, none bad", loc="upper left")


def _explored(cell: Cell) -> Measured:
    joiners = [f"p{i + 1}" for i in range(cell["joiners"])]
    found = Everything(len(joiners) + 1, joiners).explored()
    return {
        "kind": ALL,
        "states": found.states,
        "moves": found.moves,
        "depth": found.depth,
        "complete": found.complete,
        "violation": found.violation,
    }


def _played(cell: Cell) -> Measured:
    counts: Counter[str] = Counter()
    first = ""
    for seed in range(cell["seed"], cell["seed"] + cell["runs"]):
        run = Interleaving(seed, processes=cell["processes"], n=cell["tickets"], operations=cell["operations"], stays=cell["kind"] == STAYS)
        found = run.play()
        wrong = found.shared or found.broken
        first = first or (f"seed {seed}: {wrong}" if wrong else "")
        counts.update({"runs": 1, "operations": found.operations, "deliveries": found.deliveries})
        counts.update({"shared": bool(found.shared), "broken": bool(found.broken), LEAVER: found.leaver_shares})
        counts.update({"deadlocks": found.stuck > 0, "deadlocks with a coordinator": found.stuck > 0 and found.stayed > 0})
    return {"kind": cell["kind"], **counts, "first": first}


def _summed(rows: Sequence[Measured]) -> dict[str, Any]:
    return {what: sum(row[what] for row in rows) for what in COUNTED}


def _misses(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    notes = []
    for kind, row in rows.items():
        if row["shared"] or row["broken"]:
            notes.append(f"{kind}: tickets shared in {row['shared']} runs, no one cycle in {row['broken']}")
    if rows[STAYS]["deadlocks"]:
        notes.append(f"{STAYS}, and still {rows[STAYS]['deadlocks']} runs ended in a deadlock")
    if rows[LEAVES]["deadlocks with a coordinator"]:
        notes.append(f"{LEAVES}: {rows[LEAVES]['deadlocks with a coordinator']} runs ended in a deadlock although somebody stayed")
    if not rows[LEAVES]["deadlocks"]:
        notes.append(f"{LEAVES}: the deadlock of D8 did not show")
    return notes


EXPERIMENT = Interleavings()
