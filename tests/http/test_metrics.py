"""Metrics in Prometheus' text format 0.0.4."""

from __future__ import annotations

import asyncio
import re

import pytest

from holdfast.agent.observe.agent_metrics import Lateness
from holdfast.agent.observe.metrics import CONTENT_TYPE, Metric, Sample, counter, render
from holdfast.events import Paused
from tests.http.wire import ask
from tests.page.stub_agent import StubGroup

LINE = re.compile(r"^(?P<name>[a-z_][a-z0-9_]*)(?:\{(?P<labels>.*)\})? (?P<value>[^ ]+)$")
LABELS = re.compile(r'^(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,(?!$)|$))*$')
WANTED = (
    "agent_info", "agent_state", "ring_member", "ring_members", "ring_pairs_active", "ring_safe_for_seconds", "ring_suspicions_total",
    "grants", "events_published_total", "events_lost_total", "http_streams", "loop_lateness_seconds", "pauses_total",
    "process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", "drops_total", "ring_lease_rtt_seconds_max",
)  # fmt: skip


def parsed(text: str) -> tuple[dict[str, str], dict[str, float]]:
    """The types, and the samples; fails on whatever a scraper would stumble over."""
    types: dict[str, str] = {}
    samples: dict[str, float] = {}
    helped: set[str] = set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            helped.add(line.split(" ", 3)[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name in helped
            assert name not in types
            types[name] = kind
        else:
            match = LINE.match(line)
            assert match is not None, line
            assert LABELS.match(match["labels"] or ""), line
            base = re.sub(r"_(bucket|sum|count)$", "", match["name"]) if match["name"] not in types else match["name"]
            assert base in types, line
            key = line.rpartition(" ")[0]
            assert key not in samples, f"{key} twice"
            samples[key] = float(match["value"])
    return types, samples


def test_every_sample_is_explained(group: StubGroup) -> None:
    """Every sample has HELP and TYPE, every name begins with holdfast_, and what an operator needs is there."""
    answer = ask(group.url, "/metrics")
    assert answer.headers["content-type"] == CONTENT_TYPE
    types, samples = parsed(answer.body.decode())
    assert all(name.startswith("holdfast_") for name in types)
    assert {f"holdfast_{name}" for name in WANTED} <= types.keys()
    assert samples['holdfast_agent_state{state="member"}'] == 1
    assert samples["holdfast_ring_members"] == 3


def test_counters_are_counters(group: StubGroup) -> None:
    """Names in _total are counters and nothing else is; none of them ever falls."""
    types, before = parsed(ask(group.url, "/metrics").body.decode())
    assert {name for name, kind in types.items() if kind == "counter"} == {name for name in types if name.endswith("_total")}
    for _ in range(3):
        _, after = parsed(ask(group.url, "/metrics").body.decode())
        counters = [key for key in before if types.get(key.partition("{")[0]) == "counter" or "_bucket" in key]
        assert [key for key in counters if after[key] < before[key]] == []
        before = after


@pytest.mark.parametrize("hostile", ['quote " quote', "back \\ slash", "line\nbreak", '"} 1\nfake_metric 1'])
def test_labels_are_escaped(hostile: str) -> None:
    """A name that somebody chose cannot end its label, its line or its metric."""
    text = render([Metric("agent_info", "gauge", "Who.", (Sample(1, (("name", hostile),)),))])
    types, samples = parsed(text)
    assert list(types) == ["holdfast_agent_info"]
    assert len(samples) == 1


def test_a_metric_appears_once() -> None:
    """Two sources of one name: the first counts, because a scraper refuses the whole answer otherwise."""
    types, samples = parsed(render([counter("a_total", "One.", 1), counter("a_total", "Two.", 2), Metric("b", "gauge", "Empty.", ())]))
    assert (types, samples) == ({"holdfast_a_total": "counter"}, {"holdfast_a_total": 1.0})


def test_numbers_are_exact() -> None:
    """Whole numbers without a point, infinities by their names."""
    values = [1e15 + 1, 0.25, float("inf"), float("-inf"), float("nan")]
    lines = render([Metric("x", "gauge", "X.", tuple(Sample(value) for value in values))]).splitlines()[2:]
    assert [line.split()[1] for line in lines] == ["1000000000000001", "0.25", "+Inf", "-Inf", "NaN"]


def test_lateness_is_a_histogram() -> None:
    """Buckets are cumulative, +Inf equals the count; a pause that the host noticed is counted with its seconds."""
    lateness = Lateness()
    for seconds in (0.0005, 0.003, 0.003, 9.0):
        lateness.take(seconds)
    lateness.note(Paused(1.5))
    _, samples = parsed(render(lateness.metrics()))
    buckets = [value for key, value in samples.items() if "_bucket" in key]
    assert buckets == [1, 3, 3, 3, 3, 3, 4]
    assert samples["holdfast_loop_lateness_seconds_count"] == 4
    assert samples["holdfast_paused_seconds_total"] == 1.5
    assert lateness.worst == 9.0


def test_lateness_looks_by_itself() -> None:
    """A loop that was kept busy is found to be late."""

    async def busy() -> float:
        lateness = Lateness()
        lateness.start()
        lateness._due -= 0.3  # as if this loop had been kept for 0.3 s
        while lateness.worst == 0.0:
            await asyncio.sleep(0.05)
        lateness.stop()
        return lateness.worst

    assert asyncio.run(busy()) >= 0.3
