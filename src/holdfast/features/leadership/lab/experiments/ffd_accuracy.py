"""detection/E6: is a live leader accused at most as often as the application allows?

Spec: fast-detection 8 (E6), G1, I8, D8; paper 002, section 4: ``P_m = p_L^k``. Once the rule alone, and once the whole of fast detection
with estimated clocks, for links whose loss is known (the bound at its tightest) and for links that measure it. What is known includes
the heartbeats that come too late: they count as lost (section 4, docs/decisions.md H131).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.detector.config import BACKUPS_MAX, FfdConfig
from holdfast.features.leadership.lab.spatial import chance, mistakes
from holdfast.features.leadership.lab.watching import WATCHED, Watching
from holdfast.host import NodeId
from holdfast.lab.experiment import LIST_MAX, Cell, Count, Experiment, Finding, Measured, Parameters
from holdfast.lab.rates import rate_interval, upper_limit
from holdfast.lab.samples import HIGH, LOW, by_column, errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INTERVAL, LATENCY = 1.0, 0.05  # section 8
RATE, LIMIT, DEMAND = "acted reports per heartbeat", "99 % below", "P_m"
RULE, KNOWN, MEASURED = "rule", "p known", "p measured"
PARTS = 2  # pieces of the work per cell, so that other processes can help
TRAINING = 1000  # heartbeats: the window of the loss estimates; before, no monitor claims anything about a link of unknown loss
TRAINING_KNOWN = 100  # heartbeats: the window of the arrival times
LATE_MEMBERS = 15  # who measure how many heartbeats come too late
DEMANDS_RULE = {0.1: (2, 3), 0.2: (2, 3), 0.3: (2, 3, 4), 0.5: (3, 5)}  # k by p, of the rule alone
SOME = Meta(min_length=1, max_length=LIST_MAX)


class AccuracyParameters(Parameters, frozen=True, kw_only=True):
    """Every heartbeat is a repetition."""

    losses: Annotated[tuple[Annotated[float, Meta(ge=0.05, le=0.5)], ...], SOME] = (0.1, 0.2, 0.3, 0.5)
    members: Annotated[tuple[Annotated[int, Meta(ge=3, le=31)], ...], SOME] = (3, 4, 7, 15, 31)  # n, of the protocol
    measuring: Annotated[tuple[Annotated[int, Meta(ge=3, le=31)], ...], SOME] = (4, 7)  # n, where the loss is measured
    demands: Annotated[tuple[Annotated[float, Meta(ge=0.0005, le=0.5)], ...], SOME] = (0.1, 0.03, 0.01, 0.003)  # P_m, of the protocol
    heartbeats: Annotated[int, Meta(ge=400, le=10_000_000)] = 20_000  # per cell of the protocol
    backups: Annotated[int, Meta(ge=0, le=BACKUPS_MAX)] = 2  # each may ask once more about the same heartbeat: G1 counts ballots (H141)
    monitors: Annotated[tuple[Annotated[int, Meta(ge=2, le=30)], ...], SOME] = (2, 3, 4, 6, 8, 20, 30)  # of the rule
    ballots: Count = 400_000  # heartbeats per cell of the rule


class Accuracy(Experiment[AccuracyParameters]):
    """No process dies, everything gets lost now and then; every acted report is a mistake."""

    id = "detection/E6"
    name = "detection/accuracy"
    title = "A live leader is accused no more often than allowed"
    source = "paper 002, section 4; fast-detection 8, E6, G1"
    criterion = "the upper 99 % limit of acted reports per heartbeat is at most P_m, in every cell"
    parameters = AccuracyParameters
    seconds_per_cell = 1.1
    repetitions = "heartbeats"
    quick: ClassVar[Mapping[str, str]] = {
        "losses": "[0.3]",
        "members": "[7]",
        "measuring": "[4]",
        "demands": "[0.03]",
        "heartbeats": "2000",
        "monitors": "[4,8]",
        "ballots": "20000",
    }

    def cells(self, parameters: AccuracyParameters, seed: int) -> Sequence[Cell]:
        rule: list[Cell] = [
            {"kind": RULE, "p": p, "k": k, "monitors": monitors, "heartbeats": parameters.ballots, "seed": f"{seed}/{p}/{k}/{monitors}"}
            for p in parameters.losses
            for k in DEMANDS_RULE.get(p, (2, 3))
            for monitors in parameters.monitors
            if monitors >= k
        ]
        share, asking = -(-parameters.heartbeats // PARTS), {"backups": parameters.backups}
        full: list[Cell] = [
            {"kind": kind, "p": p, "n": n, "demand": demand, "heartbeats": share, "part": part, "seed": seed * 100 + part, **asking}
            for kind, sizes in ((KNOWN, parameters.members), (MEASURED, parameters.measuring))
            for demand in parameters.demands
            for p in parameters.losses
            for n in sizes
            for part in range(PARTS)
        ]
        return rule + full

    def measure(self, cell: Cell) -> Measured:
        if cell["kind"] == RULE:
            count = mistakes(Random(cell["seed"]), cell["heartbeats"], cell["monitors"], cell["k"], cell["p"])
            key = f"rule, p={cell['p']:g}, k={cell['k']}, {cell['monitors']} monitors"
            expected = chance(cell["monitors"], cell["k"], cell["p"])
            return {"key": key, "demand": cell["p"] ** cell["k"], "mistakes": count, "heartbeats": cell["heartbeats"], "formula": expected}
        known = cell["kind"] == KNOWN
        fixed = cell["p"] + (1 - cell["p"]) * late_share() if known else None
        config = FfdConfig(t_itv=INTERVAL, t_lat=LATENCY, p_m=cell["demand"], p_fixed=fixed, common=0.0, backups=cell["backups"])
        group = Watching(cell["seed"], cell["n"], config, loss=cell["p"])
        heartbeats, count = live(group, TRAINING_KNOWN if known else TRAINING, cell["heartbeats"])
        key = f"{cell['kind']}, p={cell['p']:g}, n={cell['n']}, P_m={cell['demand']:g}"
        return {"key": key, "demand": cell["demand"], "mistakes": count, "heartbeats": heartbeats}

    def judge(self, parameters: AccuracyParameters, results: Sequence[Measured]) -> Finding:
        rows = {key: _row([row for row in results if row["key"] == key]) for key in dict.fromkeys(row["key"] for row in results)}
        notes = [f"{key}: {_told(row)}" for key, row in rows.items() if row[LIMIT] > row[DEMAND]]
        nearest = max(rows, key=lambda key: rows[key][LIMIT] / rows[key][DEMAND])
        told = f"nearest to its demand: {nearest}: {_told(rows[nearest])}"
        full = {key: {RATE: row[RATE], LIMIT: row[LIMIT]} for key, row in rows.items() if not key.startswith(RULE)}
        measured: dict[str, Any] = {**by_column(full), "cells": [{"of": key, **row} for key, row in rows.items()]}
        expected = {LIMIT: {key: rows[key][DEMAND] for key in full}}
        return Finding(measured, expected, not notes, (*notes, told))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for kind, marker in ((RULE, "o"), (KNOWN, "s"), (MEASURED, "D")):
            rows = [row for row in finding.measured["cells"] if row["of"].startswith(kind)]
            _draw_kind(axes, rows, "rule alone" if kind == RULE else f"protocol, {kind}", marker)
        ends = [min(row[DEMAND] for row in finding.measured["cells"]) / 2, max(row[DEMAND] for row in finding.measured["cells"]) * 2]
        axes.plot(ends, ends, color="#7b8794", linestyle="--", label="as much as allowed")
        axes.plot([], [], color="#7b8794", marker="v", linestyle="none", alpha=0.5, label="none seen: 99 % below")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("P_m: mistakes per heartbeat that are allowed")
        axes.set_ylabel("acted reports about a live leader, per heartbeat")
        axes.legend(loc="lower right")


def _draw_kind(axes: Axes, rows: Sequence[Mapping[str, Any]], label: str, marker: str) -> None:
    seen, none = [row for row in rows if row["mistakes"]], [row for row in rows if not row["mistakes"]]
    rate, low, high = ([row[what] for row in seen] for what in (RATE, LOW, HIGH))
    drawn = axes.errorbar(
        [row[DEMAND] for row in seen],
        rate,
        yerr=errors(rate, low, high),
        marker=marker,
        linestyle="none",
        capsize=3,
        alpha=0.7,
        label=label,
    )
    colour = drawn[0].get_color()
    axes.plot([row[DEMAND] for row in none], [row[LIMIT] for row in none], marker="v", linestyle="none", alpha=0.5, color=colour)


@cache
def late_share() -> float:
    """Of the heartbeats that are not lost, how many come after their freshness point: measured where nothing is lost."""
    group = Watching(0, LATE_MEMBERS, FfdConfig(t_itv=INTERVAL, t_lat=LATENCY, common=0.0))
    group.run_heartbeats(TRAINING_KNOWN + TRAINING)
    return fmean(monitor.links.stats(NodeId(WATCHED, 1)).p for monitor in group.monitors)


def live(group: Watching, training: int, heartbeats: int, *, demote: bool = True) -> tuple[int, int]:
    """Heartbeats of a live leader, and how many acted reports there were about it; each may begin the next term, as in an election."""
    group.demote = demote
    group.run_heartbeats(training)
    before = group.watched.heartbeats
    group.acted.clear()
    group.run_heartbeats(heartbeats)
    return group.watched.heartbeats - before, len(group.acted)


def _row(parts: Sequence[Measured]) -> dict[str, float]:
    heartbeats, count = sum(row["heartbeats"] for row in parts), sum(row["mistakes"] for row in parts)
    low, high = rate_interval(count, heartbeats)
    numbers = {RATE: count / heartbeats, LOW: low, HIGH: high, LIMIT: upper_limit(count, heartbeats), DEMAND: parts[0]["demand"]}
    formula = {"formula": parts[0]["formula"]} if "formula" in parts[0] else {}
    return {**numbers, **formula, "mistakes": count, "heartbeats": heartbeats}


def _told(row: Mapping[str, float]) -> str:
    return f"{row[RATE]:.4g} per heartbeat ({row['mistakes']} of {row['heartbeats']}; 99 % below {row[LIMIT]:.4g}), P_m = {row[DEMAND]:.4g}"


EXPERIMENT = Accuracy()
