"""detection/E18: the leader is cut off with one other member: do two lead at once?

Spec: fast-detection 8 (E18), G5, D20; the paper: two leaders "when all the channels become very untimely".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.leadership.detector.config import Mode
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters, in_batches
from holdfast.lab.samples import by_column, summary
from holdfast.papers.detection.lab.elections import Elections, settings
from holdfast.papers.detection.lab.timeline import draw_reigns, reigns_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS = 7
CALM, CUT, HEALED = 10.0, 20.0, 20.0  # seconds
RHO = 1e-3  # clocks are that far off, each in its own way
MODES: tuple[Mode, ...] = ("paper", "quorum")
OVERLAP = "seconds with two leaders"
PROTOTYPE = {"paper": 16.5, "quorum": 0.0}
RUNS_PER_CELL = 25


class PartitionParameters(Parameters, frozen=True, kw_only=True):
    """Runs per mode."""

    seeds: Annotated[int, Meta(ge=1, le=SEEDS_MAX)] = 1000


class Partition(Experiment[PartitionParameters]):
    """Seven members; leader and next candidate on one side for 20 seconds, then all is whole again. Clocks drift as far as allowed."""

    id = "detection/E18"
    name = "detection/partition"
    title = "Cut off with the smaller half: terms alone, and terms with a lease"
    source = "fast-detection 8, E18, D20"
    criterion = "quorum mode: no instant with two leaders, in any run, and all agree after the cut; paper mode is shown"
    parameters = PartitionParameters
    seconds_per_cell = 0.36
    quick: ClassVar[Mapping[str, str]] = {"seeds": "6"}

    def cells(self, parameters: PartitionParameters, seed: int) -> Sequence[Cell]:
        return [cell for mode in MODES for cell in in_batches({"mode": mode}, parameters.seeds, RUNS_PER_CELL, seed * SEEDS_MAX)]

    def measure(self, cell: Cell) -> Measured:
        runs = [_run(cell["seed"] + number, cell["mode"]) for number in range(cell["runs"])]
        return {
            "mode": cell["mode"],
            "overlaps": [run["overlap"] for run in runs],
            "disagreed": sum(not run["agreed"] for run in runs),
            "first": runs[0]["reigns"],
        }

    def judge(self, parameters: PartitionParameters, results: Sequence[Measured]) -> Finding:
        overlaps = {mode: [seconds for row in results if row["mode"] == mode for seconds in row["overlaps"]] for mode in MODES}
        disagreed = {mode: sum(row["disagreed"] for row in results if row["mode"] == mode) for mode in MODES}
        notes = [f"quorum: two leaders for up to {max(overlaps['quorum']):.6f} s"] if max(overlaps["quorum"]) > 0 else []
        notes += [f"{mode}: {count} runs without agreement after the cut" for mode, count in disagreed.items() if count]
        measured: dict[str, Any] = by_column({mode: summary(values) for mode, values in overlaps.items()})
        measured[OVERLAP] = {"paper, mean": measured["mean"]["paper"], "quorum, longest": max(overlaps["quorum"])}
        measured["timelines"] = [{"mode": mode, "reigns": next(row["first"] for row in results if row["mode"] == mode)} for mode in MODES]
        expected = {OVERLAP: {"paper, mean": PROTOTYPE["paper"], "quorum, longest": 0.0}}
        return Finding(measured, expected, not notes, tuple(notes))

    def draw(self, figure: Figure, finding: Finding) -> None:
        panels = figure.subplots(2, 1, sharex=True)
        names = [f"n{i}" for i in range(MEMBERS)]
        for axes, line in zip(panels, finding.measured["timelines"], strict=True):
            draw_reigns(axes, names, line["reigns"], f"{line['mode']} mode: who leads, with the round")
            axes.axvspan(CALM, CALM + CUT, color="#7b8794", alpha=0.15)
        panels[-1].set_xlabel("seconds; shaded: the leader and the next candidate are cut off")


def _run(seed: int, mode: Mode) -> dict[str, Any]:
    random = Random(f"{seed}/drift")
    drift = {f"n{i}": 1 + RHO * random.choice((-1.0, 1.0, random.uniform(-1, 1))) for i in range(MEMBERS)}
    group = Elections(seed, MEMBERS, settings(mode, rho=RHO), drift=drift)
    world = group.world
    world.run(CALM - 1 + random.random())
    leader = group.settle()
    world.run(CALM)
    (other,) = group.next_candidates(leader, 1)  # the one whose turn it would be
    world.network.partition("cut", [[leader, other], [name for name in group.names if name not in (leader, other)]])
    world.run(CALM + CUT)
    world.network.heal("cut")
    world.run(CALM + CUT + HEALED)
    return {"overlap": group.overlap(), "agreed": group.agreed() is not None, "reigns": reigns_of(group)}


EXPERIMENT = Partition()
