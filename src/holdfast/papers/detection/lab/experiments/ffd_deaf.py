"""detection/E15: what can one process do that hears no other and is heard by all?

Spec: fast-detection 8 (E15), D14, G7, I10; the paper is silent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.detector.config import Mode
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.papers.detection.lab.elections import Elections, settings
from holdfast.papers.detection.lab.timeline import draw_reigns, reigns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS = 5
SECONDS = 300.0
CALM = 20.0  # seconds before
MODES: tuple[Mode, ...] = ("paper", "quorum")
LEADERSHIPS = {"paper": MEMBERS - 1, "quorum": 0}  # one after the other until it is the deaf one's turn, or none at all
NEW, ENDS = "new leaderships, mean", "share of runs that end with the deaf one leading"
RUNS_PER_CELL = 25


class DeafParameters(Parameters, frozen=True, kw_only=True):
    """Runs per mode."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1000


class Deaf(Experiment[DeafParameters]):
    """Five members; nothing reaches the last of them for 300 seconds. Nothing else is lost.

    All have led once before: a process that never had an answer from another one is not believed by it (F3), so one that is deaf from its
    first day does no harm in either mode."""

    id = "detection/E15"
    name = "detection/deaf"
    title = "One deaf process: any of them demotes, or a majority must agree"
    source = "fast-detection 8, E15, D14 (the paper is silent)"
    criterion = "paper mode: 4 new leaderships in every run, the last of them the deaf one's; quorum mode: none"
    parameters = DeafParameters
    seconds_per_cell = 1.5
    quick: ClassVar[Mapping[str, str]] = {"seeds": "2"}

    def cells(self, parameters: DeafParameters, seed: int) -> Sequence[Cell]:
        return [cell for mode in MODES for cell in in_batches({"mode": mode}, parameters.seeds, RUNS_PER_CELL, seed * SEEDS_MAX)]

    def measure(self, cell: Cell) -> Measured:
        runs = [_run(cell["seed"] + number, cell["mode"]) for number in range(cell["runs"])]
        counts = Counter((run["new"], run["ends"]) for run in runs)
        return {
            "mode": cell["mode"],
            "runs": [[new, ends, count] for (new, ends), count in counts.items()],
            "first": runs[0]["reigns"],
            "deaf": runs[0]["deaf"],
        }

    def judge(self, parameters: DeafParameters, results: Sequence[Measured]) -> Finding:
        found = {mode: _summed([row for row in results if row["mode"] == mode]) for mode in MODES}
        notes = [
            f"{mode}: {count} runs with {new} new leaderships"
            for mode, runs in found.items()
            for (new, _), count in runs.items()
            if new != LEADERSHIPS[mode]
        ]
        spared = sum(count for (_, ends), count in found["paper"].items() if not ends)
        notes += [f"paper: {spared} runs do not end with the deaf one leading"] if spared else []
        first = {mode: next(row for row in results if row["mode"] == mode) for mode in MODES}
        measured: dict[str, Any] = {
            NEW: {mode: sum(new * count for (new, _), count in runs.items()) / runs.total() for mode, runs in found.items()},
            ENDS: {mode: sum(count for (_, ends), count in runs.items() if ends) / runs.total() for mode, runs in found.items()},
            "runs": {mode: runs.total() for mode, runs in found.items()},
            "timelines": [{what: first[mode][what] for what in ("mode", "deaf", "first")} for mode in MODES],
        }
        return Finding(measured, {NEW: dict(LEADERSHIPS), ENDS: {"paper": 1.0, "quorum": 0.0}}, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        panels = figure.subplots(2, 1, sharex=True)
        names = [f"n{i}" for i in range(MEMBERS)]
        for axes, line in zip(panels, finding.measured["timelines"], strict=True):
            draw_reigns(axes, names, line["first"], f"{line['mode']} mode: who leads, with the round; {line['deaf']} is deaf")
            axes.axvline(CALM, color="#7b8794", linestyle="--")
        panels[-1].set_xlabel("seconds; deaf from the dashed line on")


def _run(seed: int, mode: Mode) -> dict[str, Any]:
    group = Elections(seed, MEMBERS, settings(mode))
    group.rotate()
    since = group.world.now
    group.world.run(since + CALM)
    leader = group.settle()
    before, deaf = len(group.reigns), group.names[group.names.index(leader) - 1]  # the last whose turn it is
    group.world.network.cut("deaf", [name for name in group.names if name != deaf], [deaf])
    group.world.run(since + CALM + SECONDS)
    leading = [reign.name for reign in group.reigns if reign.until is None]
    return {"new": len(group.reigns) - before, "ends": leading == [deaf], "deaf": deaf, "reigns": reigns_of(group, since)}


def _summed(rows: Sequence[Measured]) -> Counter[tuple[int, bool]]:
    total: Counter[tuple[int, bool]] = Counter()
    for row in rows:
        for new, ends, count in row["runs"]:
            total[new, ends] += count
    return total


EXPERIMENT = Deaf()
