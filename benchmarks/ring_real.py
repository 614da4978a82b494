"""`ring-real`: the ring's experiments with real processes, judged by the criteria of the specification.

    experiments_missed        of the three below, how many did not meet their criterion
    simultaneous_exact        share of runs in which only the killed were missing (E2)
    detection_within          smallest share of suspicions within their bounds over all T_l >= 128 ms (E5)
    first_decided_seconds     largest median over all sizes (E15); asked for: 0.55
    last_decided_seconds      the same for the last survivor; asked for: 0.7

JSON files and pictures are in ``out``. One of them alone, with other parameters:
``python -m holdfast lab run benchmarks/ring_real_detection.py --set leases=[0.256] --set crashes=8``
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import ROOT, Report, at_most, show_progress
from benchmarks.ring_real_detection import JUDGED_FROM
from holdfast.lab import registry
from holdfast.lab.experiment import Report as Found
from holdfast.lab.experiment import parameters_of
from holdfast.lab.report import perform, write

GOALS = {"experiments_missed": at_most(0)}
ROUNDS = 5
# What one round is: a run of E2, and so many crashes, kills and pauses of the others.
PER_ROUND = {"simultaneous": {"seeds": 1}, "detection": {"crashes": 8}, "latency": {"kills": 4, "pauses": 6}}
LONG = ("runs",)  # for the file, not for the screen


class Size(NamedTuple):
    """Other parameters than the specification's, and where the results go."""

    simultaneous: Mapping[str, str] = {}
    detection: Mapping[str, str] = {}
    latency: Mapping[str, str] = {}
    out: Path | None = Path("out")  # None: nothing is written


SIZE = Size()


def run(rounds: int = ROUNDS, size: Size = SIZE) -> Report:
    found = {name: _perform(name, rounds, getattr(size, name), size.out) for name in PER_ROUND}
    ratios = {
        "experiments_missed": sum(report.verdict != "pass" for report in found.values()),
        "simultaneous_exact": found["simultaneous"].measured["share of exact runs"],
        "detection_within": _smallest_share(found["detection"]),
        **_slowest(found["latency"]),
    }
    raw = {report.experiment: _short(report) for report in found.values()}
    return Report("ring-real", GOALS, ratios, {"rounds": rounds, **raw})


def _perform(name: str, rounds: int, chosen: Mapping[str, str], out: Path | None) -> Found:
    target = str(ROOT / "benchmarks" / f"ring_real_{name}.py")
    experiment = registry.find_experiment(target)
    counts = {each: str(number * rounds) for each, number in PER_ROUND[name].items()}
    show_progress(f"{experiment.id}: minutes")
    report = perform(target, parameters_of(experiment, {**counts, **chosen}), seed=0)
    if out is not None:
        write(experiment, report, out)
    return report


def _smallest_share(report: Found) -> float:
    rows = report.measured["of T_l"]
    judged = [row["share within"] for lease, row in zip(report.parameters["leases"], rows.values(), strict=True) if lease >= JUDGED_FROM]
    return min(judged, default=0.0)


def _slowest(report: Found) -> dict[str, float]:
    rows = report.measured.values()
    return {f"{which}_decided_seconds": max(row.get(f"median {which} Decided", 0.0) for row in rows) for which in ("first", "last")}


def _short(report: Found) -> dict[str, Any]:
    measured = {name: value for name, value in report.measured.items() if name not in LONG}
    return {"verdict": report.verdict, "criterion": report.criterion, "notes": "; ".join(report.notes), **measured}
