"""How the experiments with real processes judge, on results that nobody measured: each criterion, met and missed."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.ring_real_detection import EXPERIMENT as DETECTION
from benchmarks.ring_real_detection import DetectionParameters
from benchmarks.ring_real_latency import EXPERIMENT as LATENCY
from benchmarks.ring_real_latency import LatencyParameters
from benchmarks.ring_real_simultaneous import EXPERIMENT as SIMULTANEOUS
from benchmarks.ring_real_simultaneous import RealSimultaneousParameters, hopeless
from holdfast.errors import ConfigError
from holdfast.lab.experiment import Finding, parameters_of

RING = [f"{place:02}" for place in range(20)]


def crashes(*took: float, lease: float = 0.2, late: float = 0.0, monitors: int | None = None, broken: str = "") -> dict[str, Any]:
    run = {"kind": "kill -9", "took": list(took), "late": [late] * len(took), "monitors": monitors or len(took), "departed": 0}
    return {"lease": lease, "asked": 1, "runs": [run], "broken": broken, "load": 0.1}


@pytest.mark.parametrize(
    "result, passed",
    [
        (crashes(0.195, 0.3, 0.419), True),
        (crashes(0.194, 0.3, 0.419), False),
        (crashes(0.195, 0.3, 0.421), False),
        (crashes(0.195, 0.3, 0.421, late=0.002), True),
        (crashes(*[0.3] * 99, 0.5), True),
        (crashes(*[0.3] * 98, 0.5, 0.5), False),
        (crashes(0.3, 0.3, monitors=3), False),
        (crashes(0.3, 0.3, broken="never formed"), False),
        (crashes(0.03, 0.3, lease=0.064), False),
    ],
)
def test_detection_is_judged_by_the_bounds_of_each_monitor(result: dict[str, Any], passed: bool) -> None:
    """Ring 8, E5: 99 % within [T_l - 5 ms, 2 T_l + 20 ms + its lateness]; the silent count; short T_l alone prove nothing."""
    finding = DETECTION.judge(DetectionParameters(leases=(result["lease"],)), [result])
    assert finding.passed is passed


def test_short_leases_are_reported_and_not_judged() -> None:
    """Ring 8, E5: below 128 ms whatever comes out is told, and does not decide."""
    finding = DETECTION.judge(DetectionParameters(leases=(0.032, 0.2)), [crashes(0.5, lease=0.032), crashes(0.3, 0.35)])
    assert finding.passed
    assert finding.measured["of T_l"]["T_l = 32 ms"]["share within"] == 0.0
    assert any("T_l = 32 ms" in note for note in finding.notes)


def event(*, killed: int = 1, before: int = 64, agreed: bool = True, extra: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    after = before - killed - len(extra)
    found = {"killed": killed, "before": before, "after": after, "agreed": agreed, "extra": list(extra)}
    return {**found, "kill -9": 1, "doomed": 0, "lateness": 0.01}


def leaver(because: str, distance: int = 1) -> dict[str, Any]:
    return {"name": "n1", "reason": "arbitration timeout", "because": because, "distance": distance}


@pytest.mark.parametrize(
    "found, passed",
    [
        (event(), True),
        (event(agreed=False), False),
        (event(extra=(leaver("4 of 8 alive"),)), False),
        (event(killed=8, before=36, extra=(leaver("4 of 8 alive"),)), True),
        (event(killed=8, before=36, extra=(leaver(""),)), False),
        (event(killed=8, before=36, extra=(leaver("4 of 8 alive", distance=7),)), False),
    ],
)
def test_simultaneous_crashes_are_exact_or_explained(found: dict[str, Any], passed: bool) -> None:
    """Ring 8, E2: exact up to 7 of 43; beyond, whoever else leaves is explained and near."""
    finding = SIMULTANEOUS.judge(RealSimultaneousParameters(kills=(1,)), [{"seed": "0/0", "events": [found], "broken": "", "load": 0.1}])
    assert finding.passed is passed


def test_a_group_without_a_live_majority_is_found() -> None:
    """Ring 5 (quorum), D5: with k = 3 a pair of neighbours has a group of 8, of which 4 are enough only with the smallest id."""
    assert list(hopeless(RING, "05", {"06"}, 3)) == []
    assert list(hopeless(RING, "05", {"06", "07", "08"}, 3)) == []
    assert list(hopeless(RING, "05", {"06", "07", "08", "09"}, 3)) == []  # "02" lives and counts twice
    assert list(hopeless(RING, "05", {"02", "06", "07", "08"}, 3)) == ["4 of 8 of its group with 06 alive"]
    assert list(hopeless(RING, "05", {"12", "13", "14", "15"}, 3)) == []


def paused(seconds: float, decided: int) -> dict[str, Any]:
    return {"stopped for": seconds, "Decided": decided, "departed": decided}


def latencies(
    first: float = 0.5, last: float = 0.6, failed: float = 1.7, packets: float = 20.5, decided: int = 0, stopped: float = 0.35
) -> Any:
    kill = {"first Suspected": 0.4, "last Suspected": 0.5, "first Decided": first, "last Decided": last}
    kill |= {"first Failed": 1.5, "last Failed": failed, "survivors with Decided": 4, "apart": 0.2, "lateness": 0.01}
    return {"size": 5, "kills": [kill], "pauses": [paused(stopped, decided)], "packets": packets, "broken": "", "load": 0.1}


@pytest.mark.parametrize(
    "result, passed",
    [
        (latencies(), True),
        (latencies(first=0.56), False),
        (latencies(last=0.71), False),
        (latencies(failed=1.83), False),
        (latencies(packets=22.5), False),
        (latencies(decided=1), False),
        (latencies(decided=1, stopped=0.41), False),
        (
            {
                **latencies(),
                "pauses": [{"stopped for": 0.41, "Decided": 1, "departed": 1}, {"stopped for": 0.3, "Decided": 0, "departed": 0}],
            },
            True,
        ),
        ({**latencies(), "kills": [], "broken": "never formed"}, False),
    ],
)
def test_latency_is_judged_by_every_limit(result: dict[str, Any], passed: bool) -> None:
    """Ring 12, E15: packets, medians of Decided, the longest Failed, and no decision against the shortly stopped."""
    assert LATENCY.judge(LatencyParameters(sizes=(5,)), [result]).passed is passed


def test_every_picture_can_be_drawn() -> None:
    """The figures take what was measured, broken runs included."""
    figures = pytest.importorskip("matplotlib.figure")
    findings: list[tuple[Any, Finding]] = [
        (DETECTION, DETECTION.judge(DetectionParameters(leases=(0.2, 0.3)), [crashes(0.3, 0.4), {**crashes(lease=0.3), "runs": []}])),
        (SIMULTANEOUS, SIMULTANEOUS.judge(RealSimultaneousParameters(), [{"seed": "0", "events": [event()], "broken": "", "load": 0.1}])),
        (LATENCY, LATENCY.judge(LatencyParameters(), [latencies(), {**latencies(), "size": 16, "kills": []}])),
    ]
    for experiment, finding in findings:
        figure = figures.Figure()
        experiment.draw(figure, finding)
        assert figure.axes


@pytest.mark.parametrize("settings", [{"members": "8", "least": "8"}, {"members": "8", "alone": "8", "least": "4"}])
def test_sizes_that_do_not_fit_are_refused(settings: dict[str, str]) -> None:
    """Bad input: what cannot be measured is said before it is tried."""
    with pytest.raises(ConfigError, match="fewer than members"):
        parameters_of(DETECTION, settings)
