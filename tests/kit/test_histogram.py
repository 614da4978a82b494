"""The histogram that protocols measure into, and how Prometheus reads it."""

from __future__ import annotations

import pytest

from holdfast.agent.observe.metrics import histogram, histograms, render
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


def test_what_was_counted_here_is_taken_in_there() -> None:
    """STYLE 4: drained, it begins anew; the other one has all values once, and the sum."""
    here, there = Histogram(0.1, 1.0), Histogram(0.1, 1.0)
    assert here.drain() == ((), 0.0)
    for values in ((0.05, 0.5), (7.0,)):
        for value in values:
            here.add(value)
        there.merge(*here.drain())
        assert (here.count, here.sum) == (0, 0.0)
    assert there.below == (1, 2, 3)
    assert there.sum == pytest.approx(7.55)


def test_one_for_each_value_of_a_label() -> None:
    """Text format 0.0.4: all samples of one name stand together, each with its label before ``le``."""
    values = Histogram(0.5)
    values.add(1.0)
    lines = render([histograms("wait_seconds", "How long.", "limit", {"b": values, 'a"': Histogram(0.5)})]).splitlines()
    assert len([line for line in lines if line.startswith("# TYPE")]) == 1
    assert lines[2:] == [
        r'holdfast_wait_seconds_bucket{limit="a\"",le="0.5"} 0',
        r'holdfast_wait_seconds_bucket{limit="a\"",le="+Inf"} 0',
        r'holdfast_wait_seconds_sum{limit="a\""} 0',
        r'holdfast_wait_seconds_count{limit="a\""} 0',
        'holdfast_wait_seconds_bucket{limit="b",le="0.5"} 0',
        'holdfast_wait_seconds_bucket{limit="b",le="+Inf"} 1',
        'holdfast_wait_seconds_sum{limit="b"} 1',
        'holdfast_wait_seconds_count{limit="b"} 1',
    ]
