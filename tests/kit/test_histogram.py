"""The histogram that protocols measure into, and how Prometheus reads it."""

from __future__ import annotations

import pytest

from holdfast.agent.observe.metrics import histogram, render
from holdfast.kit.histogram import Histogram


def test_counts_are_cumulative() -> None:
    """STYLE 4: a value at a bound is below it, one above all bounds is counted without any; the sum is exact."""
    values = Histogram(0.1, 1.0)
    for value in (0.0, 0.1, 0.5, 7.0, -0.25):
        values.add(value)
    assert (values.below, values.count) == ((3, 4, 5), 5)
    assert values.sum == pytest.approx(7.35)


def test_in_the_format_of_prometheus() -> None:
    """Text format 0.0.4: buckets that grow up to +Inf, the sum, and as many values as in +Inf."""
    values = Histogram(0.5, 2.0)
    values.add(1.0)
    assert render([histogram("wait_seconds", "How long.", values)]).splitlines()[2:] == [
        'holdfast_wait_seconds_bucket{le="0.5"} 0',
        'holdfast_wait_seconds_bucket{le="2.0"} 1',
        'holdfast_wait_seconds_bucket{le="+Inf"} 1',
        "holdfast_wait_seconds_sum 1",
        "holdfast_wait_seconds_count 1",
    ]
