"""What the experiments of Figures 3 to 11 share: points, runs, and how they become tables, fits and pictures.  Spec: election 8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.election.lab.paper import RUNS, Setting
from holdfast.features.election.lab.runs import TRACES, F, point
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Measured, Parameters
from holdfast.lab.samples import quantile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TRACE_SEEDS = 1000
COLOURS = {"base": "#1f77b4", "optimistic": "#ff7f0e", "preferred": "#2ca02c", "hybrid": "#d62728"}
BASE, OPTIMISTIC, PREFERRED, HYBRID = VARIANTS
MARKERS = {"base": "o", "optimistic": "s", "preferred": "^", "hybrid": "D"}

Table = dict[str, dict[str, Any]]  # by setting, by variant


class PointParameters(Parameters, frozen=True, kw_only=True):
    """100 elections of each variant per point, over four traces."""

    runs: Annotated[int, Meta(ge=1, le=100_000)] = RUNS
    traces: Annotated[int, Meta(ge=1, le=1000)] = TRACES
    largest: Annotated[int, Meta(ge=8, le=500)] = 256  # points with more members are left out
    f: Annotated[int, Meta(ge=0, le=16)] = F  # our choice: the paper does not say


class Points(Experiment[PointParameters]):
    """Elections at some of the points of Table I."""

    parameters = PointParameters
    repetitions = "runs"
    settings: ClassVar[tuple[Setting, ...]]
    quick: ClassVar[Mapping[str, str]] = {"runs": "8", "traces": "2", "largest": "49"}
    seconds_per_cell = 10

    def cells(self, parameters: PointParameters, seed: int) -> Sequence[Cell]:
        per_trace = -(-parameters.runs // parameters.traces)
        return [
            {
                "setting": list(setting),
                "trace": seed * TRACE_SEEDS + number,
                "first": seed * SEEDS_MAX + number * per_trace,
                "runs": min(per_trace, parameters.runs - number * per_trace),
                "f": parameters.f,
            }
            for setting in self.settings
            if setting.members <= parameters.largest
            for number in range(parameters.traces)
            if parameters.runs > number * per_trace
        ]

    def measure(self, cell: Cell) -> Measured:
        found = point(Setting(*cell["setting"]), cell["trace"], cell["first"], cell["runs"], cell["f"])
        return {**cell, "elections": [dict(run) for run in found]}

    def settings_of(self, results: Sequence[Measured]) -> list[Setting]:
        there = {tuple(row["setting"]) for row in results}
        return [setting for setting in self.settings if tuple(setting) in there]


def values(results: Sequence[Measured], setting: Setting, variant: str, key: str) -> list[float]:
    """Of all elections that came to an end."""
    return [
        float(run[key])
        for row in results
        if tuple(row["setting"]) == tuple(setting)
        for run in row["elections"]
        if run["variant"] == variant and run["whole"] and key in run
    ]


def means(results: Sequence[Measured], settings: Sequence[Setting], key: str, digits: int = 4) -> Table:
    return {
        str(setting): {
            variant: round(fmean(found), digits) if (found := values(results, setting, variant, key)) else None for variant in VARIANTS
        }
        for setting in settings
    }


def percentiles(results: Sequence[Measured], settings: Sequence[Setting], key: str, share: float = 0.95) -> Table:
    return {
        str(setting): {
            variant: round(quantile(found, share), 4) if (found := values(results, setting, variant, key)) else None for variant in VARIANTS
        }
        for setting in settings
    }


def unfinished(results: Sequence[Measured]) -> list[str]:
    """A miss in every figure: an election that came to no end."""
    bad = [run["variant"] for row in results for run in row["elections"] if not run["whole"]]
    return [f"{len(bad)} elections came to no end: {', '.join(sorted(set(bad)))}"] if bad else []


def fit(xs: Sequence[float], ys: Sequence[float]) -> float:
    """R2 of a straight line."""
    if len(xs) < 3:
        return 1.0
    x, y = fmean(xs), fmean(ys)
    sxx, syy = sum((a - x) ** 2 for a in xs), sum((b - y) ** 2 for b in ys)
    sxy = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True))
    return 1.0 if syy == 0 else round(sxy * sxy / (sxx * syy), 4)


def rises(numbers: Sequence[float]) -> bool:
    """The trend: the slope of a straight line through them is above zero."""
    middle = (len(numbers) - 1) / 2
    return len(numbers) < 2 or sum((place - middle) * number for place, number in enumerate(numbers)) > 0


def lines(axes: Axes, table: Table, xs: Sequence[float], label: str, what: str) -> None:
    """One line per variant."""
    for variant in VARIANTS:
        axes.plot(list(xs), [row[variant] for row in table.values()], marker=MARKERS[variant], color=COLOURS[variant], label=variant)
    axes.set_xlabel(label)
    axes.set_ylabel(what)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)


def bars(axes: Axes, table: Table, what: str) -> None:
    """One group of bars per setting."""
    for number, variant in enumerate(VARIANTS):
        places = [place + (number - 1.5) * 0.2 for place in range(len(table))]
        axes.bar(places, [row[variant] or 0 for row in table.values()], width=0.2, color=COLOURS[variant], label=variant)
    axes.set_xticks(list(range(len(table))), list(table))
    axes.set_ylabel(what)
    axes.legend(fontsize=7)
