"""limits/F9: what does one link that is cut do to the estimate, with and without the black list?

Spec: limits 5.4, 8 (F9), D18; paper 003, 7.1.2, Figure 9. Six members, no loss. The link n0-n2 is cut at 5 s, and every 9 s all members
report 10 instead of 1, or 1 instead of 10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from msgspec import Meta

from holdfast.features.limits.lab.measures import between, mean, thinned
from holdfast.features.limits.lab.mutations import as_published, without
from holdfast.features.limits.lab.sums import SumGroup
from holdfast.features.limits.protocol.config import LimitsConfig
from holdfast.lab.experiment import SEEDS_MAX, Cell, Experiment, Finding, Measured, Parameters
from holdfast.lab.links import Link, Uniform
from holdfast.lab.measured import checked, completed, shortened, violations

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEMBERS, EPOCH = 6, 0.1
CUT_AT, EVERY = 5.0, 9.0
FORMED = 10.0  # seconds before the clock of the figure begins
LOOK = 0.1
VALUES = (1.0, 10.0)  # of each member, in turn
NEAR, WITHIN = 0.01, 3.0
DIVERGED = 1.0
WITH, WITHOUT = "black list", "without"


class CutParameters(Parameters, frozen=True, kw_only=True):
    """The setting of section 7.1.2."""

    changes: Annotated[int, Meta(ge=2, le=20)] = 5  # of values


class OneCut(Experiment[CutParameters]):
    """The same values, the same cut, twice."""

    id = "limits/F9"
    name = "limits/cut"
    title = "One link is cut: with the black list the estimate follows, without it diverges"
    source = "paper 003, 6.2.2, Figure 9; limits 8, F9"
    criterion = (
        "without: an error above 100 % after the first change, and growing; with: below 1 % 3 s after each change, and RL1 to RL3 hold"
    )
    parameters = CutParameters
    seconds_per_cell = 1.5
    quick: ClassVar[Mapping[str, str]] = {"changes": "2"}

    def cells(self, parameters: CutParameters, seed: int) -> Sequence[Cell]:
        return [
            {"way": way, "changes": parameters.changes, "seed": seed * SEEDS_MAX + number}
            for way in (WITH, WITHOUT)
            for number in range(parameters.seeds)
        ]

    def measure(self, cell: Cell) -> Measured:
        with without(as_published) if cell["way"] == WITHOUT else nullcontext():
            return checked(_play, cell)

    def judge(self, parameters: CutParameters, results: Sequence[Measured]) -> Finding:
        rows = completed(results)
        misses = [*violations(results), *(note for row in rows for note in _misses(row))]
        measured: dict[str, Any] = {
            "error 3 s after each change": {
                way: [max(each) for each in zip(*_of(rows, way, "after"), strict=True)] for way in (WITH, WITHOUT)
            },
            "lines": {row["way"]: row["line"] for row in rows if row["seed"] % SEEDS_MAX == 0},
        }
        expected = {"error 3 s after each change": "the paper: diverges without, converges with the black list"}
        return Finding(measured, expected, not misses, shortened(misses))

    def draw(self, figure: Figure, finding: Finding) -> None:
        axes = figure.subplots()
        for way, line in finding.measured["lines"].items():
            axes.semilogy([at for at, _ in line], [max(1e-6, error) * 100 for _, error in line], label=way)
        axes.axvline(CUT_AT, color="#b42318", linestyle="--", label="the cut")
        axes.set_xlabel("seconds")
        axes.set_ylabel("mean relative error, %")
        axes.legend()


def _play(cell: Cell) -> Measured:
    group = SumGroup(cell["seed"], MEMBERS, LimitsConfig(epoch=EPOCH, branching=1), link=Link(Uniform(0.001, 0.005)), checked=True)
    truth = _set_all(group, 0)
    group.install()
    group.run(FORMED)
    began, changes = group.world.now, 0
    line: list[tuple[float, float]] = []
    is_cut = False
    while group.world.now < began + EVERY * (cell["changes"] + 1) - LOOK:
        group.run(LOOK)
        at = group.world.now - began
        if not is_cut and at >= CUT_AT - LOOK / 2:
            is_cut = True
            group.world.network.partition(is_cut, [group.names[:1], group.names[2:3]])
        if at >= EVERY * (changes + 1) - LOOK / 2:
            changes += 1
            truth = _set_all(group, changes)
        line.append((at, mean(group.errors(truth))))
    after = [max(between(line, EVERY * number + WITHIN, EVERY * (number + 1) - LOOK)) for number in range(1, cell["changes"] + 1)]
    return {**cell, "after": [float(f"{error:.4g}") for error in after], "line": thinned(line)}


def _set_all(group: SumGroup, change: int) -> float:
    """All of them report another value; what that comes to."""
    value = VALUES[change % len(VALUES)]
    group.set_all(value)
    return value * len(group.names)


def _misses(row: Measured) -> list[str]:
    where, after = f"{row['way']}, seed {row['seed']}", row["after"]
    if row["way"] == WITH:
        return [f"{where}: an error of {max(after):.2%} {WITHIN:g} s after a change"] if max(after) >= NEAR else []
    if after[0] < DIVERGED or after[-1] <= after[0]:
        return [f"{where}: an error of {after[0]:.0%} after the first change, and of {after[-1]:.0%} after the last one"]
    return []


def _of(rows: Sequence[Measured], way: str, what: str) -> list[Any]:
    return [row[what] for row in rows if row["way"] == way]


EXPERIMENT = OneCut()
