"""What ``python -m benchmarks election-grid`` recorded of 16 real processes, and how F12 to F14 read it.  Spec: election 8 (F12 to F14).

The file is what the benchmark prints with ``--json``; the record is its ``raw.run``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from holdfast.errors import ConfigError
from holdfast.features.election.lab.paper import DEVICES, RUNS, Setting
from holdfast.features.election.protocol.manner import VARIANTS
from holdfast.lab.experiment import Cell, Experiment, Finding, Measured, Parameters

MISSING = "no run was given: record one with `python -m benchmarks election-grid --json > FILE`, then --set run=FILE"
PATH_MAX = 4096  # as Linux has it


class Held(Struct, array_like=True, frozen=True):
    """One election among real processes. What follows ``whole`` is said of those that came to an end."""

    variant: str
    run: int  # elections of one number have one initiator
    initiator: str
    whole: bool
    seconds: float = 0.0  # until the last member had the leader
    changes: int = 0  # of who said LEADER
    casts: int = 0
    hash: int = 0  # rank of the leader
    lackers: int = 0  # the most lists that lacked one member when it ended


class Loss(Struct, frozen=True):
    """Datagrams between members, in the time of the elections."""

    asked: float  # what should have been lost of them
    found: float
    datagrams: int


class Point(Struct, frozen=True):
    """Elections at one drop."""

    setting: Setting
    elections: list[Held]
    loss: Loss


class Recorded(Struct, frozen=True):
    """One run of the benchmark."""

    places: dict[str, tuple[float, float]]  # of members, each a process; in metres, the best-ranked first
    reach: float
    f: int
    points: list[Point]


class Raw(Struct, frozen=True):
    """Of the benchmark's numbers, what F12 to F14 read."""

    run: Recorded


class File(Struct, frozen=True):
    """As the benchmark prints it; other fields are for readers."""

    raw: Raw


class RunParameters(Parameters, frozen=True, kw_only=True):
    """The file, and how many elections per point and variant it must have."""

    run: Annotated[str, Meta(max_length=PATH_MAX)] = ""
    elections: Annotated[int, Meta(ge=1, le=100_000)] = RUNS


class OfDevices(Experiment[RunParameters]):
    """Judges a recorded run: nothing runs here."""

    parameters = RunParameters
    repetitions = ""
    recorded = True
    seconds_per_cell = 0.01  # nothing runs
    settings: ClassVar[tuple[Setting, ...]] = DEVICES

    def cells(self, parameters: RunParameters, seed: int) -> Sequence[Cell]:
        return rows(read(parameters.run)) if parameters.run else [{"setting": None, "elections": []}]

    def measure(self, cell: Cell) -> Measured:
        return cell

    def judge(self, parameters: RunParameters, results: Sequence[Measured]) -> Finding:
        if not parameters.run:
            return Finding({}, {}, False, (MISSING,))
        return self.judge_run(results, too_few(results, parameters.elections))

    def judge_run(self, results: Sequence[Measured], misses: list[str]) -> Finding:
        """``misses``: what is wanting of the run itself."""
        raise NotImplementedError


def read(path: str) -> Recorded:
    """Raises ``ConfigError``."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=File).raw.run
    except (OSError, msgspec.DecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"--set run={path}: {why}; accepted is the output of `python -m benchmarks election-grid --json`") from None


def rows(found: Recorded) -> list[dict[str, Any]]:
    """One for each point, of the form that the figures of the laboratory read."""
    places = {name: list(place) for name, place in found.places.items()}
    return [
        {
            "setting": list(point.setting),
            "elections": [msgspec.structs.asdict(each) for each in point.elections],
            "loss": msgspec.structs.asdict(point.loss),
            "places": places,
            "reach": found.reach,
        }
        for point in found.points
    ]


def too_few(results: Sequence[Measured], wanted: int) -> list[str]:
    """Points at which some variant has fewer elections than were asked for."""
    found = {tuple(row["setting"]): [run["variant"] for run in row["elections"]] for row in results}
    least = {setting: min(found.get(setting, []).count(variant) for variant in VARIANTS) for setting in DEVICES}
    return [f"{setting}: {count} elections of a variant, not {wanted}" for setting, count in least.items() if count < wanted]
