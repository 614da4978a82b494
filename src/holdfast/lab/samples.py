"""Many measured values as a few numbers, each with how far it can be trusted: means, quantiles, and the curve of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from holdfast.lab.rates import Z

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MEAN, LOW, HIGH = "mean", "95 % from", "95 % to"
CURVE_POINTS = 200  # of a distribution kept in a report: finer than a figure shows
DIGITS = 6  # microseconds, where values are seconds


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """The mean, and the low and high end of its 95 % interval: 1.96 standard errors. One value alone knows nothing of its error."""
    mean = fmean(values)
    error = Z * stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
    return mean, mean - error, mean + error


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered) - 1e-9) - 1)]


def quantile_interval(values: Sequence[float], share: float) -> tuple[float, float]:
    """The 95 % interval of a quantile, whatever the distribution: how many of n values lie below it is binomial."""
    ordered = sorted(values)
    count = len(ordered)
    error = Z * sqrt(count * share * (1 - share))
    low, high = int(share * count - error), ceil(share * count + error)
    return ordered[max(0, low - 1)], ordered[min(count - 1, high)]


def summary(values: Sequence[float]) -> dict[str, float]:
    """What a report says of a sample."""
    mean, low, high = mean_interval(values)
    numbers = {MEAN: mean, LOW: low, HIGH: high, "p50": quantile(values, 0.5), "p99": quantile(values, 0.99), "max": max(values)}
    return {"count": len(values), **{what: round(number, DIGITS) for what, number in numbers.items()}}


def curves(samples: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Distributions as at most ``CURVE_POINTS`` values each, equally many samples apart, the extremes among them."""
    return [{"of": name, "values": _curve(values)} for name, values in samples.items()]


def by_column(rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Rows of numbers as columns of rows: what a report compares is under the same name."""
    columns = dict.fromkeys(what for row in rows.values() for what in row)
    return {what: {key: row[what] for key, row in rows.items() if what in row} for what in columns}


def draw_curves(axes: Axes, drawn: Sequence[Mapping[str, Any]]) -> None:
    """Share of the runs (upwards) that took no longer than so many seconds (to the right)."""
    for each in drawn:
        last = max(1, len(each["values"]) - 1)
        axes.plot(each["values"], [i / last for i in range(last + 1)][: len(each["values"])], label=each["of"])
    axes.set_ylabel("share of the runs")
    axes.set_ylim(0, 1.02)


def errors(middle: Sequence[float], low: Sequence[float], high: Sequence[float]) -> list[list[float]]:
    """An interval as a plot wants it: how far below and above the middle."""
    return [
        [max(0.0, m - a) for m, a in zip(middle, low, strict=True)],
        [max(0.0, b - m) for m, b in zip(middle, high, strict=True)],
    ]


def _curve(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    last = len(ordered) - 1
    points = min(CURVE_POINTS, len(ordered))
    return [round(ordered[round(i * last / max(1, points - 1))], DIGITS) for i in range(points)]
