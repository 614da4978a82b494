"""tickets/E2: how many ALIVE messages must arrive, 2k + 1 as in the algorithm or k + 1 as in the text?

Spec: tickets 8 (E2), D1, D6, D7; paper 001, Algorithm 3 and section 4. Nothing fails in these runs: some processes join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.papers.tickets.lab.paper_ring import PaperConfig
from holdfast.papers.tickets.lab.paper_rings import PaperRings
from holdfast.papers.tickets.lab.paper_traces import random_joins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALGORITHM, TEXT, LOSSY = ORDER = ("2k + 1", "k + 1", "k + 1, 2 % loss")
LOSS = {LOSSY: 0.02}  # D6
FEW = 1.0  # with 2k + 1 fewer are left, on average
MANY = 9 / 13  # with k + 1 a larger share is left
SAMPLE = 2.0  # seconds between two looks
RUNS_PER_CELL = 10


class ThresholdParameters(Parameters, frozen=True, kw_only=True):
    """The defaults are the spec's."""

    seeds: Annotated[int, Meta(ge=1, le=100_000)] = 100
    processes: Annotated[int, Meta(ge=4, le=60)] = 7  # m
    tickets: Annotated[int, Meta(ge=4, le=1000)] = 28  # n
    joins: Annotated[int, Meta(ge=0, le=60)] = 6
    k: Annotated[int, Meta(ge=1, le=5)] = 1
    seconds: Annotated[float, Meta(ge=10.0, le=3600.0)] = 60.0


class Threshold(Experiment[ThresholdParameters]):
    """The same joins under both thresholds, and under the better one with a little loss."""

    id = "tickets/E2"
    name = "tickets/threshold"
    title = "How many ALIVE messages are enough"
    source = "tickets 8, E2; paper 001, Algorithm 3"
    criterion = "with 2k + 1 fewer than 1 process is left on average, with k + 1 more than 9 of 13; nothing failed in either"
    parameters = ThresholdParameters
    seconds_per_cell = 0.045
    quick: ClassVar[Mapping[str, str]] = {"seeds": "10", "joins": "3"}

    def cells(self, parameters: ThresholdParameters, seed: int) -> Sequence[Cell]:
        shape = {name: getattr(parameters, name) for name in ("processes", "tickets", "joins", "k", "seconds")}
        kinds = [{"threshold": each, **shape} for each in ORDER]
        return [cell for kind in kinds for cell in in_batches(kind, parameters.seeds, RUNS_PER_CELL, seed * SEEDS_MAX)]

    def measure(self, cell: Cell) -> Measured:
        k, runs = cell["k"], range(cell["seed"], cell["seed"] + cell["runs"])
        config = PaperConfig(n=cell["tickets"], k=k, enough=2 * k + 1 if cell["threshold"] == ALGORITHM else k + 1)
        loss = LOSS.get(cell["threshold"], 0.0)
        played = [
            random_joins(seed, config, size=cell["processes"], joins=cell["joins"], seconds=cell["seconds"], loss=loss) for seed in runs
        ]
        curves = [_curve(rings, cell["seconds"]) for rings in played]
        return {
            "threshold": cell["threshold"],
            "left": [len(rings.acting) for rings in played],
            "too few ALIVE": sum(rings.disconnected("too few ALIVE") for rings in played),
            "failed exclusions": sum(rings.disconnected("too few ACKCOORD", "nobody answers") for rings in played),
            "runs with a disconnect": sum(rings.disconnected() > 0 for rings in played),
            "curve": [sum(column) for column in zip(*curves, strict=True)],
        }

    def judge(self, parameters: ThresholdParameters, results: Sequence[Measured]) -> Finding:
        rows = {each: _summed([row for row in results if row["threshold"] == each], parameters.seeds) for each in ORDER}
        whole = parameters.processes + parameters.joins
        notes = []
        if rows[ALGORITHM]["left"] >= FEW:
            notes.append(f"{ALGORITHM}: {rows[ALGORITHM]['left']} processes are left, fewer than {FEW:g} were expected")
        if rows[TEXT]["left"] <= MANY * whole:
            notes.append(f"{TEXT}: {rows[TEXT]['left']} of {whole} processes are left, more than {MANY * whole:.1f} were expected")
        expected = {ALGORITHM: {"left": f"< {FEW:g}"}, TEXT: {"left": f"> {MANY * whole:.1f}"}, LOSSY: {"left": "about 0 (D6)"}}
        measured = {**rows, "processes": whole, "sample": SAMPLE}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for each in ORDER:
            curve = finding.measured[each]["curve"]
            axes.plot([finding.measured["sample"] * place for place in range(len(curve))], curve, label=f"at least {each}")
        axes.axhline(finding.measured["processes"], color="#7b8794", linestyle="--", label="all, had everybody stayed")
        axes.set_xlabel("seconds; processes join in the first half")
        axes.set_ylabel("processes in the core, mean of all runs")
        axes.set_ylim(bottom=0)
        axes.legend(title="ALIVE messages to go on")


def _curve(rings: PaperRings, seconds: float) -> list[int]:
    """How many act with tickets, every so often."""
    holding: set[str] = set()
    counts: list[int] = []
    claims = iter([*rings.claims, None])
    claim = next(claims)
    for look in range(int(seconds / SAMPLE) + 1):
        while claim is not None and claim.at <= look * SAMPLE:
            holding = holding | {claim.name} if claim.tickets else holding - {claim.name}
            claim = next(claims)
        counts.append(len(holding))
    return counts


def _summed(rows: Sequence[Measured], runs: int) -> dict[str, Any]:
    columns = zip(*(row["curve"] for row in rows), strict=True)
    return {
        "left": round(sum(sum(row["left"]) for row in rows) / runs, 3),
        "runs": runs,
        **{what: sum(row[what] for row in rows) for what in ("too few ALIVE", "failed exclusions", "runs with a disconnect")},
        "curve": [round(sum(column) / runs, 3) for column in columns],
    }


EXPERIMENT = Threshold()
