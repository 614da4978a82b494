"""detection/E3b: the worked example when questions and votes get lost too, which the paper leaves out.

Spec: fast-detection 8 (E3b), D9; paper 002, Proposition 4.2 holds "if no messages are lost".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.lab.experiments.ffd_example import ACCURACY, INTERVAL, LATENCY, LOSS
from holdfast.features.leadership.lab.experiments.ffd_speed import paper_config
from holdfast.features.leadership.lab.watching import Watching
from holdfast.lab.experiment import LIST_MAX, SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.samples import MEAN, by_column, curves, draw_curves, quantile_interval, summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMITS = {6: 21.0, 12: 11.0}  # seconds, of the 99th percentile, by n
PROTOTYPE = {6: 11.4, 7: 10.7, 12: 10.43}  # means; for n = 6 the middle of 11.1 and 11.7
BESIDE = "the paper is silent: the means beside ours are those of the prototype in the specification"
PARTS = 4  # groups per size
LEAD = 4  # heartbeats between two deaths: all monitors have heard the watched again
HEARTBEATS = 6  # after which the run ends


class ExampleLossParameters(Parameters, frozen=True, kw_only=True):
    """Everything is lost with p = .1: heartbeats, questions, votes."""

    seeds: Annotated[int, Meta(ge=4, le=SEEDS_MAX)] = 1000  # deaths per size
    members: Annotated[tuple[Annotated[int, Meta(ge=6, le=16)], ...], Meta(min_length=1, max_length=LIST_MAX)] = (6, 7, 12)


class ExampleLoss(Experiment[ExampleLossParameters]):
    """Deaths right after a heartbeat, which may not have reached all."""

    id = "detection/E3b"
    name = "detection/worked-example-with-loss"
    title = "The worked example with lost questions and votes"
    source = "fast-detection 8, E3b (the paper is silent)"
    criterion = "99th percentile below 21 s for n = 6 and below 11 s for n = 12"
    parameters = ExampleLossParameters
    seconds_per_cell = 0.15
    quick: ClassVar[Mapping[str, str]] = {"seeds": "40"}

    def cells(self, parameters: ExampleLossParameters, seed: int) -> Sequence[Cell]:
        deaths = -(-parameters.seeds // PARTS)
        return [
            {"members": n, "deaths": deaths, "seed": seed * 10_000 + n * 100 + part} for n in parameters.members for part in range(PARTS)
        ]

    def measure(self, cell: Cell) -> Measured:
        group = Watching(cell["seed"], cell["members"], paper_config(INTERVAL, LATENCY, ACCURACY, LOSS), loss=LOSS)
        times, unnoticed = group.detections(cell["deaths"], HEARTBEATS, lead=LEAD)
        return {"members": cell["members"], "times": times, "unnoticed": unnoticed}

    def judge(self, parameters: ExampleLossParameters, results: Sequence[Measured]) -> Finding:
        times = {n: [seconds for row in results if row["members"] == n for seconds in row["times"]] for n in parameters.members}
        rows = {f"n={n}": _row(values) for n, values in times.items()}
        unnoticed = sum(row["unnoticed"] for row in results)
        notes = [f"{unnoticed} deaths were not reported within {HEARTBEATS} heartbeats"] if unnoticed else []
        notes += [
            f"n = {n}: 99th percentile {rows[f'n={n}']['p99']:.2f} s, expected below {limit:g}"
            for n, limit in LIMITS.items()
            if n in times and rows[f"n={n}"]["p99"] >= limit
        ]
        measured: dict[str, Any] = {**by_column(rows), "curves": curves({f"n={n}": values for n, values in times.items()})}
        expected = {
            MEAN: {f"n={n}": mean for n, mean in PROTOTYPE.items() if n in times},
            "p99": {f"n={n}": limit for n, limit in LIMITS.items() if n in times},
        }
        return Finding(measured, expected, not notes, (*notes, BESIDE))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        draw_curves(axes, finding.measured["curves"])
        for key, limit in finding.expected["p99"].items():
            axes.plot([limit], [0.99], marker="<", markersize=9, linestyle="none", color="#7b8794", label=f"99 % below, {key}")
        axes.set_xlabel("seconds from the worst crash to its report")
        axes.legend(loc="lower right")


def _row(values: Sequence[float]) -> dict[str, Any]:
    low, high = quantile_interval(values, 0.99)
    second = sum(value > 1.5 * INTERVAL for value in values) / len(values)
    return {**summary(values), "p99, 95 % from": low, "p99, 95 % to": high, "share with a second heartbeat": round(second, 4)}


EXPERIMENT = ExampleLoss()
