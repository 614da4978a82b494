"""detection/E14: how long must a lease be, and how often is a heartbeat repeated, so that a live leader keeps it?

Spec: fast-detection 8 (E14), D26, 4 (L, renew_tries); the paper has no lease.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.lab.experiment import LIST_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.rates import rate_interval
from holdfast.lab.samples import HIGH, LOW, by_column
from holdfast.papers.detection.lab.elections import INTERVAL, Elections, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JUDGED = {"tries": 2, "length": 1.5, "p": 0.1}
LIMIT = 1.0  # step-downs per 1000 heartbeats
PER = 1000
RATE = "step-downs per 1000 heartbeats"
TRAINING = 100.0  # seconds
PROTOTYPE = {
    "n=3, p=0.1, L=2, tries=0": 30.0,
    "n=7, p=0.2, L=2, tries=0": 108.0,
    "n=7, p=0.1, L=1.5, tries=2": 0.0,
    "n=3, p=0.1, L=1.5, tries=2": 0.0,
}
SOME = Meta(min_length=1, max_length=LIST_MAX)


class StepDownsParameters(Parameters, frozen=True, kw_only=True):
    """Every heartbeat of a leader is a repetition. L = 1.2 is shorter than any user may set."""

    members: Annotated[tuple[Annotated[int, Meta(ge=3, le=15)], ...], SOME] = (3, 7)
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.0, le=0.3)], ...], SOME] = (0.01, 0.1, 0.2)
    lengths: Annotated[tuple[Annotated[float, Meta(ge=1.1, le=10.0)], ...], SOME] = (1.2, 1.5, 2.0, 3.0)
    tries: Annotated[tuple[Annotated[int, Meta(ge=0, le=3)], ...], SOME] = (0, 2)
    heartbeats: Annotated[int, Meta(ge=100, le=10_000_000)] = 10_000  # per cell


class StepDowns(Experiment[StepDownsParameters]):
    """No process dies. A leader that has no majority of grants in time steps down, and one is elected again."""

    id = "detection/E14"
    name = "detection/lease-length"
    title = "Leases of a live leader: how short they may be"
    source = "fast-detection 8, E14, D26 (the paper has no lease)"
    criterion = "two repeats, L = 1.5 t_itv, p = 0.1: the 95 % interval of step-downs ends below 1 per 1000 heartbeats, for every n"
    parameters = StepDownsParameters
    seconds_per_cell = 1.6
    repetitions = "heartbeats"
    quick: ClassVar[Mapping[str, str]] = {
        "members": "[3]",
        "losses": "[0.1]",
        "lengths": "[1.5]",
        "tries": "[0,2]",
        "heartbeats": "3900",
    }

    def cells(self, parameters: StepDownsParameters, seed: int) -> Sequence[Cell]:
        grid = product(parameters.members, parameters.losses, parameters.tries, parameters.lengths)
        return [
            {"n": n, "p": p, "length": length, "tries": tries, "heartbeats": parameters.heartbeats, "seed": seed * 1000 + number}
            for number, (n, p, tries, length) in enumerate(grid)
        ]

    def measure(self, cell: Cell) -> Measured:
        config = settings("quorum", length=cell["length"], tries=cell["tries"], known=False)
        group = Elections(cell["seed"], cell["n"], config, loss=cell["p"])
        group.world.run(TRAINING)
        group.reigns = [reign for reign in group.reigns if reign.until is None]
        began_at = group.world.now
        group.world.run(began_at + cell["heartbeats"] * INTERVAL)
        ends = [reign.until or group.world.now for reign in group.reigns]
        led = sum(end - max(began_at, reign.since) for reign, end in zip(group.reigns, ends, strict=True))
        why = [reign.why for reign in group.reigns if reign.until is not None]
        return {**{what: cell[what] for what in ("n", "p", "length", "tries")}, "heartbeats": round(led / INTERVAL), "why": why}

    def judge(self, parameters: StepDownsParameters, results: Sequence[Measured]) -> Finding:
        rows = {_key(row): _row(row) for row in results}
        judged = {_key(row): rows[_key(row)] for row in results if all(row[what] == value for what, value in JUDGED.items())}
        notes = [
            f"{key}: {row[RATE]:.2f} per 1000 (95 %: {row[LOW]:.2f} to {row[HIGH]:.2f}), expected below {LIMIT:g}"
            for key, row in judged.items()
            if row[HIGH] >= LIMIT
        ]
        if not judged:
            notes.append("nothing to judge: two repeats, L = 1.5 and p = 0.1 are not among the cells")
        measured: dict[str, Any] = by_column({key: {what: row[what] for what in (RATE, LOW, HIGH)} for key, row in rows.items()})
        measured["cells"] = [{**{what: row[what] for what in ("n", "p", "length", "tries")}, **rows[_key(row)]} for row in results]
        expected = {RATE: {key: value for key, value in PROTOTYPE.items() if key in rows}}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        rows = finding.measured["cells"]
        tries = sorted({row["tries"] for row in rows})
        panels = figure.subplots(1, len(tries), sharey=True, squeeze=False)[0]
        for axes, count in zip(panels, tries, strict=True):
            for n, p in dict.fromkeys((row["n"], row["p"]) for row in rows):
                line = sorted((row["length"], row[RATE], row[HIGH]) for row in rows if (row["n"], row["p"], row["tries"]) == (n, p, count))
                (drawn,) = axes.plot([x for x, _, _ in line], [y for _, y, _ in line], marker="o", label=f"n = {n}, p = {p:g}")
                axes.fill_between(
                    [x for x, _, _ in line], [y for _, y, _ in line], [z for _, _, z in line], color=drawn.get_color(), alpha=0.12
                )
            axes.axhline(LIMIT, color="#7b8794", linestyle="--")
            axes.set_yscale("symlog", linthresh=0.5)
            axes.set_xlabel(f"L in intervals, {count} repeats")
        panels[0].set_ylabel("step-downs per 1000 heartbeats; shaded: 95 % limit")
        panels[-1].legend(loc="upper right", fontsize=8)


def _key(row: Measured) -> str:
    return f"n={row['n']}, p={row['p']:g}, L={row['length']:g}, tries={row['tries']}"


def _row(row: Measured) -> dict[str, Any]:
    heartbeats = max(1, row["heartbeats"])
    low, high = rate_interval(len(row["why"]), heartbeats)
    return {
        RATE: round(PER * len(row["why"]) / heartbeats, 4),
        LOW: round(PER * low, 4),
        HIGH: round(PER * high, 4),
        "heartbeats": heartbeats,
        "lapsed": row["why"].count("lapsed"),
        "demoted": row["why"].count("demoted"),
    }


EXPERIMENT = StepDowns()
