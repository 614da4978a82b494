"""election/T2: how many answers does preference need?  Paper 004, Table II, Theorem 4.  Spec: election 8 (T2), D16.

Members gossip in the settings of Table I at loss 0.05. Five members are the most unhealthy in the eyes of all; p is the share of them that
an arbitrary list does not have among its own five. r is the number of answers beyond which some answer has each of them with probability
1 - 1/N.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.election.lab.healths import p_of, r_of
from holdfast.features.election.lab.paper import BY_SIZE, TABLE_II, Y
from holdfast.features.election.lab.traces import WARM_UP, FieldGroup
from holdfast.features.gossip.lab.groups import names_of
from holdfast.features.gossip.protocol import profiles
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.measured import shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

P_MIN, P_MAX = 0.2, 0.7
EVERY = 20.0  # seconds between two looks
RUMOURED, OWN = "any", "own"


class TablePParameters(Parameters, frozen=True, kw_only=True):
    """The five sizes."""

    seeds: Annotated[int, Meta(ge=1, le=1000)] = 10
    seconds: Annotated[float, Meta(ge=20, le=36_000)] = 240.0  # after the warm-up
    largest: Annotated[int, Meta(ge=8, le=500)] = 256


class TableP(Experiment[TablePParameters]):
    """Members that only gossip."""

    id = "election/T2"
    name = "election/table-p"
    title = "How many answers preference needs (Table II)"
    source = "paper 004, Table II, Theorem 4; election 8, T2, D16"
    criterion = "p in 0.2 to 0.7 with rumoured counts at every size; r recomputed as the next whole number above log_{1/p} N"
    parameters = TablePParameters
    seconds_per_cell = 12
    quick: ClassVar[Mapping[str, str]] = {"seeds": "1", "seconds": "60", "largest": "64"}

    def cells(self, parameters: TablePParameters, seed: int) -> Sequence[Cell]:
        return [
            {"members": each.members, "drop": each.drop, "seconds": parameters.seconds, "seed": seed * SEEDS_MAX + number}
            for each in BY_SIZE
            if each.members <= parameters.largest
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        names = names_of(cell["members"])
        group = FieldGroup(cell["seed"], "random", cell["members"], cell["drop"], names, profiles.paper(1.0))
        group.run(WARM_UP)
        lives = [group.host(name).me for name in names]
        found: dict[str, list[float]] = {RUMOURED: [], OWN: []}
        end = group.world.now + cell["seconds"]
        while group.world.now < end:
            group.run(EVERY)
            for source, values in found.items():
                lists = [{i: group.node(name).unhealthy(life, source) for i, life in enumerate(lives)} for name in names]  # type: ignore[arg-type]
                p = p_of(lists, Y)
                if p is not None:
                    values.append(p)
        return {**cell, **{source: round(fmean(values), 4) if values else None for source, values in found.items()}}

    def judge(self, parameters: TablePParameters, results: Sequence[Measured]) -> Finding:
        rows: list[dict[str, Any]] = []
        for column in TABLE_II:
            of = [row for row in results if row["members"] == column.members]
            values = [row[RUMOURED] for row in of if row[RUMOURED] is not None]
            if not values:
                continue
            own = [row[OWN] for row in of if row[OWN] is not None]
            p = fmean(values)
            r, exact = r_of(p, column.members), r_of(column.p, column.members)
            row: dict[str, Any] = {
                "N": column.members,
                "p": round(p, 3),
                "p of single runs": [min(values), max(values)],
                "p, own probes only": round(fmean(own), 3) if own else None,
                "r": r,
                "c+1": column.needed,
                "r > c+1": r > column.needed,
                "paper's p": column.p,
                "paper's r": column.r,
                "r from the paper's p": exact,
                "that r > c+1": exact > column.needed,
            }
            rows.append(row)
        misses = [f"N = {row['N']}: p is {row['p']:g}" for row in rows if not P_MIN <= row["p"] <= P_MAX]
        beyond = [f"N = {row['N']}: r = {row['r']} > c+1 = {row['c+1']}" for row in rows if row["r > c+1"]]
        flaws = [
            "N = {}: from the paper's own p, r = {} > c+1 = {}".format(row["N"], row["r from the paper's p"], row["c+1"])
            for row in rows
            if row["that r > c+1"]
        ]
        measured: dict[str, Any] = {"columns": rows}
        expected = {"columns": [column._asdict() for column in TABLE_II]}
        return Finding(measured, expected, not misses and bool(rows), shortened([*misses, *beyond, *flaws]))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2)
        rows = finding.measured["columns"]
        sizes = [row["N"] for row in rows]
        left.plot(sizes, [row["p"] for row in rows], marker="o", label="p")
        left.plot(sizes, [row["paper's p"] for row in rows], marker="o", linestyle="--", label="Table II")
        right.plot(sizes, [row["r"] for row in rows], marker="o", label="r")
        right.plot(sizes, [row["c+1"] for row in rows], marker="s", label="c+1")
        right.plot(sizes, [row["paper's r"] for row in rows], marker="o", linestyle="--", label="r, Table II")
        for axes in (left, right):
            axes.set_xlabel("N")
            axes.set_xscale("log", base=2)
            axes.set_ylim(bottom=0)
            axes.legend()


EXPERIMENT = TableP()
