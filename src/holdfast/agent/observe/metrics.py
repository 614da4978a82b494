"""Metrics for Prometheus, in its text format 0.0.4.  docs/http.md (metrics).

Counters grow for as long as the process lives. Every name begins with ``holdfast_``; what a peer or a user chose appears only as the
value of a label, escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite, isnan
from typing import NamedTuple

from holdfast.kit.histogram import Histogram

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Sample(NamedTuple):
    """One line: a suffix of the metric's name, labels, the value."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()
    suffix: str = ""


class Metric(NamedTuple):
    """One metric with all its samples."""

    name: str
    kind: str  # "counter", "gauge" or "histogram"
    text: str
    samples: tuple[Sample, ...]


def counter(name: str, text: str, value: float) -> Metric:
    return Metric(name, "counter", text, (Sample(value),))


def gauge(name: str, text: str, value: float) -> Metric:
    return Metric(name, "gauge", text, (Sample(value),))


def labelled(name: str, kind: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    return Metric(name, kind, text, tuple(Sample(value, ((label, key),)) for key, value in sorted(values.items())))


def histogram(name: str, text: str, values: Histogram) -> Metric:
    return Metric(name, "histogram", text, tuple(_of_histogram((), values)))


def histograms(name: str, text: str, label: str, values: Mapping[str, Histogram]) -> Metric:
    """One for each value of a label."""
    return Metric(
        name, "histogram", text, tuple(each for key, one in sorted(values.items()) for each in _of_histogram(((label, key),), one))
    )


def _of_histogram(labels: tuple[tuple[str, str], ...], values: Histogram) -> Iterator[Sample]:
    for bound, below in zip((*map(str, values.bounds), "+Inf"), values.below, strict=True):
        yield Sample(below, (*labels, ("le", bound)), "_bucket")
    yield Sample(values.sum, labels, "_sum")
    yield Sample(values.count, labels, "_count")


# The format.


def render(metrics: Iterable[Metric]) -> str:
    """The text format. A metric without samples is left out, a name comes once."""
    lines: list[str] = []
    seen: set[str] = set()
    for metric in metrics:
        if metric.name in seen or not metric.samples:
            continue
        seen.add(metric.name)
        name = f"holdfast_{metric.name}"
        lines += [f"# HELP {name} {_escaped(metric.text, quote=False)}", f"# TYPE {name} {metric.kind}"]
        lines += [f"{name}{sample.suffix}{_labels(sample.labels)} {_number(sample.value)}" for sample in metric.samples]
    return "\n".join(lines) + "\n"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value, quote=True)}"' for name, value in labels) + "}"


def _escaped(text: str, *, quote: bool) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _number(value: float) -> str:
    if not isfinite(value):
        return "NaN" if isnan(value) else ("+Inf" if value > 0 else "-Inf")
    return str(int(value)) if value == int(value) else repr(float(value))


def word(text: str) -> str:
    """A metric's name may hold letters, digits and underscores."""
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in text.lower()).strip("_")
