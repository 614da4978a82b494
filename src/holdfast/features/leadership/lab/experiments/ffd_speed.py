"""detection/E2: how long does fast detection need for a given accuracy, and how many monitors?

Spec: fast-detection 8 (E2), D9, I7; paper 002, Proposition 4.2: ``t_itv + t_lat + t_rtt`` if n > m + 1 and no messages are lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import log
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.errors import ConfigError
from holdfast.features.leadership.detector.config import FfdConfig
from holdfast.features.leadership.detector.detectors import heartbeats_to_miss
from holdfast.features.leadership.lab.watching import Watching
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORST, SHORTEST, TOO_FEW = "longest, n > m", "shortest, n > m", "shortest, n = m"
BY_SIZE = "longest by n, p=0.1, P_m=1e-05"
SHOWN = (0.1, 1e-5)  # p and P_m of the right half of the figure: the worked example
BEYOND_MAX = 10
SOME = Meta(min_length=1, max_length=LIST_MAX)


class SpeedParameters(Parameters, frozen=True, kw_only=True):
    """The grid of section 8, E2. Clocks are synchronised and p is known, as in the proposition."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1000  # deaths per cell
    interval: Annotated[float, Meta(ge=2.0, le=60.0)] = 10.0  # t_itv
    latency: Annotated[float, Meta(ge=0.1, le=0.16)] = 0.1  # t_lat; the paper states none; below 10 mean delays, messages come too late
    losses: Annotated[tuple[Annotated[float, Meta(ge=0.01, le=0.3)], ...], SOME] = (0.01, 0.05, 0.1, 0.2, 0.3)  # p_L
    accuracies: Annotated[tuple[Annotated[float, Meta(ge=1e-7, le=0.1)], ...], SOME] = (1e-3, 1e-5, 1e-7)  # P_m
    beyond: Annotated[tuple[Annotated[int, Meta(ge=0, le=BEYOND_MAX)], ...], SOME] = tuple(range(BEYOND_MAX + 1))  # n - m

    def __post_init__(self) -> None:
        if max(self.beyond) < 1:
            raise ConfigError("beyond: [0]; accepted are lists with at least one of 1 to 10, because n = m is never enough")


class Speed(Experiment[SpeedParameters]):
    """The watched dies right after a heartbeat that reached all."""

    id = "detection/E2"
    name = "detection/speed"
    title = "Spatial multiple timeouts: any accuracy after one heartbeat"
    source = "paper 002, Proposition 4.2; fast-detection 8, E2, D9"
    criterion = "every detection within (t_itv, t_itv + t_lat + t_rtt] for every n of m + 1 and more; n = m needs one heartbeat more"
    parameters = SpeedParameters
    seconds_per_cell = 0.29
    quick: ClassVar[Mapping[str, str]] = {"seeds": "5", "losses": "[0.1]", "accuracies": "[1e-3,1e-5]", "beyond": "[0,1,2,6]"}

    def cells(self, parameters: SpeedParameters, seed: int) -> Sequence[Cell]:
        grid = product(parameters.accuracies, parameters.losses, parameters.beyond)
        return [
            {
                "loss": loss,
                "accuracy": accuracy,
                "n": heartbeats_to_miss(accuracy, loss) + beyond,
                "interval": parameters.interval,
                "latency": parameters.latency,
                "seed": seed * 1000 + number,
                "seeds": parameters.seeds,
            }
            for number, (accuracy, loss, beyond) in enumerate(grid)
            if heartbeats_to_miss(accuracy, loss) + beyond >= 2
        ]

    def measure(self, cell: Cell) -> Measured:
        config = paper_config(cell["interval"], cell["latency"], cell["accuracy"], cell["loss"])
        times, unnoticed = Watching(cell["seed"], cell["n"], config).detections(cell["seeds"], heartbeats=3)
        m = heartbeats_to_miss(cell["accuracy"], cell["loss"])
        row = {"loss": cell["loss"], "accuracy": cell["accuracy"], "m": m, "n": cell["n"], "deaths": cell["seeds"], "unnoticed": unnoticed}
        return (
            {**row, "min": round(min(times), 6), "max": round(max(times), 6), "mean": round(sum(times) / len(times), 6)} if times else row
        )

    def judge(self, parameters: SpeedParameters, results: Sequence[Measured]) -> Finding:
        notes = [note for row in results for note in _misses(row, parameters)]
        most = _bound(parameters)
        keys = dict.fromkeys(_key(row) for row in results)
        enough = {key: [row for row in results if _key(row) == key and row["n"] > row["m"] and "max" in row] for key in keys}
        few = {_key(row): row["min"] for row in results if row["n"] == row["m"] and "min" in row}
        measured: dict[str, Any] = {
            WORST: {key: max(row["max"] for row in rows) for key, rows in enough.items() if rows},
            SHORTEST: {key: min(row["min"] for row in rows) for key, rows in enough.items() if rows},
            TOO_FEW: few,
            BY_SIZE: {f"n={row['n']}": row["max"] for row in results if (row["loss"], row["accuracy"]) == SHOWN and "max" in row},
            "cells": list(results),
        }
        expected = {
            WORST: dict.fromkeys(measured[WORST], most),
            SHORTEST: dict.fromkeys(measured[SHORTEST], parameters.interval),
            TOO_FEW: dict.fromkeys(few, 2 * parameters.interval),
        }
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        rows = [row for row in finding.measured["cells"] if "max" in row]
        interval = next(iter(finding.expected[SHORTEST].values()))
        for accuracy in dict.fromkeys(row["accuracy"] for row in rows):
            losses = sorted({row["loss"] for row in rows if row["accuracy"] == accuracy})
            worst = [max(r["max"] for r in rows if (r["loss"], r["accuracy"]) == (p, accuracy) and r["n"] > r["m"]) for p in losses]
            (drawn,) = left.plot(losses, worst, marker="o", label=f"fast detection, P_m = {accuracy:g}")
            temporal = [interval * log(accuracy) / log(p) for p in losses]
            left.plot(losses, temporal, linestyle="--", color=drawn.get_color(), alpha=0.6)
        left.plot([], [], linestyle="--", color="#7b8794", label="temporal, at least (Prop. 4.1)")
        left.set_xlabel("p_L: share of lost messages")
        left.set_ylabel("seconds from the worst crash to its report")
        left.set_ylim(bottom=0)
        left.legend(loc="upper left")
        _draw_sizes(right, rows, next(iter(finding.expected[WORST].values())))


def paper_config(interval: float, latency: float, accuracy: float, loss: float) -> FfdConfig:
    """The paper's model: synchronised clocks, a known loss that is independent."""
    return FfdConfig(t_itv=interval, t_lat=latency, skew=0.0, p_m=accuracy, p_fixed=loss, common=0.0)


def _draw_sizes(axes: Axes, rows: Sequence[Mapping[str, Any]], bound: float) -> None:
    for accuracy in dict.fromkeys(row["accuracy"] for row in rows):
        line = sorted((row["n"], row["max"]) for row in rows if (row["loss"], row["accuracy"]) == (SHOWN[0], accuracy))
        axes.plot([n for n, _ in line], [seconds for _, seconds in line], marker="o", label=f"p = 0.1, P_m = {accuracy:g}")
    axes.axhline(bound, color="#7b8794", linestyle="--", label="Prop. 4.2, at most")
    axes.set_xlabel("n: members, the watched included")
    axes.set_ylim(bottom=0)
    axes.legend(loc="lower right")


def _bound(parameters: SpeedParameters) -> float:
    return parameters.interval + 3 * parameters.latency


def _key(row: Measured) -> str:
    return f"p={row['loss']:g}, P_m={row['accuracy']:g}"


def _misses(row: Measured, parameters: SpeedParameters) -> list[str]:
    where = f"{_key(row)}, n = {row['n']} (m = {row['m']})"
    if row["unnoticed"]:
        return [f"{where}: {row['unnoticed']} of {row['deaths']} deaths were not reported"]
    more = parameters.interval if row["n"] == row["m"] else 0.0
    low, high = parameters.interval + more, _bound(parameters) + more
    if low < row["min"] and row["max"] <= high:
        return []
    return [f"{where}: {row['min']:.3f} to {row['max']:.3f} s, expected within ({low:g}, {high:g}]"]


EXPERIMENT = Speed()
